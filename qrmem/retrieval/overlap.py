"""Segments that have words in common with a text, found without reading them."""

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
    wanted = [(frozenset(one), len(one)) for one in asked]
    found = set()
    for entry in await store.entries(ns, list(ids)):
        held, size = _own_terms(entry.terms, _title_terms(entry.title))
        for own, count in wanted:
            if len(held & own) >= max(1, share * min(size, count) - 1e-9):
                found.add(entry.id)
                break
    return found


def _own_terms(all_terms: Sequence[str], title: Sequence[str]) -> tuple[set[str], int]:
    """Return the terms of a text without those of its title, and how many, with repeats."""
    held = set(all_terms)
    for term in held.intersection(title):
        if all_terms.count(term) <= title.count(term):
            held.remove(term)
    return held, len(all_terms) - len(title)
