"""Limits and prompt parts that the modes `compact` and `paper` share."""

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
"""Number of a segment's tokens per question, at five questions per 600 tokens."""
LONG = 4
"""Maximum tokens of notes per token of text; dense text needs 2.4, lists up to 4."""


class Arguments(TypedDict):
    """Arguments of `Caller.call` for a prompt about a segment."""

    render: Render
    groups: Kept
    window: int
    reply: int
    segments: Sequence[str]
    attempt: int
    standing: str


SchemaPart = Literal["all", "entities", "relations", "names", "none"]
"""Part of a schema in a prompt: all, only entity or relation types, only names, or nothing."""


@dataclass(frozen=True, slots=True)
class PromptContext:
    """The dependencies and limits of reading with a chat model.

    Attributes:
        caller: calls the model.
        window: L in tokens, also for calls that build the memory.
        reserve: least number of tokens for a reply.
        questions: number of generated questions per 600 tokens.
        schema: the memory's own types, or `None`.
    """

    caller: Caller
    window: int
    reserve: int
    questions: int
    schema: Schema | None = None

    def types(self, part: SchemaPart = "all") -> str:
        """Return the memory's own types as text for a prompt; "" if it has none."""
        if self.schema is None or part == "none":
            return ""
        show = (lambda kind: kind.name) if part == "names" else Kind.line
        kinds = self.schema.entities.values(), self.schema.relations.values()
        lines = ["\n".join(map(show, kinds_of_part)) for kinds_of_part in kinds]
        names = ("entities", "relations")
        lines_shown = {
            name: kinds_of_part if part in ("all", "names", name) else ""
            for name, kinds_of_part in zip(names, lines, strict=True)
        }
        parts_in_words = " and ".join(names) if part in ("all", "names") else part
        closed = "" if self.schema.is_open else parts_in_words
        return self.caller.prompts["schema"].user({**lines_shown, "closed": closed})

    def wanted(self, segment: Segment) -> int:
        """Return the number of questions to ask for: in proportion to length, at least 1."""
        share = round(segment.tokens * self.questions / (5 * PER_QUESTION))
        return min(self.questions, max(1, share))

    def within(self, reading: Reading) -> int:
        """Return the window of a reading: the run's, if it has one and it is smaller."""
        return min(self.window, reading.window) if reading.window else self.window

    def about(
        self,
        segment: Segment,
        reading: Reading,
        *groups: Sequence[str],
        more: Callable[[Kept], Mapping[str, object]] = lambda kept: {},
        is_long: bool = False,
        part: SchemaPart = "all",
    ) -> Arguments:
        """Return the arguments of `Caller.call` for a prompt about a segment.

        Args:
            segment: the segment.
            reading: its title, summary and question.
            groups: lists of pieces that the prompt shows besides the document's summary.
            more: makes the other slots of the prompt from the pieces that fit.
            is_long: whether the notes may be longer than the text.
            part: part of the schema to show.
        """

        def render(kept: Kept) -> Mapping[str, object]:
            background_shown = background(reading, kept[0])
            text = fenced(segment.text)
            return dict(
                background=background_shown, focus=reading.question, segment=text, **more(kept[1:])
            )

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
    """Return the context of a segment: title and summary of its document."""
    lines = [reading.title, " ".join(summary)]
    return fenced_if("\n".join(line for line in lines if line))


@lru_cache(maxsize=64)
def pieces(summary: str) -> tuple[str, ...]:
    """Return the sentences of a summary, which can be dropped from its end."""
    return tuple(summary[start:end].strip() for start, end in sentences(summary))


def entity_lines(known: Contribution) -> list[str]:
    """Return the entities of a contribution as lines for a prompt."""
    return [f"{m.name}|{m.type}" if m.type else m.name for m in known.mentions]


def relation_lines(known: Contribution) -> list[str]:
    """Return the relations of a contribution as lines for a prompt."""
    return [f"{s.head}|{s.description}|{s.tail}" for s in known.statements]


def numbered(questions: Sequence[str]) -> str:
    """Return questions as a numbered list."""
    return "\n".join(f"{n}. {question}" for n, question in enumerate(questions, 1))
