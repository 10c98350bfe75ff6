"""What a store can do.

A store keeps facts (documents, segments, contributions, ledger, merge decisions), the view derived
from them (names, entities, mentions, facts, search indexes, vectors) and what runs leave behind
(trails, calls, cached replies). It decides nothing: names are resolved and changes computed in
`qrmem.graph`, applied here in one transaction by compare-and-set on the namespace's revision.

Every method takes the namespace first, by position; nothing crosses it. Rows come by (document id,
segment index), unless a method says otherwise. Unknown ids in a list are left out. Reads of an
unknown namespace find nothing; writes to it raise `NotFound`, and deletes do nothing.
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
    Superseding,
    Titled,
    Unmerged,
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
    "VectorKind",
    "Vectors",
    "ViewUpdate",
    "Vocabulary",
    "relation_key",
]


class FactStore(Protocol):
    """What was given and read: namespaces, documents, segments, contributions, decisions."""

    async def namespaces(self) -> Sequence[str]:
        """Return all names, sorted."""

    async def namespace(self, ns: str, /) -> NamespaceInfo | None:
        """Return what it was made with, or `None`."""

    async def create_namespace(self, ns: str, /, info: NamespaceInfo) -> NamespaceInfo:
        """Make it unless it is there; return what is there."""

    async def finish_import(self, ns: str, /, token: str) -> None:
        """Declare a namespace whole that was made with `importing=token`.

        Raises:
            StoreConflict: another import, or none, is filling it.
        """

    async def set_embedder(self, ns: str, /, embedder: str, dimension: int) -> None:
        """Record another embedder and drop all vectors."""

    async def delete_namespace(self, ns: str, /, *, importing: str | None = None) -> None:
        """Remove everything of it.

        Args:
            importing: remove it only if it is still filled by the import of this token, or, with
                "", if no import fills it and it holds no document.

        Raises:
            StoreConflict: it is not what `importing` says.
        """

    async def put_documents(
        self,
        ns: str,
        /,
        written: Sequence[tuple[Document, Sequence[Segment]]],
        *,
        anew: bool = False,
        only_new: bool = False,
    ) -> None:
        """Write documents and their segments, all or none; replaces documents of the same id.

        Segments whose id was there keep contributions and ledger row; others of the old text
        lose everything (contributions, ledger, view rows, postings, vectors, cached replies that
        are about them) and the new ones are `pending`. The view of the kept ones is left alone,
        the summary too. The words of lost segments are blanked in trails.

        Args:
            written: documents of different ids, with their segments.
            anew: keep nothing, as if the documents were deleted first, in the same transaction.
            only_new: replace nothing.

        Raises:
            UsageError: a document has no id, or a segment's id is another's already.
            StoreConflict: a document of such an id is there, and `only_new` is set.
        """

    async def document(self, ns: str, /, document_id: str) -> Document | None:
        """Return it with its text, or `None`."""

    async def documents(
        self,
        ns: str,
        /,
        ids: Collection[str] | None = None,
    ) -> Sequence[DocumentInfo]:
        """Return what is known of some documents, or of all, by id."""

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
        """Return the ids of the documents that fit everything that is given, sorted.

        Args:
            where: what their metadata has; see `qrmem.types.documents`.
            between: a name of their metadata, the least value, and the first that is too great.
            prefix: what the ids begin with.
            last: how many at most, from the end.
        """

    async def states(self, ns: str, /) -> Mapping[str, int]:
        """Return how many segments there are in each state of the ledger."""

    async def delete_documents(self, ns: str, /, *document_ids: str) -> None:
        """Remove them with all that hangs on them, cached replies too; blank their text in trails.

        See `qrmem.graphstore.redaction` for what is blanked. Ids that no document has are harmless.
        """

    async def segments(
        self, ns: str, /, ids: Sequence[str] = (), *, documents: Sequence[str] = ()
    ) -> Sequence[Segment]:
        """Return segments in the order of `ids`, then all of `documents`, each one's in order."""

    async def ledger(self, ns: str, /, *document_ids: str) -> Sequence[LedgerRow]:
        """Return the rows of some documents' segments, in the order of these ids.

        Without an id those of all, by document id. A segment of which none was kept is `pending`.
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
        """Commit segments' phases in one transaction: ledger rows, what was read, and its cost.

        A contribution is of its row's segment, and replaces that of the same kind and `asked`.

        Args:
            calls: they are appended to the ledger of calls.
            summaries: document ids to summaries T, to be frozen; unknown ones are passed over.

        Raises:
            NotFound: a segment is not there (any more).
        """

    async def contributions(
        self, ns: str, /, *document_ids: str, kinds: Sequence[str] = ("extraction", "supplement")
    ) -> Sequence[Contribution]:
        """Return some documents' contributions by segment, kind and `asked`.

        Segments come in the order of these ids.
        """

    async def override_merge(self, ns: str, /, decision: MergeDecision) -> None:
        """Keep a user's decision on two names; replaces an earlier one on the same pair.

        The pair has no order; it is kept with the smaller name first. Both names are stale from
        then on, and the revision is raised, so that nobody resolves names without the decision.
        """


class GraphView(Protocol):
    """What follows from the facts: names, entities, relations, questions, and their indexes.

    The database's own index over terms proposes candidates; what ranks them is computed from what
    `entries`, `vocabulary` and `nearest` say, which is exact. Terms are words as
    `qrmem.text.words.terms` gives them; titles count as part of each segment's text.
    """

    async def apply(self, ns: str, /, revision: int, change: ViewUpdate) -> int:
        """Apply a change; return the new revision.

        Raises:
            StoreConflict: the namespace's revision is not `revision`.
        """

    async def clear_view(self, ns: str, /) -> None:
        """Drop all that follows from the facts; raises the revision."""

    async def unmerged(self, ns: str, /, *document_ids: str) -> Unmerged:
        """Return what is to be merged of some documents, and what else a merge depends on."""

    async def names(self, ns: str, /, wanted: NameFilter | None = None) -> Sequence[NameRow]:
        """Return every name of the namespace, or some of them, by key."""

    async def entities(self, ns: str, /, keys: Sequence[str]) -> Sequence[Entity]:
        """Return entities in the order of `keys`."""

    async def list_entities(self, ns: str, /, limit: int = 100) -> Sequence[EntityCount]:
        """Return entities by falling number of segments, then key."""

    async def types(self, ns: str, /) -> Sequence[str]:
        """Return the types that entities and statements have, sorted."""

    async def segments_of_types(self, ns: str, /, types: Collection[str]) -> Sequence[str]:
        """Return the ids of the segments that name an entity, or state something, of some types.

        They are in no order.
        """

    async def mentions(self, ns: str, /, segment_ids: Sequence[str], most: int = 0) -> Mentions:
        """Return who is named in some segments, and where the rare ones are named besides.

        Args:
            most: tell the places of entities that stand in no more segments.
        """

    async def shared_entities(
        self, ns: str, /, segment_ids: Sequence[str], most: int
    ) -> "Mapping[str, tuple[Sequence[str], int]]":
        """Return the entities that two or more of some segments have.

        Args:
            most: leave out entities that stand in more segments of the namespace.

        Returns:
            Entity key to the ids of the segments among those given, and the number of all.
        """

    async def around(self, ns: str, /, keys: Sequence[str], *, texts: bool = False) -> Around:
        """Return some entities' facts, names and segments, in one round trip.

        Args:
            texts: return the segments themselves too, not their ids alone.
        """

    async def relations(self, ns: str, /, keys: Sequence[str]) -> Sequence[Relation]:
        """Return the relations with an end in some entities, by key.

        There is one for each pair, direction and type, none of an entity with itself. Its
        description is what a chat model merged its facts into, else `merged_text` of them.
        """

    async def misdrawn(self, ns: str, /) -> int:
        """Return how many edges that a store draws for people differ from what is stated."""

    async def questions(
        self, ns: str, /, segment_ids: Sequence[str] | None = None
    ) -> Sequence[Question]:
        """Return accepted questions of the given segments, or all, as they came in a segment."""

    async def counts(self, ns: str, /) -> Mapping[str, int]:
        """Return the numbers of documents, segments, entities, facts, questions, trails."""

    async def vocabulary(self, ns: str, /, terms: Sequence[str]) -> Vocabulary:
        """Return how many segments have each term."""

    async def matching(
        self,
        ns: str,
        /,
        groups: Sequence[Sequence[str]],
        limit: int,
        documents: Collection[str] | None = None,
        *,
        among: Collection[str] | None = None,
    ) -> Sequence[str]:
        """Return the ids of segments with a term of every group, best first by the index's score.

        Args:
            groups: lists of terms; nothing is found for none, nor for an empty one.
            limit: upper bound on their number.
            documents: ids of the only documents to look at; `None`: all.
            among: ids of the only segments to look at; `None`: all.
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
        """Return the cosines of the segments nearest to a vector, nearest first.

        A segment's is that of its nearest window; segments without a vector are left out.

        Args:
            vector: `(dimension,)`, unit length.
            limit: upper bound on their number.
            documents: ids of the only documents to look at; `None`: all.
            among: ids of the only segments to look at; `None`: all.
        """

    async def entries(self, ns: str, /, segment_ids: Sequence[str]) -> Sequence[Entry]:
        """Return what is indexed of segments, in the order of the ids."""

    async def titled(self, ns: str, /, names: Sequence[str]) -> Mapping[str, Sequence[Titled]]:
        """Return the documents that names are titles of, surest first, by id where equal.

        A name that more than `MOST_TITLED` documents go by means none of them and is left out.

        Args:
            names: as `qrmem.text.names.plain` gives them; unknown ones are left out.
        """


