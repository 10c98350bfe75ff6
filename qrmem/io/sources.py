"""Conversion of the sources of `add` to documents with ids."""

import asyncio
import hashlib
import math
import os
import unicodedata
from collections import deque
from collections.abc import (
    AsyncIterable,
    AsyncIterator,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass, replace
from itertools import count as numbered
from pathlib import Path
from typing import Any

from qrmem.errors import BadDocument, QrmemError, UsageError
from qrmem.io.web_fetch import fetched, is_address
from qrmem.text import files
from qrmem.text.code.languages import CODE_KEY
from qrmem.text.decoding import LEFT_OUT
from qrmem.text.normalise import normalised
from qrmem.types import Document
from qrmem.types.documents import LARGEST
from qrmem.workers import Crew, WorkerLost

Source = (
    str
    | Path
    | Document
    | Mapping[str, Any]
    | Iterable["str | Path | Document | Mapping[str, Any]"]
    | AsyncIterable["str | Path | Document | Mapping[str, Any]"]
)
"""A path, an address, a document, `{"id", "title", "text", "metadata"}`, or an iterable of them."""


_BREATH = 64
"""After so many sources other tasks have a turn: to check 60,000 documents takes seconds."""
_NO_NUMBERS = (math.inf, -math.inf)
_MOST_ITEMS = 1000
"""Maximum number of texts in a list of a document's metadata."""
_WORDS = 7
"""Maximum number of words in a path; a longer text that is not a file is taken as a document."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A bad source among several; the others are still read."""

    name: str
    error: QrmemError


@dataclass(frozen=True, slots=True)
class PassedOver:
    """Numbers of files of a folder that are not read, by reason."""

    reasons: Mapping[str, int]


class FileDocument(Document):
    """A document whose id is the end of its file's path; two files may have the same id."""

    __slots__ = ()


def file_document(read: Document, id: str) -> FileDocument:
    """Return a document that was read from a file, with an id from the file's path."""
    return FileDocument(read.text, read.title, id, read.metadata, read.parts)


@dataclass(frozen=True, slots=True)
class _File:
    """A file to parse.

    Attributes:
        path: the path as the user gave it.
        name: the path below the folder that the user gave, or the file name.
        source: the absolute path.
        refused_as: its name in a `Refused`; "" raises the error.
    """

    path: str
    name: str
    source: str
    refused_as: str = ""


Found = Document | Refused | PassedOver


async def documents(
    source: Source,
    glob: str | None = None,
    *,
    follow_links: bool = False,
    crew: Crew | None = None,
) -> AsyncIterator[Found]:
    """Yield the documents of a source, each with an id and normalised text.

    A single bad source raises an error. A bad file of a folder, a bad item of an iterable and an
    unreadable part of a file are yielded as `Refused`.

    Args:
        source: a source, see `Source`.
        glob: limits the files of a folder.
        follow_links: follow symbolic links in folders.
        crew: workers that parse files in parallel; results and order are the same.

    Raises:
        BadDocument: the file does not exist, is empty or binary, or cannot be decoded.
        UsageError: the source is not one that `add` accepts.
    """
    items = _take(source, glob, follow_links)
    if crew is not None:
        async for item in _ahead(items, crew):
            yield item
        return
    numbers = numbered(1)
    async for one in items:
        # In a thread, so that other tasks continue: some servers refuse blocking calls.
        for item in await asyncio.to_thread(_parsed, one) if isinstance(one, _File) else (one,):
            yield item
        if next(numbers) % _BREATH == 0:
            await asyncio.sleep(0)


async def _take(
    source: Source, glob: str | None, follow_links: bool
) -> AsyncIterator[Found | _File]:
    if isinstance(source, AsyncIterable):
        async for item in source:
            for found_item in await _looked_up(_each, item, glob, follow_links):
                yield found_item
    elif isinstance(source, Iterable) and not isinstance(source, str | bytes | bytearray | Mapping):
        for item in source:
            for found_item in await _looked_up(_each, item, glob, follow_links):
                yield found_item
    else:
        for found_item in await _looked_up(_one, source, glob, follow_links):
            yield found_item


async def _looked_up(
    look: Callable[[object, str | None, bool], Iterator[Found | _File]], item: object, *how: Any
) -> Iterable[Found | _File]:
    """Return the documents of an item; paths are looked up in a thread, addresses are fetched."""
    if isinstance(item, str) and is_address(item):
        try:
            return [identified(await fetched(item))]
        except QrmemError as exc:
            if look is _one:
                raise
            return [Refused(item, exc)]
    if isinstance(item, str | Path):
        return await asyncio.to_thread(lambda: list(look(item, *how)))
    return look(item, *how)


def identified(document: Document) -> Document:
    """Normalise a document's text and give it an id if it has none.

    Raises:
        BadDocument: its text is empty, or its id or metadata cannot be stored.
    """
    _require_kept(document)
    try:
        clean = normalised(document)
    except UsageError as exc:
        label = document.id or document.title or "a document"
        raise BadDocument(f"metadata of {label}: {exc}") from None
    if not clean.text.strip():
        raise BadDocument(f"{document.id or document.title or 'the document'} is empty")
    if clean.id is not None:
        return clean
    return replace(clean, id=hashlib.sha256(clean.text.encode()).hexdigest()[:16])


def _require_kept(document: Document) -> None:
    """Raise an error if no store can keep a document."""
    texts = {"text": document.text, "title": document.title, "id": document.id}
    for name, text in texts.items():
        if not isinstance(text, str) and (name, text) != ("id", None):
            raise BadDocument(f"a document's {name} must be text, not {type(text).__name__}")
    if len(document.title) > files.MOST_TITLE:
        size = f"at most {files.MOST_TITLE:,} characters, not {len(document.title):,}"
        raise BadDocument(f"{document.id or 'a document'}: a title has {size}")
    id = document.id
    if id is not None and (not id.strip() or len(id) > 1000 or "\x00" in id):
        raise BadDocument("a document's id has 1 to 1,000 characters, not all blank, and no NUL")
    label = id or document.title or "a document"
    if not isinstance(document.metadata, Mapping):
        kind = type(document.metadata).__name__
        raise BadDocument(f"metadata of {label} are names with values, not a {kind}")
    for key, value in document.metadata.items():
        _require_value(f"metadata {key!r} of {label}", value, is_named=isinstance(key, str))


def _require_value(place: str, value: object, *, is_named: bool) -> None:
    is_list = isinstance(value, list | tuple) and all(isinstance(item, str) for item in value)
    is_storable = isinstance(value, str | int | float | bool) or is_list
    if not is_named or not is_storable or value in _NO_NUMBERS or value != value:
        what = str(value) if isinstance(value, float) else f"a {type(value).__name__}"
        raise BadDocument(
            f"{place} is {what}; only text, lists of texts, finite numbers and true/false can be"
            " stored"
        )
    if isinstance(value, list | tuple) and len(value) > _MOST_ITEMS:
        raise BadDocument(f"{place} is a list of {len(value):,}; at most {_MOST_ITEMS:,} are kept")
    if isinstance(value, int) and abs(value) > LARGEST:
        raise BadDocument(f"{place} is a whole number that is too large to store; give it as text")


def _each(item: object, glob: str | None, follow_links: bool) -> Iterator[Found | _File]:
    try:
        for found_item in _one(item, glob, follow_links):
            if isinstance(found_item, _File) and not found_item.refused_as:
                found_item = replace(found_item, refused_as=_name(item))
            yield found_item
    except QrmemError as exc:
        yield Refused(_name(item), exc)


def _one(source: object, glob: str | None, follow_links: bool) -> Iterator[Found | _File]:
    if isinstance(source, str | Path):
        yield from _of_path(_path(source), glob, follow_links)
    elif isinstance(source, Document | Mapping):
        yield identified(_of(source))
    else:
        raise UsageError(f"add takes paths and documents, not {type(source).__name__}")


def _name(item: object) -> str:
    if isinstance(item, Document):
        return item.id or item.title or "a document"
    if isinstance(item, Mapping):
        return str(item.get("id") or item.get("title") or "a document")
    return str(item)


def _of(source: Document | Mapping[str, Any]) -> Document:
    if isinstance(source, Document):
        return source
    unknown = source.keys() - {"id", "title", "text", "metadata"}
    if unknown or not isinstance(source.get("text"), str):
        wrong = f"unknown field {sorted(map(str, unknown))[0]!r}" if unknown else "no text"
        raise BadDocument(f"a document is {{'id', 'title', 'text', 'metadata'}}: {wrong}")
    identity = source.get("id")
    return Document(
        text=source["text"],
        title=str(source.get("title") or ""),
        id=None if identity is None else str(identity),
        metadata=source.get("metadata") or {},
    )


def _path(given: str | Path) -> Path:
    if not str(given).strip():  # an empty path would mean the working folder
        raise UsageError("an empty path names no file and no folder; is a variable not set?")
    name = str(given)
    if ("\n" in name or name.count(" ") > _WORDS) and not _exists(name):
        start = " ".join(name.split())[:40]
        raise BadDocument(f"{start}… is a text, not a path: use add_text, or `qrmem add -`")
    return Path(given)


def _exists(name: str) -> bool:
    try:
        return Path(name).exists()
    except OSError:  # too long for a path
        return False


def _of_path(path: Path, glob: str | None, follow_links: bool) -> Iterator[Found | _File]:
    try:
        is_there, is_folder = path.exists(), path.is_dir()
    except OSError as exc:
        raise BadDocument(f"{path} cannot be read: {exc.strerror}") from exc
    if not is_there:
        raise BadDocument(f"no such file or folder: {path}")
    if not is_folder:
        yield _File(str(path), path.name, os.path.abspath(path))
        return
    count = 0
    discovered = files.discover(path, glob, follow_links=follow_links)
    if discovered.passed_over:
        yield PassedOver(discovered.passed_over)
    for folder, reason in discovered.unreadable:
        count += 1
        yield Refused(str(folder), BadDocument(f"{folder} cannot be read: {reason}"))
    for discovered_file in discovered:
        count += 1
        name = discovered_file.relative_to(path).as_posix()
        yield _File(
            str(discovered_file), name, os.path.abspath(discovered_file), str(discovered_file)
        )
    if not count:
        raise BadDocument(f"nothing to read in {path}" + (f" by {glob!r}" if glob else ""))


# --- files ---------------------------------------------------------------------------------------

FILES_TOGETHER = 32
BYTES_TOGETHER = 1_000_000
"""Maximum number of files in a worker's task, and the size in bytes from which it is full."""
LOST_TWICE = "two workers were lost while parsing this file"


def _parsed(file: _File, data: bytes | None = None) -> list[Document | Refused]:
    """Return a file's document, and its unreadable parts as `Refused`.

    Args:
        file: the file.
        data: its content, if it was read already.
    """
    try:
        data = files.content(file.path) if data is None else data
        document = files.from_bytes(data, file.path, file.source)
        name = unicodedata.normalize("NFC", file.name)
        title = name if CODE_KEY in document.metadata else document.title
        document_made = identified(file_document(replace(document, title=title), name))
    except QrmemError as exc:
        return [_refused(file, exc)]
    left_out = document.metadata.get(LEFT_OUT)
    broken = BadDocument(f"broken parts were left out: {left_out}")
    return [document_made, *([Refused(name, broken)] if left_out else [])]


def _refused(file: _File, error: QrmemError) -> Refused:
    """Return a bad file among several as `Refused`; raise the error of a single file."""
    if not file.refused_as:
        raise error
    return Refused(file.refused_as, error)


def parse_files(given: Sequence[tuple[_File, bytes]]) -> list[list[Document | Refused]]:
    """Parse files from their contents, in a worker without access to them; return their results."""
    return [_parsed(file, data) for file, data in given]


async def _ahead(taken: AsyncIterator[Found | _File], crew: Crew) -> AsyncIterator[Found]:
    """Yield documents in order, while workers parse the next files."""
    waiting: deque[asyncio.Task[list[Document | Refused]] | Found] = deque()
    broken: Exception | None = None
    try:
        try:
            async for part in _parts(taken):
                waiting.append(
                    asyncio.create_task(_by_worker(crew, part)) if isinstance(part, list) else part
                )
                while len(waiting) > crew.at_once:
                    for item in await _ready(waiting.popleft()):
                        yield item
        except Exception as exc:
            broken = exc  # documents from before the source's error are yielded
        while waiting:
            for item in await _ready(waiting.popleft()):
                yield item
        if broken is not None:
            raise broken
    finally:
        tasks = [one for one in waiting if isinstance(one, asyncio.Task)]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _ready(one: "asyncio.Task[list[Document | Refused]] | Found") -> Sequence[Found]:
    return await one if isinstance(one, asyncio.Task) else [one]


async def _parts(taken: AsyncIterator[Found | _File]) -> AsyncIterator[Found | list[_File]]:
    """Yield files in groups of successive files, and every other item alone."""
    together: list[_File] = []
    size = 0
    try:
        async for one in taken:
            if isinstance(one, _File):
                together.append(one)
                size += _size(one)
                if len(together) < FILES_TOGETHER and size < BYTES_TOGETHER:
                    continue
            if together:
                yield together
                together, size = [], 0
            if not isinstance(one, _File):
                yield one
    except Exception:
        if together:
            yield together
        raise
    if together:
        yield together


def _size(file: _File) -> int:
    try:
        return Path(file.path).stat().st_size
    except OSError:
        return 0  # reading it will raise the error


async def _by_worker(crew: Crew, together: Sequence[_File]) -> list[Document | Refused]:
    """Parse a group of files; if the worker is lost, parse each file alone."""
    results: list[list[Document | Refused]] = [[] for _ in together]
    files_given: dict[int, tuple[_File, bytes]] = {}
    for n, file in enumerate(together):
        try:
            files_given[n] = file, files.content(file.path)
        except QrmemError as exc:
            results[n] = [_refused(file, exc)]
    try:
        results_of_crew = await crew.do(parse_files, list(files_given.values()))
    except WorkerLost:
        results_of_crew = [await _again(crew, file, data) for file, data in files_given.values()]
    for n, parsed in zip(files_given, results_of_crew, strict=True):
        results[n] = parsed
    return [one for parsed in results for one in parsed]


async def _again(crew: Crew, file: _File, data: bytes) -> list[Document | Refused]:
    try:
        parsed: list[list[Document | Refused]] = await crew.do(parse_files, [(file, data)])
    except WorkerLost:
        return [_refused(file, BadDocument(f"{file.path}: {LOST_TWICE}"))]
    return parsed[0]
