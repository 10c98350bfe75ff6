"""Open a file, and run work on it in the only thread that uses the connection."""

import asyncio
import os
import sqlite3
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeAlias, TypeVar
from urllib.parse import quote

from qrmem.config import shown
from qrmem.errors import NotFound, StoreUnavailable, UsageError
from qrmem.graphstore.sqlite.database_schema import make, prepare, require_version
from qrmem.graphstore.sqlite.driver_errors import not_there, translated

_File: TypeAlias = tuple[int, int] | None
P = ParamSpec("P")
R = TypeVar("R")

IN_MEMORY = "memory://"
"""Location of a database in memory."""
_SMALLEST = 512
"""Size in bytes of SQLite's smallest page."""
PAGE_SIZE = 8192
"""Page size: a segment's text has about 2.4 KB, so a page holds three; one of 4096 holds one."""

_PATIENCE = 1000
"""Milliseconds to wait for readers before emptying the log; after that it stays."""

_PRAGMAS: Mapping[str, int | str] = {
    "foreign_keys": "ON",
    "synchronous": "NORMAL",  # with WAL a commit survives the process; power loss may undo it
    "secure_delete": "ON",  # overwrites a deleted document's text in free pages
    "temp_store": "MEMORY",
    "cache_size": -16384,  # bounds the cache, which grows with each written trail
    "journal_size_limit": 64 << 20,
}


