"""What was read out of a passage, kept as what it adds to the passage's text.

A contribution repeats the sentences of its passage many times, once for each pair of names. It is
compressed with the text as the dictionary, so that a sentence costs a few bytes. The description of
a fact that is a part of the text is kept as a place in it.
"""

import sqlite3
import zlib
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from qrmem.graphstore.sqlite.lookup import rows_in

_RAW = -zlib.MAX_WBITS  # no header, no checksum: SQLite's pages are what can be damaged

Place = tuple[int, int, str]
"""Start and length of a description in the text on one line, and ""; or 0, 0 and itself."""


def texts(db: sqlite3.Connection, segments: Collection[int]) -> dict[int, str]:
    """Return the texts of some segments, by number."""
    return dict(rows_in(db, "SELECT segment, text FROM passage WHERE segment IN ({})", segments))


def packed(record: str, text: str) -> bytes:
    """Return a record as it is kept beside the text that it was read out of."""
    packer = zlib.compressobj(6, zlib.DEFLATED, _RAW, zdict=_bytes(text))
    return packer.compress(record.encode()) + packer.flush()


def unpacked(body: bytes, text: str) -> str:
    """Return what was packed with this text."""
    return zlib.decompressobj(_RAW, zdict=_bytes(text)).decompress(body).decode()


def on_one_line(text: str) -> str:
    """Return a text as places speak of it."""
    return " ".join(text.split())


def place_of(description: str, line: str) -> Place:
    """Return how a description is kept.

    Args:
        line: the segment's text on one line.
    """
    start = line.find(description) if description else -1
    return (start, len(description), "") if start >= 0 else (0, 0, description)


def told(place: Sequence[Any], line: str) -> str:
    """Return a description that is kept as this `Place`."""
    start, length, description = place
    return str(line[start : start + length] if length else description)


def change_texts(db: sqlite3.Connection, changed: Mapping[int, str]) -> None:
    """Give segments other texts; what was read out of them says the same as before."""
    before = texts(db, changed)
    rows = rows_in(db, "SELECT num, segment, body FROM contribution WHERE segment IN ({})", before)
    db.executemany(
        "UPDATE contribution SET body = ? WHERE num = ?",
        [(packed(unpacked(b, before[s]), changed[s]), num) for num, s, b in list(rows)],
    )
    sql = "SELECT segment, n, start, length, description FROM fact WHERE segment IN ({})"
    lines = {
        segment: (on_one_line(before[segment]), on_one_line(changed[segment])) for segment in before
    }
    db.executemany(
        "UPDATE fact SET start = ?, length = ?, description = ? WHERE segment = ? AND n = ?",
        [
            (*place_of(told(place, lines[segment][0]), lines[segment][1]), segment, n)
            for segment, n, *place in list(rows_in(db, sql, before))
        ],
    )
    db.executemany(
        "UPDATE passage SET text = ? WHERE segment = ?",
        [(text, segment) for segment, text in changed.items()],
    )


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
