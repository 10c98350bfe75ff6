"""Documents that have words in common with a text, found without reading them."""

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from qrmem.text.words import terms

if TYPE_CHECKING:
    from qrmem.retrieval.searcher import Searcher

_MOST = 100
"""Segments that are compared with a text: those that the index finds nearest."""


@lru_cache(maxsize=4096)
def _title_terms(title: str) -> tuple[str, ...]:
    return tuple(terms(title))


async def overlapping(searcher: "Searcher", texts: Sequence[str], share: float) -> set[str]:
    """Return the ids of the documents that share enough words with one of some texts.

    Args:
        searcher: of the namespace.
        texts: what documents are compared with.
        share: of the shorter one's words, counted with repeats, that both have.
    """
    store, ns = searcher.store, searcher.ns
    near: set[str] = set()
    for text in texts:
        words = terms(text)
        ids = await store.matching(ns, [list(dict.fromkeys(words))], _MOST)
        bags: dict[str, Counter[str]] = {}
        for entry in await store.entries(ns, ids):
            own = Counter(entry.terms)
            own.subtract(_title_terms(entry.title))
            bags.setdefault(entry.document_id, Counter()).update(+own)
        near |= {
            document
            for document, bag in bags.items()
            if sum(term in bag for term in set(words))
            >= share * min(bag.total(), len(words)) - 1e-9
        }
    return near
