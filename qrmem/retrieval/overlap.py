"""Documents that have words in common with a text, found without reading them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from qrmem.retrieval import bm25
from qrmem.text.words import terms

if TYPE_CHECKING:
    from qrmem.retrieval.searcher import Searcher


async def overlapping(searcher: "Searcher", texts: Sequence[str], share: float) -> set[str]:
    """Return the ids of the documents that share enough words with one of some texts.

    Args:
        share: of the shorter one's words, counted with repeats, that both have.
    """
    columns = await searcher.columns() if texts else None
    if columns is None or not columns.size:
        return set()
    words = [terms(text) for text in texts]
    wanted = sorted({term for found in words for term in found})
    postings = await searcher.store.postings(searcher.ns, wanted)
    places = {
        term: np.unique(columns.document_of[where.rows])
        for term, where in bm25.occurrences(columns.catalog, postings).items()
    }
    size = len(columns.documents)
    lengths = np.bincount(columns.document_of, columns.catalog.lengths, minlength=size)
    near = np.zeros(size, dtype=bool)
    for found in words:
        shared = np.zeros(size)
        for term in set(found) & places.keys():
            shared[places[term]] += 1
        least = share * np.minimum(lengths, len(found))
        near |= (shared > 0) & (shared >= least - 1e-9)
    return {columns.documents.ids[place] for place in np.flatnonzero(near).tolist()}
