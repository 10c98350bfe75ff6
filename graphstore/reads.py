"""What several callers make of a store's own methods, and writes that an answer can do without."""

from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

from qrmem.errors import StoreUnavailable
from qrmem.graphstore.protocol import MERGED, Artefacts, CacheKind, FactStore, GraphStore, GraphView
from qrmem.graphstore.relations import Chain, chains, fold_key, relations_of
from qrmem.types import Event, Fact, Listener, Relation


async def cached_value(
    store: Artefacts, ns: str, kind: CacheKind, key: str
) -> Mapping[str, Any] | None:
    """Return the value that is cached under one key, or `None`."""
    return next((found.value for found in await store.cached(ns, kind, [key])), None)


async def merged_segments(store: FactStore, ns: str, *document_ids: str) -> list[str]:
    """Return the ids of the merged segments of some documents, or of all, in order."""
    return [row.segment_id for row in await store.ledger(ns, *document_ids) if row.merged]


async def entities_in(
    store: GraphView, ns: str, segment_ids: Sequence[str]
) -> dict[str, tuple[str, ...]]:
    """Return the id of each segment that is there to the keys of its entities, sorted."""
    named = (await store.mentions(ns, segment_ids)).named
    return {
        id_: tuple(sorted({key for _, key in named[id_]})) for id_ in segment_ids if id_ in named
    }


async def names_said(
    store: GraphView, ns: str, names: Mapping[str, str], segment_ids: Sequence[str]
) -> dict[str, str]:
    """Return the names of those entities that some segments name, as these name them.

    An entity keeps its name where one of them has it, else it goes by the form that most have:
    its name may come from texts that their reader must not see.

    Args:
        names: entity key to name.
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


async def facts_of(store: GraphView, ns: str, keys: Sequence[str]) -> Sequence[Fact]:
    """Return the facts with an end in `keys`, in (document id, segment index, n) order."""
    return (await store.around(ns, keys)).facts


async def kept_folds(
    store: Artefacts, ns: str, found: Iterable[Chain]
) -> dict[str, Mapping[str, Any]]:
    """Return what a chat model merged some chains into, by their keys, where it did."""
    keys = [chain.key for chain in found if chain.key]
    return (
        {entry.key: entry.value for entry in await store.cached(ns, "fold", keys)} if keys else {}
    )


async def current_folds(store: GraphStore, ns: str) -> set[str]:
    """Return the keys of all folded descriptions that a namespace's facts, as they are, may use."""
    documents = await store.document_ids(ns)
    document_of = {row.id: row.document_id for row in await store.segments(ns, documents=documents)}
    keys = list(dict.fromkeys(row.entity for row in await store.names(ns)))
    found = chains(await facts_of(store, ns, keys), document_of)
    return {fold_key(one.told[:n]) for one in found for n in range(2, len(one.told) + 1)}


async def merged_relations(store: GraphStore, ns: str, keys: Sequence[str]) -> list[Relation]:
    """Return what `GraphStore.relations` says, computed from facts and kept descriptions."""
    return await relations_from(store, ns, await facts_of(store, ns, keys))


async def relations_from(store: GraphStore, ns: str, facts: Sequence[Fact]) -> list[Relation]:
    """Return the relations that some facts make, by key.

    Args:
        facts: in (document id, segment index, n) order; of each relation all.
    """
    is_folded = bool(await store.cached_keys(ns, "fold"))
    ids = list(dict.fromkeys(fact.segment_id for fact in facts))
    segments = await store.segments(ns, ids)
    found = chains(facts, {segment.id: segment.document_id for segment in segments})
    return relations_of(found, await kept_folds(store, ns, found) if is_folded else {})


async def copy_document(source: GraphStore, target: GraphStore, ns: str, document_id: str) -> None:
    """Copy a document, if it is there, with all that was read of it."""
    document = await source.document(ns, document_id)
    if document is None:
        return
    segments = await source.segments(ns, documents=[document_id])
    await target.put_documents(ns, [(document, segments)])
    summaries = {known.id: known.summary for known in await source.documents(ns, [document_id])}
    rows = {row.segment_id: row for row in await source.ledger(ns, document_id)}
    made = await source.contributions(ns, document_id, kinds=MERGED)
    read = [(rows[found.segment_id], found) for found in made]
    await target.record(ns, read, summaries=summaries)


# Writes that an answer can do without: its trail, its calls, replies kept for a second time.


class BestEffortWriter:
    """Writes beside one answer; a store that refuses them does not cost the answer.

    After the first refusal the others are left out: each may wait half a minute for a lock.

    Attributes:
        is_open: whether the store took everything so far.
    """

    def __init__(self, store: GraphStore, listener: Listener | None = None) -> None:
        self.is_open = not store.is_read_only
        self._listener = listener

    async def write(self, work: Callable[[], Awaitable[None]]) -> None:
        """Write, unless the store is for reading only or has refused already."""
        if not self.is_open:
            return
        try:
            await work()
        except StoreUnavailable as exc:
            self.is_open = False
            message = f"this answer was not recorded: {exc}"
            if self._listener is not None:
                self._listener(Event("warning", {"message": message}))
