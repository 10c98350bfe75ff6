"""Vectors: a node for each window of a segment, under a vector index for its dimension.

The vector index of Community Edition filters by namespace only after its first k. So a namespace
with fewer than `FEW` vectors is scored exactly. For a larger one, k grows until the index returns
enough vectors of the namespace.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from qrmem.graphstore.checking import check_dimension
from qrmem.graphstore.neo4j.connection import Connection, Work
from qrmem.graphstore.neo4j.keys import joined, short
from qrmem.graphstore.protocol import VectorKind, Vectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    _Matrix = NDArray[np.float32]

FEW = 10_000
"""Minimum number of vectors in a namespace to use the index; fewer are scored exactly."""
_ASKED = 10
"""First k of an index query, as a multiple of the limit: the index is approximate."""
_LEAST = 1_000
"""Minimum k of an index query: with a small k the index misses a quarter."""
_MOST = 200_000


def index_name(dimension: int) -> str:
    """Return the name of the index over vectors of one length."""
    return f"qrmem_vectors_{dimension}"


async def prepare(connection: Connection, dimension: int) -> None:
    """Create the index over vectors of one dimension unless it exists."""
    await connection.outside(
        f"CREATE VECTOR INDEX {index_name(dimension)} IF NOT EXISTS FOR (w:QrmemWindow)"
        f" ON (w.{_property(dimension)}) OPTIONS {{indexConfig: {{"
        f"`vector.dimensions`: {int(dimension)}, `vector.similarity_function`: 'cosine',"
        " `vector.quantization.enabled`: false}}"
    )


def _property(dimension: int) -> str:
    return f"vector_{int(dimension)}"


async def _embedder(work: Work) -> tuple[str, int]:
    row = await work.row("namespaces.get")
    return (row[3], row[4]) if row else ("", 0)


async def set_embedder(work: Work, embedder: str, dimension: int) -> None:
    """Record another embedder and drop all vectors."""
    await work.lock()
    await work.run("namespaces.set_embedder", embedder=embedder, dimension=dimension)
    await work.run("vectors.drop_all")
    await drop_relations(work)


async def put(work: Work, kind: VectorKind, owners: Sequence[str], matrix: "_Matrix") -> None:
    """Add rows and replace earlier rows of their owners; skip rows of unknown segments."""
    import numpy as np

    await work.lock()
    if not len(owners):
        return
    rows = np.ascontiguousarray(matrix, dtype=np.float32).reshape(len(owners), -1)
    check_dimension(work.ns, *await _embedder(work), rows.shape[1])
    ready: list[dict[str, Any]] = []
    of_owner: dict[str, list[list[float]]] = {}
    for owner, row in zip(owners, rows.tolist(), strict=True):
        of_owner.setdefault(owner, []).append(row)
    if kind == "relation":  # an owner's rows are one flat list
        for owner, owner_vectors in of_owner.items():
            values = [value for row in owner_vectors for value in row]
            ready.append({"key": joined(owner, "1"), "owner": owner, "vector": values})
        await work.each("vectors.put_relations", ready)
        return
    for owner, owner_vectors in of_owner.items():
        for n, row in enumerate(owner_vectors, 1):
            vector = {_property(rows.shape[1]): row}
            key = joined(owner, str(n))
            ready.append({"segment": short(owner), "key": key, "n": n, "vector": vector})
    await drop(work, of_owner)
    await work.each("vectors.put", ready)


async def drop(work: Work, segments: Collection[str]) -> None:
    """Drop the vectors of some segments."""
    await work.each("vectors.drop", sorted({short(id_) for id_ in segments}))


async def drop_relations(work: Work) -> None:
    """Drop the vectors of all relations."""
    await work.run("vectors.drop_relations")


async def read(work: Work, kind: VectorKind, owners: Sequence[str]) -> Vectors:
    """Return the rows of the given owners, in their order."""
    import numpy as np

    _, dimension = await _embedder(work)
    if kind == "relation":
        keys = [joined(owner, "1") for owner in set(owners)]
        rows = [
            (owner, vector[start : start + dimension])
            for owner, vector in await work.rows("vectors.relations", keys=keys)
            for start in range(0, len(vector), dimension)
        ]
    else:
        keys = sorted({short(id_) for id_ in owners})
        batches = await work.each("vectors.of_segments", keys, property=_property(dimension))
        windows = sorted((row for (batch,) in batches for row in batch), key=lambda row: row[:3])
        rows = [row[3:] for row in windows]
    matrix = np.array([row for _, row in rows], dtype=np.float32)
    return Vectors([owner for owner, _ in rows], matrix.reshape(len(rows), dimension))


async def owned(work: Work, kind: VectorKind, among: Sequence[str] | None = None) -> list[str]:
    """Return the owners that have vectors, out of all or some, in order."""
    if kind == "relation":
        (owners,) = await work.row("vectors.relation_owners") or ([],)
        return sorted(set(owners) if among is None else set(owners).intersection(among))
    if among is None:
        (rows,) = await work.row("vectors.owners") or ([],)
    else:
        rows = await work.gathered("vectors.owners_among", sorted({short(id_) for id_ in among}))
    return [id_ for _, _, id_ in sorted(rows)]


async def nearest(
    work: Work,
    vector: "_Matrix",
    limit: int,
    *,
    documents: Collection[str] | None = None,
    among: Sequence[str] | None = None,
) -> Mapping[str, float]:
    """Return the cosines of the segments nearest to a vector, nearest first."""
    query_values = {"vector": [float(one) for one in vector], "property": _property(len(vector))}
    if among is not None:
        keys = sorted({short(id_) for id_ in among})
        rows = [
            row
            for row in await work.each("vectors.nearest_among", keys, **query_values)
            if documents is None or row[2] in documents
        ]
        rows = sorted(rows, key=lambda row: (-row[1], row[0]))[:limit]
    elif documents is not None:
        rows = await work.rows(
            "vectors.nearest_of_documents", documents=sorted(documents), limit=limit, **query_values
        )
    elif (await work.row("vectors.has_many", most=FEW) or [False])[0]:
        rows = await _by_index(work, query_values["vector"], limit)
    else:
        rows = await work.rows("vectors.nearest", limit=limit, **query_values)
    return {id_: 2 * score - 1 for id_, score, *_ in rows}


async def _by_index(work: Work, vector: Any, limit: int) -> list[list[Any]]:
    """Query the index with a growing k until it returns enough vectors of the namespace."""
    k = max(_ASKED * limit, _LEAST)
    while True:
        rows = await work.rows(
            "vectors.nearest_by_index",
            index=index_name(len(vector)),
            k=k,
            vector=vector,
            limit=limit,
        )
        if len(rows) >= limit or k >= _MOST:
            return rows
        k *= 10
