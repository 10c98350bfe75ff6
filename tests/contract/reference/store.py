"""The reference store: simple, in memory; tests compare the other stores with it.

Every change recomputes the whole view.
"""

from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from contract.reference import search as searching
from contract.reference.fitting import fits
from contract.reference.space import Space

from qrmem.errors import NotFound, StoreConflict, StoreUnavailable, UsageError
from qrmem.graphstore.checking import (
    check_change,
    check_dimension,
    check_removable,
    check_segment_ids,
    checked_documents,
    lost_import,
    not_new,
)
from qrmem.graphstore.codec import from_plain, to_plain
from qrmem.graphstore.protocol import (
    MERGED,
    Around,
    CacheEntry,
    CacheKind,
    EntityCount,
    Mentions,
    NameFilter,
    NameRow,
    NamespaceInfo,
    Unmerged,
    UserEdit,
    VectorKind,
    Vectors,
    ViewUpdate,
)
from qrmem.graphstore.reads import merged_relations
from qrmem.graphstore.records import Places, form_blocks
from qrmem.text.dates import said_at
from qrmem.text.names import split_key
from qrmem.text.names.blocks import blocks_of
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
from qrmem.types.turns import highest_turn, scope_of, user_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

P = ParamSpec("P")
R = TypeVar("R")

_NOTHING = NamespaceInfo(name="", tokenizer="", segment_tokens=0)


