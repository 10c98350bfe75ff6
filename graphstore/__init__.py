"""Databases of memories behind one protocol, opened by address; `protocol` has its types."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import parse_qs

from qrmem.config import Settings, shown
from qrmem.errors import UsageError
from qrmem.graphstore.protocol import GraphStore, NamespaceInfo, Superseding

__all__ = [
    "GraphStore",
    "NamespaceInfo",
    "missing_file",
    "open_store",
    "scratch_store",
    "withdraw",
]

_IN_MEMORY = (":memory:", "sqlite://:memory:", "sqlite:///:memory:")
"""Other addresses of a database in memory: SQLite's own, and that of other programs."""
_NEO4J = ("neo4j", "neo4j+s", "neo4j+ssc", "bolt", "bolt+s", "bolt+ssc")


async def open_store(
    uri: str, settings: Settings, *, create: bool = True, superseding: Superseding | None = None
) -> GraphStore:
    """Open a memory's database.

    Args:
        uri: a path, `sqlite://PATH` (with `?mode=ro` for reading only), `:memory:`, `memory://`, or
            the address of a Neo4j server.
        create: create the database if it is missing.
        settings: user name and password for Neo4j.
        superseding: computes the end dates of edges for a store that displays them (Neo4j).

    Raises:
        NotFound: the database is missing and `create` is not set.
        UsageError: the address is malformed, or the file is not a memory.
        MissingError: something is required first (a newer qrmem, a password, the driver).
        StoreUnavailable: the database cannot be reached or read.
    """
    scheme, separator, rest = _in_one_form(uri).partition("://")
    if not separator:
        if re.match(r"(//|[a-z+]+:)[^/\\]*:[^/\\]*@", uri):
            raise UsageError(
                "a memory's address must not contain user and password; write neo4j://HOST and set "
                "NEO4J_USERNAME and NEO4J_PASSWORD"
            )
        begun, colon, rest = uri.partition(":")
        if colon and begun in _NEO4J:
            raise UsageError(f"{uri} lacks a slash; write {begun}://{rest.lstrip('/')}")
        return await _sqlite(uri, create=create, read_only=False)
    if scheme == "sqlite":
        path, _, query = rest.partition("?")
        return await _sqlite(path, create=create, read_only=_is_read_only(uri, query))
    if scheme == "memory":
        from qrmem.graphstore.sqlite import SqliteStore

        return await SqliteStore.in_memory()
    if scheme in _NEO4J:
        from qrmem.graphstore.neo4j import open_neo4j

        store = await open_neo4j(uri, settings, create=create)
        store.db.superseding = superseding
        return store
    raise UsageError(
        f"a memory is a path, sqlite://PATH, :memory: or neo4j://HOST, not {scheme}://…"
    )


@asynccontextmanager
async def scratch_store() -> AsyncIterator[GraphStore]:
    """Yield an empty store in memory, for intermediate results; it is closed afterwards."""
    from qrmem.graphstore.sqlite import SqliteStore

    store = await SqliteStore.in_memory()
    try:
        yield store
    finally:
        await store.close()


def missing_file(uri: str) -> Path | None:
    """Return the file that opening a memory would create; `None` if it would create none."""
    scheme, separator, rest = _in_one_form(uri).partition("://")
    if separator and scheme != "sqlite":
        return None
    name = rest.partition("?")[0] if separator else uri
    path = Path(name).expanduser().absolute()  # the process may change its working folder
    return path if name and not path.exists() else None


async def withdraw(path: Path) -> None:
    """Delete a file that opening a memory created, if it is still empty of documents."""
    from qrmem.graphstore.sqlite.removal import vacate

    await asyncio.to_thread(vacate, path)


def _in_one_form(uri: str) -> str:
    return "memory://" if uri in _IN_MEMORY else uri


async def _sqlite(path: str, *, create: bool, read_only: bool) -> GraphStore:
    from qrmem.graphstore.sqlite import OpenMode, SqliteStore

    if not path:
        raise UsageError("the path of the memory is empty")
    if await asyncio.to_thread(_is_pipe, path):
        raise UsageError(f"{path} is a pipe or a device, not a file")
    return await SqliteStore.open(path, OpenMode(create=create, read_only=read_only))


def _is_pipe(path: str) -> bool:
    place = Path(path).expanduser()
    return place.exists() and not place.is_file() and not place.is_dir()


def _is_read_only(uri: str, query: str) -> bool:
    options = parse_qs(query, keep_blank_values=True)
    if options.keys() - {"mode"} or options.get("mode", ["rw"]) not in (["ro"], ["rw"]):
        raise UsageError(f"{shown(uri)}: a memory's address accepts ?mode=ro and no other option")
    return options.get("mode") == ["ro"]
