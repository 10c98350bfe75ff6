"""The store class: every method is one transaction, except deleting a namespace."""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar
from urllib.parse import urlsplit

from neo4j import AsyncDriver, AsyncGraphDatabase, NotificationMinimumSeverity

from qrmem.config import Settings, shown
from qrmem.errors import UsageError
from qrmem.graphstore.neo4j import (
    database_schema,
    edges,
    full_text,
    runs,
    stored_facts,
    view_reads,
    view_writes,
)
from qrmem.graphstore.neo4j import stored_documents as texts
from qrmem.graphstore.neo4j import vectors as arrays
from qrmem.graphstore.neo4j.connection import (
    MAX_WRITERS,
    Connection,
    Work,
    is_too_old,
    too_old,
    translated,
)
from qrmem.graphstore.protocol import NamespaceInfo, VectorKind

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


# Opening: reach the server, authenticate, check versions.

CONNECT_SECONDS = 10.0
ACQUIRE_SECONDS = 30.0
"""Maximum seconds for opening, whatever the server does."""


async def open_neo4j(uri: str, settings: Settings, *, create: bool = True) -> "Neo4jStore":
    """Open a Neo4j database as a store.

    Args:
        uri: `neo4j://HOST[:PORT]`, `bolt://…`, with `+s` for TLS, `+ssc` for TLS that
            does not verify the certificate; without user and password.
        create: create missing constraints and indexes.

    Raises:
        UsageError: the address is not valid.
        AccessRefused: the user or the password is wrong.
        MissingError: the server is too old, or has no such database.
        NotFound: the database holds no memory, and `create` is not set.
        StoreUnavailable: no server answers, or it needs TLS, or has none.
    """
    # our errors have what the driver logs; without a handler Python would print it
    logging.getLogger("neo4j").addHandler(logging.NullHandler())
    location = _location(uri)
    with translated(location):
        driver = _driver(uri, settings)
    database, patience = settings.neo4j_database or None, settings.neo4j_patience
    connection = Connection(driver, database, location, patience)
    try:
        agent = await connection.agent()
        if is_too_old(agent):
            raise too_old(location, agent)
        await connection.settle()
        await database_schema.prepare(connection, create=create)
    except BaseException:
        await connection.close()
        raise
    return Neo4jStore(connection)


def _location(uri: str) -> str:
    """Return the address for messages.

    Raises:
        UsageError: it holds a secret, or no host.
    """
    try:
        parts = urlsplit(uri)
        host, port = parts.hostname, parts.port
    except ValueError as exc:
        raise UsageError(f"not an address of a Neo4j server: {exc}") from exc
    if parts.username is not None or parts.password is not None:
        raise UsageError(
            "user and password do not belong in the address: set NEO4J_USERNAME and NEO4J_PASSWORD"
        )
    if not host:
        raise UsageError(f"{shown(uri)}: the host is missing; write {parts.scheme}://HOST:7687")
    if parts.query and not parts.scheme.startswith("neo4j"):
        raise UsageError(f"{shown(uri)}: only a neo4j:// address takes options after the ?")
    if parts.path.strip("/"):
        raise UsageError(
            f"{shown(uri)}: the address ends with the port; set QRMEM_NEO4J_DATABASE to"
            f" {parts.path.strip('/')}"
        )
    host_name = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{host_name}:{port or 7687}"


def _driver(uri: str, settings: Settings) -> AsyncDriver:
    password = settings.neo4j_password.reveal()
    return AsyncGraphDatabase.driver(
        uri,
        auth=(settings.neo4j_user, password) if password else None,
        connection_timeout=CONNECT_SECONDS,
        connection_acquisition_timeout=ACQUIRE_SECONDS,
        max_transaction_retry_time=settings.neo4j_patience,
        max_connection_pool_size=4 * MAX_WRITERS,
        notifications_min_severity=NotificationMinimumSeverity.OFF,
        user_agent="qrmem",
    )


P = ParamSpec("P")
R = TypeVar("R")


