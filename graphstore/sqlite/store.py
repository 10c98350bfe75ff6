"""The store class: every method runs its work in the thread that owns the connection."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

from qrmem.errors import StoreUnavailable
from qrmem.graphstore.protocol import NamespaceInfo
from qrmem.graphstore.reads import merged_relations
from qrmem.graphstore.sqlite import full_text, removal, runs, stored_facts, view_reads, view_writes
from qrmem.graphstore.sqlite import stored_documents as texts
from qrmem.graphstore.sqlite import vectors as arrays
from qrmem.graphstore.sqlite.connection import ConnectionThread, OpenMode
from qrmem.graphstore.sqlite.database_schema import check
from qrmem.graphstore.sqlite.driver_errors import refused_write
from qrmem.types import Relation

if TYPE_CHECKING:
    import sqlite3

    import numpy as np
    from numpy.typing import NDArray

P = ParamSpec("P")
R = TypeVar("R")


def _reads(
    work: "Callable[Concatenate[sqlite3.Connection, P], R]",
) -> "Callable[Concatenate[SqliteStore, P], Coroutine[Any, Any, R]]":
    """Return a method that runs a function on one snapshot."""

    async def method(self: "SqliteStore", /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await self.worker.read(work, *args, **kwargs)

    return method


def _writes(
    work: "Callable[Concatenate[sqlite3.Connection, P], R]", *, forgets: bool = False
) -> "Callable[Concatenate[SqliteStore, P], Coroutine[Any, Any, R]]":
    """Return a method that runs a function in one transaction.

    Args:
        forgets: whether it may delete vectors, so that outdated copies are deleted, too.
    """

    async def method(self: "SqliteStore", /, *args: P.args, **kwargs: P.kwargs) -> R:
        if self.is_read_only:
            raise refused_write(self.location)
        result = await self.worker.write(work, *args, **kwargs)
        if forgets:
            await self.worker.read(self.copies.forget)
        return result

    return method


class SqliteStore:
    """A file of memories; `GraphStore` documents the methods."""

    has_snapshots = True

    def __init__(self, worker: ConnectionThread, copies: arrays.Copies | None = None) -> None:
        self.worker = worker
        self.is_read_only = worker.is_read_only
        self.location = worker.location
        self.copies = copies or arrays.Copies(worker.path, may_write=not worker.is_read_only)

    @classmethod
    async def open(cls, path: str | Path, opening: OpenMode | None = None) -> Self:
        """Open a file, or create it.

        Raises:
            NotFound: there is no memory, and `create` is not set.
            UsageError: the file is no memory.
            MissingError: it was made by a newer qrmem.
        """
        worker = await asyncio.to_thread(ConnectionThread, Path(path), opening or OpenMode())
        await worker.open()
        return cls(worker)

    @classmethod
    async def in_memory(cls) -> Self:
        """Open an empty store in memory; closing it deletes its data."""
        worker = ConnectionThread(None, OpenMode())
        await worker.open()
        return cls(worker)

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator["SqliteStore"]:
        """Yield the memory as of the first read; see `ConnectionThread.snapshot`."""
        try:
            async with self.worker.snapshot() as worker:
                yield self if worker is self.worker else SqliteStore(worker, self.copies)
        finally:
            if not self.is_read_only:  # else it is a snapshot itself
                await self._forget()

    async def _forget(self) -> None:
        """Remove what a deletion during a snapshot had to leave, or the snapshot wrote after it."""
        with suppress(StoreUnavailable):  # the snapshot itself was read
            if self.copies.are_written:
                await self.worker.read(self.copies.forget)
            if self.worker.has_remains:
                await self.worker.clean(patience=0)

    async def clean(self, *, wholly: bool = False) -> None:
        """Remove deleted data from the log; see `ConnectionThread.clean`."""
        await self.worker.clean(wholly=wholly)

    async def close(self) -> None:
        """Close the file after the running work."""
        await self.worker.close()

    check = _reads(check)
    namespaces = _reads(texts.namespaces)
    namespace = _reads(texts.namespace)
    _create = _writes(texts.create_namespace)
    finish_import = _writes(texts.finish_import)
    set_embedder = _writes(arrays.set_embedder, forgets=True)
    set_single = _writes(texts.set_single)
    delete_namespace = _writes(removal.delete_namespace, forgets=True)

    async def create_namespace(self, ns: str, info: NamespaceInfo) -> NamespaceInfo:
        """Create a namespace unless it exists; this works on a read-only file if it exists."""
        return await self.namespace(ns) or await self._create(ns, info)

    put_documents = _writes(texts.put_documents, forgets=True)
    document = _reads(texts.document)
    documents = _reads(texts.documents)
    document_ids = _reads(texts.document_ids)
    states = _reads(texts.states)
    delete_documents = _writes(texts.delete_documents, forgets=True)
    segments = _reads(texts.segments)
    ledger = _reads(stored_facts.ledger)
    record = _writes(stored_facts.record)
    contributions = _reads(stored_facts.contributions)
    edits = _reads(stored_facts.edits)
    override_merge = _writes(stored_facts.override_merge)

    apply = _writes(view_writes.apply)
    clear_view = _writes(view_writes.clear_view)
    unmerged = _reads(stored_facts.unmerged)
    names = _reads(view_reads.names)
    places = _reads(view_reads.places)
    entities = _reads(view_reads.entities)
    list_entities = _reads(view_reads.list_entities)
    types = _reads(view_reads.types)
    segments_of_types = _reads(view_reads.segments_of_types)
    mentions = _reads(view_reads.mentions)
    shared_entities = _reads(view_reads.shared_entities)
    around = _reads(view_reads.around)
    questions = _reads(view_reads.questions)
    counts = _reads(view_reads.counts)

    async def misdrawn(self, ns: str) -> int:
        """Return 0: no edge is stored, each is computed from the statements when it is read."""
        return 0

    vocabulary = _reads(full_text.vocabulary)
    matching_each = _reads(full_text.matching_each)
    entries = _reads(full_text.entries)
    titled = _reads(full_text.titled)

    async def relations(self, ns: str, keys: Sequence[str]) -> Sequence[Relation]:
        """Return the relations with an end in some entities, computed from the statements."""
        async with self.snapshot() as now:
            return await merged_relations(now, ns, keys)

    async def nearest(
        self,
        ns: str,
        vector: "NDArray[np.float32]",
        limit: int,
        *,
        documents: Collection[str] | None = None,
        among: Sequence[str] | None = None,
    ) -> Mapping[str, float]:
        """Return the cosines of the segments nearest to a vector, nearest first."""
        return await self.worker.read(self.copies.nearest, ns, vector, limit, documents, among)

    put_vectors = _writes(arrays.put)
    vectors = _reads(arrays.read)
    owners = _reads(arrays.owners)

    put_trail = _writes(runs.put_trail)
    trails = _reads(runs.trails)
    calls = _reads(runs.calls)
    put_cache_entry = _writes(runs.put_cache_entry)
    cache_keys = _reads(runs.cache_keys)
    cache_entries = _reads(runs.cache_entries)
    drop_cache_entries = _writes(runs.drop_cache_entries)
