"""What every search needs and takes long to work out: kept in the store between runs."""

from typing import TYPE_CHECKING

from qrmem.errors import StoreUnavailable
from qrmem.retrieval.columns import Columns
from qrmem.retrieval.graph import Graph
from qrmem.retrieval.packing import pack, unpack

if TYPE_CHECKING:
    from qrmem.graphstore.protocol import GraphStore

LEAST = 2000
"""Segments of the smallest memory for which anything is kept: a smaller one is read in a moment."""
GROWN = 0.1
"""Share of a memory that a run reads for it to be kept at its end; else the next search does it."""
_COLUMNS, _GRAPH = "columns", "graph"


class Keeper:
    """Reads the columns and the graph of a namespace as they were kept, or works them out."""

    def __init__(self, store: "GraphStore", ns: str) -> None:
        self._store = store
        self._ns = ns

    async def renew(self, read: int) -> None:
        """Keep what the next search needs, after a run that read so many segments."""
        info = await self._store.namespace(self._ns)
        if info is None or not self._store.keeps_index or read < LEAST * GROWN:
            return
        size = (await self._store.counts(self._ns))["segments"]
        if size >= LEAST and read >= GROWN * size:
            await self.graph(await self.columns(info.revision))

    async def columns(self, revision: int) -> Columns:
        """Return the columns of the present revision, without vectors."""
        kept = await self._store.index(self._ns, revision, _COLUMNS)
        packed = unpack(kept) if kept else None
        if packed is not None:
            return Columns.unpacked(packed, revision)
        return await Columns.read(self._store, self._ns)

    async def graph(self, columns: Columns) -> Graph:
        """Return the graph over some columns; keeps both if it wasn't kept before."""
        revision = columns.catalog.revision
        kept = await self._store.index(self._ns, revision, _GRAPH)
        packed = unpack(kept) if kept else None
        if packed is not None:
            return Graph.unpacked(packed, columns)
        graph = await Graph.read(self._store, self._ns, columns)
        if columns.size >= LEAST and self._store.keeps_index:
            await self._keep(columns, graph)
        return graph

    async def _keep(self, columns: Columns, graph: Graph) -> None:
        parts = {_COLUMNS: pack(columns.packed()), _GRAPH: pack(graph.packed())}
        try:
            await self._store.put_index(self._ns, columns.catalog.revision, parts)
        except StoreUnavailable:  # a search does not wait for another writer, nor for room
            return
