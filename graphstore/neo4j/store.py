"""The store's face: every method is one transaction, but for deleting a namespace."""

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from qrmem.graphstore.neo4j import changes, edges, facts, runs, view, words
from qrmem.graphstore.neo4j import documents as texts
from qrmem.graphstore.neo4j import vectors as arrays
from qrmem.graphstore.neo4j.connection import Connection, Work
from qrmem.graphstore.protocol import NamespaceInfo, VectorKind

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

P = ParamSpec("P")
R = TypeVar("R")


def _reads(
    work: Callable[Concatenate[Work, P], Awaitable[R]],
) -> "Callable[Concatenate[Neo4jStore, str, P], Coroutine[Any, Any, R]]":
    """Return the method that runs some work in a transaction that only reads."""

    async def method(self: "Neo4jStore", ns: str, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await self.db.read(work, ns, *args, **kwargs)

    return method


def _writes(
    work: Callable[Concatenate[Work, P], Awaitable[R]],
) -> "Callable[Concatenate[Neo4jStore, str, P], Coroutine[Any, Any, R]]":
    """Return the method that runs some work in a transaction."""

    async def method(self: "Neo4jStore", ns: str, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await self.db.write(work, ns, *args, **kwargs)

    return method


class Neo4jStore:
    """A database of memories; what each method does is said in `GraphStore`."""

    is_read_only = False
    has_snapshots = False

    def __init__(self, connection: Connection) -> None:
        self.db = connection
        self.location = connection.location

    async def close(self) -> None:
        """Give all connections back."""
        await self.db.close()

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator["Neo4jStore"]:
        """Yield the store: Neo4j shows every statement what is committed by then."""
        yield self

    async def check(self) -> None:
        """Do nothing: the server looks after its files."""

    async def clean(self, *, wholly: bool = False) -> None:
        """Do nothing: files and logs are the server's."""

    async def namespaces(self) -> Sequence[str]:
        """Return all names, sorted."""
        return await self.db.read(texts.namespaces, "")

    async def create_namespace(self, ns: str, info: NamespaceInfo) -> NamespaceInfo:
        """Make a namespace unless it is there; one that was half deleted goes first."""
        found = await self.namespace(ns)
        if found is not None:
            return found
        if await self.db.read(texts.is_half_deleted, ns):
            await self.delete_namespace(ns)
        return await self.db.write(texts.create_namespace, ns, info)

    async def delete_namespace(self, ns: str, *, importing: str | None = None) -> None:
        """Remove everything of a namespace, in portions."""
        await texts.delete_namespace(self.db, ns, importing)

    namespace = _reads(texts.namespace)
    finish_import = _writes(texts.finish_import)
    set_embedder = _writes(arrays.set_embedder)

    put_documents = _writes(texts.put_documents)
    document = _reads(texts.document)
    documents = _reads(texts.documents)
    document_ids = _reads(texts.document_ids)
    states = _reads(texts.states)
    delete_documents = _writes(texts.delete_documents)
    segments = _reads(texts.segments)
    ledger = _reads(facts.ledger)
    record = _writes(facts.record)
    contributions = _reads(facts.contributions)
    override_merge = _writes(facts.override_merge)

    async def clear_view(self, ns: str) -> None:
        """Drop all that follows from the facts, in portions."""
        await texts.clear_view(self.db, ns)

    apply = _writes(changes.apply)
    unmerged = _reads(facts.unmerged)
    names = _reads(view.names)
    entities = _reads(view.entities)
    list_entities = _reads(view.list_entities)
    types = _reads(view.types)
    segments_of_types = _reads(view.segments_of_types)
    mentions = _reads(view.mentions)
    shared_entities = _reads(view.shared_entities)
    around = _reads(view.around)
    relations = _reads(view.relations)
    questions = _reads(view.questions)
    counts = _reads(view.counts)
    vocabulary = _reads(words.vocabulary)
    matching = _reads(words.matching)
    nearest = _reads(arrays.nearest)
    entries = _reads(words.entries)
    titled = _reads(words.titled)

    async def put_vectors(
        self, ns: str, kind: VectorKind, owners: Sequence[str], matrix: "NDArray[np.float32]"
    ) -> None:
        """Add rows; an index over vectors of their length is made first."""
        if kind == "segment" and len(owners) and (length := int(matrix.shape[-1])):
            await arrays.prepare(self.db, length)
        await self.db.write(arrays.put, ns, kind, owners, matrix)

    vectors = _reads(arrays.read)
    owners = _reads(arrays.owned)

    put_trail = _writes(runs.put_trail)
    trails = _reads(runs.trails)
    calls = _reads(runs.calls)
    put_cached = _writes(edges.put_cached)
    cached_keys = _reads(runs.cached_keys)
    cached = _reads(runs.cached)
    drop_cached = _writes(edges.drop_cached)
