"""Namespaces, documents and their segments."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from operator import attrgetter, itemgetter

from qrmem.errors import NotFound
from qrmem.graphstore.checking import (
    check_removable,
    check_segment_ids,
    checked_documents,
    lost_import,
    not_new,
)
from qrmem.graphstore.neo4j import full_text, runs, vectors, view_writes
from qrmem.graphstore.neo4j.connection import Connection, Properties, Work
from qrmem.graphstore.neo4j.database_schema import LABELS, VIEW_LABELS
from qrmem.graphstore.neo4j.keys import full, in_order, numbered, short
from qrmem.graphstore.neo4j.stored_facts import contribution_rows
from qrmem.graphstore.protocol import NamespaceInfo, relation_key
from qrmem.graphstore.redaction import Removal
from qrmem.types import Contribution, Document, DocumentInfo, MetaValue, Part, Scalar, Segment
from qrmem.types.documents import RANGES, Conditions, Where, conditions
from qrmem.types.turns import highest_turn

_BOUNDS = {"<": "below", "<=": "most", ">": "above", ">=": "least"}
"""Names of a range's bounds in a statement."""


async def namespaces(work: Work) -> list[str]:
    """Return all names, sorted."""
    return sorted(name for (name,) in await work.rows("namespaces.all"))


async def namespace(work: Work) -> NamespaceInfo | None:
    """Return the properties with which a namespace was made."""
    row = await work.row("namespaces.get")
    if row is None:
        return None
    *rest, single, turns = row
    return replace(NamespaceInfo(*rest), single=tuple(single), turns=turns)


async def create_namespace(work: Work, info: NamespaceInfo) -> NamespaceInfo:
    """Make a namespace unless it exists; return its properties."""
    properties = {
        "full": full(work.ns),
        "tokenizer": info.tokenizer,
        "segment_tokens": info.segment_tokens,
        "embedder": info.embedder,
        "dimension": info.dimension,
        "importing": info.importing,
        "single_types": list(info.single),
        "turns": info.turns,
    }
    await work.run("namespaces.create", properties=properties)
    info_made = await namespace(work)
    if info_made is None:
        raise NotFound(f"namespace {work.ns!r} is being deleted")
    return info_made


async def finish_import(work: Work, token: str) -> None:
    """Mark the import of a namespace as complete."""
    if not token or not await work.rows("namespaces.finish_import", token=token):
        raise lost_import(work.ns)


async def put_documents(
    work: Work,
    written: Sequence[tuple[Document, Sequence[Segment]]],
    *,
    rebuild: bool = False,
    only_new: bool = False,
    edits: Sequence[Contribution] = (),
) -> None:
    """Write documents and their segments; delete everything that depends on replaced segments."""
    await work.lock()
    documents_checked = checked_documents(written)
    if rebuild:
        await delete_documents(work, *(id_ for id_, _, _ in documents_checked))
    segment_rows = [
        {"key": short(s.id), "document": id_}
        for id_, _, document_segments in documents_checked
        for s in document_segments
    ]
    for id_, segment_ids in await work.each("stored_documents.taken", segment_rows):
        check_segment_ids(id_, [segment_ids])
    keys = [short(id_) for id_, _, _ in documents_checked]
    there = set(await work.gathered("stored_documents.existing", keys))
    if only_new and there:
        raise not_new(id_ for id_, _, _ in documents_checked if short(id_) in there)
    old = {segment for (segment,) in await work.each("stored_documents.segment_ids", sorted(there))}
    new = {segment.id for _, _, segments in documents_checked for segment in segments}
    await drop_segments(work, old - new)
    await work.together(
        [
            ("stored_documents.put", [_document_row(*triple) for triple in documents_checked]),
            (
                "stored_documents.put_segments",
                [
                    _segment_row(i, s)
                    for i, _, document_segments in documents_checked
                    for s in document_segments
                ],
            ),
            *full_text.title_steps(
                (short(id_), document) for id_, document, _ in documents_checked
            ),
            ("stored_documents.unchain", sorted(there)),
            ("stored_documents.chain", _chained(documents_checked)),
            ("stored_facts.put_contributions", contribution_rows(edits)),
            ("namespaces.raise_revision", [1] if there else []),
        ]
    )
    if there:
        await full_text.retitle(work, there)


