"""What a fragment is worth by itself (FragRel, Equation 4): cosine, BM25, Jaccard, or a search."""

from collections.abc import Callable, Sequence, Set
from typing import TYPE_CHECKING

import numpy as np

from qrmem.errors import UsageError
from qrmem.llm.parallel import in_batches
from qrmem.llm.tokenizers import open_pieces

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from qrmem.retrieval.fragments.gathering import Fragments
    from qrmem.retrieval.searcher import Searcher
    from qrmem.types.options import FragmentSettings

    Vector = NDArray[np.float64]

_BATCH = 2_000


async def scores(
    searcher: "Searcher", fragments: "Fragments", question: str, settings: "FragmentSettings"
) -> "Vector":
    """Return the independent score of every fragment.

    Raises:
        UsageError: cosines are wanted, and the memory has no vectors.
    """
    kind = settings.score
    has_vectors = searcher.embedder is not None and bool(fragments.vectors.any())
    if kind == "cosine" and not has_vectors:
        raise UsageError("score 'cosine' needs an embedder; `qrmem reembed` adds vectors")
    if kind == "jaccard":
        return await _jaccards(searcher, fragments, question, open_pieces(settings.pieces))
    size, documents = fragments.size, {info.id for info in fragments.documents}
    if kind == "search":
        found = await searcher.findings(question, documents=documents, at_least=size)
        assert found is not None  # the namespace has fragments
        known = {one.id: found.scores[row] for row, one in enumerate(found.near.entries)}
    else:
        by = "bm25" if kind == "bm25" or not has_vectors else "cosine"
        known = await searcher.ranking(question, by, size, documents)
    return np.array([known.get(id_, 0.0) for id_ in fragments.ids], dtype=np.float64)


async def _jaccards(
    searcher: "Searcher",
    fragments: "Fragments",
    question: str,
    pieces: Callable[[str], frozenset[str] | frozenset[int]],
) -> "Vector":
    ids, asked = fragments.ids, pieces(question)
    found: dict[str, float] = {}
    for some in in_batches(ids, _BATCH):
        for segment in await searcher.store.segments(searcher.ns, some):
            found[segment.id] = jaccard(asked, pieces(segment.text))
    return np.array([found.get(id_, 0.0) for id_ in ids], dtype=np.float64)


def jaccard(one: Set[object], other: Set[object]) -> float:
    """Return the share of what two sets have in common, in [0, 1]; 0 for two empty ones."""
    together = len(one | other)
    return len(one & other) / together if together else 0.0


def within_words(counts: Sequence[int], limit: int) -> int:
    """Return how many fragments, taken in order, have at most `limit` words; at least one."""
    total = np.cumsum(np.asarray(counts, dtype=np.int64))
    return max(1, int(np.searchsorted(total, limit, side="right")))
