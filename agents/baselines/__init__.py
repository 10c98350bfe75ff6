"""Other methods, to compare with."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from pydantic import BaseModel

from qrmem.errors import ModelOutputError
from qrmem.llm.prompting import Caller
from qrmem.prompts import fenced
from qrmem.types import Passage, ScoredSegment, Segment, Step

Out = TypeVar("Out", bound=BaseModel)


async def ask_about(
    caller: Caller,
    prompt: str,
    model: type[Out],
    pieces: Sequence[str],
    *,
    window: int,
    reply: int,
    between: str = "\n",
) -> Out | None:
    """Ask a prompt about one text; `None` where no reply could be read.

    Args:
        pieces: of the text; those that do not fit are left out from the end.
        between: what stands between two pieces.
    """
    try:
        call = await caller.call(
            prompt,
            model,
            lambda kept: dict(text=fenced(between.join(kept[0]))),
            [pieces],
            window=window,
            reply=reply,
        )
    except ModelOutputError:
        return None
    return call.value


def step_of(n: int, action: str, reason: str, read: Sequence[Segment] = ()) -> Step:
    """Return a step as a trail has it."""
    scored_segments = tuple(ScoredSegment(segment.id, 0.0, segment.tokens) for segment in read)
    return Step(n, action, read=scored_segments, reason=reason)


def joined(pieces: Sequence[Passage]) -> Passage:
    """Return neighbouring pieces of one document as one."""
    first, last = pieces[0].segment, pieces[-1].segment
    segment = replace(
        first,
        end=last.end,
        text="".join(piece.segment.text for piece in pieces),
        tokens=sum(piece.segment.tokens for piece in pieces),
    )
    return replace(pieces[0], segment=segment)
