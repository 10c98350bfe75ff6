"""Import of an archive into a store.

The whole archive is checked before the first write. The namespace is created with a token that
marks it as incomplete; nothing else opens it until the import is complete. So a stopped import
leaves no partial memory, and the next import starts again.

Only sources are written. The graph is merged from them, as after an `add`, for the documents that
were merged in the original. The entities in an archive are for other programs.
"""

import asyncio
import os
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, get_args

from qrmem.errors import QrmemError, UsageError, place
from qrmem.graph.merging import merge_documents
from qrmem.graphstore.checking import lost_import
from qrmem.graphstore.protocol import CacheEntry, CacheKind, GraphStore, NamespaceInfo, VectorKind
from qrmem.io.archive.file import ArchiveReader, ordered
from qrmem.io.archive.form import (
    DocumentLine,
    EntityLine,
    SegmentLine,
    VectorLine,
    cache_kind,
    decoded,
)
from qrmem.text.normalise import normalise_value
from qrmem.text.numbers import counted
from qrmem.text.tokens import BuiltinTokenizer
from qrmem.types import (
    Archived,
    CallRecord,
    Contribution,
    Document,
    Event,
    LedgerRow,
    Listener,
    MergeDecision,
    Segment,
    Trail,
)
from qrmem.types.turns import MOST_TURNS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_ROWS = 256
"""Number of contributions, vectors or calls per commit."""


async def import_archive(
    store: GraphStore,
    ns: str,
    path: str | os.PathLike[str],
    *,
    accept: Callable[[NamespaceInfo], NamespaceInfo],
    listener: Listener,
) -> Archived:
    """Create a namespace from an archive, completely or not at all.

    Args:
        store: the store.
        ns: a namespace that does not exist, is empty, or was left by a stopped import.
        path: the archive.
        accept: takes the archive's settings and returns those of the namespace, as an archive is
            not trusted to choose an embedder or tokenizer. Without its embedder the vectors are
            left out; with another tokenizer the tokens are counted again.
        listener: gets the events of the import.

    Raises:
        BadImport: the archive is truncated, altered or malformed.
        MissingError: a newer qrmem wrote it.
        UsageError: the namespace is not empty.
        StoreConflict: another import took over the namespace.
    """
    reader = await asyncio.to_thread(_looked_through, path)
    head, token = reader.head, uuid.uuid4().hex
    info_named = NamespaceInfo(
        name=ns,
        tokenizer=head.tokenizer,
        segment_tokens=head.segment_tokens,
        embedder=head.embedder,
        dimension=head.dimension,
        importing=token,
        single=head.single,
        turns=min(max(head.turns, 0), MOST_TURNS),
    )
    info = accept(info_named)
    filling = _Filling(store, info, listener, counted=info.tokenizer == info_named.tokenizer)
    try:
        await _claim(store, ns, info)
        for kind, value in ordered(reader):
            await filling.take(kind, value)
        await filling.end()
        await store.finish_import(ns, token)
    except BaseException:
        # If the store is unavailable, too, the token stays, and the next import starts again.
        with suppress(QrmemError):
            await store.delete_namespace(ns, importing=token)
        raise
    counts = await store.counts(ns)
    return Archived(
        str(path),
        len(filling.documents),
        filling.segments,
        counts["entities"],
        reader.end.sha256,
    )


def _looked_through(path: str | os.PathLike[str]) -> ArchiveReader:
    """Return the reader of an archive after a check of every line."""
    reader = ArchiveReader.open(path)
    for _ in ordered(reader):
        pass
    return reader


async def _claim(store: GraphStore, ns: str, info: NamespaceInfo) -> None:
    """Create the namespace for this import."""
    there = await store.namespace(ns)
    if there is not None:
        if not there.importing:
            await _require_empty(store, ns)
        await store.delete_namespace(ns, importing=there.importing)
        info = replace(info, turns=max(info.turns, there.turns))
    info_made = await store.create_namespace(ns, info)
    if info_made.importing != info.importing:
        raise lost_import(ns)


async def _require_empty(store: GraphStore, ns: str) -> None:
    counts = await store.counts(ns)
    cached = [await store.cache_keys(ns, kind) for kind in get_args(CacheKind)]
    rest = ((await store.unmerged(ns)).decisions, await store.calls(ns), *cached)
    if any(counts.values()) or any(rest):
        raise UsageError(
            f"namespace {ns!r} of {store.location} is not empty"
            f" ({counted(counts['documents'], 'documents')}): import into another one"
            f" (--namespace NAME), or delete this one first"
            f" (qrmem delete --all{place(store.location, ns)})"
        )


