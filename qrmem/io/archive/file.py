"""The file of an archive: lines and a checksum, written atomically, read only if complete."""

import hashlib
import json
import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Self

from qrmem.errors import BadImport, MissingError, UsageError
from qrmem.graphstore.codec import DecodeError, canonical, from_plain
from qrmem.graphstore.protocol import CacheEntry
from qrmem.io.archive.form import (
    END,
    HEAD,
    KINDS,
    OF_A_DOCUMENT,
    OF_RUNS,
    STARTS,
    VERSION,
    DocumentLine,
    End,
    Head,
    SegmentLine,
    cache_kind,
    decoded,
)
from qrmem.io.place import check_place, part_of, unwritable
from qrmem.text.names import is_type
from qrmem.text.normalise import normalise_value
from qrmem.types import ChatReply, Contribution

_BEGINS = b'{"qrmem":'
_LONGEST_HEAD = 1 << 16
_LONGEST_END = 256
_LONGEST_LINE = 1 << 30
"""Maximum length of a line in bytes, more than any text in a store; a longer line is not read."""

_CHUNK = 1 << 20
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_LOOSE = frozenset({"contribution", "fold", "trail", "call", "reply"})
"""Kinds that stores keep as JSON; a model's text there may have unpaired surrogates."""


class Writer:
    """Writes an archive to a partial file; `finish` moves it to its path."""

    def __init__(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        self._path = Path(path)
        self._is_overwriting = overwrite
        self._digest = hashlib.sha256()
        self._lines = 0

    def __enter__(self) -> Self:
        try:
            check_place(self._path, _BEGINS, "an archive", overwrite=self._is_overwriting)
            self._part = part_of(self._path)
            self._file: IO[bytes] = self._part.open("xb")
        except OSError as exc:
            raise unwritable(self._path, exc) from exc
        return self

    def __exit__(self, *exc: object) -> None:
        with suppress(OSError):  # a full disk: what is still in the buffer cannot be written either
            self._file.close()
        self._part.unlink(missing_ok=True)

    def write(self, kind: str, value: Any) -> None:
        """Write a line."""
        try:
            line = canonical({kind: value}) + b"\n"
        except ValueError as exc:
            raise UsageError(f"a {kind} holds a number that is not finite: {exc}") from exc
        self._digest.update(line)
        self._lines += 1
        try:
            self._file.write(line)
        except OSError as exc:
            raise unwritable(self._path, exc) from exc

    def finish(self) -> str:
        """Write the last line, move the archive to its path and return its checksum."""
        checksum = self._digest.hexdigest()
        self.write(END, End(self._lines, checksum))
        try:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._part.replace(self._path)
        except OSError as exc:
            raise unwritable(self._path, exc) from exc
        return checksum


@dataclass(frozen=True, slots=True)
class ArchiveReader:
    """Reads an archive whose checksum is right.

    Attributes:
        path: the file.
        head: its first line.
        end: its last line.
        size: number of bytes before its last line.
    """

    path: Path
    head: Head
    end: End
    size: int

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Self:
        """Open an archive after a check of head, end and checksum.

        Raises:
            BadImport: the file is not an archive, or is truncated or altered.
            MissingError: a newer qrmem wrote it.
        """
        place = Path(path)
        try:
            if not stat.S_ISREG(place.stat().st_mode):
                raise BadImport(f"{place} is not an archive: it is not a regular file")
            with place.open("rb") as file:
                head = _head(place, file)
                end, size = _end(place, file)
                file.seek(0)
                if _sums(file, size) != (end.lines, end.sha256):
                    raise _damaged(place, "its checksum does not fit")
        except OSError as exc:
            raise BadImport(f"cannot read {place}: {exc.strerror or exc}") from exc
        return cls(place, head, end, size)

    def lines(self) -> Iterator[tuple[int, str, Any]]:
        """Yield number, kind and record of every line between head and end.

        Raises:
            BadImport: a line is malformed, or the file changed meanwhile.
        """
        digest = hashlib.sha256()
        try:
            with self.path.open("rb") as file:
                for number in range(1, self.end.lines + 1):
                    raw = file.readline(_LONGEST_LINE)
                    digest.update(raw)
                    if number > 1:
                        yield number, *self._line(raw, number)
        except OSError as exc:
            raise BadImport(f"cannot read {self.path}: {exc.strerror or exc}") from exc
        if digest.hexdigest() != self.end.sha256:
            raise _damaged(self.path, "it changed while it was read")

    def refused(self, number: int, why: str) -> BadImport:
        """Return the error for a malformed line."""
        return BadImport(f"{self.path}, line {number}: {why}; nothing was imported")

    def _line(self, raw: bytes, number: int) -> tuple[str, Any]:
        try:
            kind, value = _parsed(raw)
            if kind not in KINDS:
                raise DecodeError(f"no line is called {kind[:40]!r}")
            if kind not in _LOOSE and _SURROGATE.search(raw):
                _check_pairs(value)
            return kind, from_plain(value, KINDS[kind], kind)
        except (ValueError, RecursionError) as exc:
            raise self.refused(number, _why(exc)) from exc


def _parsed(raw: bytes) -> tuple[str, Any]:
    """Return the kind and the value of a line."""
    if not raw.endswith(b"\n"):
        raise DecodeError("it is too long")
    value = json.loads(raw.decode(), parse_constant=_no_number)
    if type(value) is not dict or len(value) != 1:
        raise DecodeError("it is not an object with one key")
    ((kind, inner),) = value.items()
    return kind, inner


def _no_number(word: str) -> None:
    raise DecodeError(f"{word} is not a number")


def _check_pairs(value: Any) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise DecodeError("a text holds half of a surrogate pair") from None


def _why(exc: Exception) -> str:
    if isinstance(exc, DecodeError):
        return str(exc)
    return "it is nested too deeply" if isinstance(exc, RecursionError) else "it is not JSON"


def _head(path: Path, file: IO[bytes]) -> Head:
    raw = file.readline(_LONGEST_HEAD)
    try:
        kind, value = _parsed(raw)
    except (ValueError, RecursionError):
        kind, value = "", {}
    if kind != HEAD or type(value) is not dict:
        raise BadImport(f"{path} is not a qrmem archive: its first line is wrong")
    version = value.get("version")
    if type(version) is int and version > VERSION:
        raise MissingError(
            f"{path} has version {version} of the archive's form, and this qrmem reads up to"
            f" {VERSION}: upgrade qrmem (pip install -U qrmem), then import it again"
        )
    try:
        head = from_plain(value, Head, "the head")
        _check_head(head)
    except ValueError as exc:
        raise BadImport(f"{path}, line 1: {_why(exc)}; nothing was imported") from exc
    return head


def _check_head(head: Head) -> None:
    ranges = {
        "version": (head.version, 1, VERSION),
        "segment_tokens": (head.segment_tokens, 1, 2**31 - 1),
        "dimension": (head.dimension, 0, 2**20),
    }
    for name, (value, least, most) in ranges.items():
        if not least <= value <= most:
            raise DecodeError(f"{name} is {value}, not from {least} to {most}")
    for name in head.single:
        if not is_type(name):
            raise DecodeError(f"{name[:40]!r} is no type of a relation")
    if list(head.single) != sorted(set(head.single)):
        raise DecodeError("the single types are not sorted")


def _end(path: Path, file: IO[bytes]) -> tuple[End, int]:
    """Return the last line and its offset."""
    size = file.seek(0, os.SEEK_END)
    begin = max(0, size - _LONGEST_END)
    file.seek(begin)
    tail = file.read()
    at = tail.rfind(b"\n", 0, -1) + 1
    try:
        kind, value = _parsed(tail[at:])
        if kind == END:
            return from_plain(value, End, "the end"), begin + at
    except (ValueError, RecursionError):
        pass
    raise _damaged(path, "its last line is missing")


def _sums(file: IO[bytes], size: int) -> tuple[int, str]:
    """Return the number of lines in the first `size` bytes, and their checksum."""
    digest, lines, bytes_left = hashlib.sha256(), 0, size
    while chunk := file.read(min(_CHUNK, bytes_left)):
        digest.update(chunk)
        lines += chunk.count(b"\n")
        bytes_left -= len(chunk)
    return lines, digest.hexdigest()


def _damaged(path: Path, why: str) -> BadImport:
    return BadImport(
        f"{path} is cut or altered: {why}; nothing was imported. Export it again, or copy it again"
    )


# Checks of the lines of an archive against each other, before anything is written.

_LONGEST_ID = 1000
_REPLY = re.compile("[0-9a-f]{64}")
"""Keys of cached replies: hashes of their requests."""

_PLACE = {kind: place for place, kind in enumerate(KINDS)}


def ordered(reader: ArchiveReader) -> Iterator[tuple[str, Any]]:
    """Yield kind and record of every line, after a check of order and references.

    Raises:
        BadImport: a line is in the wrong place, repeats another, or has an unknown reference.
    """
    parts_seen = _LineCheck(reader.head)
    for number, kind, value in reader.lines():
        try:
            parts_seen.take(kind, value)
        except DecodeError as exc:
            raise reader.refused(number, str(exc)) from exc
        yield kind, value


class _LineCheck:
    """The lines so far, to check the next one."""

    def __init__(self, head: Head) -> None:
        self._head = head
        self._kind = ""
        self._ids: dict[str, set[str]] = {}
        self._text_length = 0
        self._own: set[str] = set()

    def take(self, kind: str, value: Any) -> None:
        """Check the next line."""
        self._check_place(kind)
        match value:
            case DocumentLine():
                _check_id(value.id)
                _check_names(value)
                self._once(kind, value.id)
                self._text_length, self._own = len(value.text), set()
            case SegmentLine():
                _check_id(value.id)
                self._once(kind, value.id)
                self._own.add(value.id)
                self._check_span(value)
            case Contribution():
                self._check_own(value.segment_id)
                self._once(kind, repr((value.segment_id, value.kind, value.asked)))
            case CacheEntry():
                self._once("kept", value.key)
                _check_kept(kind, value)
            case _:
                self._take_other(kind, value)

    def _take_other(self, kind: str, value: Any) -> None:
        match kind:
            case "vector":
                self._check_own(value.owner)
                self._once(kind, value.owner)
                decoded(value, self._head.dimension)
            case "relation":
                self._once(kind, value.owner)
                decoded(value, self._head.dimension)
            case "entity":
                self._once(kind, value.key)
                for name in value.names:
                    self._once("name", name)
            case "trail":
                self._once(kind, value.id)

    def _check_place(self, kind: str) -> None:
        """Check the order of kinds; it starts again with each document."""
        if kind in OF_RUNS and not self._head.runs:
            raise DecodeError(f"a {kind} is in an archive without runs")
        before = self._kind
        is_first = not before and kind in OF_A_DOCUMENT and kind != "document"
        is_next = kind == "document" and before in ("", *OF_A_DOCUMENT)
        if is_first or not (is_next or not before or _PLACE[kind] >= _PLACE[before]):
            raise DecodeError(f"a {kind} cannot follow {f'a {before}' if before else 'the head'}")
        self._kind = kind

    def _once(self, kind: str, id_: str) -> None:
        ids = self._ids.setdefault(kind, set())
        if id_ in ids:
            raise DecodeError(f"the {kind} {id_[:80]!r} occurs twice")
        ids.add(id_)

    def _check_own(self, segment_id: str) -> None:
        if segment_id not in self._own:
            raise DecodeError(f"segment {segment_id[:80]!r} does not belong to the document above")

    def _check_span(self, line: SegmentLine) -> None:
        if not 0 <= line.start <= line.end <= self._text_length:
            raise DecodeError(f"the segment's place {line.start}-{line.end} is not in the document")
        if not 0 <= line.tokens < 2**31:
            raise DecodeError(f"the segment's tokens are {line.tokens}")


def _check_kept(kind: str, kept: CacheEntry) -> None:
    """Check that a cached value has the form that qrmem itself would have stored."""
    of = cache_kind(kind, kept.key)
    is_other = of in ("fold", "tree", "judgement", "code") and of != kind
    if is_other or not kept.key.startswith(STARTS.get(of, "")):
        raise DecodeError(f"a {kind} has no key like {kept.key[:40]!r}")
    if kind == "fold" and not isinstance(kept.value.get("description"), str):
        raise DecodeError("a fold has no description")
    if _REPLY.fullmatch(kept.key):
        from_plain(dict(kept.value), ChatReply, "reply.value")


def _check_names(line: DocumentLine) -> None:
    try:
        for name, value in line.metadata.items():
            normalise_value(name, value)
    except UsageError as exc:
        raise DecodeError(str(exc)) from None


def _check_id(id_: str) -> None:
    if not id_.strip() or len(id_) > _LONGEST_ID or "\x00" in id_:
        raise DecodeError(f"an id has 1 to {_LONGEST_ID} characters, not all blank, and no NUL")