def _searches(
    work: Callable[Concatenate[Space, P], R],
) -> "Callable[Concatenate[ReferenceStore, str, P], Coroutine[Any, Any, R]]":
    """Return the method that looks something up in a namespace."""

    async def method(self: "ReferenceStore", ns: str, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return work(self._space(ns), *args, **kwargs)

    return method


class ReferenceStore:
    """Memories that live as long as the object."""

    is_read_only = False
    has_snapshots = False
    location = "memory://"

    def __init__(self) -> None:
        self._spaces: dict[str, Space] = {}
        self._is_closed = False

    async def close(self) -> None:
        self._is_closed = True

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator["ReferenceStore"]:
        yield self

    async def check(self) -> None:
        self._space("")

    async def clean(self, *, wholly: bool = False) -> None:
        self._space("")

    def _space(self, ns: str) -> Space:
        """Return a namespace to read from; an empty one if there is none of that name."""
        if self._is_closed:
            raise StoreUnavailable("memory:// is closed")
        return self._spaces.get(ns) or Space(_NOTHING)

    def _existing(self, ns: str) -> Space:
        """Return a namespace to write to."""
        self._space(ns)
        if ns not in self._spaces:
            raise NotFound(f"there is no namespace {ns!r} in this memory")
        return self._spaces[ns]

    # --- namespaces ---------------------------------------------------------------------------

    async def namespaces(self) -> Sequence[str]:
        self._space("")
        return sorted(self._spaces)

    async def namespace(self, ns: str) -> NamespaceInfo | None:
        return self._space(ns).info if ns in self._spaces else None

    async def create_namespace(self, ns: str, info: NamespaceInfo) -> NamespaceInfo:
        self._space(ns)
        space = self._spaces.setdefault(ns, Space(replace(info, name=ns, revision=0)))
        return space.info

    async def finish_import(self, ns: str, token: str) -> None:
        space = self._spaces.get(ns)
        if not token or space is None or space.info.importing != token:
            raise lost_import(ns)
        space.info = replace(space.info, importing="")

    async def set_embedder(self, ns: str, embedder: str, dimension: int) -> None:
        space = self._existing(ns)
        space.info = replace(space.info, embedder=embedder, dimension=dimension)
        space.vectors.clear()

    async def set_single(self, ns: str, single: Collection[str]) -> None:
        space = self._existing(ns)
        space.info = replace(space.info, single=tuple(sorted(single)))

    async def delete_namespace(self, ns: str, *, importing: str | None = None) -> None:
        space = self._space(ns)
        if importing is not None and ns in self._spaces:
            check_removable(ns, importing, space.info.importing, bool(space.documents))
        self._spaces.pop(ns, None)

    # --- facts --------------------------------------------------------------------------------

    async def put_documents(
        self,
        ns: str,
        written: Sequence[tuple[Document, Sequence[Segment]]],
        *,
        rebuild: bool = False,
        only_new: bool = False,
        edits: Sequence[Contribution] = (),
    ) -> None:
        space = self._existing(ns)
        checked = checked_documents(written)
        if only_new and (known := space.documents.keys() & {id_ for id_, _, _ in checked}):
            raise not_new(known)
        for id_, document, segments in checked:
            _check_encodable(document.text)
            there = space.segments.keys() & {segment.id for segment in segments}
            check_segment_ids(id_, sorted(there - set(space.of_document.get(id_, ()))))
        for id_, document, segments in checked:
            space.put_document(id_, document, segments, rebuild=rebuild)
        space.put_contributions(edits)

    async def document(self, ns: str, document_id: str) -> Document | None:
        return self._space(ns).documents.get(document_id)

    async def documents(
        self,
        ns: str,
        ids: Collection[str] | None = None,
    ) -> Sequence[DocumentInfo]:
        space = self._space(ns)
        found = sorted(space.documents if ids is None else space.documents.keys() & set(ids))
        facts = Counter(space.segments[id_].document_id for id_, _ in space.rows.facts)
        return [self._info(space, id_, facts[id_]) for id_ in found]

    async def document_ids(
        self,
        ns: str,
        *,
        where: Where | None = None,
        between: tuple[str, str, str] | None = None,
        prefix: str = "",
        last: int | None = None,
    ) -> Sequence[str]:
        name, least, end = between or ("", "", "")
        found = []
        for id_, document in sorted(self._space(ns).documents.items()):
            own = {key: str(value) for key, value in document.metadata.items()}
            is_between = not name or least <= own.get(name, end) < end
            if id_.startswith(prefix) and is_between and fits(document.metadata, where):
                found.append(id_)
        return found if last is None else found[max(len(found) - last, 0) :]

    async def states(self, ns: str) -> Mapping[str, int]:
        return dict(Counter(row.state for row in await self.ledger(ns)))

    def _info(self, space: Space, document_id: str, facts: int) -> DocumentInfo:
        document, own = space.documents[document_id], space.of_document[document_id]
        states = Counter(space.ledger.get(id_, LedgerRow(id_, "pending")).state for id_ in own)
        return DocumentInfo(
            id=document_id,
            title=document.title,
            metadata=document.metadata,
            characters=len(document.text),
            segments=len(own),
            states=dict(states.items()),
            summary=space.summaries.get(document_id, ""),
            digest=document.digest,
            facts=facts,
        )

    async def delete_documents(self, ns: str, *document_ids: str) -> None:
        space = self._space(ns)
        there = [id_ for id_ in dict.fromkeys(document_ids) if id_ in space.documents]
        turns = highest_turn((id_, space.documents[id_].metadata) for id_ in there)
        space.info = replace(space.info, turns=max(space.info.turns, turns))
        space.drop_segments([one for id_ in there for one in space.of_document.pop(id_, ())])
        for id_ in there:
            del space.documents[id_]
            space.summaries.pop(id_, None)
        if there:
            space.raise_revision()

    async def segments(
        self, ns: str, ids: Sequence[str] = (), *, documents: Sequence[str] = ()
    ) -> Sequence[Segment]:
        space = self._space(ns)
        wanted = [*ids, *space.of_documents(documents)]
        return [space.segments[id_] for id_ in wanted if id_ in space.segments]

    async def ledger(self, ns: str, *document_ids: str) -> Sequence[LedgerRow]:
        space = self._space(ns)
        segments = space.of_documents(document_ids or sorted(space.of_document))
        return [
            replace(
                space.ledger.get(id_, LedgerRow(id_, "pending")),
                merged=space.rows.merged.get(id_, ""),
            )
            for id_ in segments
        ]

    async def record(
        self,
        ns: str,
        rows: Sequence[tuple[LedgerRow, Contribution | None]],
        calls: Sequence[CallRecord] = (),
        *,
        summaries: Mapping[str, str] = {},
    ) -> None:
        space = self._existing(ns)
        ids = {row.segment_id for row, _ in rows}
        if missing := sorted(ids - space.segments.keys()):
            raise NotFound(f"segment {missing[0]!r} is not in the memory")
        for row, contribution in rows:
            space.ledger[row.segment_id] = row
            space.put_contributions([contribution] if contribution else [])
        space.calls.extend(calls)
        known = summaries.keys() & space.documents.keys()
        space.summaries |= {id_: summaries[id_] for id_ in known}

    async def contributions(
        self, ns: str, *document_ids: str, kinds: Sequence[str] = ("extraction", "supplement")
    ) -> Sequence[Contribution]:
        space = self._space(ns)
        found = [
            contribution
            for segment_id in space.of_documents(document_ids)
            for _, contribution in sorted(space.contributions.get(segment_id, {}).items())
        ]
        return [contribution for contribution in found if contribution.kind in kinds]

    async def edits(self, ns: str) -> Sequence[UserEdit]:
        space = self._space(ns)
        found = []
        for segment_id in space.in_order(space.contributions):
            document = space.documents[space.segments[segment_id].document_id]
            passes = sorted(space.contributions[segment_id].items())
            edits = [made for (kind, _), made in passes if kind == "edit"]
            found += [UserEdit(user_of(document.metadata), made) for made in edits]
        return found

    async def override_merge(self, ns: str, decision: MergeDecision) -> None:
        self._existing(ns).override_merge(decision)

    # --- the view -----------------------------------------------------------------------------

    async def apply(self, ns: str, revision: int, change: ViewUpdate) -> int:
        space = self._existing(ns)
        if space.info.revision != revision:
            raise StoreConflict(f"namespace {ns!r} is at {space.info.revision}, not {revision}")
        check_change(
            change,
            segments=space.segments.keys(),
            names=space.rows.names.keys(),
            entities=space.rows.entities.keys(),
        )
        space.apply(change)
        return space.info.revision

    async def clear_view(self, ns: str) -> None:
        info = await self.namespace(ns)
        if info is not None:
            ids = [row.segment_id for row in await self.ledger(ns)]
            await self.apply(ns, info.revision, ViewUpdate(clear=ids))

    async def unmerged(self, ns: str, *document_ids: str) -> Unmerged:
        space, rows = self._space(ns), await self.ledger(ns, *document_ids) if document_ids else ()
        return Unmerged(
            revision=space.info.revision,
            segments=await self.segments(ns, documents=document_ids),
            contributions=await self.contributions(ns, *document_ids, kinds=MERGED),
            merged={row.segment_id: row.merged for row in rows if row.merged},
            stale=dict(sorted(space.stale.items())),
            decisions=[decision for _, decision in sorted(space.decisions.items())],
            edits=await self.edits(ns),
            said_at={
                info.id: moment
                for info in (await self.documents(ns, document_ids) if document_ids else ())
                if (moment := said_at(info.metadata))
            },
            users={
                id_: user
                for id_ in document_ids
                if id_ in space.documents and (user := user_of(space.documents[id_].metadata))
            },
        )

    async def names(self, ns: str, wanted: NameFilter | None = None) -> Sequence[NameRow]:
        space = self._space(ns)
        if wanted is None:
            return space.view().names()
        forms: dict[str, set[int]] = defaultdict(set)
        for (_, name), row in space.rows.mentions.items():
            forms[name] |= form_blocks(row)
        return space.view().names(
            key
            for key, entity in space.rows.names.items()
            if split_key(key)[0] in wanted.norms
            or entity in wanted.entities
            or not wanted.blocks.keys().isdisjoint(blocks_of(key) | forms[key])
        )

    async def places(self, ns: str, keys: Collection[str]) -> Places:
        space = self._space(ns)
        found: dict[str, Counter[str]] = defaultdict(Counter)
        for (id_, name), row in space.rows.mentions.items():
            if name in keys:
                document = space.segments[id_].document_id
                found[name][scope_of(document)] += sum(count for _, count in row.forms)
        return found

    async def entities(self, ns: str, keys: Sequence[str]) -> Sequence[Entity]:
        space = self._space(ns)
        return [space.view().entity(key) for key in keys if key in space.rows.entities]

    async def list_entities(self, ns: str, limit: int = 100) -> Sequence[EntityCount]:
        found = await self.entities(ns, list(self._space(ns).rows.entities))
        counts = [EntityCount(e.key, e.name, e.type, len(e.segments)) for e in found]
        return sorted(counts, key=lambda count: (-count.segments, count.key))[: max(limit, 0)]

    async def types(self, ns: str) -> Sequence[str]:
        rows = self._space(ns).rows
        found = [
            *(row.type for row in rows.entities.values()),
            *(f.type for f in rows.facts.values()),
        ]
        return sorted({type_ for type_ in found if type_})

    async def segments_of_types(self, ns: str, types: Collection[str]) -> Sequence[str]:
        rows = self._space(ns).rows
        named = {key for key, row in rows.entities.items() if row.type in types}
        return [
            *{id_ for id_, name in rows.mentions if rows.names[name] in named}
            | {id_ for (id_, _), fact in rows.facts.items() if fact.type in types}
        ]

    async def mentions(self, ns: str, segment_ids: Sequence[str], most: int = 0) -> Mentions:
        space = self._space(ns)
        named: dict[str, list[tuple[str, str]]] = {
            id_: [] for id_ in segment_ids if id_ in space.segments
        }
        for row in sorted(space.rows.mentions.values(), key=lambda row: (row.segment_id, row.name)):
            if row.segment_id in named:
                entity = space.rows.names[row.name]
                named[row.segment_id] += [(form, entity) for form, _ in row.forms]
        keys = sorted({key for pairs in named.values() for _, key in pairs}) if most else ()
        found = {entity.key: entity.segments for entity in await self.entities(ns, keys)}
        return Mentions(named, {key: ids for key, ids in found.items() if len(ids) <= most})

    async def around(self, ns: str, keys: Sequence[str], *, texts: bool = False) -> Around:
        facts = self._space(ns).view().facts(keys)
        places = {entity.key: entity.segments for entity in await self.entities(ns, keys)}
        ends = {end for fact in facts for end in (fact.head, fact.tail)}
        named = await self.entities(ns, sorted(ends | places.keys()))
        found: Sequence[Segment] = ()
        if texts:
            wanted = {id_ for ids in places.values() for id_ in ids}
            found = await self.segments(ns, sorted(wanted, key=self._space(ns).place))
        return Around({entity.key: entity.name for entity in named}, facts, places, found)

    async def relations(self, ns: str, keys: Sequence[str]) -> Sequence[Relation]:
        return await merged_relations(self, ns, keys)

    async def misdrawn(self, ns: str) -> int:
        return 0

    async def questions(
        self, ns: str, segment_ids: Sequence[str] | None = None
    ) -> Sequence[Question]:
        space = self._space(ns)
        found = list(space.rows.questions.values())
        if segment_ids is not None:
            wanted = set(segment_ids)
            found = [question for question in found if question.segment_id in wanted]
        return sorted(found, key=lambda question: space.place(question.segment_id))

    async def counts(self, ns: str) -> Mapping[str, int]:
        space = self._space(ns)
        return {
            "documents": len(space.documents),
            "segments": len(space.segments),
            "entities": len(space.rows.entities),
            "facts": len(space.rows.facts),
            "questions": len(space.rows.questions),
            "trails": len(space.trails),
        }

    # --- search -------------------------------------------------------------------------------

    vocabulary = _searches(searching.vocabulary)
    matching_each = _searches(searching.matching_each)
    nearest = _searches(searching.nearest)
    entries = _searches(searching.entries)
    titled = _searches(searching.titled)

    async def shared_entities(
        self, ns: str, segment_ids: Sequence[str], most: int
    ) -> Mapping[str, tuple[Sequence[str], int]]:
        found = await self.mentions(ns, segment_ids, most)
        among = {
            key: [id_ for id_ in ids if id_ in found.named] for key, ids in found.places.items()
        }
        return {key: (ids, len(found.places[key])) for key, ids in among.items() if len(ids) >= 2}

    async def put_vectors(
        self, ns: str, kind: VectorKind, owners: Sequence[str], matrix: "NDArray[np.float32]"
    ) -> None:
        import numpy as np

        space = self._existing(ns)
        if not len(owners):
            return
        rows = np.array(matrix, dtype=np.float32).reshape(len(owners), -1)
        check_dimension(ns, space.info.embedder, space.info.dimension, rows.shape[1])
        given: dict[str, list[NDArray[np.float32]]] = {}
        for owner, row in zip(owners, rows, strict=True):
            given.setdefault(owner, []).append(row)
        for owner, mine in given.items():
            if kind == "relation" or owner in space.segments:
                space.vectors[kind, owner] = np.stack(mine)

    async def vectors(self, ns: str, kind: VectorKind, owners: Sequence[str]) -> Vectors:
        import numpy as np

        space, names = self._space(ns), await self.owners(ns, kind, owners)
        parts = [space.vectors[kind, name] for name in names]
        empty = np.empty((0, space.info.dimension), dtype=np.float32)
        marks = [name for name, part in zip(names, parts, strict=True) for _ in part]
        return Vectors(marks, np.concatenate([empty, *parts]))

    async def owners(
        self, ns: str, kind: VectorKind, among: Sequence[str] | None = None
    ) -> Sequence[str]:
        space = self._space(ns)
        names = {name for kind_, name in space.vectors if kind_ == kind}
        if among is not None:
            names &= set(among)
        return space.in_order(names) if kind == "segment" else sorted(names)

    # --- what runs leave behind ---------------------------------------------------------------

    async def put_trail(self, ns: str, trail: Trail) -> None:
        space = self._existing(ns)
        by_id = {kept.id: kept for kept in space.trails}
        by_id[trail.id] = from_plain(to_plain(trail), Trail)
        space.trails = [*by_id.values()]

    async def trails(
        self,
        ns: str,
        limit: int = 20,
        *,
        id: str | None = None,
        skip: int = 0,
        oldest_first: bool = False,
    ) -> Sequence[Trail]:
        found = [t for t in self._space(ns).trails if id in (None, t.id)]
        found.sort(key=lambda t: t.created)
        return found[:: 1 if oldest_first else -1][skip:][: max(limit, 0)]

    async def calls(self, ns: str) -> Sequence[CallRecord]:
        return list(self._space(ns).calls)

    async def put_cache_entry(
        self,
        ns: str,
        kind: CacheKind,
        key: str,
        value: Mapping[str, Any],
        *,
        segments: Sequence[str] = (),
        calls: Sequence[CallRecord] = (),
    ) -> None:
        ties = frozenset(segments)
        self._existing(ns).cached[kind, key] = (to_plain(value), ties)
        self._existing(ns).calls.extend(calls)

    async def cache_keys(self, ns: str, kind: CacheKind) -> Sequence[str]:
        return sorted(key for of, key in self._space(ns).cached if of == kind)

    async def cache_entries(
        self, ns: str, kind: CacheKind, keys: Sequence[str]
    ) -> Sequence[CacheEntry]:
        cached = self._space(ns).cached
        found = [(key, *cached[kind, key]) for key in keys if (kind, key) in cached]
        return [CacheEntry(key, to_plain(value), tuple(sorted(ties))) for key, value, ties in found]

    async def drop_cache_entries(self, ns: str, kind: CacheKind, keys: Sequence[str]) -> None:
        for key in keys:
            self._space(ns).cached.pop((kind, key), None)


def _check_encodable(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as exc:
        raise UsageError("a text holds half of a surrogate pair and cannot be kept") from exc