class _Filling:
    """Writes the lines to a namespace in order; `end` writes the rest.

    Attributes:
        documents: ids of the written documents.
        segments: number of written segments.
    """

    def __init__(
        self,
        store: GraphStore,
        info: NamespaceInfo,
        listener: Listener,
        *,
        counted: bool,
    ) -> None:
        self.documents: list[str] = []
        self.segments = 0
        self._store, self._ns, self._info = store, info.name, info
        self._listener = listener
        self._count = None if counted else BuiltinTokenizer().count
        self._document: DocumentLine | None = None
        self._lines: list[SegmentLine] = []
        self._states: dict[str, LedgerRow] = {}
        self._rows: list[tuple[LedgerRow, Contribution | None]] = []
        self._vectors: dict[VectorKind, list[tuple[str, NDArray[np.float32]]]] = {}
        self._calls: list[CallRecord] = []
        self._in_graph: list[str] = []
        self._is_merged = False

    async def take(self, kind: str, value: Any) -> None:
        """Write the next line, or buffer it."""
        if not isinstance(value, SegmentLine):
            await self._put_document()
        match value:
            case DocumentLine():
                self._document, self._lines, self._states = value, [], {}
            case SegmentLine():
                self._lines.append(value)
                row = LedgerRow(value.id, value.state, value.reason, value.reasoner)
                self._states[value.id] = row
            case Contribution():
                self._rows.append((self._states[value.segment_id], value))
            case VectorLine() if self._info.dimension:
                vectors_of_kind = self._vectors.setdefault(
                    "segment" if kind == "vector" else "relation", []
                )
                vectors_of_kind.append((value.owner, decoded(value, self._info.dimension)))
            case MergeDecision():
                await self._store.override_merge(self._ns, value)
            case CacheEntry():
                await self._merge()
                of = cache_kind(kind, value.key)
                await self._store.put_cache_entry(
                    self._ns, of, value.key, value.value, segments=value.segments
                )
            case Trail():
                await self._merge()
                await self._store.put_trail(self._ns, value)
            case CallRecord():
                self._calls.append(value)
            case EntityLine() | VectorLine():
                pass
        vectors = max(map(len, self._vectors.values()), default=0)
        if max(len(self._rows), len(self._calls), vectors) >= _ROWS:
            await self._flush()

    async def end(self) -> None:
        """Write the buffered rest."""
        await self._put_document()
        await self._merge()
        await self._flush()

    async def _put_document(self) -> None:
        """Write the preceding document when all its segments are known."""
        line, self._document = self._document, None
        if line is None:
            return
        metadata = {name: normalise_value(name, value) for name, value in line.metadata.items()}
        document = Document(line.text, line.title, line.id, metadata, line.parts)
        segments = [self._segment(line, index, each) for index, each in enumerate(self._lines)]
        await self._store.put_documents(self._ns, [(document, segments)])
        if line.summary:
            await self._store.record(self._ns, (), summaries={line.id: line.summary})
        self._rows += [(row, None) for row in self._states.values() if row.state != "pending"]
        self.documents.append(line.id)
        if any(each.merged for each in self._lines):
            self._in_graph.append(line.id)
        self.segments += len(segments)
        for kind, count in (("document", "segments"), ("segment", "count")):
            self._listener(Event(kind, {"id": line.id, count: len(segments)}))

    def _segment(self, document: DocumentLine, index: int, line: SegmentLine) -> Segment:
        text = document.text[line.start : line.end]
        return Segment(
            id=line.id,
            document_id=document.id,
            index=index,
            start=line.start,
            end=line.end,
            text=text,
            tokens=self._count(text) if self._count else line.tokens,
            part=line.part,
        )

    async def _flush(self) -> None:
        """Commit the buffered rows."""
        import numpy as np

        info = await self._store.namespace(self._ns)
        if info is None or info.importing != self._info.importing:
            raise lost_import(self._ns)
        rows, vectors, calls = self._rows, self._vectors, self._calls
        self._rows, self._vectors, self._calls = [], {}, []
        if rows:
            await self._store.record(self._ns, rows)
        for kind, vectors_of_kind in vectors.items():
            owners = [owner for owner, matrix in vectors_of_kind for _ in matrix]
            matrix = np.concatenate([matrix for _, matrix in vectors_of_kind])
            await self._store.put_vectors(self._ns, kind, owners, matrix)
        if calls:
            await self._store.record(self._ns, (), calls)

    async def _merge(self) -> None:
        """Merge the graph for the documents that were merged in the original, once."""
        if self._is_merged:
            return
        await self._flush()
        self._is_merged = True
        self._listener(Event("phase", {"phase": "merging"}))
        await merge_documents(self._store, self._ns, self._in_graph)
