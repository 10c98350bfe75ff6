"""Export of a namespace to an archive: sources, entities and, on request, records of runs.

The order of lines depends on keys only, so equal memories give equal bytes. Of the view an archive
has only what does not follow from the sources: the names of each entity, and the segments and
questions in the graph.
"""

import asyncio
import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from qrmem.errors import NotFound, StoreConflict, StoreUnavailable
from qrmem.graphstore.protocol import MERGED, CacheKind, GraphStore, NamespaceInfo, VectorKind
from qrmem.graphstore.reads import current_folds, every_trail
from qrmem.io.archive.file import Writer
from qrmem.io.archive.form import (
    HEAD,
    VERSION,
    DocumentLine,
    EntityLine,
    Head,
    SegmentLine,
    VectorLine,
    encoded,
)
from qrmem.llm.parallel import in_batches
from qrmem.types import Archived, Document, DocumentInfo, LedgerRow, Segment

_BATCH = 256
_ALL = 2**31 - 1
_PASSES = (*MERGED, "oriented")


async def export_archive(
    store: GraphStore,
    ns: str,
    path: str | os.PathLike[str],
    *,
    runs: bool = False,
    overwrite: bool = False,
) -> Archived:
    """Write a namespace to a file; it appears when the archive is complete.

    Args:
        store: the store.
        ns: the namespace.
        path: the file.
        runs: also write trails, the ledger of calls and cached replies.
        overwrite: replace an existing archive.

    Raises:
        NotFound: the namespace does not exist.
        StoreConflict: another writer changed it meanwhile.
        StoreUnavailable: the store cannot be read, or the file cannot be written.
    """
    before = await _state(store, ns, runs=runs)
    info = before.info
    head = Head(
        VERSION,
        info.tokenizer,
        info.segment_tokens,
        info.embedder,
        info.dimension,
        runs=runs,
        single=info.single,
        turns=info.turns,
    )
    with Writer(path, overwrite=overwrite) as out:
        out.write(HEAD, head)
        segments = await _write_documents(store, ns, out, before)
        entities = await _write_graph(store, ns, out)
        if runs:
            await _write_runs(store, ns, out)
        if await _state(store, ns, runs=runs) != before:
            raise StoreConflict(f"namespace {ns!r} changed while it was exported; export it again")
        checksum = out.finish()
    return Archived(str(path), len(before.documents), segments, entities, checksum)


@dataclass(frozen=True, slots=True)
class _State:
    """The state of a namespace, to detect changes."""

    info: NamespaceInfo
    documents: Sequence[DocumentInfo]
    ledger: Mapping[str, LedgerRow]
    counts: Mapping[str, int]
    rest: tuple[Any, ...]


async def _state(store: GraphStore, ns: str, *, runs: bool) -> _State:
    info = await store.namespace(ns)
    if info is None:
        raise NotFound(f"no namespace {ns!r} in {store.location}")
    counts = dict(await store.counts(ns))
    return _State(
        info=info,
        documents=list(await store.documents(ns)),
        ledger={row.segment_id: row for row in await store.ledger(ns)},
        counts=counts if runs else counts | {"trails": 0},
        rest=(list((await store.unmerged(ns)).decisions), len(await store.owners(ns, "segment"))),
    )


# --- documents -----------------------------------------------------------------------------------


async def _write_documents(store: GraphStore, ns: str, out: Writer, state: _State) -> int:
    """Write all documents with their segments' data; return the number of segments."""
    accepted: defaultdict[str, list[str]] = defaultdict(list)
    for question in await store.questions(ns):
        accepted[question.segment_id].append(question.text)
    count = 0
    for info in state.documents:
        document, segments, contributions = await asyncio.gather(
            store.document(ns, info.id),
            store.segments(ns, documents=[info.id]),
            store.contributions(ns, info.id, kinds=_PASSES),
        )
        if document is None:
            raise StoreConflict(f"document {info.id!r} was deleted while it was exported")
        _check_document(store, document, info)
        out.write("document", _document_line(document, info))
        for segment in segments:
            _check_text(store, segment, document)
            row = state.ledger.get(segment.id, LedgerRow(segment.id, "pending"))
            out.write("segment", _segment_line(segment, row, tuple(accepted[segment.id])))
        for contribution in contributions:
            out.write("contribution", contribution)
        ids = [segment.id for segment in segments]
        await _write_vectors(store, ns, out, "segment", ids)
        count += len(segments)
    return count


