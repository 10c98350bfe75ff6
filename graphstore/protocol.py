"""The protocol of a store.

A store keeps sources (documents, segments, contributions, ledger, merge decisions), the view that
is derived from them (names, entities, mentions, facts, search indexes, vectors) and the records of
runs (trails, calls, cached replies). It decides nothing: `qrmem.graph` resolves names and computes
changes. A store applies a change in one transaction, by compare-and-set on the revision.

Every method takes the namespace as its first positional argument; no method crosses namespaces.
Results are ordered by (document id, segment index), unless a method says otherwise. Unknown ids in
a list are ignored. A read of an unknown namespace returns nothing, a write to it raises `NotFound`,
a delete does nothing.
"""

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Protocol

from qrmem.graphstore.records import (
    FIRST_TITLED,
    MERGED,
    MOST_TITLED,
    Around,
    CacheEntry,
    CacheKind,
    EntityCount,
    EntityRow,
    Entry,
    FactRow,
    MentionRow,
    Mentions,
    NameFilter,
    NameRow,
    NamespaceInfo,
    Places,
    Superseding,
    Titled,
    Unmerged,
    UserEdit,
    VectorKind,
    Vectors,
    ViewUpdate,
    Vocabulary,
    relation_key,
)
from qrmem.types import (
    CallRecord,
    Contribution,
    Document,
    DocumentInfo,
    Entity,
    LedgerRow,
    MergeDecision,
    Question,
    Relation,
    Segment,
    Trail,
    Where,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "FIRST_TITLED",
    "MERGED",
    "MOST_TITLED",
    "Around",
    "Artefacts",
    "CacheEntry",
    "CacheKind",
    "EntityCount",
    "EntityRow",
    "Entry",
    "FactRow",
    "FactStore",
    "GraphStore",
    "GraphView",
    "MentionRow",
    "Mentions",
    "NameFilter",
    "NameRow",
    "NamespaceInfo",
    "RunLog",
    "Superseding",
    "Titled",
    "Unmerged",
    "UserEdit",
    "VectorKind",
    "Vectors",
    "ViewUpdate",
    "Vocabulary",
    "relation_key",
]


