"""Vectors, many to a blob: float32 rows and the number of each row's owner."""

import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from qrmem.errors import EmbedderMismatch
from qrmem.graphstore.protocol import VectorKind, Vectors
from qrmem.graphstore.sqlite.lookup import (
    execute_in,
    namespace_number,
    next_number,
    pick,
    relation_numbers,
    required_namespace,
    rows_in,
    segment_numbers,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    _Matrix = NDArray[np.float32]

BLOCK_ROWS = 256
"""Rows of a block: a few picked owners cost a few blocks, all of them are few reads."""

MAX_SMALL = 16
"""Blocks under half of `BLOCK_ROWS` from which on they are joined."""

_OWNERS: Mapping[str, str] = {
    "segment": "SELECT s.num, s.id FROM document d CROSS JOIN segment s ON s.document = d.num"
    " CROSS JOIN vector_owner o ON o.ns = d.ns AND o.kind = 'segment' AND o.owner = s.num"
    " WHERE d.ns = ? ORDER BY d.id, s.idx",
    "relation": "SELECT num, key FROM relation WHERE ns = ? ORDER BY key",
}
_PICKED: Mapping[str, str] = {
    "segment": "SELECT s.num, s.id FROM picked CROSS JOIN segment s USING (num)"
    " CROSS JOIN vector_owner o ON o.ns = s.ns AND o.kind = 'segment' AND o.owner = s.num"
    " CROSS JOIN document d ON d.num = s.document ORDER BY d.id, s.idx",
    "relation": "SELECT num, key FROM picked CROSS JOIN relation USING (num) ORDER BY key",
}


def set_embedder(db: sqlite3.Connection, ns: str, embedder: str, dimension: int) -> None:
    """Record another embedder and drop all vectors."""
    number = required_namespace(db, ns)
    db.execute(
        "UPDATE namespace SET embedder = ?, dimension = ? WHERE num = ?",
        (embedder, dimension, number),
    )
    for table in ("vectors", "vector_owner", "relation"):
        db.execute(f"DELETE FROM {table} WHERE ns = ?", (number,))


def drop_relations(db: sqlite3.Connection, ns: int) -> None:
    """Drop the vectors of all relations; they are made again when they are needed."""
    for table in ("vectors", "vector_owner"):
        db.execute(f"DELETE FROM {table} WHERE ns = ? AND kind = 'relation'", (ns,))
    db.execute("DELETE FROM relation WHERE ns = ?", (ns,))


def put(
    db: sqlite3.Connection, ns: str, kind: VectorKind, owners: Sequence[str], matrix: "_Matrix"
) -> None:
    """Add rows in place of those that their owners had; rows of unknown segments are left out."""
    import numpy as np

    number = required_namespace(db, ns)
    if not len(owners):
        return
    rows = np.ascontiguousarray(matrix, dtype=np.float32).reshape(len(owners), -1)
    _check_dimension(db, ns, rows.shape[1])
    if kind == "relation":
        _add_relations(db, number, owners)
    numbers = _owner_numbers(db, number, kind, owners)
    drop(db, number, kind, set(numbers.values()))
    by_owner: dict[int, list[int]] = {}
    for row, owner in enumerate(owners):
        if owner in numbers:
            by_owner.setdefault(numbers[owner], []).append(row)
    _write(db, number, kind, by_owner, rows)
    _join_small(db, number, kind)


def _check_dimension(db: sqlite3.Connection, ns: str, dimension: int) -> None:
    embedder, expected = db.execute(
        "SELECT embedder, dimension FROM namespace WHERE name = ?", (ns,)
    ).fetchone()
    if dimension != expected:
        raise EmbedderMismatch(
            f"namespace {ns!r} keeps vectors of {embedder!r} with {expected} numbers, these have"
            f" {dimension}; `qrmem reembed` changes the embedder"
        )


def _add_relations(db: sqlite3.Connection, ns: int, keys: Iterable[str]) -> None:
    db.executemany(
        "INSERT OR IGNORE INTO relation (ns, key) VALUES (?, ?)",
        ((ns, key) for key in dict.fromkeys(keys)),
    )


def _owner_numbers(
    db: sqlite3.Connection, ns: int, kind: VectorKind, owners: Iterable[str]
) -> dict[str, int]:
    find = segment_numbers if kind == "segment" else relation_numbers
    return find(db, ns, owners)


def _write(
    db: sqlite3.Connection,
    ns: int,
    kind: VectorKind,
    by_owner: Mapping[int, Sequence[int]],
    rows: "_Matrix",
) -> None:
    """Write blocks; the rows of one owner stay together."""
    import numpy as np

    block = next_number(db, "vectors")
    for group in _groups(by_owner):
        picked = [row for owner in group for row in by_owner[owner]]
        marks = np.repeat(
            np.array(group, dtype=np.int32), [len(by_owner[owner]) for owner in group]
        )
        db.execute(
            "INSERT INTO vectors VALUES (?, ?, ?, ?, ?, ?)",
            (block, ns, kind, len(picked), marks.tobytes(), rows[picked].tobytes()),
        )
        db.executemany(
            "INSERT INTO vector_owner VALUES (?, ?, ?, ?)",
            ((ns, kind, owner, block) for owner in group),
        )
        block += 1


def _groups(by_owner: Mapping[int, Sequence[int]]) -> Iterator[list[int]]:
    group: list[int] = []
    size = 0
    for owner, rows in by_owner.items():
        if group and size + len(rows) > BLOCK_ROWS:
            yield group
            group, size = [], 0
        group.append(owner)
        size += len(rows)
    if group:
        yield group


def _join_small(db: sqlite3.Connection, ns: int, kind: VectorKind) -> None:
    small = db.execute(
        "SELECT num FROM vectors WHERE ns = ? AND kind = ? AND rows < ? ORDER BY num",
        (ns, kind, BLOCK_ROWS // 2),
    ).fetchall()
    if len(small) > MAX_SMALL:
        _rewrite(db, ns, kind, [num for (num,) in small], without=())


def drop(db: sqlite3.Connection, ns: int, kind: VectorKind, owners: Collection[int]) -> None:
    """Drop the rows of some owners."""
    sql = "SELECT DISTINCT block FROM vector_owner WHERE ns = ? AND kind = ? AND owner IN ({})"
    blocks = {block for (block,) in rows_in(db, sql, owners, ns, kind)}
    if blocks:
        _rewrite(db, ns, kind, sorted(blocks), without=owners)


def _rewrite(
    db: sqlite3.Connection,
    ns: int,
    kind: VectorKind,
    blocks: Sequence[int],
    *,
    without: Collection[int],
) -> None:
    """Write the rows of some blocks again, all but those of some owners."""
    import numpy as np

    marks, parts = _load(db, blocks)
    all_marks = np.concatenate(marks)
    by_owner: dict[int, list[int]] = {}
    gone = set(without)
    for row, owner in enumerate(all_marks.tolist()):
        if owner not in gone:
            by_owner.setdefault(owner, []).append(row)
    execute_in(db, "DELETE FROM vectors WHERE num IN ({})", blocks)
    db.executemany(
        "DELETE FROM vector_owner WHERE ns = ? AND kind = ? AND owner = ?",
        ((ns, kind, owner) for owner in set(all_marks.tolist())),
    )
    _write(db, ns, kind, by_owner, np.concatenate(parts))


def _load(
    db: sqlite3.Connection, blocks: Collection[int]
) -> "tuple[list[NDArray[np.int32]], list[_Matrix]]":
    import numpy as np

    marks, parts = [], []
    sql = "SELECT num, rows, owners, data FROM vectors WHERE num IN ({})"
    for _, rows, owners, data in sorted(rows_in(db, sql, blocks)):
        marks.append(np.frombuffer(owners, np.int32))
        parts.append(np.frombuffer(data, np.float32).reshape(rows, -1))
    return marks, parts


def _marks(db: sqlite3.Connection, blocks: Collection[int]) -> "list[NDArray[np.int32]]":
    """Return the owners of the rows of some blocks, in order of the blocks."""
    import numpy as np

    found = rows_in(db, "SELECT num, owners FROM vectors WHERE num IN ({})", blocks)
    return [np.frombuffer(owners, np.int32) for _, owners in sorted(found)]


def read(
    db: sqlite3.Connection, ns: str, kind: VectorKind, owners: Sequence[str] | None
) -> Vectors:
    """Return the rows of the given owners, or all, in the owners' order."""
    import numpy as np

    number = namespace_number(db, ns)
    ordered = _ordered(db, number, kind, owners)
    blocks = _blocks_of(db, number, kind, None if owners is None else [n for n, _ in ordered])
    marks = _marks(db, blocks)
    dimension = _dimension(db, number)
    if not marks:
        return Vectors((), np.empty((0, dimension), dtype=np.float32))
    rank = np.full(max(int(part.max()) for part in marks) + 1, -1, dtype=np.int64)
    rank[[num for num, _ in ordered]] = np.arange(len(ordered))
    ranks = rank[np.concatenate(marks)]
    place = _places(ranks)
    matrix = np.empty((int((ranks >= 0).sum()), dimension), dtype=np.float32)
    start = 0
    for block in sorted(blocks):  # one after the other: all at once would take the space twice
        (data,) = db.execute("SELECT data FROM vectors WHERE num = ?", (block,)).fetchone()
        part = np.frombuffer(data, np.float32).reshape(-1, dimension)
        target = place[start : start + len(part)]
        kept = target >= 0
        matrix[target[kept]] = part if kept.all() else part[kept]
        start += len(part)
    ids = [id_ for _, id_ in ordered]
    return Vectors([ids[r] for r in np.sort(ranks[ranks >= 0]).tolist()], matrix)


def _places(ranks: "NDArray[np.int64]") -> "NDArray[np.int64]":
    """Return the target row of each row, -1 for rows that were not asked for."""
    import numpy as np

    order = np.argsort(ranks, kind="stable")
    skipped = int((ranks < 0).sum())
    place = np.empty(len(ranks), dtype=np.int64)
    place[order] = np.arange(len(ranks)) - skipped
    place[ranks < 0] = -1
    return place


def _ordered(
    db: sqlite3.Connection, ns: int, kind: VectorKind, owners: Sequence[str] | None
) -> list[tuple[int, str]]:
    """Return number and id of the owners that have vectors, in order."""
    if owners is None:
        return db.execute(_OWNERS[kind], (ns,)).fetchall()
    pick(db, _owner_numbers(db, ns, kind, owners).values())
    return db.execute(_PICKED[kind]).fetchall()


def _blocks_of(
    db: sqlite3.Connection, ns: int, kind: VectorKind, owners: Sequence[int] | None
) -> set[int]:
    if owners is None:
        rows: Iterable[Any] = db.execute(
            "SELECT num FROM vectors WHERE ns = ? AND kind = ?", (ns, kind)
        )
    else:
        sql = "SELECT block FROM vector_owner WHERE ns = ? AND kind = ? AND owner IN ({})"
        rows = rows_in(db, sql, owners, ns, kind)
    return {block for (block,) in rows}


def _dimension(db: sqlite3.Connection, ns: int) -> int:
    row = db.execute("SELECT dimension FROM namespace WHERE num = ?", (ns,)).fetchone()
    return row[0] if row else 0


def owners(db: sqlite3.Connection, ns: str, kind: VectorKind) -> list[str]:
    """Return who has vectors, in order."""
    rows = db.execute(_OWNERS[kind], (namespace_number(db, ns),))
    return [id_ for _, id_ in rows]
