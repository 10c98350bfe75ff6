"""Namespaces, documents and their segments."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from operator import itemgetter

from qrmem.errors import NotFound
from qrmem.graphstore.checking import check_segment_ids, checked_documents, lost_import
from qrmem.graphstore.codec import dumps, loads
from qrmem.graphstore.neo4j import removal
from qrmem.graphstore.neo4j.connection import Row, Work
from qrmem.graphstore.neo4j.keys import full, in_order, numbered, short
from qrmem.graphstore.protocol import NamespaceInfo
from qrmem.types import Document, DocumentInfo, Part, Segment


async def namespaces(work: Work) -> list[str]:
    """Return all names, sorted."""
    return sorted(name for (name,) in await work.rows("namespaces.all"))


async def namespace(work: Work) -> NamespaceInfo | None:
    """Return what a namespace was made with."""
    row = await work.row("namespaces.get")
    return NamespaceInfo(*row) if row else None


async def create_namespace(work: Work, info: NamespaceInfo) -> NamespaceInfo:
    """Make a namespace unless it is there; return what is there."""
    await work.run(
        "namespaces.create",
        full=full(work.ns),
        tokenizer=info.tokenizer,
        segment_tokens=info.segment_tokens,
        embedder=info.embedder,
        dimension=info.dimension,
        importing=info.importing,
    )
    made = await namespace(work)
    if made is None:
        raise NotFound(f"namespace {work.ns!r} is being deleted")
    return made


async def finish_import(work: Work, token: str) -> None:
    """Declare a namespace whole."""
    if not token or not await work.rows("namespaces.finish_import", token=token):
        raise lost_import(work.ns)


async def put_documents(
    work: Work,
    written: Sequence[tuple[Document, Sequence[Segment]]],
    *,
    anew: bool = False,
) -> None:
    """Write documents and their segments; what hangs on segments that are gone goes."""
    await work.lock()
    checked = checked_documents(written)
    if anew:
        for id_, _, _ in checked:
            await delete_document(work, id_)
    wanted = [[short(s.id), id_] for id_, _, segments in checked for s in segments]
    for id_, taken in await work.each("documents.taken", sorted(wanted)):
        check_segment_ids(id_, [taken])
    keys = [short(id_) for id_, _, _ in checked]
    there = set(await work.gathered("documents.existing", keys))
    old = {segment for (segment,) in await work.each("documents.segment_ids", sorted(there))}
    new = {segment.id for _, _, segments in checked for segment in segments}
    await removal.drop_segments(work, old - new)
    rows = [_row(id_, document, segments) for id_, document, segments in checked]
    await work.each("documents.put", rows)
    await _put_segments(work, checked, old & new)
    await work.each("documents.unchain", sorted(there))
    await work.each("documents.chain", _chained(checked))
    if there:
        await work.run("namespaces.raise_revision")


def _row(id_: str, document: Document, segments: Sequence[Segment]) -> Row:
    text = document.text
    is_covered = "".join(segment.text for segment in segments) == text
    digest = hashlib.sha256(text.encode()).hexdigest()
    details = document.title, dumps(document.metadata), dumps(document.parts)
    return [short(id_), full(id_), *details, len(text), digest, None if is_covered else text]


async def _put_segments(
    work: Work, checked: Sequence[tuple[str, Document, Sequence[Segment]]], kept: set[str]
) -> None:
    fresh: list[Row] = []
    known: list[Row] = []
    for id_, _, segments in checked:
        for s in segments:
            row = [short(s.id), full(s.id), s.index, s.start, s.end, s.text, s.tokens, s.part]
            (known if s.id in kept else fresh).append([short(id_), id_, *row])
    await work.each("documents.add_segments", fresh)
    await work.each("documents.update_segments", known)


def _chained(checked: Sequence[tuple[str, Document, Sequence[Segment]]]) -> list[list[str]]:
    """Return the keys of each two segments that follow each other."""
    pairs = []
    for _, _, segments in checked:
        ordered = [short(s.id) for s in sorted(segments, key=lambda s: s.index)]
        pairs += [list(pair) for pair in pairwise(ordered)]
    return pairs


async def document(work: Work, document_id: str) -> Document | None:
    """Return a document with its text."""
    key = short(document_id)
    row = await work.row("documents.get", key=key)
    if row is None:
        return None
    title, metadata, parts, text = row
    if text is None:
        text = "".join(part for _, part in sorted(await work.rows("documents.texts", key=key)))
    return Document(
        text=text,
        title=title,
        id=document_id,
        metadata=json.loads(metadata),
        parts=loads(parts, tuple[Part, ...]),
    )


async def documents(work: Work) -> list[DocumentInfo]:
    """Return all documents without their texts, by id."""
    return [
        DocumentInfo(
            id=id_,
            title=title,
            metadata=json.loads(metadata),
            characters=characters,
            segments=sum(number for _, number in states),
            states=dict(states),
            summary=summary,
        )
        for id_, title, metadata, characters, summary, states in sorted(
            await work.rows("documents.all"), key=lambda row: row[0]
        )
    ]


async def document_texts(work: Work) -> Mapping[str, str]:
    """Return sha256 of the text by document id."""
    return dict(sorted(await work.rows("documents.digests")))


async def set_summary(work: Work, document_id: str, summary: str) -> None:
    """Freeze a document's summary."""
    await work.lock()
    if not await work.rows("documents.set_summary", key=short(document_id), summary=summary):
        raise NotFound(f"there is no document {document_id!r} in namespace {work.ns!r}")


async def delete_document(work: Work, document_id: str) -> None:
    """Remove a document with all that hangs on it; harmless if there is none."""
    if await namespace(work) is None:
        return
    await work.lock()
    key = short(document_id)
    if not await work.gathered("documents.existing", [key]):
        return
    gone = {segment for (segment,) in await work.each("documents.segment_ids", [key])}
    await removal.drop_segments(work, gone)
    await work.run("documents.drop", key=key)
    await work.run("namespaces.raise_revision")


async def segments(work: Work, ids: Sequence[str]) -> list[Segment]:
    """Return segments in the order of the ids."""
    rows = await work.each("documents.segments", sorted({short(id_) for id_ in ids}))
    return in_order(ids, {row[0]: Segment(*row) for row in rows})


async def segments_of(work: Work, document_ids: Sequence[str]) -> list[Segment]:
    """Return some documents' segments in order."""
    rows = await work.each("documents.segments_of", numbered(document_ids))
    return [Segment(*row[1:]) for row in sorted(rows, key=itemgetter(0, 3))]
