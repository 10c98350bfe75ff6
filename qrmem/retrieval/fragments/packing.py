"""Arrays and names as text, as a store keeps values: sizes first, then the numbers themselves."""

import base64
import json
import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def pack(names: object, arrays: "Sequence[NDArray[Any]]") -> str:
    """Return a JSON value and arrays as text; `unpack` needs to be told the arrays' types."""
    head = json.dumps([names, [array.size for array in arrays]], separators=(",", ":"))
    data = head.encode() + b"\n" + b"".join(array.tobytes() for array in arrays)
    return base64.b64encode(zlib.compress(data, 1)).decode()


def unpack(packed: str, kinds: Sequence[Any]) -> "tuple[Any, list[NDArray[Any]]]":
    """Return what was packed."""
    head, _, data = zlib.decompress(base64.b64decode(packed)).partition(b"\n")
    names, sizes = json.loads(head)
    arrays, at = [], 0
    for kind, size in zip(kinds, sizes, strict=True):
        arrays.append(np.frombuffer(data, dtype=kind, count=size, offset=at))
        at += arrays[-1].nbytes
    return names, arrays
