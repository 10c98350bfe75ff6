"""Atomic writes of files, which never replace a file of another format."""

import os
import time
import uuid
from contextlib import suppress
from glob import escape
from pathlib import Path

from qrmem.errors import StoreUnavailable, UsageError

_FORSAKEN = 600.0
"""A partial file without a write for this many seconds is abandoned."""
_BESIDE = ("wal", "shm", "journal")
"""SQLite appends these to the name of a database for the files beside it."""


def part_of(path: Path) -> Path:
    """Return the path of a partial file beside a file.

    Abandoned partial files of killed runs, which may hold any text, are deleted.
    """
    for leftover in path.parent.glob(f".{escape(path.name)}.????????.part"):
        with suppress(OSError):
            if time.time() - leftover.stat().st_mtime > _FORSAKEN:
                leftover.unlink()
    return path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.part")


def write_whole(
    path: Path, data: bytes, begins: bytes, what: str, *, overwrite: bool = True
) -> None:
    """Write a file atomically: on an error the old file is unchanged.

    Args:
        path: the file.
        data: its content.
        begins: first bytes of every file of its format.
        what: name of its format, for messages.
        overwrite: replace a file of this format.

    Raises:
        UsageError: the path holds another format, such as a memory, or its folder does not exist.
        StoreUnavailable: the file cannot be written, on a full disk for example.
    """
    try:
        check_place(path, begins, what, overwrite=overwrite)
        part = part_of(path)
        try:
            with part.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as exc:
        raise unwritable(path, exc) from exc


def check_place(path: Path, begins: bytes, what: str, *, overwrite: bool = True) -> None:
    """Refuse to replace a file of another format, such as a memory.

    Args:
        path: the file.
        begins: first bytes of every file of its format.
        what: name of its format, for messages.
        overwrite: allow to replace a file of this format.

    Raises:
        UsageError: the path holds another format, `overwrite` is not set and the file exists, or
            the folder does not exist.
        OSError: the existing file cannot be read.
    """
    memory, _, ending = str(path).rpartition("-")
    if ending in _BESIDE and Path(memory).exists():
        raise UsageError(f"{path} belongs to the database beside it; choose another name")
    if not path.exists():
        if not path.parent.is_dir():
            raise UsageError(
                f"there is no folder {path.parent}; create it first, or check the path"
            )
        return
    if not path.is_file():
        raise UsageError(f"{path} is not a file that can be overwritten; choose another name")
    with path.open("rb") as file:
        first_bytes = file.read(len(begins))
    if first_bytes not in (b"", begins):
        raise UsageError(f"{path} exists and is not {what}; choose another name")
    if first_bytes and not overwrite:
        raise UsageError(
            f"{path} exists already: choose another name; --force (overwrite=True) replaces it"
        )


def unwritable(path: Path, exc: OSError) -> StoreUnavailable:
    """Return the error for a file that cannot be written."""
    return StoreUnavailable(f"cannot write {path}: {exc.strerror or exc}")
