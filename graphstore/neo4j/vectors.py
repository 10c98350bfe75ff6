"""Vectors, many to a node: float32 rows as bytes, and each row's owner.

They are scored exactly, by the reader: the database's own vector index is approximate and not
divided by namespace.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING

from qrmem.errors import EmbedderMismatch
from qrmem.graphstore.neo4j.connection import Row, Work
from qrmem.graphstore.neo4j.keys import short
from qrmem.graphstore.protocol import VectorKind, Vectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    _Matrix = NDArray[np.float32]

BLOCK_ROWS = 256
"""Rows of a node: some owners cost a few nodes, all of them are few reads."""

MANY = 1_000
"""Segments from which on the places of all are read at once."""

MAX_SMALL = 16
"""Nodes under half of `BLOCK_ROWS` from which on they are joined."""


async def set_embedder(work: Work, embedder: str, dimension: int) -> None:
    """Record another embedder and drop all vectors."""
    await work.lock()
    await work.run("namespaces.set_embedder", embedder=embedder, dimension=dimension)
    await work.run("vectors.drop_all")


async def put(work: Work, kind: VectorKind, owners: Sequence[str], matrix: "_Matrix") -> None:
    """Add rows in place of those that their owners had; rows of unknown segments are left out."""
    import numpy as np

    await work.lock()
    if not len(owners):
        return
    rows = np.ascontiguousarray(matrix, dtype=np.float32).reshape(len(owners), -1)
    await _check_dimension(work, rows.shape[1])
    known = set(owners)
    if kind == "segment":
        known = set(await _places(work, known))
    await drop(work, kind, known)
    by_owner: dict[str, list[int]] = {}
    for at, owner in enumerate(owners):
        if owner in known:
            by_owner.setdefault(owner, []).append(at)
    await _write(work, kind, by_owner, rows)
    await _join_small(work, kind)


async def _check_dimension(work: Work, dimension: int) -> None:
    (_, _, _, embedder, expected, *_), *_ = await work.rows("namespaces.get")
    if dimension != expected:
        raise EmbedderMismatch(
            f"namespace {work.ns!r} keeps vectors of {embedder!r} with {expected} numbers, these"
            f" have {dimension}; `qrmem reembed` changes the embedder"
        )


async def _places(work: Work, ids: Collection[str]) -> dict[str, tuple[str, int]]:
    """Return what segments are ordered by; those that are not there are left out."""
    rows = await work.gathered("vectors.places", sorted(map(short, ids)))
    return {id_: (document, index) for id_, document, index in rows}


async def _all_places(work: Work) -> dict[str, tuple[str, int]]:
    """Return what all segments are ordered by; for many, cheaper than asking for each."""
    ids, documents, indexes = (await work.rows("vectors.all_places"))[0]
    return dict(zip(ids, zip(documents, indexes, strict=True), strict=True))


async def _write(
    work: Work, kind: VectorKind, by_owner: Mapping[str, Sequence[int]], rows: "_Matrix"
) -> None:
    """Write nodes; the rows of one owner stay together."""
    found = await work.row("vectors.last")
    numbers = count(int(found[0]) + 1 if found else 1)
    ready = (
        [
            f"{next(numbers):012d}",
            [owner for owner in group for _ in by_owner[owner]],
            rows[[at for owner in group for at in by_owner[owner]]].tobytes(),
        ]
        for group in _groups(by_owner)
    )
    await work.each("vectors.put", ready, kind=kind)


def _groups(by_owner: Mapping[str, Sequence[int]]) -> Iterator[list[str]]:
    group: list[str] = []
    size = 0
    for owner, rows in by_owner.items():
        if group and size + len(rows) > BLOCK_ROWS:
            yield group
            group, size = [], 0
        group.append(owner)
        size += len(rows)
    if group:
        yield group


async def _join_small(work: Work, kind: VectorKind) -> None:
    small = await work.rows("vectors.small", kind=kind, rows=BLOCK_ROWS // 2)
    if len(small) > MAX_SMALL:
        await _rewrite(work, kind, small, without=())


async def drop(work: Work, kind: VectorKind, owners: Collection[str]) -> None:
    """Drop the rows of some owners."""
    blocks = await work.rows("vectors.of_owners", kind=kind, owners=sorted(owners))
    if blocks:
        await _rewrite(work, kind, blocks, without=owners)


async def drop_relations(work: Work) -> None:
    """Drop the vectors of all relations."""
    await work.run("vectors.drop_kind", kind="relation")


async def _rewrite(
    work: Work, kind: VectorKind, blocks: Sequence[Row], *, without: Collection[str]
) -> None:
    """Write the rows of some nodes again, all but those of some owners."""
    marks, matrix = _loaded(blocks)
    gone, by_owner = set(without), dict[str, list[int]]()
    for at, owner in enumerate(marks):
        if owner not in gone:
            by_owner.setdefault(owner, []).append(at)
    await work.run("vectors.drop", keys=[key for key, _, _ in blocks])
    await _write(work, kind, by_owner, matrix)


def _loaded(blocks: Sequence[Row]) -> "tuple[list[str], _Matrix]":
    import numpy as np

    marks = [owner for _, owners, _ in blocks for owner in owners]
    data = np.frombuffer(b"".join(data for _, _, data in blocks), np.float32)
    return marks, data.reshape(len(marks), -1)


async def read(work: Work, kind: VectorKind, owners: Sequence[str] | None) -> Vectors:
    """Return the rows of the given owners, or all, in the owners' order."""
    import numpy as np

    if owners is None:
        blocks = await work.rows("vectors.all", kind=kind)
    else:
        blocks = await work.rows("vectors.of_owners", kind=kind, owners=sorted(set(owners)))
    info = await work.row("namespaces.get")
    if not blocks:
        return Vectors((), np.empty((0, info[4] if info else 0), dtype=np.float32))
    marks, matrix = _loaded(blocks)
    wanted = set(marks) if owners is None else set(owners) & set(marks)
    ranks = {owner: at for at, owner in enumerate(await _ordered(work, kind, wanted))}
    keys = np.array([ranks.get(owner, -1) for owner in marks], dtype=np.int64)
    order = np.argsort(keys, kind="stable")[int((keys < 0).sum()) :]
    return Vectors([marks[at] for at in order.tolist()], matrix[order])


async def _ordered(work: Work, kind: VectorKind, owners: Collection[str]) -> list[str]:
    if kind == "relation":
        return sorted(owners)
    known = await (_all_places(work) if len(owners) > MANY else _places(work, owners))
    return sorted(known.keys() & set(owners), key=known.__getitem__)


async def owners(work: Work, kind: VectorKind) -> list[str]:
    """Return who has vectors, in order."""
    row = await work.row("vectors.owners", kind=kind)
    return await _ordered(work, kind, row[0] if row else ())
