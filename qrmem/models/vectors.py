"""Checks what an encoder gives, so that no store ever holds a vector that cannot be compared."""

from typing import TYPE_CHECKING, Any

from qrmem.errors import ModelUnavailable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def unit_rows(rows: Any, *, count: int, dimension: int, name: str) -> "NDArray[np.float32]":
    """Return rows of unit length as float32.

    Args:
        rows: `(count, dimension)`, any length.
        dimension: what is expected; 0 takes what comes.

    Raises:
        ModelUnavailable: wrong shape, a value that is no number, or a row of zeros.
    """
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
    lengths = np.linalg.norm(found.astype(np.float64), axis=1, keepdims=True)
    if not lengths.all():
        raise ModelUnavailable(f"{name} gave a vector of zeros")
    unit: NDArray[np.float32] = (found / lengths).astype(np.float32)
    return unit
