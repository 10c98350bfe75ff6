"""Reads that combine a store's methods, and best-effort writes."""

from collections import Counter, defaultdict
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Mapping,
    Sequence,
)
from dataclasses import replace
from typing import Any

from qrmem.errors import StoreUnavailable
from qrmem.graphstore.protocol import (
    MERGED,
    Artefacts,
    CacheKind,
    FactStore,
    GraphStore,
    GraphView,
    NameFilter,
    NameRow,
    RunLog,
)
from qrmem.graphstore.relations import Chain, chains, fold_key, relations_of
from qrmem.text.dates import is_said_by, said_at, start_of
from qrmem.text.names import Occurrences, normalise_name, split_key
from qrmem.text.names.blocks import form_block
from qrmem.types import Entity, Event, Fact, Listener, Relation, Trail

_PORTION = 256
"""Number of trails that are read at once."""


async def cached_value(
    store: Artefacts, ns: str, kind: CacheKind, key: str
) -> Mapping[str, Any] | None:
    """Return the cached value of a key, or `None`."""
    return next((entry.value for entry in await store.cache_entries(ns, kind, [key])), None)


async def merged_segments(store: FactStore, ns: str, *document_ids: str) -> list[str]:
    """Return the ids of the merged segments of some documents, or of all, in order."""
    return [row.segment_id for row in await store.ledger(ns, *document_ids) if row.merged]


async def entities_in(
    store: GraphView, ns: str, segment_ids: Sequence[str]
) -> dict[str, tuple[str, ...]]:
    """Return each existing segment's id with the sorted keys of its entities."""
    names_by_segment = (await store.mentions(ns, segment_ids)).named
    return {
        id_: tuple(sorted({key for _, key in names_by_segment[id_]}))
        for id_ in segment_ids
        if id_ in names_by_segment
    }


MOST_CALLED = 50
"""Maximum number of names that are looked at for one other form."""


async def names_called(store: GraphView, ns: str, norms: Collection[str]) -> list[NameRow]:
    """Return the names of some normalised forms, and those with one of them as another form.

    Other forms are those that a chat model gives; what the rules join is a name of its own.
    """
    wanted = set(norms)
    if not wanted:
        return []
    blocks = {form_block(norm): MOST_CALLED for norm in wanted}
    rows = await store.names(ns, NameFilter(norms=wanted, blocks=blocks))
    return [
        row
        for row in rows
        if split_key(row.key)[0] in wanted
        or any(normalise_name(form) in wanted for form, _ in row.forms)
    ]


async def names_said(
    store: GraphView, ns: str, names: Mapping[str, str], segment_ids: Sequence[str]
) -> dict[str, str]:
    """Return the names of the entities that occur in some segments, in the segments' own forms.

    An entity keeps its name if one of the segments uses it; else it gets the most frequent form,
    as its name may come from texts that the reader must not see.

    Args:
        names: entity key to name.
        segment_ids: the segments that the reader may see.
    """
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for pairs in (await store.mentions(ns, segment_ids)).named.values():
        for form, key in pairs:
            if key in names:
                found[key][form] += 1
    return {
        key: names[key] if names[key] in forms else min(forms, key=lambda one: (-forms[one], one))
        for key, forms in found.items()
    }


async def entity_said_by(store: GraphStore, ns: str, entity: Entity, as_of: str) -> Entity:
    """Return an entity with only statements made by a time; undated texts count as earlier.

    Args:
        as_of: a date or moment in ISO form; "": all.
    """
    if not as_of:
        return entity
    segments = await store.segments(ns, entity.segments)
    infos = await store.documents(ns, sorted({segment.document_id for segment in segments}))
    held = {info.id for info in infos if is_said_by(said_at(info.metadata), as_of)}
    texts = {segment.id: segment.text for segment in segments if segment.document_id in held}
    forms: Counter[str] = Counter()
    for id_, pairs in (await store.mentions(ns, list(texts))).named.items():
        counts = Occurrences(texts[id_]).counted(form for form, _ in pairs)
        forms.update({form: counts[form] for form, key in pairs if key == entity.key})
    shown = tuple((form, forms[form]) for form, _ in entity.forms if form in forms)
    return replace(
        entity,
        name=entity.name if entity.name in forms or not shown else shown[0][0],
        forms=tuple(sorted(shown, key=lambda one: -one[1])),
        segments=tuple(id_ for id_ in entity.segments if id_ in texts),
        properties=tuple(one for one in entity.properties if one.segment_id in texts),
    )


