"""What `add` takes, turned into documents with an id."""

import hashlib
import math
import re
import unicodedata
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from qrmem.errors import BadDocument, QrmemError, UsageError
from qrmem.text import files
from qrmem.text.budget import LEFT_OUT
from qrmem.text.code.languages import CODE_KEY
from qrmem.text.normalise import normalised
from qrmem.types import Document
from qrmem.types.where import LARGEST

Source = (
    str
    | Path
    | Document
    | Mapping[str, Any]
    | Iterable["str | Path | Document | Mapping[str, Any]"]
    | AsyncIterable["str | Path | Document | Mapping[str, Any]"]
)
"""A path, a document, `{"id", "title", "text", "metadata"}`, or an iterable of them."""


_NO_NUMBERS = (math.inf, -math.inf)
_MOST_ITEMS = 1000
"""Texts in a list of a document's metadata."""
_WORDS = 7
"""Words of a path at most; what has more, and is no file, was meant as a text."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A source among several that is not a document; the others go on."""

    name: str
    error: QrmemError


@dataclass(frozen=True, slots=True)
class PassedOver:
    """Files of a folder that are not read, by reason."""

    reasons: Mapping[str, int]


class FileDocument(Document):
    """A document whose id is the end of its file's path, so that it may stand for two files."""

    __slots__ = ()


def file_document(read: Document, id: str) -> FileDocument:
    """Give a document that was read from a file the id that its path has."""
    return FileDocument(read.text, read.title, id, read.metadata, read.parts)


async def documents(
    source: Source, glob: str | None = None, *, follow_links: bool = False
) -> AsyncIterator[Document | Refused | PassedOver]:
    """Yield the documents of a source, each with an id and normalised text.

    A single bad source raises; a bad file in a folder, or item of an iterable, is a `Refused`, and
    so is what could not be read of a file that is otherwise read.

    Raises:
        BadDocument: no such file, empty, binary, not decodable.
        UsageError: not something that `add` takes.
    """
    if isinstance(source, AsyncIterable):
        async for item in source:
            for found in _each(item, glob, follow_links):
                yield found
    elif isinstance(source, Iterable) and not isinstance(source, str | bytes | bytearray | Mapping):
        for item in source:
            for found in _each(item, glob, follow_links):
                yield found
    else:
        for found in _one(source, glob, follow_links):
            yield found


def identified(document: Document) -> Document:
    """Normalise a document's text and give it an id if it has none.

    Raises:
        BadDocument: there is nothing to read in it, or its id or metadata cannot be stored.
    """
    _require_kept(document)
    try:
        clean = normalised(document)
    except UsageError as exc:
        named = document.id or document.title or "a document"
        raise BadDocument(f"metadata of {named}: {exc}") from None
    if not clean.text.strip():
        raise BadDocument(f"{document.id or document.title or 'the document'} is empty")
    if clean.id is not None:
        return clean
    return replace(clean, id=hashlib.sha256(clean.text.encode()).hexdigest()[:16])


def _require_kept(document: Document) -> None:
    """Refuse what no store keeps."""
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
    named = id or document.title or "a document"
    if not isinstance(document.metadata, Mapping):
        kind = type(document.metadata).__name__
        raise BadDocument(f"metadata of {named} are names with values, not a {kind}")
    for key, value in document.metadata.items():
        _require_value(f"metadata {key!r} of {named}", value, is_named=isinstance(key, str))


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


def _each(
    item: object, glob: str | None, follow_links: bool
) -> Iterator[Document | Refused | PassedOver]:
    try:
        yield from _one(item, glob, follow_links)
    except QrmemError as exc:
        yield Refused(_name(item), exc)


def _one(
    source: object, glob: str | None, follow_links: bool
) -> Iterator[Document | Refused | PassedOver]:
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
    if not str(given).strip():  # which would mean the present folder, with all that is in it
        raise UsageError("an empty path names no file and no folder; is a variable not set?")
    name = str(given)
    if re.match(r"[a-z]+://", name):
        raise BadDocument(f"{name} is a web address: save the page, then add the file")
    if ("\n" in name or name.count(" ") > _WORDS) and not _exists(name):
        start = " ".join(name.split())[:40]
        raise BadDocument(f"{start}… is a text, not a path: use add_text, or `qrmem add -`")
    return Path(given)


def _exists(name: str) -> bool:
    try:
        return Path(name).exists()
    except OSError:  # too long for a path
        return False


def _of_path(
    path: Path, glob: str | None, follow_links: bool
) -> Iterator[Document | Refused | PassedOver]:
    try:
        is_there, is_folder = path.exists(), path.is_dir()
    except OSError as exc:
        raise BadDocument(f"{path} cannot be read: {exc.strerror}") from exc
    if not is_there:
        raise BadDocument(f"no such file or folder: {path}")
    if not is_folder:
        yield from _of_file(path, Path(path.name))
        return
    count = 0
    discovered = files.discover(path, glob, follow_links=follow_links)
    if discovered.passed_over:
        yield PassedOver(discovered.passed_over)
    for folder, reason in discovered.unreadable:
        count += 1
        yield Refused(str(folder), BadDocument(f"{folder} cannot be read: {reason}"))
    for found in discovered:
        count += 1
        try:
            yield from _of_file(found, found.relative_to(path))
        except QrmemError as exc:
            yield Refused(str(found), exc)
    if not count:
        raise BadDocument(f"nothing to read in {path}" + (f" by {glob!r}" if glob else ""))


def _of_file(path: Path, relative: Path) -> Iterator[Document | Refused]:
    """Yield a file's document, and what of it could not be read."""
    document = files.read(path)
    name = unicodedata.normalize("NFC", relative.as_posix())
    title = name if CODE_KEY in document.metadata else document.title
    yield identified(file_document(replace(document, title=title), name))
    if left_out := document.metadata.get(LEFT_OUT):
        yield Refused(name, BadDocument(f"read without what is broken in it: {left_out}"))
