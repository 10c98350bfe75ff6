"""Which relations some facts belong to, for dropping vectors that no longer fit them."""

import sqlite3
from collections.abc import Collection

from qrmem.graphstore.protocol import relation_key
from qrmem.graphstore.sqlite import vectors
from qrmem.graphstore.sqlite.lookup import pick, relation_numbers, rows_in

_ENDS = """
    SELECT DISTINCT h.entity, t.entity FROM fact f
    CROSS JOIN name h ON h.num = f.head CROSS JOIN name t ON t.num = f.tail
"""


def have_vectors(db: sqlite3.Connection, ns: int) -> bool:
    """Say whether any relation of the namespace has vectors; most writes can stop there."""
    return db.execute("SELECT 1 FROM relation WHERE ns = ? LIMIT 1", (ns,)).fetchone() is not None


def of_segments(db: sqlite3.Connection, segments: Collection[int]) -> set[str]:
    """Return the keys of the relations that the segments state."""
    rows = rows_in(db, _ENDS + "WHERE f.segment IN ({})", segments)
    return _keys(db, {(head, tail) for head, tail in rows})


def of_names(db: sqlite3.Connection, names: Collection[int]) -> set[str]:
    """Return the keys of the relations that the names are an end of."""
    pairs = set()
    for end in ("head", "tail"):
        rows = rows_in(db, _ENDS + f"WHERE f.{end} IN ({{}})", names)
        pairs |= {(head, tail) for head, tail in rows}
    return _keys(db, pairs)


def drop_vectors(db: sqlite3.Connection, ns: int, keys: Collection[str]) -> None:
    """Drop the vectors of the relations of these keys."""
    numbers = relation_numbers(db, ns, keys).values()
    vectors.drop(db, ns, "relation", set(numbers))
    db.executemany("DELETE FROM relation WHERE num = ?", ((num,) for num in list(numbers)))


def _keys(db: sqlite3.Connection, pairs: Collection[tuple[int, int]]) -> set[str]:
    pick(db, {entity for pair in pairs for entity in pair})
    keys = dict(db.execute("SELECT num, key FROM picked CROSS JOIN entity USING (num)"))
    return {relation_key(keys[head], keys[tail]) for head, tail in pairs}
