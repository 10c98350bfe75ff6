"""Confidence intervals of means, and of differences between systems."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

DRAWS = 10_000
SEED = 20_240
"""Seed of the bootstrap, so that equal numbers give equal intervals."""


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean with its 95 % bootstrap interval.

    Attributes:
        n: number of scored items; an unscored item does not count as zero.
    """

    n: int
    value: float
    low: float
    high: float
    error: float


@dataclass(frozen=True, slots=True)
class Difference:
    """One system minus another over the same items.

    Attributes:
        p: p-value of a two-sided sign-flip test.
    """

    n: int
    value: float
    low: float
    high: float
    p: float


def mean(values: Sequence[float]) -> Mean | None:
    """Return the mean of scores, or `None` without any."""
    if not values:
        return None
    scores = np.asarray(values, dtype=np.float64)
    resampled = _resampled(scores)
    low, high = np.percentile(resampled, [2.5, 97.5])
    error = float(scores.std(ddof=1) / np.sqrt(scores.size)) if scores.size > 1 else 0.0
    return Mean(scores.size, float(scores.mean()), float(low), float(high), error)


def difference(ours: Mapping[str, float], theirs: Mapping[str, float]) -> Difference | None:
    """Compare two systems item by item, over the items that both have.

    Args:
        ours: item id to score.
        theirs: item id to score.
    """
    both = sorted(ours.keys() & theirs.keys())
    if not both:
        return None
    gaps = np.array([ours[item] - theirs[item] for item in both])
    low, high = np.percentile(_resampled(gaps), [2.5, 97.5])
    return Difference(gaps.size, float(gaps.mean()), float(low), float(high), _by_chance(gaps))


def _resampled(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the means of samples drawn with replacement, a block at a time."""
    random = np.random.default_rng(SEED)
    block = max(1, 2_000_000 // scores.size)
    means = [
        scores[random.integers(0, scores.size, (min(block, DRAWS - at), scores.size))].mean(axis=1)
        for at in range(0, DRAWS, block)
    ]
    return np.concatenate(means)


def _by_chance(gaps: NDArray[np.float64]) -> float:
    random = np.random.default_rng(SEED)
    gap_measured = abs(gaps.mean()) - 1e-12
    block = max(1, 2_000_000 // gaps.size)
    as_large = 0
    for at in range(0, DRAWS, block):
        signs = random.integers(0, 2, (min(block, DRAWS - at), gaps.size)) * 2 - 1
        as_large += int((abs((signs * gaps).mean(axis=1)) >= gap_measured).sum())
    return (as_large + 1) / (DRAWS + 1)