def _document_row(id_: str, document: Document, segments: Sequence[Segment]) -> Properties:
    text = document.text
    is_covered = "".join(segment.text for segment in segments) == text
    return {
        "key": short(id_),
        "full": full(id_),
        "title": document.title,
        "qrmem_part_starts": [part.start for part in document.parts],
        "qrmem_part_labels": [part.label for part in document.parts],
        "characters": len(text),
        "qrmem_digest": document.digest,
        "text": None if is_covered else text,
        "qrmem_metadata": [
            _mark(name, item)
            for name, value in document.metadata.items()
            for item in (value if isinstance(value, list) else [value])
        ],
        **{f"{full_text.METADATA}{name}": value for name, value in document.metadata.items()},
    }


def _segment_row(document_id: str, segment: Segment) -> Properties:
    properties = {
        "key": short(segment.id),
        "full": full(segment.id),
        "document": document_id,
        "index": segment.index,
        "qrmem_start": segment.start,
        "qrmem_stop": segment.end,
        "text": segment.text,
        "tokens": segment.tokens,
        "part": segment.part,
    }
    return {"owner": short(document_id), "segment": properties}


def _chained(checked: Sequence[tuple[str, Document, Sequence[Segment]]]) -> list[Properties]:
    """Return the keys of each pair of consecutive segments."""
    pairs: list[Properties] = []
    for _, _, segments in checked:
        ordered = [short(s.id) for s in sorted(segments, key=lambda s: s.index)]
        pairs += [{"first": first, "second": second} for first, second in pairwise(ordered)]
    return pairs


async def document(work: Work, document_id: str) -> Document | None:
    """Return a document with its text."""
    key = short(document_id)
    row = await work.row("stored_documents.get", key=key)
    if row is None:
        return None
    body = row[0]
    text = body.get("text")
    if text is None:
        text = "".join(
            part for _, part in sorted(await work.rows("stored_documents.texts", key=key))
        )
    parts = zip(body["qrmem_part_starts"], body["qrmem_part_labels"], strict=True)
    return Document(
        text=text,
        title=body["title"],
        id=document_id,
        metadata=_metadata(body),
        parts=tuple(Part(start, label) for start, label in parts),
    )


def _metadata(kept: Mapping[str, MetaValue]) -> dict[str, MetaValue]:
    return {
        name.removeprefix(full_text.METADATA): value
        for name, value in kept.items()
        if name.startswith(full_text.METADATA)
    }


async def documents(
    work: Work,
    ids: Collection[str] | None = None,
) -> list[DocumentInfo]:
    """Return the descriptions of all documents, or of some, by id."""
    if ids is None:
        rows = await work.rows("stored_documents.all")
    else:
        rows = await work.gathered("stored_documents.some", sorted(set(map(short, ids))))
    infos = [
        DocumentInfo(
            id=body.get("full") or body["key"],
            title=body["title"],
            metadata=_metadata(body),
            characters=body["characters"],
            segments=sum(number for _, number in states),
            states=dict(states),
            summary=body["summary"],
            digest=body["qrmem_digest"],
            facts=facts,
        )
        for body, states, facts in rows
    ]
    return sorted(infos, key=attrgetter("id"))


async def document_ids(
    work: Work,
    *,
    where: Where | None = None,
    between: tuple[str, str, str] | None = None,
    prefix: str = "",
    last: int | None = None,
) -> list[str]:
    """Return the ids of the documents that fit all conditions, sorted."""
    name, least, end = between or ("", "", "")
    ((ids,),) = await work.rows(
        "stored_documents.ids",
        **_fitting(conditions(where)),
        field=full_text.METADATA + name if name else None,
        least=least,
        end=end,
        prefix=prefix,
        last=2**31 if last is None else last,
    )
    return sorted(id_ for id_ in ids if id_.startswith(prefix))


def _fitting(where: Conditions) -> Properties:
    """Return the conditions for the database: marks, lists, and ranges of properties."""
    marks, lists, ranges = [], [], []
    for name, condition in where.items():
        field = f"{full_text.METADATA}{name}"
        marks += [[_mark(name, condition[one])] for one in ("=", "has") if one in condition]
        marks += [[_mark(name, value) for value in condition["in"]]] if "in" in condition else []
        lists += [field] if "has" in condition else []
        if bounds := {_BOUNDS[one]: condition[one] for one in RANGES if one in condition}:
            ranges.append({"field": field, **bounds})
    return {"marks": marks, "lists": lists, "ranges": ranges}


def _mark(name: str, value: Scalar) -> str:
    """Return a metadata value as the text by which the database compares it."""
    return f"{name}\n{value}"


async def states(work: Work) -> dict[str, int]:
    """Return how many segments there are in each state."""
    return {state: number for state, number in await work.rows("stored_documents.states")}