def _reads(
    work: Callable[Concatenate[Work, P], Awaitable[R]],
) -> "Callable[Concatenate[Neo4jStore, str, P], Coroutine[Any, Any, R]]":
    """Return a method that runs a function in a read transaction."""

    async def method(self: "Neo4jStore", ns: str, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await self.db.read(work, ns, *args, **kwargs)

    return method


def _writes(
    work: Callable[Concatenate[Work, P], Awaitable[R]],
) -> "Callable[Concatenate[Neo4jStore, str, P], Coroutine[Any, Any, R]]":
    """Return a method that runs a function in a write transaction."""

    async def method(self: "Neo4jStore", ns: str, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await self.db.write(work, ns, *args, **kwargs)

    return method


class Neo4jStore:
    """A database of memories; `GraphStore` documents the methods."""

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
        """Yield the store itself: Neo4j has no snapshots, each statement reads committed data."""
        yield self

    async def check(self) -> None:
        """Do nothing: the server checks its own files."""

    async def clean(self, *, wholly: bool = False) -> None:
        """Do nothing: files and logs are the server's."""

    async def namespaces(self) -> Sequence[str]:
        """Return all names, sorted."""
        return await self.db.read(texts.namespaces, "")

    async def create_namespace(self, ns: str, info: NamespaceInfo) -> NamespaceInfo:
        """Create a namespace unless it exists; an interrupted deletion is finished first."""
        info_found = await self.namespace(ns)
        if info_found is not None:
            return info_found
        if await self.db.read(texts.is_half_deleted, ns):
            await self.delete_namespace(ns)
        return await self.db.write(texts.create_namespace, ns, info)

    async def delete_namespace(self, ns: str, *, importing: str | None = None) -> None:
        """Remove everything of a namespace, in batches."""
        await texts.delete_namespace(self.db, ns, importing)

    namespace = _reads(texts.namespace)
    set_single = _writes(edges.set_single)
    finish_import = _writes(texts.finish_import)
    set_embedder = _writes(arrays.set_embedder)

    put_documents = _writes(texts.put_documents)
    document = _reads(texts.document)
    documents = _reads(texts.documents)
    document_ids = _reads(texts.document_ids)
    states = _reads(texts.states)
    delete_documents = _writes(texts.delete_documents)
    segments = _reads(texts.segments)
    ledger = _reads(stored_facts.ledger)
    record = _writes(stored_facts.record)
    contributions = _reads(stored_facts.contributions)
    edits = _reads(stored_facts.edits)
    override_merge = _writes(stored_facts.override_merge)

    async def clear_view(self, ns: str) -> None:
        """Delete everything that is derived from the facts, in batches."""
        await texts.clear_view(self.db, ns)

    apply = _writes(view_writes.apply)
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
    relations = _reads(view_reads.relations)
    misdrawn = _reads(edges.misdrawn)
    questions = _reads(view_reads.questions)
    counts = _reads(view_reads.counts)
    vocabulary = _reads(full_text.vocabulary)
    matching_each = _reads(full_text.matching_each)
    nearest = _reads(arrays.nearest)
    entries = _reads(full_text.entries)
    titled = _reads(full_text.titled)

    async def put_vectors(
        self, ns: str, kind: VectorKind, owners: Sequence[str], matrix: "NDArray[np.float32]"
    ) -> None:
        """Write vectors; an index over vectors of their dimension is created first."""
        if kind == "segment" and len(owners) and (length := int(matrix.shape[-1])):
            await arrays.prepare(self.db, length)
        await self.db.write(arrays.put, ns, kind, owners, matrix)

    vectors = _reads(arrays.read)
    owners = _reads(arrays.owned)

    put_trail = _writes(runs.put_trail)
    trails = _reads(runs.trails)
    calls = _reads(runs.calls)
    put_cache_entry = _writes(edges.put_cache_entry)
    cache_keys = _reads(runs.cache_keys)
    cache_entries = _reads(runs.cache_entries)
    drop_cache_entries = _writes(edges.drop_cache_entries)
