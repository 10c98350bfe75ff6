"""Which sentences an answer rests on, from its citations: for supporting-fact F1 (S07)."""

from bisect import bisect_right
from collections.abc import Iterable
from itertools import accumulate

from qrmem.eval.records import Context
from qrmem.text.normalise import normalise
from qrmem.types import Citation


def cited_sentences(citations: Iterable[Citation], context: Context) -> tuple[tuple[str, int], ...]:
    """Return (document id, place of the sentence) for every sentence that a citation touches.

    Nothing for a document whose sentences are not given; a citation of a whole segment is left out:
    it names no sentence.
    """
    found: dict[tuple[str, int], None] = {}
    for citation in citations:
        starts = _starts(context, citation.document_id)
        if starts and not citation.whole:
            first = bisect_right(starts, citation.start) - 1
            last = bisect_right(starts, max(citation.start, citation.end - 1)) - 1
            for place in range(max(first, 0), last + 1):
                found[citation.document_id, place] = None
    return tuple(found)


def _starts(context: Context, document_id: str) -> list[int]:
    """Return where each sentence of a document starts in its text."""
    sentences = [normalise(sentence) for sentence in context.sentences.get(document_id, ())]
    if not sentences:
        return []
    blank = len(sentences[0]) - len(sentences[0].lstrip())
    return [max(0, at - blank) for at in accumulate((len(s) for s in sentences[:-1]), initial=0)]
