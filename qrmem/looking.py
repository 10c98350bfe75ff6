"""What can be seen of one namespace without changing it or asking it anything."""

from collections.abc import Mapping, Sequence

from qrmem.errors import NotFound
from qrmem.graphstore.protocol import EntityCount
from qrmem.inspecting import describe, view_entity
from qrmem.opened import Opened, has_metadata
from qrmem.records import Document, DocumentInfo, EntityView, MemoryStatus, Merge, Scalar, Trail


class Looking:
    """The methods of a memory that look; `qrmem.app.Memory` adds those that change and answer."""

    def __init__(self, opened: Opened) -> None:
        self._opened = opened

    async def status(self) -> MemoryStatus:
        """Return the namespace in figures, with problems and what it cost."""
        return await describe(self._opened.store, await self._opened.info())

    async def namespaces(self) -> Sequence[str]:
        """Return the names of all namespaces in this store."""
        return await self._opened.store.namespaces()

    async def documents(self, where: Mapping[str, Scalar] | None = None) -> Sequence[DocumentInfo]:
        """Return all documents by id, without their texts."""
        found = await self._opened.store.documents(self._opened.ns)
        return [info for info in found if has_metadata(info, where)]

    async def document(self, document_id: str) -> Document:
        """Return a document with its text.

        Raises:
            NotFound: no such document.
        """
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
        from qrmem.memory.merging import current_merges

        opened = self._opened
        await opened.info()
        return await current_merges(opened.store, opened.ns, similar=await opened.similar())

    async def trail(self, trail_id: str | None = None) -> Trail:
        """Return a recorded run, or the last.

        Raises:
            NotFound: no such trail, or none at all.
        """
        trail = await self._opened.store.trail(self._opened.ns, trail_id)
        if trail is None:
            what = f"no trail {trail_id!r}" if trail_id else "no trail yet"
            raise NotFound(f"{what} in {self._opened.where}")
        return trail

    async def trails(self, limit: int = 20) -> Sequence[Trail]:
        """Return recorded runs, newest first."""
        return await self._opened.store.trails(self._opened.ns, limit)

    async def graphml(self, path: str) -> int:
        """Write the graph as GraphML (Gephi, Cytoscape); returns how many entities."""
        from qrmem.inspecting import write_graphml

        await self._opened.info()
        return await write_graphml(self._opened.store, self._opened.ns, path)
