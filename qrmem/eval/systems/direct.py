"""Reading with no retrieval: nothing, everything, or what truncation leaves (B01, B14)."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from qrmem.eval.bench import Bench, Tally
from qrmem.eval.records import Context, Found, Item
from qrmem.eval.systems.reading import answer_from, fitting
from qrmem.types import Passage, Reasoner

Keep = Literal["left", "right", "middle"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedBook:
    """Answers from nothing: what the model knows by itself."""

    @property
    def needs(self) -> frozenset[str]:
        """Nothing."""
        return frozenset()

    async def __call__(self, item: Item, context: Context, bench: Bench) -> Found:
        """Answer one item."""
        return await answer_from(bench, item, ())


@dataclass(frozen=True, slots=True, kw_only=True)
class Truncated:
    """Reads the text as it stands, cut to the window.

    Attributes:
        keep: `left`, `right`, or `middle`: LongBench's rule, which keeps both ends and cuts out the
            middle.
        window: instead of the run's own; that of the model, for the full text.
    """

    keep: Keep
    window: int = 0

    @property
    def needs(self) -> frozenset[str]:
        """Nothing."""
        return frozenset()

    async def __call__(self, item: Item, context: Context, bench: Bench) -> Found:
        """Answer one item."""
        tally = Tally(bench.listener)
        run = bench.reader(tally)
        room = run.reasoner.room(bench.asked(item, self.window))
        kept = truncated(run.reasoner, bench.texts(context), room, self.keep)
        return await answer_from(bench, item, kept, run=run, tally=tally, window=self.window)


def truncated(
    reasoner: Reasoner, passages: Sequence[Passage], room: int, keep: Keep
) -> list[Passage]:
    """Return what fits of a text, in order, labelled; the passage at the cut is cut itself."""
    if keep == "right":
        kept = _from_right(reasoner, passages, room)
    elif keep == "left" or len(fitting(reasoner, passages, room)) == len(passages):
        kept = _from_left(reasoner, passages, room)
    else:
        head = _from_left(reasoner, passages, room // 2)
        kept = [*head, *_from_right(reasoner, passages[len(head) :], room - room // 2)]
    return [replace(passage, label=f"S{n}") for n, passage in enumerate(kept, 1)]


def _from_left(reasoner: Reasoner, passages: Sequence[Passage], room: int) -> list[Passage]:
    kept: list[Passage] = []
    for passage in passages:
        size = reasoner.size(passage)
        if size > room:
            return [*kept, *_part(reasoner, passage, room, from_end=False)]
        kept.append(passage)
        room -= size
    return kept


def _from_right(reasoner: Reasoner, passages: Sequence[Passage], room: int) -> list[Passage]:
    kept: list[Passage] = []
    for passage in reversed(passages):
        size = reasoner.size(passage)
        if size > room:
            kept += _part(reasoner, passage, room, from_end=True)
            break
        kept.append(passage)
        room -= size
    return kept[::-1]


def _part(reasoner: Reasoner, passage: Passage, room: int, *, from_end: bool) -> list[Passage]:
    """Return the words at one end of a passage that fit, or nothing."""
    words = passage.segment.text.split()

    def of(count: int) -> Passage:
        own = words[len(words) - count :] if from_end else words[:count]
        return replace(passage, segment=replace(passage.segment, text=" ".join(own)))

    count = bisect_right(range(1, len(words) + 1), room, key=lambda n: reasoner.size(of(n)))
    return [of(count)] if count else []