_IDLE = 4
"""Number of idle connections that are kept for the next snapshots."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenMode:
    """The mode of opening a file.

    Attributes:
        create: create the file if it is missing.
        read_only: refuse writes even if the file may be written.
        is_fixed: show the file as of the first read, whatever others write, until `end`.
        timeout: seconds to wait for another program's lock.
        pragmas: further pragmas for this connection.
    """

    create: bool = True
    read_only: bool = False
    is_fixed: bool = False
    timeout: float = 30.0
    pragmas: Mapping[str, int | str] | None = None

    def of_reader(self) -> "OpenMode":
        """Return the mode of a connection for snapshots; caches are small, as there are several."""
        pragmas = {**(self.pragmas or {}), "cache_size": -16384}
        return replace(self, create=False, read_only=True, is_fixed=True, pragmas=pragmas)


class ConnectionThread:
    """One connection on one thread of its own; the event loop never waits for the disk.

    Attributes:
        path: the file, or `None` for a database in memory, which ends with the connection.
        has_remains: whether a reader kept the log from being emptied.
    """

    def __init__(self, path: Path | None, opening: OpenMode) -> None:
        self.location = IN_MEMORY if path is None else str(path.expanduser())
        # The process may change its working folder.
        self.path = None if path is None else path.expanduser().absolute()
        self.is_read_only = False
        self.has_remains = False
        self._opening = opening
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="qrmem-sqlite")
        self._db: sqlite3.Connection | None = None
        self._files: Sequence[_File] = ()  # identity of the open files: the database and its log
        self._readers: list[ConnectionThread] = []  # idle ones
        self._holders, self._is_free = 0, asyncio.Event()
        self._gate, self._is_held = asyncio.Lock(), False

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator["ConnectionThread"]:
        """Yield a worker that shows the database as of the first read.

        Each snapshot of a file has its own connection and thread, so that snapshots are read in
        parallel. A database in memory has one connection: writes wait until the last snapshot ends,
        and snapshots that begin later wait for these writes.
        """
        if self._opening.is_fixed or self._is_held:
            yield self
            return
        if self.path is None:
            async with self._gate:
                self._holders += 1
                self._is_free.clear()
            try:
                yield self._held()
            finally:
                self._holders -= 1
                if not self._holders:
                    self._is_free.set()
            return
        reader = self._readers.pop() if self._readers else await self._reader(self.path)
        try:
            yield reader
        finally:
            await reader.end()
            if self._db is not None and len(self._readers) < _IDLE:
                self._readers.append(reader)
            else:
                await reader.close()

    async def _reader(self, path: Path) -> "ConnectionThread":
        if self._db is None:
            raise self._closed()
        reader = ConnectionThread(path, self._opening.of_reader())
        reader._files = self._files
        await reader.open()
        return reader

    def _held(self) -> "ConnectionThread":
        """Return a worker whose snapshots are this one: it does not wait at the gate again."""
        held = copy(self)
        held._is_held = held.is_read_only = True
        return held

    async def end(self) -> None:
        """End the transaction of a snapshot's worker; the next read begins another one."""
        await self._submit(self._end)

    async def open(self) -> None:
        """Open the file, and create its tables if they are missing."""
        try:
            await self._submit(self._open)
        except BaseException:
            self._pool.shutdown(wait=False)
            raise

    async def close(self) -> None:
        """Close after the running work; a second call does nothing."""
        while self._readers:
            await self._readers.pop().close()
        if self._db is not None:
            await self._submit(self._close)
            await asyncio.to_thread(self._pool.shutdown)

    async def read(
        self,
        work: Callable[Concatenate[sqlite3.Connection, P], R],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> R:
        """Run work on one snapshot."""
        return await self._submit(self._transact, "BEGIN", work, args, kwargs)

    async def write(
        self,
        work: Callable[Concatenate[sqlite3.Connection, P], R],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> R:
        """Run work in one transaction, which is rolled back if it raises."""
        async with self._gate:
            while self._holders:
                await self._is_free.wait()
        return await self._submit(self._transact, "BEGIN IMMEDIATE", work, args, kwargs)

    async def clean(self, *, wholly: bool = False, patience: int = _PATIENCE) -> None:
        """Empty the log, which still holds old versions of pages.

        Args:
            wholly: also rewrite the file (`VACUUM`): a split page can keep a copy of deleted data
                between its rows. The file also shrinks to its minimum.
            patience: milliseconds to wait for readers.
        """
        await self._submit(self._clean, wholly, patience)

    def _clean(self, wholly: bool, patience: int) -> None:
        db = self._ready()
        if self.path is None:  # there is no log, and deleted data is overwritten
            return
        if wholly:
            db.execute("VACUUM")
        (before,) = db.execute("PRAGMA busy_timeout").fetchone()
        db.execute(f"PRAGMA busy_timeout = {patience}")
        with suppress(sqlite3.Error):  # a full disk: what was committed stays in the log
            row = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            self.has_remains = bool(row[0])
        db.execute(f"PRAGMA busy_timeout = {before}")

    async def _submit(self, work: Callable[..., R], *args: Any) -> R:
        loop, guarded = asyncio.get_running_loop(), translated(self.location)(work)
        try:
            future = loop.run_in_executor(self._pool, guarded, *args)
        except RuntimeError as exc:  # the pool is shut down
            raise self._closed() from exc
        return await future

    def _ready(self) -> sqlite3.Connection:
        if self._db is None:
            raise self._closed()
        return self._db

    def _closed(self) -> StoreUnavailable:
        return StoreUnavailable(f"{self.location} is closed")

    def _open(self) -> None:
        if self.path is None:
            self._db = in_memory(self._opening)
        else:
            if self._files:  # the snapshot's worker
                self._require_files()
            self._db, self.is_read_only = connect(self.path, self._opening)
            # In a read-only file another program creates and removes the log.
            logs = () if self.is_read_only else (_log(self.path),)
            self._files = self._files or [_file_of(path) for path in (self.path, *logs)]

    def _close(self) -> None:
        if self._db is not None:
            self._db.close()
        self._db = None

    def _end(self) -> None:
        if self._db is not None and self._db.in_transaction:
            self._db.execute("COMMIT")

    def _transact(
        self, begin: str, work: Callable[..., R], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> R:
        db = self._ready()
        if self._opening.is_fixed:  # one transaction, until `end`
            if not db.in_transaction:
                self._require_files()
                db.execute(begin)
                require_version(db, self.location)
            return work(db, *args, **kwargs)
        db.execute(begin)
        try:
            self._require_files()
            require_version(db, self.location)
            result = work(db, *args, **kwargs)
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise
        return result

    def _require_files(self) -> None:
        """Raise an error if the files were deleted or replaced: writes to them would be lost.

        SQLite itself checks this only without a log.
        """
        if self.path is not None and any(
            was is None or _file_of(path) != was
            for was, path in zip(self._files, (self.path, _log(self.path)), strict=False)
        ):
            raise not_there(self.location)


def _log(path: Path) -> Path:
    return path.with_name(path.name + "-wal")


def _file_of(path: Path) -> _File:
    with suppress(FileNotFoundError, NotADirectoryError):
        file_stat = path.stat()
        return file_stat.st_dev, file_stat.st_ino
    return None


def in_memory(opening: OpenMode) -> sqlite3.Connection:
    """Return a connection to a new, empty database in memory."""
    db = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    make(db)
    _configure(db, opening)
    return db


def connect(path: Path, opening: OpenMode) -> tuple[sqlite3.Connection, bool]:
    """Return an open connection, and whether it is read-only."""
    while True:
        db, is_read_only = _connected(path, opening)
        if path.exists():
            return db, is_read_only
        db.close()  # the process that created it stored nothing and has just removed it


def _connected(path: Path, opening: OpenMode) -> tuple[sqlite3.Connection, bool]:
    exists = _is_there(path, opening)
    is_read_only = opening.read_only or not _may_write(path)
    # Only SQLite may open the file: closing another handle would drop this process's locks.
    if is_read_only and not exists:
        raise StoreUnavailable(f"{path} cannot be created: its folder is not writable")
    db = _connection(path, "ro" if is_read_only else "rwc" if opening.create else "rw", opening)
    try:
        if is_read_only:
            db = _readable(db, path, opening)
        elif not exists or path.stat().st_size == 0:
            db.execute(f"PRAGMA page_size = {PAGE_SIZE}")
        _configure(db, opening)
        prepare(db, str(path), create=opening.create, is_read_only=is_read_only)
        if not is_read_only:
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA schema_version").fetchone()  # the first read creates the log
    except BaseException:
        db.close()
        raise
    return db, is_read_only


def _is_there(path: Path, opening: OpenMode) -> bool:
    if path.is_dir():
        raise UsageError(f"{path} is a folder; give the path of a file")
    if path.exists():
        if 0 < path.stat().st_size < _SMALLEST:  # SQLite would treat it as an empty database
            raise UsageError(f"{path} is not a qrmem memory (not an SQLite file)")
        return True
    if not opening.create or opening.read_only:
        raise NotFound(f"there is no memory at {path}; add a document first, or check the path")
    if not path.parent.is_dir():
        raise UsageError(
            f"there is no folder {shown(str(path.parent))}; create it first, or check the path"
        )
    return False


def _may_write(path: Path) -> bool:
    may_write_file = not path.exists() or os.access(path, os.W_OK)
    return may_write_file and os.access(path.parent, os.W_OK)


def _connection(path: Path, mode: str, opening: OpenMode, *, extra: str = "") -> sqlite3.Connection:
    uri = f"file:{quote(str(path.absolute()))}?mode={mode}{extra}"
    return sqlite3.connect(uri, uri=True, timeout=opening.timeout, isolation_level=None)


def _readable(db: sqlite3.Connection, path: Path, opening: OpenMode) -> sqlite3.Connection:
    """Return a connection that can read the file without writing beside it.

    SQLite creates a shared-memory file next to a WAL database. If it may not, and the log is empty,
    the file is opened as immutable.
    """
    try:
        db.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
    except sqlite3.OperationalError:
        db.close()
        log = _log(path)
        if log.exists() and log.stat().st_size > 0:
            raise StoreUnavailable(
                f"{path} was not closed properly and is read-only; open it once where it can be "
                "written"
            ) from None
        return _connection(path, "ro", opening, extra="&immutable=1")
    return db


def _configure(db: sqlite3.Connection, opening: OpenMode) -> None:
    for name, value in {**_PRAGMAS, **(opening.pragmas or {})}.items():
        db.execute(f"PRAGMA {name} = {value}")
    db.execute("CREATE TEMP TABLE picked (num INTEGER PRIMARY KEY)")
