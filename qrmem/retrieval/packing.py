"""Columns as one run of bytes: numbers and texts as they lie in memory, and a checksum."""

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from qrmem.retrieval.texts import Lookup, Texts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from qrmem.retrieval.texts import Ints

VERSION = 3
"""Of what is packed; raised whenever anything that a search works out beforehand changes."""
_ALIGNED = 8
_SUM = 8
"""Bytes of the checksum, in front of everything."""
_SMALL = np.iinfo(np.int32)


@dataclass(frozen=True, slots=True)
class Packed:
    """Named columns: numbers, and texts."""

    numbers: "Mapping[str, Ints | NDArray[np.float64]]"
    texts: Mapping[str, Texts]

    def narrow(self, name: str) -> "Ints":
        """Return a column of whole numbers as narrow as it was packed; nothing is copied."""
        column: Ints = self.numbers[name]  # type: ignore[assignment]
        return column

    def lookup(self, name: str, texts: str) -> Lookup:
        """Return the places of some texts, whose `columns` were packed by that name."""
        return Lookup(self.texts[texts], self.narrow(f"{name} sums"), self.narrow(f"{name} places"))

    def ints(self, name: str) -> "NDArray[np.int64]":
        """Return a column of whole numbers."""
        return self.numbers[name].astype(np.int64, copy=False)

    def floats(self, name: str) -> "NDArray[np.float64]":
        """Return a column of fractions."""
        return self.numbers[name].astype(np.float64, copy=False)


def pack(columns: Packed) -> bytes:
    """Return columns as bytes; equal columns give equal bytes."""
    starts = {_starts(name): texts.starts for name, texts in columns.texts.items()}
    parts = {name: _narrow(column) for name, column in {**columns.numbers, **starts}.items()}
    runs = [column.tobytes() for column in parts.values()]
    runs += [bytes(texts.run) for texts in columns.texts.values()]
    body = b"".join(run + b"\0" * (-len(run) % _ALIGNED) for run in runs)
    head = json.dumps(
        {
            "version": VERSION,
            "numbers": [(name, column.dtype.str) for name, column in parts.items()],
            "texts": list(columns.texts),
            "sizes": [len(run) for run in runs],
        }
    ).encode()
    line = head + b" " * (-(len(head) + 1) % _ALIGNED) + b"\n"
    return _sum(line + body) + line + body


def unpack(data: bytes) -> Packed | None:
    """Return the columns; `None` if the bytes are damaged or another version's."""
    if data[:_SUM] != _sum(memoryview(data)[_SUM:]):
        return None
    end = data.index(b"\n", _SUM)
    head, body = json.loads(data[_SUM:end]), memoryview(data)[end + 1 :]
    if head["version"] != VERSION:
        return None
    runs, start = [], 0
    for size in head["sizes"]:
        runs.append(body[start : start + size])
        start += size + -size % _ALIGNED
    count = len(head["numbers"])
    numbers = {
        name: np.frombuffer(run, dtype=kind)
        for (name, kind), run in zip(head["numbers"], runs[:count], strict=True)
    }
    texts = {
        name: Texts(run, numbers.pop(_starts(name)))
        for name, run in zip(head["texts"], runs[count:], strict=True)
    }
    return Packed(numbers, texts)


def _starts(name: str) -> str:
    return f"starts of {name}"


def _sum(data: bytes | memoryview) -> bytes:
    return b"%08x" % zlib.crc32(data)


def _narrow(column: "Ints | NDArray[np.float64]") -> "NDArray[np.generic]":
    """Return whole numbers in half the space where they fit."""
    is_whole = np.issubdtype(column.dtype, np.integer)
    if is_whole and (
        not column.size or (_SMALL.min <= column.min() and column.max() <= _SMALL.max)
    ):
        return column.astype(np.int32)
    return column