class FactStore(Protocol):
    """Sources: namespaces, documents, segments, contributions, merge decisions."""

    async def namespaces(self) -> Sequence[str]:
        """Return the names of all namespaces, sorted."""

    async def namespace(self, ns: str, /) -> NamespaceInfo | None:
        """Return a namespace's settings, or `None` if it does not exist."""

    async def create_namespace(self, ns: str, /, info: NamespaceInfo) -> NamespaceInfo:
        """Create a namespace unless it exists; return its settings."""

    async def finish_import(self, ns: str, /, token: str) -> None:
        """Mark a namespace that was created with `importing=token` as complete.

        Raises:
            StoreConflict: another import, or none, is filling the namespace.
        """

    async def set_embedder(self, ns: str, /, embedder: str, dimension: int) -> None:
        """Record another embedder and drop all vectors."""

    async def set_single(self, ns: str, /, single: Collection[str]) -> None:
        """Record `NamespaceInfo.single`; displayed edges of affected types are drawn again."""

    async def delete_namespace(self, ns: str, /, *, importing: str | None = None) -> None:
        """Delete a namespace and all its data.

        Args:
            importing: `None` deletes unconditionally. A token deletes only if the import with this
                token is still filling the namespace; "" deletes only if no import is filling it and
                it has no documents.

        Raises:
            StoreConflict: the condition of `importing` does not hold.
        """

    async def put_documents(
        self,
        ns: str,
        /,
        written: Sequence[tuple[Document, Sequence[Segment]]],
        *,
        rebuild: bool = False,
        only_new: bool = False,
        edits: Sequence[Contribution] = (),
    ) -> None:
        """Write documents and their segments, all or none; replace documents with the same id.

        A segment whose id exists keeps its contributions, ledger row and view rows; a replaced
        document keeps its summary. Other segments of the old text are deleted with all that depends
        on them (contributions, ledger rows, view rows, postings, vectors, cached replies), and
        their words are blanked in trails. New segments are `pending`.

        Args:
            written: documents with distinct ids, each with its segments.
            rebuild: first delete the old documents, in the same transaction: nothing is kept.
            only_new: replace no document.
            edits: the user's edits of statements of these segments, to be stored with them.

        Raises:
            UsageError: a document has no id, or another document has a segment with the same id.
            StoreConflict: `only_new` is set and a document with one of the ids exists.
        """

    async def document(self, ns: str, /, document_id: str) -> Document | None:
        """Return a document with its text, or `None` if it does not exist."""

    async def documents(
        self, ns: str, /, ids: Collection[str] | None = None
    ) -> Sequence[DocumentInfo]:
        """Return some documents, or all, without their texts, by id."""

    async def document_ids(
        self,
        ns: str,
        /,
        *,
        where: Where | None = None,
        between: tuple[str, str, str] | None = None,
        prefix: str = "",
        last: int | None = None,
    ) -> Sequence[str]:
        """Return the sorted ids of the documents that match every given condition.

        Args:
            where: condition on the metadata; see `qrmem.types.documents`.
            between: a metadata key, its least value, and an exclusive upper bound.
            prefix: prefix of the ids.
            last: return at most this many, from the end; `None` returns all.
        """

    async def states(self, ns: str, /) -> Mapping[str, int]:
        """Return the number of segments in each state of the ledger."""

    async def delete_documents(self, ns: str, /, *document_ids: str) -> None:
        """Delete documents with all that depends on them; blank their words, see `redaction`.

        `NamespaceInfo.turns` becomes at least the highest number of the turns among them.
        """

    async def segments(
        self, ns: str, /, ids: Sequence[str] = (), *, documents: Sequence[str] = ()
    ) -> Sequence[Segment]:
        """Return segments in the order of `ids`, then all segments of `documents`, in order."""

    async def ledger(self, ns: str, /, *document_ids: str) -> Sequence[LedgerRow]:
        """Return the ledger rows of some documents' segments, in the order of the ids.

        Without ids it returns all rows, by document id. A segment without a stored row is
        `pending`.
        """

    async def record(
        self,
        ns: str,
        /,
        rows: Sequence[tuple[LedgerRow, Contribution | None]],
        calls: Sequence[CallRecord] = (),
        *,
        summaries: Mapping[str, str] = {},
    ) -> None:
        """Commit ledger rows, contributions, calls and summaries in one transaction.

        A contribution replaces its segment's contribution of the same kind and `asked`.

        Args:
            rows: ledger rows, each with a contribution or `None`.
            calls: appended to the ledger of calls.
            summaries: document id to its summary T, which is final; unknown ids are ignored.

        Raises:
            NotFound: a segment does not exist (any more).
        """

    async def contributions(
        self, ns: str, /, *document_ids: str, kinds: Sequence[str] = ("extraction", "supplement")
    ) -> Sequence[Contribution]:
        """Return contributions in the order of the ids, then by segment, kind and `asked`."""

    async def edits(self, ns: str, /) -> Sequence[UserEdit]:
        """Return the user's edits of all statements, by document, segment and `asked`."""

    async def override_merge(self, ns: str, /, decision: MergeDecision) -> None:
        """Store a user's decision on two names; it replaces an earlier decision on the pair.

        The pair is unordered; it is stored with the smaller name first. Both names become stale and
        the revision is raised, so that no writer resolves names without the decision.
        """


