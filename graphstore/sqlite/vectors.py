"""Vectors as rows, and a copy of a namespace's vectors in a memory-mapped file.

The copy lies beside the database. Its records are a row's number, its segment's number and the
vector, in the order of insertion. Its file name has the namespace's mark, which changes whenever
vectors are deleted. So a copy with the present mark lacks at most the newest rows, which are
appended; any other copy is outdated. Each record has a fixed place, so that processes that append
at the same time write the same bytes.
"""

import os
import secrets
import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qrmem.graphstore.checking import check_dimension
from qrmem.graphstore.protocol import VectorKind, Vectors
from qrmem.graphstore.sqlite.lookup import (
    execute_in,
    namespace_number,
    required_namespace,
    rows_in,
    segment_numbers,
    segments_allowed,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    _Matrix = NDArray[np.float32]

LEAST = 2_000
"""Minimum number of vectors for a copy in a file; fewer are quickly read from the database."""
_BATCH = 1_000
_FROM: Mapping[VectorKind, tuple[str, str, str]] = {
    "segment": (
        "d.id, s.idx",
        "s.id",
        "segment s CROSS JOIN segment_vector v ON v.segment = s.num"
        " CROSS JOIN document d ON d.num = s.document WHERE s.ns = ?",
    ),
    "relation": ("v.key", "v.key", "relation_vector v WHERE v.ns = ?"),
}
"""Order of vectors, the column of their owners, and their tables, by kind."""


def set_embedder(db: sqlite3.Connection, ns: str, embedder: str, dimension: int) -> None:
    """Record another embedder and drop all vectors."""
    number = required_namespace(db, ns)
    db.execute(
        "UPDATE namespace SET embedder = ?, dimension = ? WHERE num = ?",
        (embedder, dimension, number),
    )
    delete(db, number)


def delete(db: sqlite3.Connection, ns: int) -> None:
    """Drop all vectors of a namespace."""
    db.execute("DELETE FROM segment_vector WHERE ns = ?", (ns,))
    drop_relations(db, ns)
    _mark(db, ns)


def drop_relations(db: sqlite3.Connection, ns: int) -> None:
    """Drop the vectors of all relations; they are made again when they are needed."""
    db.execute("DELETE FROM relation_vector WHERE ns = ?", (ns,))


def drop(db: sqlite3.Connection, ns: int, segments: Collection[int]) -> None:
    """Drop the vectors of some segments."""
    sql = "SELECT num FROM segment_vector WHERE segment IN ({})"
    numbers = [num for (num,) in rows_in(db, sql, segments)]
    if numbers:
        execute_in(db, "DELETE FROM segment_vector WHERE num IN ({})", numbers)
        _mark(db, ns)


def _mark(db: sqlite3.Connection, ns: int) -> None:
    db.execute("UPDATE namespace SET vectors = ? WHERE num = ?", (secrets.token_hex(8), ns))


def put(
    db: sqlite3.Connection, ns: str, kind: VectorKind, owners: Sequence[str], matrix: "_Matrix"
) -> None:
    """Add rows and replace earlier rows of their owners; skip rows of unknown segments."""
    import numpy as np

    number = required_namespace(db, ns)
    if not len(owners):
        return
    rows = np.ascontiguousarray(matrix, dtype=np.float32).reshape(len(owners), -1)
    sql = "SELECT embedder, dimension FROM namespace WHERE num = ?"
    embedder, dimension = db.execute(sql, (number,)).fetchone()
    check_dimension(ns, embedder, dimension, rows.shape[1])
    if kind == "relation":
        sql = "DELETE FROM relation_vector WHERE ns = ? AND key IN ({})"
        execute_in(db, sql, set(owners), number)
        number_of: Mapping[str, Any] = {owner: owner for owner in owners}
        table = "relation_vector (ns, key, data)"
    else:
        number_of = segment_numbers(db, number, owners)
        drop(db, number, set(number_of.values()))
        table = "segment_vector (ns, segment, data)"
        if not db.execute("SELECT vectors FROM namespace WHERE num = ?", (number,)).fetchone()[0]:
            _mark(db, number)
    db.executemany(
        f"INSERT INTO {table} VALUES (?, ?, ?)",
        (
            (number, number_of[owner], row.tobytes())
            for owner, row in zip(owners, rows, strict=True)
            if owner in number_of
        ),
    )


def owners(
    db: sqlite3.Connection, ns: str, kind: VectorKind, among: Sequence[str] | None = None
) -> list[str]:
    """Return the owners that have vectors, out of all or some, in order."""
    number = namespace_number(db, ns)
    place, owner, where = _FROM[kind]
    sql = f"SELECT DISTINCT {place}, {owner} FROM {where}"
    if among is None:
        rows: Iterable[tuple[Any, ...]] = db.execute(sql, (number,))
    else:
        rows = rows_in(db, f"{sql} AND {owner} IN ({{}})", set(among), number)
    return [id_ for *_, id_ in sorted(rows)]


def read(db: sqlite3.Connection, ns: str, kind: VectorKind, owners: Sequence[str]) -> Vectors:
    """Return the rows of the given owners, in their order."""
    import numpy as np

    number = namespace_number(db, ns)
    place, owner, where = _FROM[kind]
    sql = f"SELECT {place}, v.num, {owner}, v.data FROM {where} AND {owner} IN ({{}})"
    rows = sorted(rows_in(db, sql, set(owners), number))
    row = db.execute("SELECT dimension FROM namespace WHERE num = ?", (number,)).fetchone()
    data = np.frombuffer(b"".join(blob for *_, blob in rows), np.float32)
    dimension = row[0] if row else 0
    return Vectors([owner for *_, owner, _ in rows], data.reshape(len(rows), dimension))


def best_of(
    segments: "NDArray[np.int64]", scores: "NDArray[np.float32]", limit: int
) -> tuple[list[int], list[float]]:
    """Return the segments with the best scores, and these scores, best first, ties in row order.

    Args:
        segments: `(n,)`, segment of each row; a segment may have several rows.
        scores: `(n,)`, score of each row; `-inf` leaves it out.
        limit: maximum number of segments.
    """
    import numpy as np

    most = min(4 * max(limit, 1), scores.size)
    while True:
        # Sorting all rows of a large memory would take longer than scoring them.
        least = np.partition(scores, -most)[-most]
        top = np.flatnonzero((scores >= least) & (scores > -np.inf))
        order = top[np.argsort(-scores[top], kind="stable")]
        best_segments, firsts = np.unique(segments[order], return_index=True)
        if best_segments.size >= limit or most == scores.size:
            best = np.argsort(firsts)[:limit]
            return best_segments[best].tolist(), scores[order[firsts[best]]].tolist()
        most = min(4 * most, scores.size)


class Copies:
    """The vectors of a file's namespaces as arrays, which are updated before each use.

    Attributes:
        are_written: whether files were written since outdated ones were deleted.
    """

    def __init__(self, path: Path | None, *, may_write: bool) -> None:
        """Take the database's path; `None` if it is in memory, where the copies then are, too."""
        self._path = path
        self._may_write = may_write
        self.are_written = False
        self._open: dict[int, tuple[str, NDArray[np.void]]] = {}

    def nearest(
        self,
        db: sqlite3.Connection,
        ns: str,
        vector: "_Matrix",
        limit: int,
        documents: Collection[str] | None,
        among: Sequence[str] | None,
    ) -> dict[str, float]:
        """Return the cosines of the segments nearest to a vector, nearest first."""
        import numpy as np

        number = namespace_number(db, ns)
        rows = self._rows(db, number)
        if not rows.size:
            return {}
        cosines = rows["vector"] @ np.asarray(vector, dtype=np.float32)
        if (allowed := segments_allowed(db, number, documents, among)) is not None:
            cosines[~np.isin(rows["segment"], allowed)] = -np.inf
        numbers, best = best_of(rows["segment"], cosines, limit)
        ids = dict(rows_in(db, "SELECT num, id FROM segment WHERE num IN ({})", numbers))
        return {ids[n]: score for n, score in zip(numbers, best, strict=True) if n in ids}

    def _rows(self, db: sqlite3.Connection, ns: int) -> "NDArray[np.void]":
        """Return the vectors of a namespace as records."""
        import numpy as np

        row = db.execute("SELECT vectors, dimension FROM namespace WHERE num = ?", (ns,)).fetchone()
        mark, dimension = row or ("", 0)
        kind = np.dtype([("num", "<i8"), ("segment", "<i8"), ("vector", "<f4", (dimension,))])
        if not mark:
            return np.zeros(0, kind)
        revision_known, rows = self._open.get(ns, ("", np.zeros(0, kind)))
        if revision_known != mark:
            rows = self._mapped(mark, kind)
        new = _after(db, ns, rows, kind)
        if new.size:
            there = self._mapped(mark, kind)  # another process may have appended the rows
            if there.size > rows.size:
                rows, new = there, _after(db, ns, there, kind)
        if new.size:
            rows = self._grow(rows, new, mark, kind)
        self._open[ns] = mark, rows
        return rows

    def _file(self, path: Path, mark: str) -> Path:
        return path.with_name(f"{path.name}-vectors-{mark}")

    def _mapped(self, mark: str, kind: "np.dtype[np.void]") -> "NDArray[np.void]":
        """Return the complete records of the copy, or none if there is no copy."""
        import numpy as np

        file = None if self._path is None else self._file(self._path, mark)
        size = file.stat().st_size if file is not None and file.is_file() else 0
        count = size // kind.itemsize  # an incomplete record is written again
        if file is None or not count:
            return np.zeros(0, kind)
        return np.memmap(file, kind, "r", shape=(count,))

    def _grow(
        self,
        rows: "NDArray[np.void]",
        new: "NDArray[np.void]",
        mark: str,
        kind: "np.dtype[np.void]",
    ) -> "NDArray[np.void]":
        """Append to the copy, or to an array in memory if there is none."""
        import numpy as np

        is_mapped = isinstance(rows, np.memmap)
        if self._path and self._may_write and (is_mapped or rows.size + new.size >= LEAST):
            try:
                self.are_written = True
                _append(self._file(self._path, mark), rows, new)
            except OSError:  # no space beside the database: the array stays in memory
                return np.concatenate([rows, new])
            return self._mapped(mark, kind)
        return np.concatenate([rows, new])

    def forget(self, db: sqlite3.Connection) -> None:
        """Delete outdated copies: they hold deleted vectors."""
        self._open.clear()
        self.are_written = False
        if self._path is None or not self._may_write:
            return
        marks = {mark for (mark,) in db.execute("SELECT vectors FROM namespace")}
        start = f"{self._path.name}-vectors-"
        for file in self._path.parent.glob(f"{start}*"):
            if file.name.removeprefix(start) not in marks:
                with suppress(OSError):  # on Windows, another process may still read it
                    file.unlink()


def _append(file: Path, rows: "NDArray[np.void]", new: "NDArray[np.void]") -> None:
    """Write records to their places in a copy: `new` come after `rows`.

    Args:
        rows: earlier rows; if they are not mapped, the file does not exist yet and gets them, too.

    Raises:
        OSError: there is no space, or the file no longer exists.
    """
    import numpy as np

    if not isinstance(rows, np.memmap):
        file.touch()
        rows, new = rows[:0], np.concatenate([rows, new])
    with file.open("r+b") as out:
        if out.seek(0, os.SEEK_END) < rows.nbytes:
            raise FileNotFoundError(file)
        out.seek(rows.nbytes)
        out.write(new.tobytes())


def _after(
    db: sqlite3.Connection, ns: int, rows: "NDArray[np.void]", kind: "np.dtype[np.void]"
) -> "NDArray[np.void]":
    """Return the records that were added after the given ones."""
    import numpy as np

    last = int(rows["num"].max(initial=0))
    sql = "SELECT num, segment, data FROM segment_vector WHERE ns = ? AND num > ? ORDER BY num"
    cursor = db.execute(sql, (ns, last))
    parts = [np.zeros(0, kind)]
    while batch := cursor.fetchmany(_BATCH):
        part = np.zeros(len(batch), kind)
        part["num"], part["segment"] = [row[0] for row in batch], [row[1] for row in batch]
        data = np.frombuffer(b"".join(row[2] for row in batch), np.float32)
        part["vector"] = data.reshape(len(batch), -1)
        parts.append(part)
    return np.concatenate(parts)
