"""The state of an `add`: the stored form of its documents, and the work done so far."""

import asyncio
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TypeVar
from unicodedata import normalize

from qrmem.errors import UsageError
from qrmem.graphstore.protocol import GraphStore
from qrmem.graphstore.relations import folded_key
from qrmem.io.sources import FileDocument, Source
from qrmem.io.web_fetch import is_address
from qrmem.text.code.languages import CODE_KEY
from qrmem.types import AddReport, Document, DocumentInfo, Segment, Usage
from qrmem.types.turns import USER_KEY, is_read_by_rules, turn_number


class IngestState:
    """The stored documents, their texts, and which of them are done.

    A document is done when every segment is read and merged, and, if wanted, embedded and its
    relations are folded.
    """

    def __init__(
        self, store: GraphStore, ns: str, *, is_embedded: bool, is_folded: bool = False
    ) -> None:
        """Begin with no documents.

        Args:
            is_embedded: whether segments should have vectors.
            is_folded: whether a chat model should fold relations.
        """
        self._store = store
        self._ns = ns
        self._is_embedded = is_embedded
        self._is_folded = is_folded
        self._infos: dict[str, DocumentInfo] = {}
        self._done: set[str] = set()
        self._readers: dict[str, set[str]] = {}

    async def look(self, document_ids: Sequence[str]) -> None:
        """Look up some documents; this replaces earlier lookups."""
        self._infos, self._done, self._readers = {}, set(), {}
        infos = await self._store.documents(self._ns, document_ids)
        self._infos.update((info.id, info) for info in infos)
        read = [info for info in infos if not set(info.states) - {"ok"}]
        ids = [info.id for info in read]
        rows = await self._store.ledger(self._ns, *ids) if ids else ()
        merged = {row.segment_id for row in rows if row.merged}
        if self._is_embedded and merged:
            merged = set(await self._store.owners(self._ns, "segment", list(merged)))
        rows_left = iter(rows)
        for info in read:
            document_rows = list(islice(rows_left, info.segments))
            self._readers[info.id] = {row.reasoner for row in document_rows if row.reasoner}
            if merged.issuperset(row.segment_id for row in document_rows):
                self._done.add(info.id)
        if self._is_folded:
            keys = {folded_key(info.id, info.digest): info.id for info in read}
            folds = await self._store.cache_entries(self._ns, "fold", list(keys))
            self._done &= {keys[one.key] for one in folds}

    def info(self, document_id: str) -> DocumentInfo | None:
        """Return a document as `look` found it; `None` if it does not exist."""
        return self._infos.get(document_id)

    def digest(self, document_id: str) -> str | None:
        """Return the sha256 of a document's text as `look` found it; `None` if there is none."""
        info = self._infos.get(document_id)
        return info.digest if info else None

    def is_done(self, document_id: str) -> bool:
        """Whether a document needs no more work."""
        return document_id in self._done

    def readers(self, document_id: str) -> set[str]:
        """Return the reasoners that read a document; none if no model is to read it."""
        info = self._infos[document_id]
        is_unread = CODE_KEY in info.metadata or is_read_by_rules(document_id, info.metadata)
        return set() if is_unread else self._readers.get(document_id, set())

    def check_turn(self, document_id: str, *, may_begin: bool) -> None:
        """Refuse a turn that was not stored as one, and one whose id belongs to another document.

        Args:
            may_begin: whether a new turn is allowed.

        Raises:
            UsageError: it is one of these.
        """
        info = self.info(document_id)
        if info is not None and not turn_number(document_id, info.metadata):
            raise UsageError(
                f"document {document_id!r} already exists, and is not a turn or a fact of a turn:"
                " add it under another id, then delete it under this one"
            )
        if info is None and not may_begin:
            raise UsageError(
                f"document {document_id!r} has the id and the metadata of a turn: give it another"
                " id; add_messages and `qrmem chat add` keep turns"
            )

    def taken(self, document: Document, *, is_alone: bool) -> str:
        """Return the error that another text has a document's id: its file, and what to do.

        Args:
            is_alone: whether it is the only document, so that the user can give it another id.
        """
        info = self.info(document.id or "")
        was = info.metadata.get("source", "") if info else ""
        now = document.metadata.get("source", "")
        files = f", from {was}, and this one is from {now}" if was != now and was and now else ""
        both = "--id ID (id=) keeps both, " if is_alone else ""
        return (
            f"document {document.id!r} already exists with another text{files}:"
            f" {both}--update (update=True) replaces the old text"
        )


