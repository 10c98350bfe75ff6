"""SQLite's errors in our words; the one place that knows them."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from qrmem.errors import QrmemError, StoreUnavailable, UsageError

_PRIMARY = 0xFF


def _messages(location: str) -> dict[int, QrmemError]:
    return {
        sqlite3.SQLITE_BUSY: StoreUnavailable(
            f"{location} is locked by another program; close it (another qrmem, a database "
            "browser) or wait for it, then run the same command again"
        ),
        sqlite3.SQLITE_READONLY: read_only(location),
        sqlite3.SQLITE_FULL: StoreUnavailable(
            f"no space left for {location}; what was committed is kept: make room, then run the "
            "same command again"
        ),
        sqlite3.SQLITE_CANTOPEN: StoreUnavailable(
            f"{location} cannot be opened; see that the file and its folder may be read and written"
        ),
        sqlite3.SQLITE_NOTADB: UsageError(f"{location} is not a qrmem memory (not an SQLite file)"),
        sqlite3.SQLITE_CORRUPT: StoreUnavailable(
            f"{location} is damaged; restore a copy, or build the memory anew"
        ),
        sqlite3.SQLITE_TOOBIG: UsageError("a text is larger than the store can keep (1 GB)"),
    }


def read_only(location: str) -> StoreUnavailable:
    """Return the error for a write to a store that is open for reading only."""
    return StoreUnavailable(
        f"{location} is read-only; make the file and its folder writable, or use a copy"
    )


@contextmanager
def translated(location: str) -> Iterator[None]:
    """Re-raise SQLite's and the operating system's errors as ours, cause kept."""
    try:
        yield
    except sqlite3.Error as exc:
        code = getattr(exc, "sqlite_errorcode", None)
        known = _messages(location).get(-1 if code is None else code & _PRIMARY)
        raise known or StoreUnavailable(f"{location}: {exc}") from exc
    except UnicodeEncodeError as exc:
        raise UsageError("a text holds half of a surrogate pair and cannot be kept") from exc
    except OverflowError as exc:
        raise UsageError("a number is too large to be kept") from exc
    except OSError as exc:
        raise StoreUnavailable(f"{location}: {exc.strerror or exc}") from exc
