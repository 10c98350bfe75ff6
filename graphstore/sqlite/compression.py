"""Compact storage of extracted facts: only what they add to their passage's text is stored.

A contribution repeats the sentences of its passage many times, once for each pair of names. It is
compressed with the text as the dictionary, so that a sentence costs a few bytes. A fact's
description that is a part of the text is stored as its position there.
"""

import hashlib
import json
import sqlite3
import zlib
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from qrmem.graphstore.codec import dumps
from qrmem.graphstore.sqlite.database_schema import USUAL
from qrmem.graphstore.sqlite.lookup import rows_in
from qrmem.text.names import split_key
from qrmem.types import Contribution, Properties

_RAW = -zlib.MAX_WBITS  # without header and checksum: damage would be in SQLite's pages

Place = tuple[int, int, str]
"""A description as (start, length, "") in the text on one line, or as (0, 0, description)."""


def texts(db: sqlite3.Connection, segments: Collection[int]) -> dict[int, str]:
    """Return the texts of some segments, by number."""
    return dict(rows_in(db, "SELECT segment, text FROM passage WHERE segment IN ({})", segments))


def packed(record: str, text: str) -> bytes:
    """Return a record compressed with the text that it was extracted from."""
    packer = zlib.compressobj(6, zlib.DEFLATED, _RAW, zdict=_bytes(text))
    return packer.compress(record.encode()) + packer.flush()


def unpacked(body: bytes, text: str) -> str:
    """Return the record that `packed` compressed with this text."""
    return zlib.decompressobj(_RAW, zdict=_bytes(text)).decompress(body).decode()


def put_contributions(db: sqlite3.Connection, made: Sequence[tuple[int, Contribution]]) -> None:
    """Write contributions, each with the number of its segment."""
    text_of = texts(db, {segment for segment, _ in made})
    db.executemany(
        "INSERT INTO contribution (segment, kind, asked, body) VALUES (?, ?, ?, ?)"
        " ON CONFLICT DO UPDATE SET body = excluded.body",
        (
            (
                segment,
                c.kind,
                asked_kept(c.asked),
                packed(dumps(c), text_of[segment]),
            )
            for segment, c in made
        ),
    )


def asked_kept(questions: Sequence[str]) -> int:
    """Return the stored form of `asked`, which separates readings that had different questions."""
    digest = hashlib.blake2b(json.dumps(questions).encode(), digest_size=6)
    return int.from_bytes(digest.digest(), "big") if questions else 0


def forms_kept(forms: Sequence[tuple[str, int]], name: str) -> str:
    """Return the stored form of a mention's surface forms; nearly all mentions have one, used once.

    Args:
        name: key of the name. A form that equals its capitalized words, as most do, becomes "".
    """
    if len(forms) == 1 and forms[0][1] == 1 and forms[0][0] and not forms[0][0].startswith("["):
        return "" if forms[0][0] == _capitalised(name) else forms[0][0]
    return json.dumps(forms, separators=(",", ":"))


def forms_told(kept: str, name: str) -> list[tuple[str, int]]:
    """Return the surface forms of a mention with their counts."""
    if kept.startswith("["):
        return [(form, n) for form, n in json.loads(kept)]
    return [(kept or _capitalised(name), 1)]


def _capitalised(name: str) -> str:
    return " ".join(word[:1].upper() + word[1:] for word in split_key(name)[0].split(" "))


def on_one_line(text: str) -> str:
    """Return a text on one line, as stored places count characters."""
    return " ".join(text.split())


def place_of(description: str, line: str) -> Place:
    """Return the stored form of a description.

    Args:
        line: the segment's text on one line.
    """
    start = line.find(description) if description else -1
    return (start, len(description), "") if start >= 0 else (0, 0, description)


def told(place: Sequence[Any], line: str) -> str:
    """Return the description that this `Place` stores."""
    start, length, description = place
    return str(line[start : start + length] if length else description)


def properties_kept(properties: Properties) -> str:
    """Return the stored form of properties."""
    return dumps(properties) if properties else ""


def properties_told(kept: str) -> Properties:
    """Return properties from their stored form."""
    return tuple((name, value) for name, value in json.loads(kept)) if kept else ()


def change_texts(db: sqlite3.Connection, changed: Mapping[int, str]) -> None:
    """Replace texts of segments; extracted descriptions keep their words."""
    before = texts(db, changed)
    sql = "SELECT body, segment, kind, asked FROM contribution WHERE segment IN ({})"
    db.executemany(
        "UPDATE contribution SET body = ? WHERE segment = ? AND kind = ? AND asked = ?",
        [
            (packed(unpacked(body, before[segment]), changed[segment]), segment, *rest)
            for body, segment, *rest in list(rows_in(db, sql, before))
        ],
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
    return (USUAL + text).encode("utf-8", "surrogatepass")