Found = TypeVar("Found")
_Known = tuple[str, str, str]
"""Path, sha256 and user of the stored document with an id."""


class FileIds:
    """Assigns ids to the files of one run; if another file has the id, a parent folder is added.

    A document belongs to another file if it has another path and another text, whether that file
    still exists or not. A file of the same user with the same text was moved: it is the same
    document.
    """

    def __init__(self, store: GraphStore, ns: str) -> None:
        self._store = store
        self._ns = ns
        self._given: dict[str, _Known] = {}
        self._stored: dict[str, _Known] = {}
        self._gone: set[str] = set()

    async def gone(self, source: Source, *, is_update: bool) -> tuple[str, ...]:
        """Return ids of documents whose file no longer exists; the user may want to delete them.

        These are documents below an updated folder, and documents for which a new file has the same
        name: their file may have been moved.
        """
        folders = await asyncio.to_thread(_folders, source) if is_update else ()
        if not folders and not self._gone:
            return ()
        stored = await self._store.documents(self._ns, None if folders else sorted(self._gone))
        asked = [
            one
            for one in stored
            if (one.id in self._gone or _source(one).startswith(folders))
            and one.id not in self._given  # the stored form of a name that is not UTF-8 is no path
        ]
        return tuple(await asyncio.to_thread(_without_file, asked))

    async def named(self, found: Sequence[Found]) -> list[Found | Document]:
        """Return the documents of a source with their final ids."""
        files = [one for one in found if isinstance(one, FileDocument)]
        ids = {id for one in files for id in (*_ids(one), *_shorter_ids(one))}
        stored = await self._store.documents(self._ns, ids) if ids else ()
        self._stored = {one.id: (_source(one), one.digest, _user(one)) for one in stored}
        return [await self._with_id(one) if isinstance(one, FileDocument) else one for one in found]

    async def _with_id(self, file: FileDocument) -> Document:
        id = await self._id(file)
        self._given[id] = _source(file), file.digest, _user(file)
        title = id if file.title == file.id else file.title  # the id of source code is its path
        return Document(file.text, title, id, file.metadata, file.parts)

    async def _id(self, file: FileDocument) -> str:
        source = _source(file)
        for id in (*_ids(file), *_shorter_ids(file)):
            if (one := self._known(id)) and one[0] == source:
                return id
        others: list[str] = []
        for id in _ids(file):
            if (one := self._known(id)) is None:
                self._gone.update(others)
                return id
            path, digest, user = one
            is_same = digest == file.digest and user == _user(file)
            if is_same or not await asyncio.to_thread(_is_another, path, source):
                return id
            others += [] if is_address(path) else [id]
        return file.id or ""

    def _known(self, id: str) -> _Known | None:
        return self._given.get(id) or self._stored.get(id)


def _user(document: Document | DocumentInfo) -> str:
    return str(document.metadata.get(USER_KEY, ""))


def _source(document: Document | DocumentInfo) -> str:
    return str(document.metadata.get("source", ""))


def _ids(file: FileDocument) -> Iterator[str]:
    """Yield a file's id, then ids with one parent folder more each."""
    id = file.id or ""
    yield id
    parts = Path(_source(file)).parts
    for size in range(id.count("/") + 2, len(parts) + 1):
        yield normalize("NFC", Path(*parts[-size:]).as_posix())


