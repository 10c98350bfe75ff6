"""The store's face: every method hands its work to the thread that owns the connection."""

# ruff: noqa: D102 (what a method does is said once, in `GraphStore`)

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

from qrmem.graphstore.protocol import (
    Around,
    Change,
    EntityCount,
    Entry,
    Kept,
    NameFilter,
    NameRow,
    NamespaceInfo,
    Titled,
    Unmerged,
    VectorKind,
    Vectors,
    Vocabulary,
)
from qrmem.graphstore.sqlite import (
    changes,
    documents,
    facts,
    removal,
    runs,
    vectors,
    view,
    words,
)
from qrmem.graphstore.sqlite.around import around
from qrmem.graphstore.sqlite.connection import Opening, Worker
from qrmem.graphstore.sqlite.errors import refused_write
from qrmem.types import (
    CallRecord,
    Contribution,
    Document,
    DocumentInfo,
    Entity,
    Fact,
    LedgerRow,
    MergeDecision,
    Question,
    Segment,
    Trail,
)

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

P = ParamSpec("P")
R = TypeVar("R")


class SqliteStore:
    """A file of memories; what each method does is said in `GraphStore`."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._copies = vectors.Copies(worker.path, may_write=not worker.is_read_only)

    @classmethod
    async def open(cls, path: str | Path, opening: Opening | None = None) -> Self:
        """Open a file, or make it.

        Raises:
            NotFound: there is no memory, and none is to be made.
            UsageError: the file is something else.
            MissingError: it was made by a newer qrmem.
        """
        worker = Worker(Path(path), opening or Opening())
        await worker.open()
        return cls(worker)

    @property
    def is_read_only(self) -> bool:
        return self._worker.is_read_only

    @property
    def location(self) -> str:
        return self._worker.location

    async def close(self) -> None:
        await self._worker.close()

    async def _write(
        self,
        work: "Callable[Concatenate[sqlite3.Connection, P], R]",
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> R:
        if self.is_read_only:
            raise refused_write(self.location)
        return await self._worker.write(work, *args, **kwargs)

    # --- namespaces ---------------------------------------------------------------------------

    async def namespaces(self) -> Sequence[str]:
        return await self._worker.read(documents.namespaces)

    async def namespace(self, ns: str) -> NamespaceInfo | None:
        return await self._worker.read(documents.namespace, ns)

    async def create_namespace(self, ns: str, info: NamespaceInfo) -> NamespaceInfo:
        found = await self.namespace(ns)
        if found is not None:
            return found
        return await self._write(documents.create_namespace, ns, info)

    async def finish_import(self, ns: str, token: str) -> None:
        await self._write(documents.finish_import, ns, token)

    async def set_embedder(self, ns: str, embedder: str, dimension: int) -> None:
        await self._write(vectors.set_embedder, ns, embedder, dimension)
        await self._worker.read(self._copies.forget)

    async def delete_namespace(self, ns: str, *, importing: str | None = None) -> None:
        await self._write(removal.delete_namespace, ns, importing)
        await self._worker.read(self._copies.forget)

    # --- facts --------------------------------------------------------------------------------

    async def put_documents(
        self,
        ns: str,
        written: Sequence[tuple[Document, Sequence[Segment]]],
        *,
        anew: bool = False,
    ) -> None:
        await self._write(documents.put_documents, ns, written, anew=anew)
        await self._worker.read(self._copies.forget)

    async def document(self, ns: str, document_id: str) -> Document | None:
        return await self._worker.read(documents.document, ns, document_id)

    async def documents(self, ns: str, ids: Sequence[str] | None = None) -> Sequence[DocumentInfo]:
        return await self._worker.read(documents.documents, ns, ids)

    async def states(self, ns: str) -> Mapping[str, int]:
        return await self._worker.read(documents.states, ns)

    async def last_document(self, ns: str, prefix: str) -> str | None:
        return await self._worker.read(documents.last_document, ns, prefix)

    async def document_texts(self, ns: str, ids: Sequence[str] | None = None) -> Mapping[str, str]:
        return await self._worker.read(documents.document_texts, ns, ids)

    async def set_summary(self, ns: str, document_id: str, summary: str) -> None:
        await self._write(documents.set_summary, ns, document_id, summary)

    async def delete_document(self, ns: str, document_id: str) -> None:
        await self._write(documents.delete_document, ns, document_id)
        await self._worker.read(self._copies.forget)

    async def segments(self, ns: str, ids: Sequence[str]) -> Sequence[Segment]:
        return await self._worker.read(documents.segments, ns, ids)

    async def segments_of(self, ns: str, *document_ids: str) -> Sequence[Segment]:
        return await self._worker.read(documents.segments_of, ns, document_ids)

    async def ledger(self, ns: str, *document_ids: str) -> Sequence[LedgerRow]:
        return await self._worker.read(facts.ledger, ns, document_ids)

    async def record(
        self,
        ns: str,
        rows: Sequence[tuple[LedgerRow, Contribution | None]],
        calls: Sequence[CallRecord] = (),
    ) -> None:
        await self._write(facts.record, ns, rows, calls)

    async def contributions(
        self, ns: str, *document_ids: str, kinds: Sequence[str] = ("extraction", "supplement")
    ) -> Sequence[Contribution]:
        return await self._worker.read(facts.contributions, ns, document_ids, kinds)

    async def decide(self, ns: str, decision: MergeDecision) -> None:
        await self._write(facts.decide, ns, decision)

    async def decisions(self, ns: str) -> Sequence[MergeDecision]:
        return await self._worker.read(facts.decisions, ns)

    # --- the view -----------------------------------------------------------------------------

    async def apply(self, ns: str, revision: int, change: Change) -> int:
        return await self._write(changes.apply, ns, revision, change)

    async def clear_view(self, ns: str) -> None:
        info = await self.namespace(ns)
        if info is not None:
            ids = [row.segment_id for row in await self.ledger(ns)]
            await self.apply(ns, info.revision, Change(clear=ids))

    async def merged_segments(self, ns: str, *document_ids: str) -> Mapping[str, str]:
        return await self._worker.read(view.merged_segments, ns, document_ids)

    async def unmerged(self, ns: str, *document_ids: str) -> Unmerged:
        return await self._worker.read(facts.unmerged, ns, document_ids)

    async def names(self, ns: str, wanted: NameFilter | None = None) -> Sequence[NameRow]:
        return await self._worker.read(view.names, ns, wanted)

    async def entities(self, ns: str, keys: Sequence[str]) -> Sequence[Entity]:
        return await self._worker.read(view.entities, ns, keys)

    async def list_entities(self, ns: str, limit: int = 100) -> Sequence[EntityCount]:
        return await self._worker.read(view.list_entities, ns, limit)

    async def entities_in(self, ns: str, segment_ids: Sequence[str]) -> Mapping[str, Sequence[str]]:
        return await self._worker.read(view.entities_in, ns, segment_ids)

    async def segments_with(
        self, ns: str, keys: Sequence[str], most: int | None = None
    ) -> Mapping[str, Sequence[str]]:
        return await self._worker.read(view.segments_with, ns, keys, most)

    async def facts(self, ns: str, keys: Sequence[str]) -> Sequence[Fact]:
        return await self._worker.read(view.facts, ns, keys)

    async def around(self, ns: str, keys: Sequence[str], *, texts: bool = False) -> Around:
        return await self._worker.read(around, ns, keys, texts)

    async def questions(
        self, ns: str, segment_ids: Sequence[str] | None = None
    ) -> Sequence[Question]:
        return await self._worker.read(view.questions, ns, segment_ids)

    async def counts(self, ns: str) -> Mapping[str, int]:
        return await self._worker.read(view.counts, ns)

    async def fact_counts(self, ns: str, ids: Sequence[str] | None = None) -> Mapping[str, int]:
        return await self._worker.read(view.fact_counts, ns, ids)

    # --- search -------------------------------------------------------------------------------

    async def vocabulary(self, ns: str, terms: Sequence[str]) -> Vocabulary:
        return await self._worker.read(words.vocabulary, ns, terms)

    async def matching(
        self,
        ns: str,
        groups: Sequence[Sequence[str]],
        limit: int,
        documents: Collection[str] | None = None,
    ) -> Sequence[str]:
        return await self._worker.read(words.matching, ns, groups, limit, documents)

    async def nearest(
        self,
        ns: str,
        vector: "NDArray[np.float32]",
        limit: int,
        *,
        documents: Collection[str] | None = None,
        among: Sequence[str] | None = None,
    ) -> Mapping[str, float]:
        return await self._worker.read(self._copies.nearest, ns, vector, limit, documents, among)

    async def entries(self, ns: str, segment_ids: Sequence[str]) -> Sequence[Entry]:
        return await self._worker.read(words.entries, ns, segment_ids)

    async def indexed(self, ns: str) -> Sequence[str]:
        return await self._worker.read(words.indexed, ns)

    async def titled(
        self, ns: str, names: Sequence[str], first: int = 3
    ) -> Mapping[str, Sequence[Titled]]:
        return await self._worker.read(words.titled, ns, names, first)

    async def named_in(
        self, ns: str, segment_ids: Sequence[str]
    ) -> Mapping[str, Sequence[tuple[str, str]]]:
        return await self._worker.read(words.named_in, ns, segment_ids)

    async def shared_entities(
        self, ns: str, segment_ids: Sequence[str], most: int
    ) -> Mapping[str, tuple[Sequence[str], int]]:
        return await self._worker.read(view.shared_entities, ns, segment_ids, most)

    async def put_vectors(
        self, ns: str, kind: VectorKind, owners: Sequence[str], matrix: "NDArray[np.float32]"
    ) -> None:
        await self._write(vectors.put, ns, kind, owners, matrix)

    async def vectors(
        self, ns: str, kind: VectorKind, owners: Sequence[str] | None = None
    ) -> Vectors:
        return await self._worker.read(vectors.read, ns, kind, owners)

    async def owners(self, ns: str, kind: VectorKind) -> Sequence[str]:
        return await self._worker.read(vectors.owners, ns, kind)

    # --- what runs leave behind ---------------------------------------------------------------

    async def put_trail(self, ns: str, trail: Trail) -> None:
        await self._write(runs.put_trail, ns, trail)

    async def trails(self, ns: str, limit: int = 20, *, id: str | None = None) -> Sequence[Trail]:
        return await self._worker.read(runs.trails, ns, limit, id)

    async def put_calls(self, ns: str, calls: Sequence[CallRecord]) -> None:
        await self._write(runs.put_calls, ns, calls)

    async def calls(self, ns: str) -> Sequence[CallRecord]:
        return await self._worker.read(runs.calls, ns)

    async def put_cached(
        self,
        ns: str,
        key: str,
        value: Mapping[str, Any],
        *,
        segment_id: str = "",
        segments: Sequence[str] = (),
        calls: Sequence[CallRecord] = (),
    ) -> None:
        ties = {*segments, segment_id} - {""}
        await self._write(runs.put_cached, ns, key, value, ties, calls)

    async def kept_keys(self, ns: str) -> Sequence[str]:
        return await self._worker.read(runs.kept_keys, ns)

    async def kept(self, ns: str, keys: Sequence[str]) -> Sequence[Kept]:
        return await self._worker.read(runs.kept, ns, keys)

    async def drop_kept(self, ns: str, keys: Sequence[str]) -> None:
        await self._write(runs.drop_kept, ns, keys)
