"""Turns that `recall` shows in part."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from qrmem.memory.chat.conversation import Chat
from qrmem.retrieval.turn_ranking import TurnPart
from qrmem.types import Segment, Turn
from qrmem.types.turns import related_lines

LINE = 12
"""Tokens of the words before a turn: speaker and time."""


def within(
    chat: Chat,
    turns: Mapping[int, Turn],
    parts: Mapping[int, Sequence[Segment]],
    ordered: Iterable[TurnPart],
    tokens: int,
) -> Iterator[TurnPart]:
    """Yield the parts that fit some tokens, first ones first."""
    for part in ordered:
        segment = parts[part.turn][part.index]
        line = related_lines(replace(turns[part.turn], text=segment.text), (), ())[0]
        tokens_needed = chat.count(line) + 1 if chat.is_printed else segment.tokens
        if tokens_needed <= tokens:
            tokens -= tokens_needed
            yield part


def excerpts(
    chat: Chat,
    turns: Mapping[int, Turn],
    parts: Mapping[int, Sequence[Segment]],
    ordered: Iterable[TurnPart],
    tokens: int,
) -> dict[Turn, float]:
    """Return turns, reduced to their best parts, with scores: somewhat more than fits."""
    places_shown: dict[int, set[int]] = {}
    scores: dict[int, float] = {}
    for part in ordered:
        segment = parts[part.turn][part.index]
        is_new = part.turn not in places_shown
        tokens -= segment.tokens + (LINE if is_new and chat.is_printed else 0)
        places_shown.setdefault(part.turn, set()).add(part.index)
        scores.setdefault(part.turn, round(part.score, 4))
        if tokens < 0:
            break
    return {
        replace(turns[number], text=_excerpt(parts[number], places)): scores[number]
        for number, places in places_shown.items()
    }


def _excerpt(parts: Sequence[Segment], places: Collection[int]) -> str:
    """Return a turn with only some parts.

    Parts that follow each other are joined as they were. An ellipsis and a new line stand for those
    that are left out.
    """
    text, before = "", -1
    for place in sorted(places):
        if place > before + 1:
            text = f"{text.rstrip()} …\n" if text else "… "
        text += parts[place].text
        before = place
    return (text if before == len(parts) - 1 else f"{text.rstrip()} …").strip()