def _shorter_ids(file: FileDocument) -> Iterator[str]:
    """Yield shorter ids, which the file has if it was added from a folder further down."""
    parts = (file.id or "").split("/")
    for size in range(1, len(parts)):
        yield "/".join(parts[-size:])


def _is_another(known: str, own: str) -> bool:
    """Return whether two paths name different files; one that no longer exists is different."""
    try:
        return bool(known) and not os.path.samefile(known, own)
    except OSError:
        return True


def _folders(source: Source) -> tuple[str, ...]:
    """Return the given folders, in the form of their files' paths."""
    given = source if isinstance(source, list | tuple) else [source]
    paths = [os.path.abspath(one) for one in given if isinstance(one, str | Path)]
    return tuple(os.path.join(path, "") for path in paths if os.path.isdir(path))


def _without_file(documents: Sequence[DocumentInfo]) -> list[str]:
    return [one.id for one in documents if not os.path.exists(_source(one))]


@dataclass(slots=True)
class Tally:
    """The counts of a run so far."""

    added: list[str] = field(default_factory=list)
    updated: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    readers: set[str] = field(default_factory=set)
    left_out: int = 0
    dropped: tuple[tuple[str, int, str], ...] = ()
    boilerplate: int = 0
    resumed: list[str] = field(default_factory=list)
    reused: int = 0
    read: int = 0
    states: Counter[str] = field(default_factory=Counter)
    problems: list[tuple[str, int, str]] = field(default_factory=list)
    seen: dict[str, str] = field(default_factory=dict)
    changed: set[str] = field(default_factory=set)
    batch: list[str] = field(default_factory=list)
    source: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    undated: list[tuple[str, str]] = field(default_factory=list)
    held: list[tuple[Document, list[Segment]]] = field(default_factory=list)
    held_segments: int = 0
    batched: int = 0
    waiting: int = 0
    stopped: str = ""
    is_taken: bool = False
    passed_over: Counter[str] = field(default_factory=Counter)
    unparsed: list[str] = field(default_factory=list)
    gone: tuple[str, ...] = ()

    def report(self, usage: Usage, reader: str, seconds: float) -> AddReport:
        """Return the report of the run."""
        return AddReport(
            added=tuple(self.added),
            updated=tuple(self.updated),
            unchanged=tuple(self.unchanged),
            read=self.read,
            reused=self.reused,
            states=dict(self.states),
            problems=tuple(self.problems),
            usage=usage,
            seconds=seconds,
            resumed=tuple(self.resumed),
            stopped=self.stopped,
            warnings=tuple(self.warnings),
            passed_over=dict(self.passed_over),
            unparsed=tuple(dict.fromkeys(self.unparsed)),
            reader=reader,
            readers=tuple(sorted(self.readers)),
            left_out=self.left_out,
            dropped=self.dropped,
            boilerplate=self.boilerplate,
            gone=self.gone,
        )


def is_one_document(source: object) -> bool:
    """Return whether a source is a single document, so that a problem with it is an error."""
    if isinstance(source, str | Path):
        return not os.path.isdir(source)  # raises also if a parent folder may not be entered
    return isinstance(source, Document | Mapping)


def is_described_anew(document: Document, stored: DocumentInfo) -> bool:
    """Return whether title or metadata differ from the stored ones, with the same text."""
    return (stored.title, dict(stored.metadata)) != (document.title, dict(document.metadata))


def worker_losses(count: int) -> str:
    """Return a message about lost workers."""
    were = "1 worker was" if count == 1 else f"{count} workers were"
    return f"{were} lost during the run; the work was repeated"


def unread_dates(undated: Sequence[tuple[str, str]]) -> str:
    """Return a message about documents, with their `date`, that count as undated."""
    name, value = undated[0]
    first = f"{value[:40]!r} of {name}"
    said = (
        f"the dates of {len(undated)} documents cannot be read, first {first}, so they count"
        if undated[1:]
        else f"the date {first} cannot be read, so it counts"
    )
    return f"{said} as undated; dates are written as 2026-05-03, 2026-05, 1851 or 3 May 1923"
