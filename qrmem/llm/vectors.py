"""Checks what an encoder gives, so that no store ever holds a vector that cannot be compared."""

from typing import TYPE_CHECKING, Any

from qrmem.errors import ModelUnavailable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


LONGEST = 4.0
"""Length that product rows are measured by; a longer vector counts as one of this length."""


def unit_rows(rows: Any, *, count: int, dimension: int, name: str) -> "NDArray[np.float32]":
    """Return rows of unit length as float32.

    Args:
        rows: `(count, dimension)`, any length.
        dimension: what is expected; 0 takes what comes.

    Raises:
        ModelUnavailable: wrong shape, a value that is no number, or a row of zeros.
    """
    import numpy as np

    found = _checked(rows, count=count, dimension=dimension, name=name)
    unit: NDArray[np.float32] = (found / _lengths(found)).astype(np.float32)
    return unit


def product_rows(
    rows: Any, *, count: int, dimension: int, name: str, is_query: bool
) -> "NDArray[np.float32]":
    """Return rows of unit length, one number longer, whose cosines rank as dot products do.

    A passage's vector is divided by `LONGEST`, and what is missing to unit length goes into the
    last number; a query has 0 there. Whatever compares unit vectors then compares products.

    Raises:
        ModelUnavailable: as `unit_rows` does.
    """
    import numpy as np

    given = _checked(rows, count=count, dimension=dimension, name=name)
    found = given.astype(np.float64)
    lengths = _lengths(found)
    scaled = found / (lengths if is_query else np.maximum(lengths, LONGEST))
    missing = 1 - np.square(scaled).sum(axis=1, keepdims=True)
    last = np.zeros_like(missing) if is_query else np.sqrt(np.maximum(missing, 0))
    return np.concatenate([scaled, last], axis=1).astype(np.float32)


def directions(rows: "NDArray[np.float32]") -> "NDArray[np.float32]":
    """Return what product rows point at, to compare passages with each other by cosine."""
    import numpy as np

    found = rows[:, :-1]
    lengths = np.linalg.norm(found, axis=1, keepdims=True)
    result: NDArray[np.float32] = (found / np.where(lengths > 0, lengths, 1)).astype(np.float32)
    return result


def _checked(rows: Any, *, count: int, dimension: int, name: str) -> "NDArray[np.float32]":
    import numpy as np

    try:
        found = np.asarray(rows, dtype=np.float32)
    except (TypeError, ValueError) as exc:
        raise ModelUnavailable(f"{name} gave vectors that are no lists of numbers") from exc
    if found.ndim != 2 or len(found) != count or found.shape[1] == 0:
        raise ModelUnavailable(f"{name} gave vectors of shape {found.shape} for {count} texts")
    if dimension and found.shape[1] != dimension:
        raise ModelUnavailable(
            f"{name} gave vectors of {found.shape[1]} numbers; the ones before had {dimension}"
        )
    if not np.isfinite(found).all():
        raise ModelUnavailable(f"{name} gave a vector that holds NaN or infinity")
    if not found.any(axis=1).all():
        raise ModelUnavailable(f"{name} gave a vector of zeros")
    return found


def _lengths(found: "NDArray[Any]") -> "NDArray[np.float64]":
    import numpy as np

    lengths: NDArray[np.float64] = np.linalg.norm(found.astype(np.float64), axis=1, keepdims=True)
    return lengths
