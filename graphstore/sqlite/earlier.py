"""Bringing a file of an earlier version to this one."""

import sqlite3
from collections.abc import Callable, Mapping

from qrmem.graphstore.sqlite import words

_INDEX = (
    "CREATE TABLE indexed (segment INTEGER PRIMARY KEY, title TEXT NOT NULL, text TEXT NOT NULL,"
    " length INTEGER NOT NULL)",
    "CREATE VIRTUAL TABLE words USING fts5 (terms, content='', columnsize=0,"
    " tokenize=\"ascii tokenchars '_'\")",
    "CREATE VIRTUAL TABLE vocabulary USING fts5vocab (words, 'row')",
    "CREATE VIRTUAL TABLE occurrence USING fts5vocab (words, 'instance')",
)
_BATCH = 1_000


def _one_index(db: sqlite3.Connection) -> None:
    """Put the full-text tables that each namespace had into one."""
    for statement in _INDEX:
        db.execute(statement)
    words.prepare(db)
    db.execute("UPDATE namespace SET indexed = 0, terms = 0")
    tables = db.execute(
        "SELECT num FROM namespace CROSS JOIN sqlite_master t ON t.name = 'words_' || num"
    ).fetchall()
    for (ns,) in tables:
        rows = db.execute(f"SELECT id, c0, c1 FROM words_{ns}_content ORDER BY id")
        while some := rows.fetchmany(_BATCH):
            words.put(db, ns, some)
        db.execute(f"DROP TABLE vocabulary_{ns}")
        db.execute(f"DROP TABLE words_{ns}")


def _columns(*places: tuple[str, str]) -> Callable[[sqlite3.Connection], None]:
    """Return what adds columns, given as table and column."""

    def work(db: sqlite3.Connection) -> None:
        for table, column in places:
            db.execute(f"ALTER TABLE {table} ADD COLUMN {column} TEXT NOT NULL DEFAULT ''")

    return work


MIGRATIONS: Mapping[int, Callable[[sqlite3.Connection], None]] = {
    7: _columns(*(("fact", name) for name in ("said_at", "valid_from", "valid_until"))),
    8: _columns(("fact", "type"), ("fact", "properties"), ("mention", "properties")),
    9: _one_index,
}
"""What brings a file of a version to the next one."""
