"""Where a file is written: beside its place, then put there whole; over nothing of another form."""

import os
import time
import uuid
from contextlib import suppress
from glob import escape
from pathlib import Path

from qrmem.errors import StoreUnavailable, UsageError

_FORSAKEN = 600.0
"""Seconds without a write after which nobody is writing a file any more."""


def part_of(path: Path) -> Path:
    """Return a name beside a file, for what is written until it is whole.

    What a killed run left there, which may hold any text, is removed.
    """
    for left in path.parent.glob(f".{escape(path.name)}.????????.part"):
        with suppress(OSError):
            if time.time() - left.stat().st_mtime > _FORSAKEN:
                left.unlink()
    return path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.part")


def write_whole(
    path: Path, data: bytes, begins: bytes, what: str, *, overwrite: bool = True
) -> None:
    """Write a file whole, or leave its place as it is.

    Args:
        begins: first bytes of all files of its form.
        what: its form, in words, for a message.
        overwrite: also over a file of this form.

    Raises:
        UsageError: something else is there, a memory for example, or there is no such folder.
        StoreUnavailable: it cannot be written, on a full disk for example.
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
    """Refuse to write over anything but a file of the same form: a memory has a path too.

    Args:
        overwrite: whether a file of the same form may be overwritten.

    Raises:
        UsageError: something else is there, or there is no such folder.
        OSError: what is there cannot be read.
    """
    if not path.exists():
        if not path.parent.is_dir():
            raise UsageError(
                f"there is no folder {path.parent}; create it first, or check the path"
            )
        return
    if not path.is_file():
        raise UsageError(f"{path} is not a file that can be overwritten; choose another name")
    with path.open("rb") as file:
        found = file.read(len(begins))
    if found not in (b"", begins):
        raise UsageError(f"{path} exists and is not {what}; choose another name")
    if found and not overwrite:
        raise UsageError(
            f"{path} exists already: choose another name; --force (overwrite=True) replaces it"
        )


def unwritable(path: Path, exc: OSError) -> StoreUnavailable:
    """Return what is raised where a file cannot be written."""
    return StoreUnavailable(f"cannot write {path}: {exc.strerror or exc}")
