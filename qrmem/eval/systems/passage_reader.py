"""The common reader: passages go into the window, and the reasoner answers from them."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

from qrmem.answering.citations import locate
from qrmem.eval.harness import Harness
from qrmem.eval.items import Context, Item, Prediction
from qrmem.eval.memories import OpenMemory
from qrmem.text.normalise import normalise
from qrmem.types import Citation, Passage, Reasoner, ScoredSegment, Segment, Step, Verdict


def cited_sentences(citations: Iterable[Citation], context: Context) -> tuple[tuple[str, int], ...]:
    """Return (document id, index of the sentence) for every sentence that a citation overlaps.

    Documents without given sentences are left out; so are citations of whole segments,
    which name no sentence.
    """
    sentence_places: dict[tuple[str, int], None] = {}
    for citation in citations:
        starts = _starts(context, citation.document_id)
        if starts and not citation.whole:
            first = bisect_right(starts, citation.start) - 1
            last = bisect_right(starts, max(citation.start, citation.end - 1)) - 1
            for place in range(max(first, 0), last + 1):
                sentence_places[citation.document_id, place] = None
    return tuple(sentence_places)


def _starts(context: Context, document_id: str) -> list[int]:
    """Return the start of each sentence in a document's text."""
    sentences = [normalise(sentence) for sentence in context.sentences.get(document_id, ())]
    if not sentences:
        return []
    blank = len(sentences[0]) - len(sentences[0].lstrip())
    return [max(0, at - blank) for at in accumulate((len(s) for s in sentences[:-1]), initial=0)]


async def answer_from(
    harness: Harness,
    item: Item,
    passages: Sequence[Passage],
    *,
    found: Prediction | None = None,
    context: Context | None = None,
    window: int = 0,
    scores: Mapping[str, float] | None = None,
) -> Prediction:
    """Answer an item from passages, given best first; those that do not fit are left out.

    Args:
        harness: the harness.
        item: the item.
        passages: the passages.
        found: the prediction so far, which is completed.
        context: the context, if it has sentences, to find those that the answer quotes.
        window: replaces the run's window.
        scores: segment id to score, for the trail.
    """
    found = found or Prediction()
    ask_context = harness.asked(item, window)
    passages_kept = fitting(harness.reasoner, passages, harness.reasoner.room(ask_context))
    verdict = await harness.reasoner.judge(
        ask_context, passages_kept, force=harness.is_forced(item)
    )
    dropped = [passage for passage in passages if passage not in passages_kept]
    step = read_step(passages_kept, dropped, len(found.steps) + 1, verdict.tokens, scores)
    return predicted(
        verdict,
        found,
        read=tuple(p.segment.id for p in passages_kept),
        cited=cited_sentences(locate(verdict.quotes, passages_kept), context) if context else (),
        steps=(*found.steps, step),
        shown=shown_of(p.segment for p in passages_kept),
        is_shown_known=True,
    )


def ranking(memory: OpenMemory, segments: Sequence[Segment]) -> Prediction:
    """Return a prediction with ranked segments, best first, before a system reads them."""
    return Prediction(
        ranked=tuple(dict.fromkeys(segment.document_id for segment in segments)),
        segments=tuple(segment.id for segment in segments),
        memory=memory.key,
    )


def predicted(verdict: Verdict, found: Prediction, **how: Any) -> Prediction:
    """Return a verdict as a prediction.

    Args:
        verdict: the verdict.
        found: the prediction so far.
        how: other fields of `Prediction`.
    """
    return replace(
        found,
        text=verdict.answer,
        choice=verdict.choice,
        status=verdict.status if verdict.is_answerable else "unanswerable",
        reason=verdict.reason,
        **how,
    )


def shown_of(segments: Iterable[Segment]) -> tuple[tuple[str, int, int], ...]:
    """Return the spans of the segments in a reader's window; cut segments are left out."""
    whole = (s for s in segments if len(s.text) == s.end - s.start)
    return tuple((s.document_id, s.start, s.end) for s in whole)


def fitting(reasoner: Reasoner, passages: Sequence[Passage], room: int) -> list[Passage]:
    """Return the first passages that fit together, up to the first one that does not."""
    passages_kept: list[Passage] = []
    for passage in passages:
        room -= reasoner.size(passage)
        if room < 0:
            break
        passages_kept.append(passage)
    return passages_kept


def read_step(
    kept: Sequence[Passage],
    dropped: Sequence[Passage],
    n: int,
    tokens: int,
    scores: Mapping[str, float] | None = None,
) -> Step:
    """Return the step of a reading for a trail; segments without a score get 0."""
    of = scores or {}

    def scored(passage: Passage) -> ScoredSegment:
        segment = passage.segment
        return ScoredSegment(segment.id, of.get(segment.id, 0.0), segment.tokens)

    return Step(
        n=n,
        action="read",
        read=tuple(map(scored, kept)),
        dropped=tuple(map(scored, dropped)),
        tokens=tokens,
    )
