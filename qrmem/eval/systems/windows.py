"""SlidingWindow: the whole text in a few windows, each asked, the answers put together (B05)."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from qrmem.eval.bench import Bench, Tally
from qrmem.eval.metrics.answers import normalised
from qrmem.eval.records import Context, Found, Item
from qrmem.eval.systems.reading import read_step
from qrmem.types import Passage, Reasoner, Step, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class SlidingWindow:
    """Asks every window of the text; the answer that most windows give counts.

    Where no window answers and one is forced, it is forced from the window that came last.

    Attributes:
        requests: windows that the text is spread over evenly (the paper: five); more where it does
            not fit so many.
    """

    requests: int = 5

    @property
    def needs(self) -> frozenset[str]:
        """Nothing."""
        return frozenset()

    async def __call__(self, item: Item, context: Context, bench: Bench) -> Found:
        """Answer one item."""
        tally = Tally(bench.listener)
        reasoner = bench.reader(tally).reasoner
        asked = bench.asked(item)
        windows = spread(reasoner, bench.texts(context), reasoner.room(asked), self.requests)
        steps: list[Step] = []
        verdicts: list[Verdict] = []
        for window in windows:
            verdicts.append(await reasoner.judge(asked, window))
            steps.append(read_step(window, (), len(steps) + 1, verdicts[-1].tokens))
        answered = [verdict for verdict in verdicts if verdict.is_answerable]
        final, is_forced = elected(answered), False
        if not answered and windows and bench.is_forced(item):
            final, is_forced = await reasoner.judge(asked, windows[-1], force=True), True
        if not final.is_answerable:
            return Found(steps=tuple(steps), usage=tally.usage)
        return Found(
            text=final.answer,
            choice=final.choice,
            status="forced" if is_forced else "answered",
            reason=final.reason,
            steps=tuple(steps),
            usage=tally.usage,
        )


def spread(
    reasoner: Reasoner, passages: Sequence[Passage], room: int, requests: int
) -> list[list[Passage]]:
    """Return windows that cover a text evenly, each within the room."""
    total = sum(map(reasoner.size, passages))
    share = min(room, -(-total // max(requests, 1)))
    windows: list[list[Passage]] = []
    used = room + 1
    for passage in passages:
        size = reasoner.size(passage)
        is_full = used >= share if len(windows) < requests else False
        if is_full or used + size > room:
            windows.append([])
            used = 0
        windows[-1].append(replace(passage, label=f"S{len(windows[-1]) + 1}"))
        used += size
    return windows


def elected(answered: Sequence[Verdict]) -> Verdict:
    """Return the answer that came most often, of equals the first."""
    if not answered:
        return Verdict(is_answerable=False)
    votes = Counter(_vote(verdict) for verdict in answered)
    best = max(votes.values())
    return next(verdict for verdict in answered if votes[_vote(verdict)] == best)


def _vote(verdict: Verdict) -> str | int:
    return verdict.choice if verdict.choice is not None else normalised(verdict.answer)