class GraphView(Protocol):
    """The derived view: names, entities, relations, questions, and their indexes.

    The database's index over terms proposes candidates; they are ranked by exact scores from
    `entries`, `vocabulary` and `nearest`. Terms are the words that `qrmem.text.words.terms`
    returns. A document's title counts as part of each segment's text.
    """

    async def apply(self, ns: str, /, revision: int, change: ViewUpdate) -> int:
        """Apply a change; return the new revision.

        Raises:
            StoreConflict: the namespace's revision is not `revision`.
        """

    async def clear_view(self, ns: str, /) -> None:
        """Delete the whole view; raise the revision."""

    async def unmerged(self, ns: str, /, *document_ids: str) -> Unmerged:
        """Return the data of some documents that a merge needs, from one snapshot."""

    async def names(self, ns: str, /, wanted: NameFilter | None = None) -> Sequence[NameRow]:
        """Return the names of the namespace that match `wanted`, or all, by key."""

    async def places(self, ns: str, /, keys: Collection[str]) -> Places:
        """Return the places in which some names occur, with their occurrences; see `Places`."""

    async def entities(self, ns: str, /, keys: Sequence[str]) -> Sequence[Entity]:
        """Return entities in the order of `keys`."""

    async def list_entities(self, ns: str, /, limit: int = 100) -> Sequence[EntityCount]:
        """Return entities by descending number of segments, then by key."""

    async def types(self, ns: str, /) -> Sequence[str]:
        """Return the types of all entities and statements, sorted."""

    async def segments_of_types(self, ns: str, /, types: Collection[str]) -> Sequence[str]:
        """Return the ids of segments with an entity or a statement of a type, in no order."""

    async def mentions(self, ns: str, /, segment_ids: Sequence[str], most: int = 0) -> Mentions:
        """Return the entities of some segments, and all segments of the rare ones.

        Args:
            most: return all segments of an entity that has at most this many.
        """

    async def shared_entities(
        self, ns: str, /, segment_ids: Sequence[str], most: int
    ) -> "Mapping[str, tuple[Sequence[str], int]]":
        """Return the entities that occur in two or more of some segments.

        Args:
            most: leave out entities with more segments in the namespace.

        Returns:
            Entity key to its segments among those given, and the number of all its segments.
        """

    async def around(self, ns: str, /, keys: Sequence[str], *, texts: bool = False) -> Around:
        """Return the facts, names and segments of some entities, in one round trip.

        Args:
            texts: return the segments with their texts, not only their ids.
        """

    async def relations(self, ns: str, /, keys: Sequence[str]) -> Sequence[Relation]:
        """Return the relations that start or end at one of the entities, by key.

        There is one for each pair, direction and type; no relation joins an entity with itself. The
        description is a chat model's merged text of the facts, or else their `merged_text`.
        """

    async def misdrawn(self, ns: str, /) -> int:
        """Return the number of displayed edges (Neo4j Browser) that differ from the facts."""

    async def questions(
        self, ns: str, /, segment_ids: Sequence[str] | None = None
    ) -> Sequence[Question]:
        """Return the accepted questions of some segments, or of all, in order within a segment."""

    async def counts(self, ns: str, /) -> Mapping[str, int]:
        """Return the numbers of documents, segments, entities, facts, questions, trails."""

    async def vocabulary(self, ns: str, /, terms: Sequence[str]) -> Vocabulary:
        """Return the number of segments with each term, and the totals that BM25 needs."""

    async def matching_each(
        self,
        ns: str,
        /,
        queries: Sequence[Sequence[Sequence[str]]],
        limit: int,
        documents: Collection[str] | None = None,
        *,
        among: Collection[str] | None = None,
    ) -> Sequence[Sequence[str]]:
        """Return each query's segments, best first by the index's score, with one read.

        Args:
            queries: groups of terms; a segment has a term of every group. Without a group, or with
                an empty one, nothing is found.
            limit: upper bound on the number of segments of a query.
            documents: ids of the documents to search; `None` searches all.
            among: ids of the segments to search; `None` searches all.
        """

    async def nearest(
        self,
        ns: str,
        /,
        vector: "NDArray[np.float32]",
        limit: int,
        *,
        documents: Collection[str] | None = None,
        among: Sequence[str] | None = None,
    ) -> Mapping[str, float]:
        """Return the segments nearest to a vector with their cosines, nearest first.

        A segment's cosine is that of its nearest window. Segments without a vector are left out.

        Args:
            vector: `(dimension,)`, unit length.
            limit: upper bound on the number of segments.
            documents: ids of the documents to search; `None` searches all.
            among: ids of the segments to search; `None` searches all.
        """

    async def entries(self, ns: str, /, segment_ids: Sequence[str]) -> Sequence[Entry]:
        """Return the index entries of segments, in the order of the ids."""

    async def titled(self, ns: str, /, names: Sequence[str]) -> Mapping[str, Sequence[Titled]]:
        """Return the documents whose titles are among the names, surest first, then by id.

        A name that fits more than `MOST_TITLED` documents is left out.

        Args:
            names: names in the form of `qrmem.text.names.plain`; unknown names are left out.
        """


