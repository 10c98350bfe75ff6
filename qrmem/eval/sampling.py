"""Draw samples of items, and check that runs have the same."""

import hashlib
import random
from collections.abc import Mapping, Sequence

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
