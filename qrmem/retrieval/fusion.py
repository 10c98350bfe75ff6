"""Putting scores of different kinds on one scale, and in one order."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def normalised(scores: "NDArray[np.float64]") -> "NDArray[np.float64]":
    """Divide by the question's maximum; what is not positive becomes 0."""
    top = float(scores.max(initial=0.0))
    return np.maximum(scores, 0.0) / top if top > 0 else np.zeros_like(scores)


def fused(parts: "Sequence[tuple[float, NDArray[np.float64]]]", size: int) -> "NDArray[np.float64]":
    """Return the weighted sum of normalised scores; in [0, 1] if the weights sum to 1."""
    result = np.zeros(size)
    for weight, scores in parts:
        result += weight * normalised(scores)
    return result


def best(scores: "NDArray[np.float64]", ranks: "NDArray[np.int64]", k: int) -> list[int]:
    """Return the rows of the k highest scores.

    Scores compare after rounding to 1e-4, so that the order doesn't depend on the machine's
    arithmetic; ties by `ranks`.
    """
    rounded = np.round(scores, 4)
    rows = np.flatnonzero(rounded > 0)  # of a large memory most are 0
    if rows.size < k:
        rows = np.arange(scores.size)
    if k < rows.size:
        edge = np.partition(rounded[rows], rows.size - k)[rows.size - k]
        rows = rows[rounded[rows] >= edge]
    order = np.lexsort((ranks[rows], -rounded[rows]))
    return [int(row) for row in rows[order[:k]]]
