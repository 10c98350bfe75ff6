"""Baseline methods for comparison."""

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
    """Send a prompt about one text; return `None` if no reply could be parsed.

    Args:
        caller: calls the model.
        prompt: name of the prompt.
        model: Pydantic model of the reply.
        pieces: pieces of the text; pieces at the end that do not fit are left out.
        window: L in tokens.
        reply: tokens reserved for the reply.
        between: separator of the pieces.
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
    """Return a step of a trail."""
    scored_segments = tuple(ScoredSegment(segment.id, 0.0, segment.tokens) for segment in read)
    return Step(n, action, read=scored_segments, reason=reason)


def joined(pieces: Sequence[Passage]) -> Passage:
    """Join adjacent pieces of one document."""
    first, last = pieces[0].segment, pieces[-1].segment
    segment = replace(
        first,
        end=last.end,
        text="".join(piece.segment.text for piece in pieces),
        tokens=sum(piece.segment.tokens for piece in pieces),
    )
    return replace(pieces[0], segment=segment)
