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
    asked = [terms(text) for text in texts]
    ids: dict[str, None] = {}
    for words in asked:
        ids |= dict.fromkeys(await store.matching(ns, [list(dict.fromkeys(words))], _MOST))
    wanted = frozenset(term for words in asked for term in words)
    sizes: Counter[str] = Counter()
    shared: dict[str, set[str]] = {}
    for entry in await store.entries(ns, list(ids)):
        title = _title_terms(entry.title)
        sizes[entry.document_id] += len(entry.terms) - len(title)
        shared.setdefault(entry.document_id, set()).update(
            term
            for term in wanted.intersection(entry.terms)
            if term not in title or entry.terms.count(term) > title.count(term)
        )
    return {
        document
        for document, both in shared.items()
        for words in asked
        if len(both.intersection(words)) >= max(1, share * min(sizes[document], len(words)) - 1e-9)
    }
