"""Rows cut into batches of bounded size, for `UNWIND`."""

from collections.abc import Iterable, Iterator
from typing import Any

MAX_BYTES = 1 << 20
"""About how much one statement carries."""

MAX_ROWS = 5_000

_CELL = 9  # a number, or what goes with a text


def batches(rows: Iterable[Any], max_bytes: int = MAX_BYTES) -> Iterator[list[Any]]:
    """Yield the rows in order, at least one and at most about `max_bytes` of them at a time."""
    batch: list[Any] = []
    size = 0
    for row in rows:
        weight = _weight(row)
        if batch and (size + weight > max_bytes or len(batch) >= MAX_ROWS):
            yield batch
            batch, size = [], 0
        batch.append(row)
        size += weight
    if batch:
        yield batch


def _weight(value: Any) -> int:
    kind = type(value)
    if kind is str:
        return (len(value) if value.isascii() else len(value.encode())) + _CELL
    if kind is bytes:
        return len(value) + _CELL
    if kind is list or kind is tuple:
        return sum(map(_weight, value)) + _CELL
    return _CELL