async def entities_in_time(store: GraphStore, ns: str, keys: Sequence[str]) -> list[Entity]:
    """Return entities in the order of the keys, with their properties in order of time.

    Properties from undated texts come first.
    """
    found = await store.entities(ns, keys)
    ids = {one.segment_id for e in found if len(e.properties) > 1 for one in e.properties}
    segments = await store.segments(ns, sorted(ids)) if ids else ()
    document_ids = sorted({segment.document_id for segment in segments})
    infos = await store.documents(ns, document_ids) if document_ids else ()
    times = {info.id: start_of(at) for info in infos if (at := said_at(info.metadata))}
    said = {segment.id: times.get(segment.document_id, "") for segment in segments}
    return [
        replace(
            e, properties=tuple(sorted(e.properties, key=lambda one: said.get(one.segment_id, "")))
        )
        for e in found
    ]


async def facts_of(store: GraphView, ns: str, keys: Sequence[str]) -> Sequence[Fact]:
    """Return the facts about the entities `keys`, in (document id, segment index, n) order."""
    return (await store.around(ns, keys)).facts


async def kept_folds(
    store: Artefacts, ns: str, found: Iterable[Chain]
) -> dict[str, Mapping[str, Any]]:
    """Return the cached texts that a chat model merged some chains into, by the chains' keys."""
    keys = [chain.key for chain in found if chain.key]
    return (
        {entry.key: entry.value for entry in await store.cache_entries(ns, "fold", keys)}
        if keys
        else {}
    )


async def current_folds(store: GraphStore, ns: str) -> set[str]:
    """Return the keys of all folded descriptions that a namespace's current facts may use."""
    documents = await store.document_ids(ns)
    document_of = {row.id: row.document_id for row in await store.segments(ns, documents=documents)}
    keys = list(dict.fromkeys(row.entity for row in await store.names(ns)))
    chains_found = chains(await facts_of(store, ns, keys), document_of)
    return {fold_key(one.told[:n]) for one in chains_found for n in range(2, len(one.told) + 1)}


async def merged_relations(store: GraphStore, ns: str, keys: Sequence[str]) -> list[Relation]:
    """Return the relations of some entities, computed from facts and cached descriptions."""
    return await relations_from(store, ns, await facts_of(store, ns, keys))


async def relations_from(store: GraphStore, ns: str, facts: Sequence[Fact]) -> list[Relation]:
    """Return the relations of some facts, by key.

    Args:
        facts: all facts of each relation, in (document id, segment index, n) order.
    """
    is_folded = bool(await store.cache_keys(ns, "fold"))
    ids = list(dict.fromkeys(fact.segment_id for fact in facts))
    segments = await store.segments(ns, ids)
    chains_found = chains(facts, {segment.id: segment.document_id for segment in segments})
    return relations_of(
        chains_found, await kept_folds(store, ns, chains_found) if is_folded else {}
    )


async def every_trail(store: RunLog, ns: str) -> AsyncIterator[Trail]:
    """Yield all trails, oldest first; a memory has thousands, so they are read in portions.

    Those that are yielded may be written again meanwhile, and new ones may come: none is missed.
    """
    skip = 0
    while found := await store.trails(ns, _PORTION, skip=skip, oldest_first=True):
        for trail in found:
            yield trail
        skip += len(found)


async def copy_document(source: GraphStore, target: GraphStore, ns: str, document_id: str) -> None:
    """Copy a document, if it exists, with its summary, ledger rows and contributions."""
    document = await source.document(ns, document_id)
    if document is None:
        return
    segments = await source.segments(ns, documents=[document_id])
    await target.put_documents(ns, [(document, segments)])
    summaries = {info.id: info.summary for info in await source.documents(ns, [document_id])}
    rows = {row.segment_id: row for row in await source.ledger(ns, document_id)}
    contributions = await source.contributions(ns, document_id, kinds=MERGED)
    read = [(rows[contribution.segment_id], contribution) for contribution in contributions]
    await target.record(ns, read, summaries=summaries)


# Writes that an answer does not depend on: its trail, its calls, cached replies.


class BestEffortWriter:
    """Best-effort writes of one answer: a failed write gives a warning, not an error.

    After the first failure it writes nothing more, as each write may wait 30 s for a lock.

    Attributes:
        is_open: whether it still writes: the store is writable and no write has failed.
    """

    def __init__(self, store: GraphStore, listener: Listener | None = None) -> None:
        self.is_open = not store.is_read_only
        self._listener = listener

    async def write(self, work: Callable[[], Awaitable[None]]) -> None:
        """Run a write, unless the store is read-only or an earlier write failed."""
        if not self.is_open:
            return
        try:
            await work()
        except StoreUnavailable as exc:
            self.is_open = False
            message = f"this answer was not recorded: {exc}"
            if self._listener is not None:
                self._listener(Event("warning", {"message": message}))
