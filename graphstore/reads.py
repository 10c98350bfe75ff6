"""Short reads that several callers make of a store's own."""

from collections.abc import Mapping, Sequence
from typing import Any

from qrmem.graphstore.protocol import Artefacts, FactStore, GraphView
from qrmem.types import Fact


async def kept_value(store: Artefacts, ns: str, key: str) -> Mapping[str, Any] | None:
    """Return the value that is kept under one key, or `None`."""
    return next((found.value for found in await store.kept(ns, [key])), None)


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


async def facts_of(store: GraphView, ns: str, keys: Sequence[str]) -> Sequence[Fact]:
    """Return the facts with an end in `keys`, in (document id, segment index, n) order."""
    return (await store.around(ns, keys)).facts