async def delete_documents(work: Work, *document_ids: str) -> None:
    """Remove documents with everything that depends on them; unknown ids are ignored."""
    if await namespace(work) is None:
        return
    await work.lock()
    there = await work.gathered("stored_documents.existing", sorted(set(map(short, document_ids))))
    if not there:
        return
    segment_keys = {
        segment for (segment,) in await work.each("stored_documents.segment_ids", there)
    }
    turns = highest_turn((info.id, info.metadata) for info in await documents(work, document_ids))
    if turns:
        await work.run("namespaces.raise_turns", turns=turns)
    await drop_segments(work, segment_keys)
    await work.together(
        [
            ("full_text.untitle", there),
            ("stored_documents.drop", there),
            ("namespaces.raise_revision", [1]),
        ]
    )


async def segments(
    work: Work, ids: Sequence[str] = (), *, documents: Sequence[str] = ()
) -> list[Segment]:
    """Return segments in the order of the ids, then those of some documents in order."""
    rows = await work.each("stored_documents.segments", sorted({short(id_) for id_ in ids}))
    result = in_order(ids, {row[0]: Segment(*row) for row in rows})
    rows = await work.each("stored_documents.segments_of", numbered(documents))
    return result + [Segment(*row[1:]) for row in sorted(rows, key=itemgetter(0, 3))]


async def drop_segments(work: Work, segments: Collection[str]) -> None:
    """Remove segments with everything that depends on them."""
    if not segments:
        return
    keys = sorted(map(short, segments))
    has_trails = await runs.has_trails(work)
    facts_stated = await work.gathered("view_writes.stated", keys) if has_trails else []
    names_gone = await view_writes.clear(work, keys)
    await vectors.drop(work, segments)
    await vectors.drop_relations(work)
    await runs.drop_cached_about(work, keys)
    await work.each("stored_documents.drop_segments", keys)
    # If a person deleted an entity's node, its names have no entity.
    await work.run("stored_documents.drop_loose_names")
    if has_trails:
        spoken = {word for entity in names_gone for word in entity}
        rows = [{"key": short(word), "full": word} for word in sorted(spoken)]
        spoken -= {word for (word,) in await work.each("stored_documents.living_words", rows)}
        relations = {relation_key(head, tail) for _, _, head, tail in facts_stated}
        await runs.blank_trails(work, Removal(segments, relations, spoken))


async def clear_view(connection: Connection, ns: str) -> None:
    """Delete everything that is derived from the facts, in batches."""
    await connection.write(_clear_digests, ns)
    await _delete_nodes(connection, ns, VIEW_LABELS)


async def _clear_digests(work: Work) -> None:
    """Mark all segments as not merged, so that the next merge completes an interrupted one."""
    await work.lock()
    await work.run("stored_documents.clear_digests")
    await work.together([("namespaces.raise_revision", [1])])


async def _delete_nodes(connection: Connection, ns: str, labels: Iterable[str]) -> None:
    # An entity that a person created may have no key. Both properties are indexed.
    for label, name in [*((label, "key") for label in labels), ("Entity", "name")]:
        await connection.outside(
            f"MATCH (n:{label}) WHERE n.ns = $ns AND n.{name} IS NOT NULL"
            " CALL (n) { DETACH DELETE n } IN TRANSACTIONS OF 1000 ROWS",
            ns=short(ns),
        )


async def delete_namespace(connection: Connection, ns: str, importing: str | None = None) -> None:
    """Remove everything of a namespace, in batches; does nothing if there is none.

    The namespace counts as deleted from the start; creating it again first finishes the deletion.
    """
    if not await connection.write(_mark_deleted, ns, importing):
        return
    await _delete_nodes(connection, ns, reversed(LABELS[1:]))
    await connection.write(_drop_namespace, ns)


async def _mark_deleted(work: Work, importing: str | None) -> bool:
    info = await namespace(work)
    if importing is not None and info is not None:
        await work.lock()
        info = await namespace(work) or info
        has_documents = bool(await work.rows("stored_documents.has_any"))
        check_removable(work.ns, importing, info.importing, has_documents)
    return bool(await work.rows("namespaces.mark_deleted"))


async def _drop_namespace(work: Work) -> None:
    await work.run("namespaces.drop")


async def is_half_deleted(work: Work) -> bool:
    """Return whether a deletion of the namespace was interrupted."""
    return bool(await work.rows("namespaces.is_half_deleted"))