def _document_line(document: Document, info: DocumentInfo) -> DocumentLine:
    return DocumentLine(
        id=info.id,
        text=document.text,
        title=document.title,
        metadata=document.metadata,
        parts=document.parts,
        summary=info.summary,
    )


def _segment_line(segment: Segment, row: LedgerRow, questions: tuple[str, ...]) -> SegmentLine:
    return SegmentLine(
        id=segment.id,
        start=segment.start,
        end=segment.end,
        tokens=segment.tokens,
        part=segment.part,
        state=row.state,
        reason=row.reason,
        reasoner=row.reasoner,
        merged=row.merged,
        questions=questions,
    )


def _check_document(store: GraphStore, document: Document, info: DocumentInfo) -> None:
    if document.digest != info.digest:
        raise StoreUnavailable(
            f"{store.location} is damaged: the text of {info.id!r} is not what was added; add it"
            " again with --rebuild, or delete it, then export again"
        )


def _check_text(store: GraphStore, segment: Segment, document: Document) -> None:
    if document.text[segment.start : segment.end] != segment.text:
        raise StoreUnavailable(
            f"{store.location} is damaged: segment {segment.id!r} is not part of {document.id!r}"
        )


async def _write_vectors(
    store: GraphStore, ns: str, out: Writer, kind: VectorKind, owners: Sequence[str]
) -> None:
    """Write the vectors of some owners, in their order."""
    name = "vector" if kind == "segment" else "relation"
    for some in in_batches(owners, _BATCH):
        vectors = await store.vectors(ns, kind, some)
        owner_vectors = zip(vectors.owners, vectors.matrix, strict=True)
        for owner, rows in groupby(owner_vectors, key=lambda pair: pair[0]):
            out.write(name, VectorLine(owner, tuple(encoded(row) for _, row in rows)))


# --- the graph and the runs ----------------------------------------------------------------------


async def _write_graph(store: GraphStore, ns: str, out: Writer) -> int:
    """Write decisions, entities and folded descriptions; return the number of entities."""
    for decision in (await store.unmerged(ns)).decisions:
        out.write("decision", decision)
    names: defaultdict[str, list[str]] = defaultdict(list)
    for row in await store.names(ns):
        names[row.entity].append(row.key)
    entities = await store.list_entities(ns, _ALL)
    for entity in sorted(entities, key=lambda entity: entity.key):
        names_of_entity = tuple(sorted(names[entity.key]))
        out.write("entity", EntityLine(entity.key, entity.name, entity.type, names_of_entity))
    if folded := await store.cache_keys(ns, "fold"):
        current = await current_folds(store, ns)
        await _write_cached(store, ns, out, "fold", [key for key in folded if key in current])
    for kind in ("tree", "facts", "judgement"):
        await _write_cached(store, ns, out, kind, await store.cache_keys(ns, kind))
    return len(entities)


async def _write_cached(
    store: GraphStore, ns: str, out: Writer, kind: CacheKind, keys: Sequence[str]
) -> None:
    for some in in_batches(keys, _BATCH):
        for entry in await store.cache_entries(ns, kind, some):
            out.write("reply" if kind == "raw" else kind, entry)


async def _write_runs(store: GraphStore, ns: str, out: Writer) -> None:
    async for trail in every_trail(store, ns):
        out.write("trail", trail)
    for call in await store.calls(ns):
        out.write("call", call)
    for kind in ("reply", "raw"):  # in the order of their keys: a hash comes before `raw:`
        await _write_cached(store, ns, out, kind, await store.cache_keys(ns, kind))
    await _write_vectors(store, ns, out, "relation", await store.owners(ns, "relation"))
