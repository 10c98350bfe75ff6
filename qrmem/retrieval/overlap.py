"""Segments that have words in common with a text, found without reading them."""

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
    """Return the ids of the segments that share enough words with one of some texts.

    Args:
        searcher: of the namespace.
        texts: what segments are compared with.
        share: of the shorter one's words, counted with repeats, that both have.
    """
    store, ns = searcher.store, searcher.ns
    asked = [terms(text) for text in texts]
    ids: dict[str, None] = {}
    for words in asked:
        ids |= dict.fromkeys(await store.matching(ns, [list(dict.fromkeys(words))], _MOST))
    found = set()
    for entry in await store.entries(ns, list(ids)):
        own = Counter(entry.terms)
        own.subtract(_title_terms(entry.title))
        held, size = {term for term, count in own.items() if count > 0}, own.total()
        if any(
            len(held.intersection(words)) >= max(1, share * min(size, len(words)) - 1e-9)
            for words in asked
        ):
            found.add(entry.id)
    return found
