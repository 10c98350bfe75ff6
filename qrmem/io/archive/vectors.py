"""Vectors as text: float32, little-endian, in base64."""

import base64
import binascii
from typing import TYPE_CHECKING

from qrmem.io.archive.checked import Wrong
from qrmem.io.archive.lines import VectorLine

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def encoded(row: "NDArray[np.float32]") -> str:
    """Return one vector as text."""
    return base64.b64encode(row.astype("<f4").tobytes()).decode()


def decoded(line: VectorLine, dimension: int) -> "NDArray[np.float32]":
    """Return the vectors of a line, `(rows, dimension)`.

    Raises:
        Wrong: they are none, of another length, or hold what is no number.
    """
    import numpy as np

    try:
        data = [base64.b64decode(row, validate=True) for row in line.rows]
    except (binascii.Error, ValueError) as exc:
        raise Wrong(f"the vectors of {line.owner[:80]!r} are no base64") from exc
    if not data or not dimension or any(len(row) != 4 * dimension for row in data):
        raise Wrong(f"the vectors of {line.owner[:80]!r} have not {dimension} numbers each")
    matrix = np.frombuffer(b"".join(data), dtype="<f4").reshape(len(data), dimension)
    if not np.isfinite(matrix).all():
        raise Wrong(f"the vectors of {line.owner[:80]!r} hold what is no number")
    return matrix.astype(np.float32)
