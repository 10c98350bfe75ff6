"""What can be seen of one namespace without changing it or asking it anything."""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING

from qrmem.errors import NotFound, UsageError
from qrmem.graphstore.protocol import EntityCount
from qrmem.inspecting import describe, view_entity
from qrmem.llm.sums import By, usage_by
from qrmem.session import Opened, has_metadata
from qrmem.types import (
    Archived,
    Document,
    DocumentInfo,
    EntityView,
    MemoryStatus,
    Merge,
    Scalar,
    Trail,
    UsageRow,
)

if TYPE_CHECKING:
    from qrmem.graphstore.neo4j import SavedQuery


class Looking:
    """The methods of a memory that look; `qrmem.memory.Memory` adds the others."""

    def __init__(self, opened: Opened) -> None:
        self._opened = opened

    async def status(self) -> MemoryStatus:
        """Return the namespace in figures, with problems and what it cost."""
        return await describe(self._opened.store, await self._opened.info())

    async def usage(self, by: By = "stage") -> Sequence[UsageRow]:
        """Return what all runs used together, construction and online apart.

        Args:
            by: `stage`, `run` or `day` (UTC).
        """
        info = await self._opened.info()
        return usage_by(await self._opened.store.calls(info.name), by)

    async def namespaces(self) -> Sequence[str]:
        """Return the names of all namespaces in this store."""
        return await self._opened.store.namespaces()

    async def documents(self, where: Mapping[str, Scalar] | None = None) -> Sequence[DocumentInfo]:
        """Return all documents by id, without their texts."""
        await self._opened.known()
        found = await self._opened.store.documents(self._opened.ns)
        return [info for info in found if has_metadata(info, where)]

    async def document(self, document_id: str) -> Document:
        """Return a document with its text.

        Raises:
            NotFound: no such document.
        """
        await self._opened.known()
        document = await self._opened.store.document(self._opened.ns, document_id)
        if document is None:
            raise NotFound(f"no document {document_id!r} in {self._opened.where}")
        return document

    async def entities(self, limit: int = 100) -> Sequence[EntityCount]:
        """Return entities by falling number of segments."""
        await self._opened.info()
        return await self._opened.store.list_entities(self._opened.ns, limit)

    async def entity(self, name: str) -> EntityView:
        """Return an entity by any of its names, with relations, questions and segments.

        Raises:
            NotFound: nothing is called so; the message names what comes near.
        """
        await self._opened.info()
        return await view_entity(self._opened.store, self._opened.ns, name)

    async def merges(self) -> Sequence[Merge]:
        """Return which names count as one entity, and why."""
        from qrmem.graph.merging import current_merges

        opened = self._opened
        await opened.info()
        return await current_merges(opened.store, opened.ns, similar=await opened.similar())

    async def trail(self, trail_id: str | None = None) -> Trail:
        """Return a recorded run, or the last.

        Raises:
            NotFound: no such trail, or none at all.
        """
        await self._opened.known()
        trail = await self._opened.store.trail(self._opened.ns, trail_id)
        if trail is None:
            what = f"no trail {trail_id!r}" if trail_id else "no trail yet"
            raise NotFound(f"{what} in {self._opened.where}")
        return trail

    async def trails(self, limit: int = 20) -> Sequence[Trail]:
        """Return recorded runs, newest first."""
        await self._opened.known()
        return await self._opened.store.trails(self._opened.ns, limit)

    async def neo4j_queries(self, name: str = "") -> "Sequence[SavedQuery]":
        """Return ready queries to look at this namespace in Neo4j Browser.

        Args:
            name: of an entity to look at; "": the one that occurs most.

        Raises:
            UsageError: this memory is not in Neo4j.
        """
        from qrmem.graphstore.neo4j import Neo4jStore, browser_queries

        opened = self._opened
        if not isinstance(opened.store, Neo4jStore):
            raise UsageError(f"{opened.store.location} is no memory in Neo4j")
        await opened.info()
        return browser_queries(opened.ns, name=name)

    async def graphml(self, path: str) -> int:
        """Write the graph as GraphML (Gephi, Cytoscape); returns how many entities."""
        from qrmem.inspecting import write_graphml

        await self._opened.info()
        return await write_graphml(self._opened.store, self._opened.ns, path)

    async def export(self, path: str | PathLike[str], *, runs: bool = False) -> Archived:
        """Write the namespace to one file: equal memories give equal bytes, from every store.

        Args:
            path: replaced if an archive stands there; anything else is not written over.
            runs: write trails, the ledger of calls and cached replies too; they have a clock in
                them.

        Raises:
            NotFound: there is no such namespace.
            StoreConflict: somebody changed it meanwhile; nothing is written.
        """
        from qrmem.io.archive import export_archive

        await self._opened.info()
        return await export_archive(self._opened.store, self._opened.ns, path, runs=runs)
