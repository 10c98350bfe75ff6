"""Personalised PageRank over the candidates of one question, title links and shared names."""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from qrmem.retrieval.graph import Graph
    from qrmem.retrieval.links import Links

_RESTART = 0.5
_ROUNDS = 12
_SHARPEN = 6
"""Power on the direct scores: few segments start nearly all of the walk."""
_TITLE_LINK = 3.0
"""How much a link to a title weighs against a shared name."""
_COMMON = 40
"""Segments with a name beyond which it joins nothing."""


def rank(
    graph: "Graph",
    rows: "NDArray[np.int64]",
    start: "NDArray[np.float64]",
    links: "Links",
) -> "NDArray[np.float64]":
    """Return how likely a walk from the best segments stands on each candidate.

    Args:
        graph: the namespace's names.
        rows: `(c,)` ascending, the candidates.
        start: `(c,)`, their direct scores.
        links: links among segments; those with an end outside the candidates don't count.

    Returns:
        `(c,)`, at least 0.
    """
    heads, tails, weights, size = _edges(graph, rows, links)
    restart = np.zeros(size)
    restart[: rows.size] = start**_SHARPEN
    restart /= restart.sum() or 1.0
    if not heads.size:
        return restart[: rows.size]
    out = np.bincount(heads, weights, minlength=size)
    shares = weights / out[heads]
    walk = restart
    for _ in range(_ROUNDS):
        moved = np.bincount(tails, walk[heads] * shares, minlength=size)
        walk = _RESTART * restart + (1 - _RESTART) * moved
    return walk[: rows.size]


def _edges(
    graph: "Graph", rows: "NDArray[np.int64]", links: "Links"
) -> "tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], int]":
    """Return edges in both directions; nodes are the candidates, then the names that they share."""
    ours, names, weights, size = _shared_names(graph, rows)
    kept = links.chosen(
        links.entitled & np.isin(links.sources, rows) & np.isin(links.targets, rows)
    )
    sources = np.searchsorted(rows, kept.sources)
    targets = np.searchsorted(rows, kept.targets)
    worth = _TITLE_LINK * kept.worth
    return (
        np.concatenate([ours, names, sources, targets]),
        np.concatenate([names, ours, targets, sources]),
        np.concatenate([weights, weights, worth, worth]),
        size,
    )


def _shared_names(
    graph: "Graph", rows: "NDArray[np.int64]"
) -> "tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], int]":
    entities, sizes = graph.mentions.gathered(rows)
    ours = np.repeat(np.arange(rows.size), sizes)
    spread = graph.mentioned.sizes_of(entities)
    inside = (spread >= 2) & (spread <= _COMMON)
    ours, entities, spread = ours[inside], entities[inside], spread[inside]
    _, number, count = np.unique(entities, return_inverse=True, return_counts=True)
    shared = count[number] >= 2
    weights = 1 / np.log2(1 + spread[shared])
    return ours[shared], rows.size + number[shared], weights, rows.size + count.size
