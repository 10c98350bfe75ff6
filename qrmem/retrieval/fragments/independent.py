"""What a fragment is worth by itself (FragRel, Equation 4): cosine, BM25, Jaccard, or a search."""

from collections.abc import Callable, Sequence, Set
from typing import TYPE_CHECKING

import numpy as np

from qrmem.errors import UsageError
from qrmem.llm.tokenizers import open_pieces
from qrmem.retrieval import dense, lexical

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from qrmem.retrieval.columns import Columns
    from qrmem.retrieval.fragments.settings import FragmentSettings
    from qrmem.retrieval.searcher import Searcher

    Vector = NDArray[np.float64]

_BATCH = 2_000


async def scores(
    searcher: "Searcher",
    columns: "Columns",
    question: str,
    settings: "FragmentSettings",
) -> "Vector":
    """Return the independent score of every segment of a namespace.

    Raises:
        UsageError: cosines are wanted, and the memory has no vectors.
    """
    kind, embedder = settings.score, searcher.embedder
    has_vectors = embedder is not None and bool(columns.matrix_rows.size)
    if kind == "cosine" and not has_vectors:
        raise UsageError("score 'cosine' needs an embedder; `qrmem reembed` adds vectors")
    if kind == "search":
        found = await searcher.findings(question)
        return np.zeros(columns.size) if found is None else found.scores
    if kind == "jaccard":
        return await _jaccards(searcher, columns, question, open_pieces(settings.pieces))
    if kind == "bm25" or embedder is None or not has_vectors:
        wanted = lexical.query_terms(question, searcher.settings.max_terms)
        found_terms = await lexical.find(searcher.store, searcher.ns, columns, wanted)
        return lexical.scores(columns, searcher.settings, wanted, found_terms)
    query = await dense.embed_query(embedder, question, columns.matrix.shape[1])
    return dense.cosines(columns.matrix, columns.matrix_rows, query, columns.size)


async def _jaccards(
    searcher: "Searcher",
    columns: "Columns",
    question: str,
    pieces: Callable[[str], frozenset[str] | frozenset[int]],
) -> "Vector":
    ids, asked = columns.catalog.segment_ids, pieces(question)
    result = np.zeros(columns.size)
    for start in range(0, len(ids), _BATCH):
        for segment in await searcher.store.segments(searcher.ns, ids[start : start + _BATCH]):
            result[columns.row_of[segment.id]] = jaccard(asked, pieces(segment.text))
    return result


def jaccard(one: Set[object], other: Set[object]) -> float:
    """Return the share of what two sets have in common, in [0, 1]; 0 for two empty ones."""
    together = len(one | other)
    return len(one & other) / together if together else 0.0


def within_words(counts: Sequence[int], limit: int) -> int:
    """Return how many fragments, taken in order, have at most `limit` words; at least one."""
    total = np.cumsum(np.asarray(counts, dtype=np.int64))
    return max(1, int(np.searchsorted(total, limit, side="right")))
