"""Namespaces, documents and their segments."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from itertools import pairwise

from qrmem.errors import NotFound
from qrmem.graphstore.checking import check_document, check_segment_ids, lost_import
from qrmem.graphstore.codec import dumps, loads
from qrmem.graphstore.neo4j import removal
from qrmem.graphstore.neo4j.connection import Work
from qrmem.graphstore.neo4j.keys import full, in_order, short
from qrmem.graphstore.protocol import NamespaceInfo
from qrmem.records import Document, DocumentInfo, Part, Segment


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


async def put_document(
    work: Work, document: Document, segments: Sequence[Segment], *, anew: bool = False
) -> None:
    """Write a document and its segments; what hangs on segments that are gone goes."""
    await work.lock()
    id_ = check_document(document, segments)
    if anew:
        await delete_document(work, id_)
    new = {segment.id for segment in segments}
    taken = await work.each("documents.taken", sorted(map(short, new)), document=id_)
    check_segment_ids(id_, (segment for (segment,) in taken))
    was_there = await work.row("documents.exists", key=short(id_)) is not None
    old = {segment for (segment,) in await work.rows("documents.segment_ids", key=short(id_))}
    await removal.drop_segments(work, old - new)
    await _put(work, id_, document, segments)
    await _put_segments(work, id_, segments, old & new)
    if was_there:
        await work.run("namespaces.raise_revision")


async def _put(work: Work, id_: str, document: Document, segments: Sequence[Segment]) -> None:
    text = document.text
    is_covered = "".join(segment.text for segment in segments) == text
    await work.run(
        "documents.put",
        key=short(id_),
        full=full(id_),
        title=document.title,
        metadata=dumps(document.metadata),
        parts=dumps(document.parts),
        characters=len(text),
        digest=hashlib.sha256(text.encode()).hexdigest(),
        text=None if is_covered else text,
    )


async def _put_segments(work: Work, id_: str, segments: Sequence[Segment], kept: set[str]) -> None:
    rows = {
        s.id: [short(s.id), full(s.id), s.index, s.start, s.end, s.text, s.tokens, s.part]
        for s in segments
    }
    fresh = [row for key, row in rows.items() if key not in kept]
    await work.each("documents.add_segments", fresh, document_key=short(id_), document=id_)
    await work.each("documents.update_segments", [row for key, row in rows.items() if key in kept])
    await work.run("documents.unchain", key=short(id_))
    ordered = [short(s.id) for s in sorted(segments, key=lambda s: s.index)]
    await work.each("documents.chain", [list(pair) for pair in pairwise(ordered)])


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
    if await work.row("documents.exists", key=key) is None:
        return
    gone = {segment for (segment,) in await work.rows("documents.segment_ids", key=key)}
    await removal.drop_segments(work, gone)
    await work.run("documents.drop", key=key)
    await work.run("namespaces.raise_revision")


async def segments(work: Work, ids: Sequence[str]) -> list[Segment]:
    """Return segments in the order of the ids."""
    rows = await work.each("documents.segments", sorted({short(id_) for id_ in ids}))
    return in_order(ids, {row[0]: Segment(*row) for row in rows})


async def segments_of(work: Work, document_id: str) -> list[Segment]:
    """Return a document's segments in order."""
    rows = await work.rows("documents.segments_of", key=short(document_id))
    return sorted((Segment(*row) for row in rows), key=lambda segment: segment.index)
