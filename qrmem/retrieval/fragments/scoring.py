"""FragRel's scores: a fragment is worth what it says, and what its surroundings say (Eq. 9-11)."""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from qrmem.retrieval.fragments.relations import Relation

    Vector = NDArray[np.float64]

_NOTHING = 1e-6
"""Sum of weights up to which a fragment is related to nothing: vectors are float32."""


def environment(
    relation: "Relation",
    independent: "Vector",
    *,
    with_self: bool = True,
    counts: "Vector | None" = None,
) -> "Vector":
    """Return the environment scores (Equation 9): the mean score of what a fragment is related to.

    Args:
        relation: over n fragments.
        independent: `(n,)`, scores by themselves.
        with_self: whether a fragment belongs to its own surroundings. The paper's prose says no,
            its equation yes, and only then does `w_rel = 0` fall back to the independent ranking.
        counts: `(n,)`, 0 for fragments that must not be seen, else 1; `None`: all are.

    Returns:
        `(n,)`; 0 for a fragment that is related to nothing.
    """
    seen = np.ones_like(independent) if counts is None else counts
    sums, weights = relation.times(np.stack([independent * seen, seen], axis=1)).T
    if not with_self:
        own = relation.diagonal() * seen
        sums, weights = sums - own * independent, weights - own
    result = np.zeros_like(independent)
    np.divide(sums, weights, out=result, where=weights > _NOTHING)
    return result


def relation_aware(independent: "Vector", around: "Vector", alpha: float) -> "Vector":
    """Return the relation-aware scores (Equation 10)."""
    result: Vector = independent + alpha * around
    return result


def best(scores: "Vector", k: int) -> list[int]:
    """Return the k best fragments, best first (Equation 11); of equal ones the earlier first."""
    order = np.argsort(-np.round(scores, 12), kind="stable")
    return [int(row) for row in order[:k]]
