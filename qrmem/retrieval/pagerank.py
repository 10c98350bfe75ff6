"""Personalised PageRank over the candidates of one question: title links and shared names."""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from qrmem.retrieval.candidates import Neighborhood
    from qrmem.retrieval.linking import Links

_RESTART = 0.5
_ROUNDS = 12
_SHARPEN = 6
"""Power on the direct scores: few segments start nearly all of the walk."""
_TITLE_LINK = 3.0
"""How much a link to a title weighs against a shared name."""
_COMMON = 40
"""Segments with a name beyond which it joins nothing."""

Edges = tuple["NDArray[np.int64]", "NDArray[np.int64]", "NDArray[np.float64]"]
"""Heads, tails and weights."""


async def rank(
    near: "Neighborhood", rows: "NDArray[np.int64]", links: "Links"
) -> "NDArray[np.float64]":
    """Return how likely a walk from the best segments stands on each candidate.

    Args:
        near: the segments.
        rows: `(c,)` ascending, the candidates.
        links: links among segments; those with an end outside the candidates don't count.

    Returns:
        `(c,)`, at least 0.
    """
    ours, names, weights, size = await _shared_names(near, rows)
    sources, targets, worth = _titles(rows, links)
    heads = np.concatenate([ours, names, sources, targets])
    tails = np.concatenate([names, ours, targets, sources])
    shares = np.concatenate([weights, weights, worth, worth])
    restart = np.zeros(size)
    restart[: rows.size] = near.direct[rows] ** _SHARPEN
    restart /= restart.sum() or 1.0
    if not heads.size:
        return restart[: rows.size]
    shares = shares / np.bincount(heads, shares, minlength=size)[heads]
    walk = restart
    for _ in range(_ROUNDS):
        moved = np.bincount(tails, walk[heads] * shares, minlength=size)
        walk = _RESTART * restart + (1 - _RESTART) * moved
    return walk[: rows.size]


def _titles(rows: "NDArray[np.int64]", links: "Links") -> Edges:
    """Return the edges between candidates that a title makes."""
    kept = links.chosen(
        links.entitled & np.isin(links.sources, rows) & np.isin(links.targets, rows)
    )
    return (
        np.searchsorted(rows, kept.sources),
        np.searchsorted(rows, kept.targets),
        _TITLE_LINK * kept.worth,
    )


async def _shared_names(near: "Neighborhood", rows: "NDArray[np.int64]") -> tuple[*Edges, int]:
    """Return edges from candidates to the names they share, and the number of all nodes.

    Nodes are the candidates, then the names.
    """
    place_of = {near.entries[row].id: place for place, row in enumerate(rows.tolist())}
    shared = await near.store.shared_entities(near.ns, list(place_of), _COMMON)
    edges = sorted(
        (place_of[id_], number, 1 / np.log2(1 + spread))
        for number, (_, (ids, spread)) in enumerate(sorted(shared.items()), rows.size)
        for id_ in ids
    )
    ours, names, weights = zip(*edges, strict=True) if edges else ((),) * 3
    return (
        np.array(ours, dtype=np.int64),
        np.array(names, dtype=np.int64),
        np.array(weights, dtype=np.float64),
        rows.size + len(shared),
    )
