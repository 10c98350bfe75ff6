"""Map text ids to numbers within one namespace, which separates namespaces.

The rest of this package takes numbers from here.
"""

import json
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from qrmem.errors import NotFound

_CHUNK = 500


def namespace_number(db: sqlite3.Connection, ns: str) -> int:
    """Return a namespace's number; 0, which no row has, if the name is unknown."""
    row = db.execute("SELECT num FROM namespace WHERE name = ?", (ns,)).fetchone()
    return row[0] if row else 0


def required_namespace(db: sqlite3.Connection, ns: str) -> int:
    """Return a namespace's number.

    Raises:
        NotFound: there is no namespace of that name.
    """
    number = namespace_number(db, ns)
    if not number:
        raise NotFound(f"there is no namespace {ns!r} in this memory")
    return number


def rows_in(
    db: sqlite3.Connection, sql: str, values: Collection[Any], *before: Any
) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a statement whose `{}` stands for a list of values, in no order.

    Args:
        before: values of the placeholders that come before the list.
    """
    ordered = list(values)
    for start in range(0, len(ordered), _CHUNK):
        chunk = ordered[start : start + _CHUNK]
        marks = ",".join("?" * len(chunk))
        yield from db.execute(sql.replace("{}", marks), (*before, *chunk))


def execute_in(db: sqlite3.Connection, sql: str, values: Collection[Any], *before: Any) -> None:
    """Run a statement without rows whose `{}` stands for a list of values."""
    for _ in rows_in(db, sql, values, *before):
        raise AssertionError("a statement with rows was run for its effect")


def segment_numbers(db: sqlite3.Connection, ns: int, ids: Iterable[str]) -> dict[str, int]:
    """Return id to number; unknown ids are left out."""
    return _numbers(db, "segment", "id", ns, ids)


def segments_allowed(
    db: sqlite3.Connection,
    ns: int,
    documents: Collection[str] | None,
    among: Collection[str] | None,
) -> list[int] | None:
    """Return the numbers of the segments to search, ascending; `None`: all of the namespace.

    Args:
        documents: ids of the only documents; `None`: all.
        among: ids of the only segments; `None`: all.
    """
    numbers: set[int] | None = None
    if documents is not None:
        sql = (
            "SELECT s.num FROM json_each(?) wanted CROSS JOIN document d ON d.ns = ?"
            " AND d.id = wanted.value CROSS JOIN segment s ON s.document = d.num"
        )
        numbers = {num for (num,) in db.execute(sql, (json.dumps(list(documents)), ns))}
    if among is not None:
        among_numbers = set(segment_numbers(db, ns, among).values())
        numbers = among_numbers if numbers is None else numbers & among_numbers
    return None if numbers is None else sorted(numbers)


def entity_numbers(db: sqlite3.Connection, ns: int, keys: Iterable[str]) -> dict[str, int]:
    """Return key to number; unknown keys are left out."""
    return _numbers(db, "entity", "key", ns, keys)


def name_numbers(db: sqlite3.Connection, ns: int, keys: Iterable[str]) -> dict[str, int]:
    """Return key to number; unknown keys are left out."""
    return _numbers(db, "name", "key", ns, keys)


def key_range(norm: str) -> tuple[str, str]:
    """Return the bounds of the keys of names with one normalised form; the upper is exclusive."""
    return f"{norm}|", f"{norm}}}"  # "}" comes next after "|"


def _numbers(
    db: sqlite3.Connection, table: str, column: str, ns: int, texts: Iterable[str]
) -> dict[str, int]:
    if not db.execute(f"SELECT 1 FROM {table} WHERE ns = ? LIMIT 1", (ns,)).fetchone():
        return {}  # a first build asks for all names that it will write
    sql = f"SELECT {column}, num FROM {table} WHERE ns = ? AND {column} IN ({{}})"
    return dict(rows_in(db, sql, set(texts), ns))


def document_number(db: sqlite3.Connection, ns: int, document_id: str) -> int:
    """Return a document's number, or 0."""
    row = db.execute(
        "SELECT num FROM document WHERE ns = ? AND id = ?", (ns, document_id)
    ).fetchone()
    return row[0] if row else 0


def rows_of_documents(
    db: sqlite3.Connection, ns: str, document_ids: Sequence[str], sql: str
) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a statement about one document's number, document by document."""
    number = namespace_number(db, ns)
    for document_id in document_ids:
        # if a row cannot be read, no cursor stays open: another thread might delete it
        yield from db.execute(sql, (document_number(db, number, document_id),)).fetchall()


def next_number(db: sqlite3.Connection, table: str) -> int:
    """Return the first free number of a table; reliable only inside a write transaction."""
    return int(db.execute(f"SELECT coalesce(max(num), 0) + 1 FROM {table}").fetchone()[0])


def pick(db: sqlite3.Connection, numbers: Iterable[int]) -> None:
    """Fill the connection's temporary table `picked`, for statements that join with a long list."""
    db.execute("DELETE FROM picked")
    db.executemany("INSERT OR IGNORE INTO picked VALUES (?)", ((n,) for n in numbers))


def in_order(ids: Sequence[str], found: dict[str, Any]) -> list[Any]:
    """Return the found values in the order of the requested ids."""
    return [found[id_] for id_ in ids if id_ in found]
