"""Which items are run: the same seed gives the same items, whatever the systems."""

import hashlib
import random
from collections.abc import Mapping, Sequence

from qrmem.errors import UsageError
from qrmem.eval.records import Item


def sample(
    items: Sequence[Item], size: int | None, seed: int, strata: Mapping[str, Mapping[str, int]]
) -> list[Item]:
    """Return the items to run, in the order of the file.

    Args:
        size: how many; `None` or more than there are: all.
        strata: label to value to how many of it, such as `{"difficulty": {"hard": 102}}`.

    Raises:
        UsageError: none are wanted, or a stratum has fewer items than are.
    """
    if size is not None and size < 1:
        raise UsageError(f"a sample has at least one item, not {size}")
    if not strata:
        chosen = _drawn(items, size, seed)
        return [item for item in items if item.id in chosen]
    wanted: set[str] = set()
    for label, counts in strata.items():
        for value, count in counts.items():
            having = [item for item in items if item.labels.get(label) == value]
            if len(having) < count:
                raise UsageError(
                    f"the sample wants {count} items with {label} {value!r}; "
                    f"there are {len(having)}"
                )
            wanted |= _drawn(having, count, seed)
    left = [item for item in items if item.id in wanted]
    kept = _drawn(left, size, seed)
    return [item for item in left if item.id in kept]


def sample_digest(items: Sequence[Item]) -> str:
    """Return a short hash of which items they are, whatever their order."""
    joined = "\0".join(sorted(item.id for item in items))
    return hashlib.sha256(joined.encode()).hexdigest()[:16]


def _drawn(items: Sequence[Item], size: int | None, seed: int) -> set[str]:
    ids = sorted(item.id for item in items)
    if size is None or size >= len(ids):
        return set(ids)
    return set(random.Random(seed).sample(ids, size))
