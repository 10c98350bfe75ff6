"""Delete segments with everything that depends on them, namespaces, and empty files."""

import sqlite3
from collections.abc import Collection, Mapping
from dataclasses import replace
from itertools import chain
from pathlib import Path
from urllib.parse import quote

from qrmem.graphstore.checking import check_removable
from qrmem.graphstore.protocol import relation_key
from qrmem.graphstore.redaction import Removal
from qrmem.graphstore.sqlite import full_text, runs, vectors, view_writes
from qrmem.graphstore.sqlite.lookup import execute_in, namespace_number, rows_in

_INDEX = ("words", "words_config", "words_data", "words_idx", "vocabulary", "occurrence")
_UNCOUNTED = ("namespace", "sqlite_sequence", *_INDEX)
"""Tables that may be non-empty in an empty memory; index entries are in `indexed`, too."""


def drop_segments(db: sqlite3.Connection, ns: int, segments: Mapping[str, int]) -> None:
    """Remove segments, given as id to number, with everything that depends on them."""
    if not segments:
        return
    numbers = segments.values()
    has_trails = runs.has_trails(db, ns)
    relations_stated = _relations(db, numbers) if has_trails else set()
    touched = view_writes.TouchedRows()
    view_writes.clear(db, ns, numbers, touched)
    names_gone = view_writes.settle(db, ns, touched)
    full_text.forget(db)
    vectors.drop(db, ns, numbers)
    vectors.drop_relations(db, ns)
    runs.drop_cached_about(db, ns, segments.keys())
    execute_in(db, "DELETE FROM segment WHERE num IN ({})", numbers)
    if has_trails:
        names = {word for entity in names_gone for word in entity}
        removal = Removal(segments.keys(), relations_stated, names)
        trails = runs.trails_about(db, ns, removal)
        if first := next(trails, None):
            removal = replace(removal, entities=names - _living(db, ns, names))
            runs.blank_trails(db, chain([first], trails), removal)


def delete_namespace(db: sqlite3.Connection, name: str, *, importing: str | None = None) -> None:
    """Remove everything of a namespace; harmless if there is none."""
    ns = namespace_number(db, name)
    if importing is not None:
        query = "SELECT importing, EXISTS (SELECT 1 FROM document WHERE ns = num) FROM namespace"
        for token, has_documents in db.execute(f"{query} WHERE num = ?", (ns,)):
            check_removable(name, importing, token, bool(has_documents))
    full_text.delete(db, ns)
    for table in ("mention", "fact", "question", "merged"):
        db.execute(
            f"DELETE FROM {table} WHERE segment IN (SELECT num FROM segment WHERE ns = ?)", (ns,)
        )
    db.execute("DELETE FROM form WHERE name IN (SELECT num FROM name WHERE ns = ?)", (ns,))
    for table in (
        "name",
        "name_block",
        "stale",
        "entity",
        "title_form",
        "metadata",
        "segment_vector",
        "relation_vector",
    ):
        db.execute(f"DELETE FROM {table} WHERE ns = ?", (ns,))
    db.execute("DELETE FROM namespace WHERE num = ?", (ns,))


def _relations(db: sqlite3.Connection, segments: Collection[int]) -> set[str]:
    """Return the keys of the relations that the segments state."""
    rows = rows_in(
        db,
        "SELECT DISTINCT a.key, b.key FROM fact f CROSS JOIN name h ON h.num = f.head"
        " CROSS JOIN name t ON t.num = f.tail CROSS JOIN entity a ON a.num = h.entity"
        " CROSS JOIN entity b ON b.num = t.entity WHERE f.segment IN ({})",
        segments,
    )
    return {relation_key(head, tail) for head, tail in rows}


def _living(db: sqlite3.Connection, ns: int, names: Collection[str]) -> set[str]:
    """Return the names among some that entities still have."""
    sql = "SELECT DISTINCT name FROM entity WHERE ns = ? AND name IN ({})"
    return {name for (name,) in rows_in(db, sql, names, ns)}


def vacate(path: Path) -> bool:
    """Delete a memory's file if it holds only names of namespaces.

    This needs that no other program has it open; one that opens it meanwhile creates a new file.

    Returns:
        Whether the file no longer exists.
    """
    uri = f"file:{quote(str(path.absolute()))}?mode=rw"
    try:
        db = sqlite3.connect(uri, uri=True, timeout=0, isolation_level=None)
    except sqlite3.Error:  # the file or its folder was removed already
        return not path.exists()
    try:
        # fails while another connection has the file; also removes the files beside it
        if db.execute("PRAGMA journal_mode = DELETE").fetchone() != ("delete",):
            return False
        db.execute("BEGIN EXCLUSIVE")
        if _holds_anything(db):
            return False
        path.unlink()
    except (sqlite3.Error, OSError):  # the file is in use, or may not be removed
        return False
    finally:
        db.close()
    return True


def _holds_anything(db: sqlite3.Connection) -> bool:
    tables = db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    table_names = [name for (name,) in tables if name not in _UNCOUNTED]
    return any(db.execute(f'SELECT 1 FROM "{name}" LIMIT 1').fetchone() for name in table_names)
