"""The lexical score of segments: BM25 over their text under their document's title."""

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from qrmem.retrieval import bm25
from qrmem.retrieval.bm25 import Occurrences
from qrmem.text.words import terms

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from qrmem.graphstore.protocol import GraphStore
    from qrmem.retrieval.columns import Columns
    from qrmem.retrieval.settings import SearchSettings


def query_terms(text: str, limit: int) -> dict[str, float]:
    """Return a query's terms and how often each occurs: at most `limit`, the first ones."""
    return {term: float(count) for term, count in list(Counter(terms(text)).items())[:limit]}


async def find(
    store: "GraphStore", ns: str, columns: "Columns", wanted: Mapping[str, float]
) -> dict[str, Occurrences]:
    """Return where the terms occur, in text or title."""
    postings = await store.postings(ns, list(wanted))
    found = bm25.occurrences(columns.catalog, postings)
    for term in wanted:
        titled = columns.title_words.get(term)
        if titled is not None:
            found[term] = _with_titles(columns, found.get(term), titled)
    return found


def _with_titles(columns: "Columns", found: Occurrences | None, titled: Occurrences) -> Occurrences:
    rows, sizes = columns.rows_of_document.gathered(titled.rows)
    counts = np.repeat(titled.counts, sizes)
    if found is not None:
        rows = np.concatenate([rows, found.rows])
        counts = np.concatenate([counts, found.counts])
    together, place = np.unique(rows, return_inverse=True)
    return Occurrences(together, np.bincount(place, counts).astype(np.int64))


def scores(
    columns: "Columns",
    settings: "SearchSettings",
    wanted: Mapping[str, float],
    found: Mapping[str, Occurrences],
) -> "NDArray[np.float64]":
    """Return BM25 of every segment."""
    weighted = bm25.weights(wanted, found, columns.size)
    normed = bm25.norms(columns.lengths, settings.k1, settings.b)
    return bm25.scores(weighted, found, normed, settings.k1)
