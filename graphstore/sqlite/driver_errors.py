"""Translate SQLite's errors into our own; no other module handles them."""

import sqlite3
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from json import JSONDecodeError
from pathlib import Path

from qrmem.errors import QrmemError, StoreUnavailable, UsageError
from qrmem.graphstore.checking import unreadable
from qrmem.graphstore.codec import DecodeError

_LOCKS = Path("/proc/locks")
_PRIMARY = 0xFF


_READ_ONLY = "{at} is read-only; make the file and its folder writable, or use a copy"

_KINDS: Mapping[int, tuple[type[QrmemError], str]] = {
    sqlite3.SQLITE_BUSY: (
        StoreUnavailable,
        "{at} is locked by {holder}; close it or wait for it, then run the same command again",
    ),
    sqlite3.SQLITE_READONLY: (StoreUnavailable, _READ_ONLY),
    sqlite3.SQLITE_FULL: (
        StoreUnavailable,
        "no space left for {at}; nothing that was saved is lost: free some space, then run the same"
        " command again",
    ),
    sqlite3.SQLITE_CANTOPEN: (
        StoreUnavailable,
        "{at} cannot be opened; make sure that the file and its folder are readable and writable",
    ),
    sqlite3.SQLITE_NOTADB: (UsageError, "{at} is not a qrmem memory (not an SQLite file)"),
    sqlite3.SQLITE_CORRUPT: (
        StoreUnavailable,
        "{at} is damaged; restore a copy, or build the memory again; what `qrmem export` can still"
        " read can be imported into a new file",
    ),
    sqlite3.SQLITE_IOERR: (
        StoreUnavailable,
        "{at} cannot be read or written: the disk is full, over its quota, or failing; nothing"
        " that was saved is lost: free some space, then run the same command again",
    ),
    sqlite3.SQLITE_TOOBIG: (UsageError, "{at}: a text is larger than the store can keep (1 GB)"),
}


def error(code: int, location: str) -> QrmemError | None:
    """Return our error for one of SQLite's error codes, or `None` if there is none for it."""
    if code & _PRIMARY not in _KINDS:
        return None
    kind, words = _KINDS[code & _PRIMARY]
    holder = "another program (a qrmem, a database browser)"
    if "{holder}" in words:
        holder = ", ".join(writers(location)) or holder
    return kind(words.format(at=location, holder=holder))


def refused_write(location: str) -> StoreUnavailable:
    """Return the error for a write to a store that is open only for reading."""
    return StoreUnavailable(_READ_ONLY.format(at=location))


def not_there(location: str) -> StoreUnavailable:
    """Return the error for an open file that was replaced or deleted."""
    return StoreUnavailable(
        f"{location} or its -wal file was moved, removed or replaced while the memory was open, so"
        " nothing more is written; put it back, or open the memory again"
    )


@contextmanager
def translated(location: str) -> Iterator[None]:
    """Re-raise SQLite's and the operating system's errors as ours, with their cause."""
    try:
        yield
    except sqlite3.Error as exc:
        code = getattr(exc, "sqlite_errorcode", 0)
        raise error(code, location) or StoreUnavailable(f"{location}: {exc}") from exc
    except (JSONDecodeError, DecodeError, zlib.error) as exc:
        raise unreadable(location) from exc
    except UnicodeEncodeError as exc:
        raise UsageError("a text holds half of a surrogate pair and cannot be kept") from exc
    except OverflowError as exc:
        raise UsageError("a number is too large to be kept") from exc
    except OSError as exc:
        raise StoreUnavailable(f"{location}: {exc.strerror or exc}") from exc


def writers(path: str) -> list[str]:
    """Return `process 123 (name)` for each program that holds the database; empty if unknown."""
    try:
        inodes = {str(Path(path + end).stat().st_ino) for end in ("", "-shm") if _is(path + end)}
        lines = _LOCKS.read_text().splitlines()
    except OSError:
        return []
    pids = {pid for kind, pid, inode in map(_parsed, lines) if kind == "WRITE" and inode in inodes}
    return [f"process {pid}{_name(pid)}" for pid in sorted(pids)]


def _is(path: str) -> bool:
    return Path(path).exists()


def _parsed(line: str) -> tuple[str, str, str]:
    """Return kind, process and inode of `1: POSIX ADVISORY WRITE 123 08:01:456 120 120`."""
    fields = [field for field in line.split() if field != "->"]
    return (fields[3], fields[4], fields[5].rpartition(":")[2]) if len(fields) > 5 else ("", "", "")


def _name(pid: str) -> str:
    try:
        return f" ({Path('/proc', pid, 'comm').read_text().strip()})"
    except OSError:
        return ""
