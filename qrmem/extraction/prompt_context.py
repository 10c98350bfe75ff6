"""What both ways of reading a segment share: limits, and the parts of a prompt around a segment."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypedDict, TypeVar

from pydantic import BaseModel

from qrmem.llm.prompting import Caller, Kept, Render
from qrmem.prompts import fenced, fenced_if
from qrmem.schema import Kind, Schema
from qrmem.text.sentences import sentences
from qrmem.types import Contribution, Reading, Segment

Out = TypeVar("Out", bound=BaseModel)

PER_QUESTION = 120
"""Tokens of a segment for each question, if five are asked per 600."""
LONG = 4
"""Tokens of notes for each token that they are about; dense text needs 2.4, lists up to 4."""


class Arguments(TypedDict):
    """Arguments of `Caller.call` for a prompt about a segment."""

    render: Render
    groups: Kept
    window: int
    reply: int
    segments: Sequence[str]
    attempt: int
    standing: str


Part = Literal["all", "entities", "relations", "names", "none"]
"""What of a schema a prompt shows: all of it, a half, the names of its types alone, or nothing."""


@dataclass(frozen=True, slots=True)
class PromptContext:
    """What reading with a chat model works with.

    Attributes:
        window: L, for building calls too.
        reserve: least tokens for a reply.
        questions: generated questions per 600 tokens.
        schema: own types of the memory, if it has any.
    """

    caller: Caller
    window: int
    reserve: int
    questions: int
    schema: Schema | None = None

    def types(self, part: Part = "all") -> str:
        """Return how a prompt shows the memory's own types; "" where it has none."""
        if self.schema is None or part == "none":
            return ""
        show = (lambda kind: kind.name) if part == "names" else Kind.line
        kinds = self.schema.entities.values(), self.schema.relations.values()
        lines = ["\n".join(map(show, own)) for own in kinds]
        names = ("entities", "relations")
        shown = {
            name: own if part in ("all", "names", name) else ""
            for name, own in zip(names, lines, strict=True)
        }
        asked = " and ".join(names) if part in ("all", "names") else part
        closed = "" if self.schema.is_open else asked
        return self.caller.prompts["schema"].user({**shown, "closed": closed})

    def wanted(self, segment: Segment) -> int:
        """Return how many questions to ask for: in proportion, at least one, at most all."""
        share = round(segment.tokens * self.questions / (5 * PER_QUESTION))
        return min(self.questions, max(1, share))

    def within(self, reading: Reading) -> int:
        """Return the window of the run that a reading is part of."""
        return min(self.window, reading.window) if reading.window else self.window

    def about(
        self,
        segment: Segment,
        reading: Reading,
        *groups: Sequence[str],
        more: Callable[[Kept], Mapping[str, object]] = lambda kept: {},
        is_long: bool = False,
        part: Part = "all",
    ) -> Arguments:
        """Return how a prompt shows a segment, and within what it is sent, in the run that reads.

        Args:
            groups: lists of pieces that the prompt shows beside the document's summary.
            more: makes its other slots of what is kept of them.
            is_long: whether the notes may be longer than what they are about.
            part: what of the schema is shown.
        """

        def render(kept: Kept) -> Mapping[str, object]:
            shown = background(reading, kept[0])
            text = fenced(segment.text)
            return dict(background=shown, focus=reading.question, segment=text, **more(kept[1:]))

        window = self.within(reading)
        reply = min(self.reserve, window // 4)
        if is_long:
            reply = min(max(reply, LONG * segment.tokens), window // 3)
        return {
            "render": render,
            "groups": [pieces(reading.summary), *groups],
            "window": window,
            "reply": reply,
            "segments": (segment.id,),
            "attempt": reading.attempt,
            "standing": self.types(part),
        }


def background(reading: Reading, summary: Sequence[str]) -> str:
    """Return what places a segment in its document: title and summary."""
    lines = [reading.title, " ".join(summary)]
    return fenced_if("\n".join(line for line in lines if line))


@lru_cache(maxsize=64)
def pieces(summary: str) -> tuple[str, ...]:
    """Return a summary's sentences, so that it can be shortened from its end."""
    return tuple(summary[start:end].strip() for start, end in sentences(summary))


def entity_lines(known: Contribution) -> list[str]:
    """Return a sub-graph's entities as a prompt shows them."""
    return [f"{m.name}|{m.type}" if m.type else m.name for m in known.mentions]


def relation_lines(known: Contribution) -> list[str]:
    """Return a sub-graph's relations as a prompt shows them."""
    return [f"{s.head}|{s.description}|{s.tail}" for s in known.statements]


def numbered(questions: Sequence[str]) -> str:
    """Return questions as a numbered list."""
    return "\n".join(f"{n}. {question}" for n, question in enumerate(questions, 1))
