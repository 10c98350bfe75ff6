"""What a search works out of a revision, kept beside the view that it follows from."""

import sqlite3
from collections.abc import Mapping

from qrmem.graphstore.sqlite.columns import passing
from qrmem.graphstore.sqlite.lookup import namespace_number


def put(db: sqlite3.Connection, ns: str, revision: int, parts: Mapping[str, bytes]) -> None:
    """Keep the parts of a revision, if the namespace is still at it."""
    sql = "SELECT num FROM namespace WHERE name = ? AND revision = ?"
    row = db.execute(sql, (ns, revision)).fetchone()
    if row is not None:
        drop(db, row[0])
        db.executemany(
            "INSERT INTO search_index VALUES (?, ?, ?, ?)",
            ((row[0], part, revision, data) for part, data in parts.items()),
        )


def read(db: sqlite3.Connection, ns: str, revision: int, part: str) -> bytes | None:
    """Return a part that was put for this revision."""
    row = db.execute(
        "SELECT rowid FROM search_index WHERE ns = ? AND part = ? AND revision = ?",
        (namespace_number(db, ns), part, revision),
    ).fetchone()
    if row is None:
        return None
    with passing(db), db.blobopen("search_index", "data", row[0], readonly=True) as blob:
        return blob.read()


def drop(db: sqlite3.Connection, ns: int) -> None:
    """Forget what was put; it holds names and titles of every document."""
    db.execute("DELETE FROM search_index WHERE ns = ?", (ns,))