class RunLog(Protocol):
    """What runs leave behind: trails, and the ledger of calls."""

    async def put_trail(self, ns: str, /, trail: Trail) -> None:
        """Write a trail; replaces one of the same id."""

    async def trails(
        self, ns: str, /, limit: int = 20, *, id: str | None = None
    ) -> Sequence[Trail]:
        """Return trails, newest first (by `created`, then by arrival).

        Args:
            id: only the trail of this id.
        """

    async def calls(self, ns: str, /) -> Sequence[CallRecord]:
        """Return all calls in the order in which they were written."""


class Artefacts(Protocol):
    """What is costly to make again: vectors, and JSON values (replies, folded descriptions)."""

    async def put_cached(
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
        """Keep a JSON value; it goes when one of its segments goes.

        What is tied to no segment may hold words of any, so it goes with the first that goes. The
        same key means something else in each kind.

        Args:
            segments: ids of those that it is about.
            calls: what it cost; they are appended to the ledger of calls in the same transaction.
        """

    async def cached_keys(self, ns: str, /, kind: CacheKind) -> Sequence[str]:
        """Return the keys of what is cached of a kind, sorted."""

    async def cached(
        self, ns: str, /, kind: CacheKind, keys: Sequence[str]
    ) -> Sequence[CacheEntry]:
        """Return what is cached under some keys, in their order."""

    async def drop_cached(self, ns: str, /, kind: CacheKind, keys: Sequence[str]) -> None:
        """Forget what is cached under some keys; unknown ones are passed over."""

    async def put_vectors(
        self, ns: str, /, kind: VectorKind, owners: Sequence[str], matrix: "NDArray[np.float32]"
    ) -> None:
        """Add rows; rows that an owner had before this call are replaced.

        The vectors of a segment go with it; those of relations go, all of them, whenever a segment
        goes, and are made again when they are needed.

        Args:
            owners: one per row, ids of segments (unknown ones are passed over), or what the caller
                calls the text of a relation; a segment has as many rows as windows.

        Raises:
            EmbedderMismatch: the rows are not as long as the namespace's vectors.
        """

    async def vectors(self, ns: str, /, kind: VectorKind, owners: Sequence[str]) -> Vectors:
        """Return the rows of some owners.

        Segments in order, relations by owner; the rows of one owner as they were put.
        """

    async def owners(
        self, ns: str, /, kind: VectorKind, among: Sequence[str] | None = None
    ) -> Sequence[str]:
        """Return who has vectors, of all or `among` some, in the order of `vectors`."""


class GraphStore(FactStore, GraphView, RunLog, Artefacts, Protocol):
    """A database of memories.

    Attributes:
        is_read_only: whether writes are refused (a read-only file).
        has_snapshots: whether what others write is hidden within `snapshot`.
        location: where it is, without secrets, for messages.

    Raises (every method):
        StoreUnavailable: it cannot be reached, is locked or full; a retry may help.
        MissingError: it needs something first (newer schema, password).
    """

    is_read_only: bool
    has_snapshots: bool
    location: str

    def snapshot(self) -> AbstractAsyncContextManager["GraphStore"]:
        """Yield the memory as it is at the first read, to be read only.

        Where `has_snapshots` is not set, the store itself is yielded, and each read may see what
        was written since the one before. What is deleted meanwhile may stay beside the memory until
        the next `clean`.
        """

    async def check(self) -> None:
        """Go through the database page by page, unless a server looks after it.

        Raises:
            StoreUnavailable: it is damaged.
        """

    async def clean(self, *, wholly: bool = False) -> None:
        """Leave no copy of what was deleted beside the database (a log); harmless at any time.

        Args:
            wholly: leave none within it, either, and give the room back that it took.
        """

    async def close(self) -> None:
        """Release everything; twice is harmless."""
