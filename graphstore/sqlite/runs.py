"""Records of runs: trails, calls, cached replies."""

import json
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from qrmem.graphstore.codec import dumps, loads
from qrmem.graphstore.protocol import CacheEntry, CacheKind
from qrmem.graphstore.redaction import Removal, about, blanked
from qrmem.graphstore.sqlite.lookup import (
    execute_in,
    in_order,
    namespace_number,
    required_namespace,
    rows_in,
)
from qrmem.types import CallRecord, Trail


def put_trail(db: sqlite3.Connection, ns: str, trail: Trail) -> None:
    """Write a trail; one of the same id is replaced, in its place."""
    db.execute(
        "INSERT INTO trail (ns, id, created, body) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (ns, id) DO UPDATE SET created = excluded.created, body = excluded.body",
        (required_namespace(db, ns), trail.id, trail.created, dumps(trail)),
    )


def trails(
    db: sqlite3.Connection,
    ns: str,
    limit: int = 20,
    *,
    id: str | None = None,
    skip: int = 0,
    oldest_first: bool = False,
) -> list[Trail]:
    """Return trails in order of time, or the one of an id."""
    way = "" if oldest_first else "DESC"
    number = namespace_number(db, ns)
    where, values = ("ns = ?", [number]) if id is None else ("ns = ? AND id = ?", [number, id])
    rows = db.execute(
        f"SELECT body FROM trail WHERE {where} ORDER BY created {way}, num {way} LIMIT ? OFFSET ?",
        (*values, max(limit, 0), skip),
    )
    return [loads(body, Trail) for (body,) in rows]


def has_trails(db: sqlite3.Connection, ns: int) -> bool:
    """Return whether any run was recorded."""
    return db.execute("SELECT 1 FROM trail WHERE ns = ? LIMIT 1", (ns,)).fetchone() is not None


def trails_about(db: sqlite3.Connection, ns: int, removal: Removal) -> Iterator[tuple[int, Trail]]:
    """Yield the trails that may name something removed, with their numbers."""
    return about(db.execute("SELECT num, body FROM trail WHERE ns = ?", (ns,)), removal)


def blank_trails(
    db: sqlite3.Connection, trails: Iterable[tuple[int, Trail]], removal: Removal
) -> None:
    """Blank the words of removed segments in numbered trails, one by one."""
    for number, trail in trails:
        after = blanked(trail, removal)
        if after is not trail:  # written while others are read: no index has the body
            db.execute("UPDATE trail SET body = ? WHERE num = ?", (dumps(after), number))


def add_calls(db: sqlite3.Connection, ns: int, calls: Sequence[CallRecord]) -> None:
    """Append calls to a namespace given by number."""
    db.executemany("INSERT INTO call (ns, body) VALUES (?, ?)", ((ns, dumps(c)) for c in calls))


def calls(db: sqlite3.Connection, ns: str) -> list[CallRecord]:
    """Return all calls, in the order of writing."""
    rows = db.execute(
        "SELECT body FROM call WHERE ns = ? ORDER BY num", (namespace_number(db, ns),)
    )
    return [loads(body, CallRecord) for (body,) in rows]


def put_cache_entry(
    db: sqlite3.Connection,
    ns: str,
    kind: CacheKind,
    key: str,
    value: Mapping[str, Any],
    *,
    segments: Sequence[str] = (),
    calls: Sequence[CallRecord] = (),
) -> None:
    """Cache a value until one of the segments is deleted, and append the calls that made it."""
    number = required_namespace(db, ns)
    place = (number, kind, key)
    db.execute("DELETE FROM cached WHERE ns = ? AND kind = ? AND key = ?", place)
    sql = "INSERT INTO cached (ns, kind, key, value) VALUES (?, ?, ?, ?)"
    row = db.execute(sql, (*place, dumps(value)))
    db.executemany(
        "INSERT INTO cached_segment VALUES (?, ?, ?)",
        ((number, segment, row.lastrowid) for segment in set(segments)),
    )
    add_calls(db, number, calls)


def cache_keys(db: sqlite3.Connection, ns: str, kind: CacheKind) -> list[str]:
    """Return the keys of the cached values of a kind, sorted."""
    sql = "SELECT key FROM cached WHERE ns = ? AND kind = ?"
    return sorted(key for (key,) in db.execute(sql, (namespace_number(db, ns), kind)))


def cache_entries(
    db: sqlite3.Connection, ns: str, kind: CacheKind, keys: Sequence[str]
) -> list[CacheEntry]:
    """Return the values that are cached under some keys, in their order."""
    of = (namespace_number(db, ns), kind)
    # Two queries: with a join, a value would be read once for each of its segments.
    sql = "SELECT key, value, num FROM cached WHERE ns = ? AND kind = ? AND key IN ({})"
    values = {key: (value, num) for key, value, num in rows_in(db, sql, set(keys), *of)}
    sql = (
        "SELECT s.cached, s.segment FROM cached c JOIN cached_segment s ON s.cached = c.num"
        " WHERE c.ns = ? AND c.kind = ? AND c.key IN ({})"
    )
    ties: dict[int, list[str]] = {}
    for num, segment in rows_in(db, sql, set(keys), *of):
        ties.setdefault(num, []).append(segment)
    entries = {
        key: CacheEntry(key, json.loads(value), tuple(sorted(ties.get(num, ()))))
        for key, (value, num) in values.items()
    }
    return in_order(keys, entries)


def drop_cache_entries(
    db: sqlite3.Connection, ns: str, kind: CacheKind, keys: Sequence[str]
) -> None:
    """Delete the values that are cached under some keys."""
    sql = "DELETE FROM cached WHERE ns = ? AND kind = ? AND key IN ({})"
    execute_in(db, sql, set(keys), namespace_number(db, ns), kind)


def drop_cached_about(db: sqlite3.Connection, ns: int, segments: Collection[str]) -> None:
    """Delete cached values that depend on one of the segments, or on no segment."""
    db.execute(
        "DELETE FROM cached WHERE ns = ? AND num NOT IN (SELECT cached FROM cached_segment)", (ns,)
    )
    execute_in(
        db,
        "DELETE FROM cached WHERE num IN (SELECT cached FROM cached_segment"
        " WHERE ns = ? AND segment IN ({}))",
        segments,
        ns,
    )
