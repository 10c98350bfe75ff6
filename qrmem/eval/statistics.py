"""Samples of items, and confidence intervals of means and differences."""

import hashlib
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qrmem.errors import UsageError
from qrmem.eval.items import Item


def sample(
    items: Sequence[Item], size: int | None, seed: int, strata: Mapping[str, Mapping[str, int]]
) -> list[Item]:
    """Draw the items to run; they stay in the order of the file.

    Args:
        items: all items.
        size: number of items; `None` or a larger number than exist returns all.
        seed: seed of the draw.
        strata: label to value to number of items, such as `{"difficulty": {"hard": 102}}`.

    Raises:
        UsageError: the number is 0, or a stratum has too few items.
    """
    if size is not None and size < 1:
        raise UsageError(f"a sample has at least one item, not {size}")
    if not strata:
        ids_chosen = _draw(items, size, seed)
        return [item for item in items if item.id in ids_chosen]
    ids_wanted: set[str] = set()
    for label, counts in strata.items():
        for value, count in counts.items():
            having = [item for item in items if item.labels.get(label) == value]
            if len(having) < count:
                raise UsageError(
                    f"the sample wants {count} items with {label} {value!r}; "
                    f"there are {len(having)}"
                )
            ids_wanted |= _draw(having, count, seed)
    items_left = [item for item in items if item.id in ids_wanted]
    ids_kept = _draw(items_left, size, seed)
    return [item for item in items_left if item.id in ids_kept]


def sample_digest(items: Sequence[Item]) -> str:
    """Return a short hash of a set of items, independent of their order."""
    joined = "\0".join(sorted(item.id for item in items))
    return hashlib.sha256(joined.encode()).hexdigest()[:16]


def _draw(items: Sequence[Item], size: int | None, seed: int) -> set[str]:
    ids = sorted(item.id for item in items)
    if size is None or size >= len(ids):
        return set(ids)
    return set(random.Random(seed).sample(ids, size))


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


def require_same_sample(samples: Mapping[str, Sequence[str]]) -> None:
    """Check that runs have the same items.

    Args:
        samples: name of a run to the ids of its items.

    Raises:
        UsageError: two of them differ.
    """
    (first, items), *others = samples.items()
    for name, other in others:
        if set(other) != set(items):
            lacking = sorted(set(items) ^ set(other))[0]
            raise UsageError(
                f"{first} and {name} are over different items (only one has {lacking!r}); "
                "results over different questions cannot be compared"
            )


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
