"""One reader for all: passages go into the window, the run's reasoner answers from them."""

from collections.abc import Sequence

from qrmem.answering.citations import locate
from qrmem.eval.bench import Bench, Tally
from qrmem.eval.records import Context, Found, Item
from qrmem.eval.support import cited_sentences
from qrmem.session import Run
from qrmem.types import Passage, Reasoner, ScoredSegment, Status, Step


async def answer_from(
    bench: Bench,
    item: Item,
    passages: Sequence[Passage],
    *,
    run: Run | None = None,
    tally: Tally | None = None,
    context: Context | None = None,
    window: int = 0,
    steps: Sequence[Step] = (),
) -> Found:
    """Answer an item from passages, given best first; those that do not fit are left out.

    Args:
        run: of the calls that were made for the item before, with the tally that counts them.
        context: where sentences are given, so that it is known which ones the answer quotes.
        window: instead of the run's own.
        steps: what happened before.
    """
    tally = tally or Tally(bench.listener)
    run = run or bench.reader(tally)
    asked = bench.asked(item, window)
    kept = fitting(run.reasoner, passages, run.reasoner.room(asked))
    verdict = await run.reasoner.judge(asked, kept, force=bench.is_forced(item))
    step = read_step(kept, [p for p in passages if p not in kept], len(steps) + 1, verdict.tokens)
    status: Status = "answered" if verdict.is_answerable else "unanswerable"
    return Found(
        text=verdict.answer,
        choice=verdict.choice,
        status=status,
        reason=verdict.reason,
        read=tuple(p.segment.id for p in kept),
        cited=cited_sentences(locate(verdict.quotes, kept), context) if context else (),
        steps=(*steps, step),
        usage=tally.usage,
    )


def fitting(reasoner: Reasoner, passages: Sequence[Passage], room: int) -> list[Passage]:
    """Return the first passages that fit together; after one that does not, none is taken."""
    kept: list[Passage] = []
    for passage in passages:
        room -= reasoner.size(passage)
        if room < 0:
            break
        kept.append(passage)
    return kept


def read_step(kept: Sequence[Passage], dropped: Sequence[Passage], n: int, tokens: int) -> Step:
    """Return what a trail keeps of one reading."""
    return Step(
        n=n,
        action="read",
        read=tuple(ScoredSegment(p.segment.id, 0.0, p.segment.tokens) for p in kept),
        dropped=tuple(ScoredSegment(p.segment.id, 0.0, p.segment.tokens) for p in dropped),
        tokens=tokens,
    )
