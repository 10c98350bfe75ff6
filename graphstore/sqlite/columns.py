"""All names and vectors of a namespace by the ordinals of its catalog, as columns."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from qrmem.graphstore.protocol import NameColumns, NumberedVectors
from qrmem.graphstore.sqlite.lookup import namespace_number

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    _Ints = NDArray[np.int64]

_ROWS = 4096
"""Segments whose mentions are read at a time: a large memory's would fill the room of its index."""
_PASSED = 2048
"""KiB of pages that are held while much is read once."""


@contextmanager
def passing(db: sqlite3.Connection) -> Iterator[None]:
    """Hold few pages meanwhile: what is read once and whole would only push others out."""
    (held,) = db.execute("PRAGMA cache_size").fetchone()
    db.execute(f"PRAGMA cache_size = -{_PASSED}")
    try:
        yield
    finally:
        db.execute(f"PRAGMA cache_size = {held}")


def numbered_vectors(db: sqlite3.Connection, ns: str) -> NumberedVectors:
    """Return the rows of all indexed segments, in the order in which they lie in the file."""
    import numpy as np

    number = namespace_number(db, ns)
    dimension = db.execute("SELECT dimension FROM namespace WHERE num = ?", (number,)).fetchone()
    sql = "SELECT num, rows FROM vectors WHERE ns = ? AND kind = 'segment'"
    blocks = sorted(db.execute(sql, (number,)))
    matrix = np.empty(
        (sum(rows for _, rows in blocks), dimension[0] if dimension else 0), dtype=np.float32
    )
    owners, at = [], 0
    with passing(db):
        for num, rows in blocks:
            sql = "SELECT owners, data FROM vectors WHERE num = ?"
            marks, data = db.execute(sql, (num,)).fetchone()
            matrix[at : at + rows] = np.frombuffer(data, np.float32).reshape(rows, -1)
            owners.append(np.frombuffer(marks, np.int32))
            at += rows
    if not owners:
        return NumberedVectors(np.zeros(0, dtype=np.int64), matrix)
    numbers = _ordinals(db, number, np.concatenate(owners))
    known = numbers >= 0
    return (
        NumberedVectors(numbers, matrix)
        if known.all()
        else NumberedVectors(numbers[known], matrix[known])
    )


def _ordinals(db: sqlite3.Connection, ns: int, segments: "NDArray[np.int32]") -> "_Ints":
    """Return the ordinals of segments given by number, -1 for those that are not indexed."""
    import numpy as np

    # One row of JSON: SQLite packs a column twice as fast as Python takes its rows.
    sql = "SELECT json_group_array(segment), json_group_array(number) FROM indexed WHERE ns = ?"
    packed = db.execute(sql, (ns,)).fetchone()
    indexed, numbers = (np.array(json.loads(column), dtype=np.int64) for column in packed)
    place = np.full(max(indexed.max(initial=0), segments.max(initial=0)) + 1, -1, dtype=np.int64)
    place[indexed] = numbers
    return place[segments]


def name_columns(db: sqlite3.Connection, ns: str) -> NameColumns:
    """Return the names by key, and which entities stand in which indexed segments."""
    import numpy as np

    number = namespace_number(db, ns)
    sql = "SELECT num, entity, surface FROM name WHERE ns = ? ORDER BY key"
    rows = db.execute(sql, (number,)).fetchall()
    names = np.array([row[0] for row in rows], dtype=np.int64)
    entity_of = _by_appearance(np.array([row[1] for row in rows], dtype=np.int64))
    of_name = np.full(names.max(initial=-1) + 1, -1, dtype=np.int64)
    of_name[names] = entity_of
    numbers, found = _mentions(db, number)
    entities = of_name[found] if names.size else found
    pairs = np.sort(numbers * (names.size + 1) + entities)
    # An entity may have two names there. (`np.unique` takes ten times as long for a million.)
    pairs = pairs[np.flatnonzero(np.diff(pairs, prepend=-1))]
    numbers, entities = np.divmod(pairs, names.size + 1)
    return NameColumns([row[2] for row in rows], entity_of, numbers, entities)


def _by_appearance(values: "_Ints") -> "_Ints":
    """Return numbers from 0 for values, in the order in which they first appear."""
    import numpy as np

    _, firsts, places = np.unique(values, return_index=True, return_inverse=True)
    ranks = np.empty(firsts.size, dtype=np.int64)
    ranks[np.argsort(firsts)] = np.arange(firsts.size)
    return ranks[places]


def _mentions(db: sqlite3.Connection, ns: int) -> "tuple[_Ints, _Ints]":
    """Return the ordinals of indexed segments, and the numbers of the names in each."""
    import numpy as np

    rows = db.execute(
        "SELECT i.number, count(*), group_concat(m.name) FROM indexed i CROSS JOIN mention m"
        " ON m.segment = i.segment WHERE i.ns = ? GROUP BY i.number",
        (ns,),
    )
    numbers, names = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    while part := rows.fetchmany(_ROWS):
        ordinals, counts = ([row[n] for row in part] for n in (0, 1))
        numbers.append(np.repeat(np.array(ordinals, dtype=np.int64), counts))
        names.append(np.array(json.loads(f"[{','.join(row[2] for row in part)}]"), dtype=np.int64))
    return np.concatenate(numbers), np.concatenate(names)