class RunLog(Protocol):
    """Records of runs: trails, and the ledger of calls."""

    async def put_trail(self, ns: str, /, trail: Trail) -> None:
        """Write a trail; one with the same id is replaced, in its place among those of its time."""

    async def trails(
        self,
        ns: str,
        /,
        limit: int = 20,
        *,
        id: str | None = None,
        skip: int = 0,
        oldest_first: bool = False,
    ) -> Sequence[Trail]:
        """Return trails, newest first (by `created`, then by order of writing).

        Args:
            limit: upper bound on the number of trails.
            id: return only the trail with this id.
            skip: number of trails to leave out at the beginning.
            oldest_first: return them in the opposite order.
        """

    async def calls(self, ns: str, /) -> Sequence[CallRecord]:
        """Return all calls in the order of writing."""


class Artefacts(Protocol):
    """Results that are costly to compute again: vectors, and JSON values (replies, for example)."""

    async def put_cache_entry(
        self,
        ns: str,
        /,
        kind: CacheKind,
        key: str,
        value: Mapping[str, Any],
        *,
        segments: Sequence[str] = (),
        calls: Sequence[CallRecord] = (),
    ) -> None:
        """Cache a JSON value; it is deleted when one of its segments is deleted.

        A value without segments may hold words of any segment, so it is deleted with the first
        segment that is deleted. Keys of different kinds are independent.

        Args:
            segments: ids of the segments that the value is about.
            calls: the calls that made it, appended to the ledger of calls in the same transaction.
        """

    async def cache_keys(self, ns: str, /, kind: CacheKind) -> Sequence[str]:
        """Return the keys of all cached values of a kind, sorted."""

    async def cache_entries(
        self, ns: str, /, kind: CacheKind, keys: Sequence[str]
    ) -> Sequence[CacheEntry]:
        """Return the cached values of some keys, in the order of the keys."""

    async def drop_cache_entries(self, ns: str, /, kind: CacheKind, keys: Sequence[str]) -> None:
        """Delete the cached values of some keys; unknown keys are ignored."""

    async def put_vectors(
        self, ns: str, /, kind: VectorKind, owners: Sequence[str], matrix: "NDArray[np.float32]"
    ) -> None:
        """Write vectors; they replace all earlier vectors of the same owners.

        A segment's vectors are deleted with the segment. The vectors of all relations are deleted
        whenever a segment is deleted; they are computed again when needed.

        Args:
            kind: whether the owners are segments or relations.
            owners: `(n,)`, owner of each row: a segment id (unknown ids are ignored), or the
                caller's key of a relation's text. A segment has one row per window.
            matrix: `(n, dimension)`.

        Raises:
            EmbedderMismatch: the dimension is not that of the namespace's vectors.
        """

    async def vectors(self, ns: str, /, kind: VectorKind, owners: Sequence[str]) -> Vectors:
        """Return the vectors of some owners.

        Segments come in order, relations by owner; the rows of one owner as they were written.
        """

    async def owners(
        self, ns: str, /, kind: VectorKind, among: Sequence[str] | None = None
    ) -> Sequence[str]:
        """Return the owners with vectors, or those `among` some, in the order of `vectors`."""


class GraphStore(FactStore, GraphView, RunLog, Artefacts, Protocol):
    """A database of memories.

    Attributes:
        is_read_only: whether writes are refused (a read-only file).
        has_snapshots: whether `snapshot` hides what other writers commit meanwhile.
        location: path or address, without secrets, for messages.

    Raises (every method):
        StoreUnavailable: the database cannot be reached, is locked or full; a retry may help.
        MissingError: something must be supplied first (a newer qrmem, a password).
    """

    is_read_only: bool
    has_snapshots: bool
    location: str

    def snapshot(self) -> AbstractAsyncContextManager["GraphStore"]:
        """Yield a read-only store that shows the memory as of its first read.

        Without `has_snapshots` it yields the store itself, and each read may see newer writes.
        Data that is deleted meanwhile may stay in the database's log until the next `clean`.
        """

    async def check(self) -> None:
        """Check the database page by page; a server's database is not checked.

        Raises:
            StoreUnavailable: the database is damaged.
        """

    async def clean(self, *, wholly: bool = False) -> None:
        """Remove copies of deleted data beside the database (its log); safe at any time.

        Args:
            wholly: also remove copies within the database, and free the space.
        """

    async def close(self) -> None:
        """Release all resources; a second call does nothing."""
