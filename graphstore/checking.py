"""Checks that every store makes before a write."""

from collections.abc import Collection, Iterable, Sequence

from qrmem.errors import EmbedderMismatch, StoreConflict, StoreUnavailable, UsageError
from qrmem.graphstore.protocol import ViewUpdate
from qrmem.types import Document, Segment


def check_change(
    change: ViewUpdate,
    *,
    segments: Collection[str],
    names: Collection[str],
    entities: Collection[str],
) -> None:
    """Check that a change refers only to rows that exist or that it adds.

    Raises:
        ValueError: it refers to others; the caller computed it wrongly.
    """
    new_entities = {row.key for row in change.entities}
    check_known("segment", written_segments(change), segments)
    check_known("name", used_names(change), {*names, *change.names})
    check_known("entity", change.names.values(), {*entities, *new_entities})


def written_segments(change: ViewUpdate) -> set[str]:
    """Return the ids of the segments that a change adds rows for."""
    segment_ids = {row.segment_id for rows in (change.mentions, change.facts) for row in rows}
    segment_ids.update(question.segment_id for question in change.questions)
    segment_ids.update(made.segment_id for made in change.edits)
    return segment_ids | change.index.keys() | change.merged.keys()


def used_names(change: ViewUpdate) -> set[str]:
    """Return the keys of the names in a change's mentions and facts."""
    names = {row.name for row in change.mentions}
    names.update(end for row in change.facts for end in (row.head, row.tail))
    return names


def checked_documents(
    written: Sequence[tuple[Document, Sequence[Segment]]],
) -> list[tuple[str, Document, Sequence[Segment]]]:
    """Return documents with their ids and segments.

    Raises:
        UsageError: a document has no id, or two documents or two segments have the same id.
    """
    documents: set[str] = set()
    ids_seen: set[str] = set()
    result = []
    for document, segments in written:
        if document.id is None:
            raise UsageError("a document needs an id before it can be kept")
        if document.id in documents:
            raise UsageError(f"document {document.id!r} is given twice")
        documents.add(document.id)
        if len({segment.id for segment in segments}) < len(segments):
            raise UsageError(f"two segments of document {document.id!r} have the same id")
        check_segment_ids(
            document.id, (segment.id for segment in segments if segment.id in ids_seen)
        )
        ids_seen.update(segment.id for segment in segments)
        result.append((document.id, document, segments))
    return result


def unreadable(location: str) -> StoreUnavailable:
    """Return the error for a record that cannot be decoded."""
    return StoreUnavailable(
        f"{location} is damaged: a record in it cannot be understood (qrmem doctor --repair names"
        " its document, which can be deleted and added again)"
    )


def check_segment_ids(document_id: str, taken: Iterable[str]) -> None:
    """Refuse segment ids that another document has taken.

    Args:
        document_id: the document to write.
        taken: its segment ids that belong to another document.

    Raises:
        UsageError: `taken` is not empty.
    """
    for id_ in taken:
        raise UsageError(f"segment {id_!r} of {document_id!r} belongs to another document already")


def check_removable(ns: str, importing: str, token: str, has_documents: bool) -> None:
    """Check that an import may delete a namespace.

    Args:
        ns: the namespace.
        importing: the expected token; see `GraphStore.delete_namespace`.
        token: the namespace's token.
        has_documents: whether the namespace has documents.

    Raises:
        StoreConflict: another writer filled the namespace, or is filling it.
    """
    if token != importing or (not importing and has_documents):
        raise lost_import(ns)


def not_new(ids: Iterable[str]) -> StoreConflict:
    """Return the error for documents that exist although they must be new."""
    return StoreConflict(f"document {min(ids)!r} already exists")


def lost_import(ns: str) -> StoreConflict:
    """Return the error for an import whose namespace another writer took over."""
    return StoreConflict(f"namespace {ns!r} was taken over while it was being imported")


def check_dimension(ns: str, embedder: str, dimension: int, given: int) -> None:
    """Check that vectors have the dimension of the namespace's embedder.

    Raises:
        EmbedderMismatch: they have another dimension.
    """
    if given != dimension:
        raise EmbedderMismatch(
            f"namespace {ns!r} keeps vectors of {embedder!r} with {dimension} numbers, these have"
            f" {given}; `qrmem reembed` changes the embedder"
        )


def check_known(what: str, wanted: Iterable[str], known: Collection[str]) -> None:
    """Check that all keys are known.

    Raises:
        ValueError: a key is unknown; the caller computed a change wrongly.
    """
    missing = sorted(key for key in set(wanted) if key not in known)
    if missing:
        raise ValueError(f"a change refers to an unknown {what}: {missing[0]!r}")
