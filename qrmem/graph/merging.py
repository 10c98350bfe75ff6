"""Bringing a namespace's view up to date with its facts, by compare-and-set (DESIGN, section 8)."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from qrmem.errors import StoreConflict
from qrmem.graph.disambiguation import Resolution, resolve
from qrmem.graph.view import (
    Decide,
    Rows,
    change_of,
    decided,
    naming_for,
    readings,
    resolved,
    respelled,
    rows_of,
    uses_after,
)
from qrmem.graphstore.protocol import Change, EntityRow, GraphStore, NameRow
from qrmem.types import Merge

Similar = Callable[[Sequence[NameRow]], Awaitable[Iterable[tuple[str, str, float]]]]
"""From names to pairs of name keys that count as one, with their cosine."""

_ATTEMPTS = 30
_LONGEST_PAUSE = 1.0
_ALL = 2**31 - 1
_BREATH = 100
"""Segments after which other tasks get their turn."""


async def merge_documents(
    store: GraphStore,
    ns: str,
    document_ids: Sequence[str],
    *,
    decide: Decide = decided,
    similar: Similar | None = None,
) -> int:
    """Make the view say what the contributions of some documents say.

    Segments whose rows are those of what is stored are left alone. Every call looks at all names
    of the namespace: many small documents are merged together, not one by one.

    Args:
        decide: which generated questions count; the same as when the documents were read.
        similar: names that an embedder finds alike; the same in every call on a namespace.

    Returns:
        How many segments' rows were made.

    Raises:
        StoreConflict: others changed the namespace again and again.
    """
    for attempt in range(_ATTEMPTS):
        try:
            return await _merged_once(store, ns, document_ids, decide, similar)
        except StoreConflict:
            await _pause(attempt)
    raise StoreConflict(f"namespace {ns!r} is changed by others all the time; try again later")


async def merge_document(store: GraphStore, ns: str, document_id: str) -> int:
    """Merge one document; see `merge_documents`."""
    return await merge_documents(store, ns, [document_id])


@dataclass(frozen=True, slots=True)
class _Foreseen:
    """What names were resolved to before they were written, as it would be found again.

    Attributes:
        revision: at which it holds for certain: all names were new, so none had a surface before.
    """

    names: Sequence[NameRow]
    resolution: Resolution
    revision: int | None

    def holds_for(self, names: Sequence[NameRow]) -> bool:
        """Whether the names came out as expected: a surface is the store's to choose."""
        expected = {name.key: (name.surface, name.count) for name in self.names}
        entities = self.resolution.names
        return len(names) == len(expected) and all(
            expected.get(name.key) == (name.surface, name.count)
            and entities[name.key] == name.entity
            for name in names
        )


async def refresh_names(
    store: GraphStore,
    ns: str,
    *,
    similar: Similar | None = None,
    foreseen: _Foreseen | None = None,
) -> None:
    """Resolve the names that are left after a deletion, or after a user's decision.

    An alias may fit only one name now, a canonical name may be gone.

    Args:
        similar: as in `merge_documents`.
        foreseen: what a merge has just written; where it holds nothing is left to resolve.

    Raises:
        StoreConflict: others changed the namespace again and again.
    """
    for attempt in range(_ATTEMPTS):
        try:
            await _refreshed_once(store, ns, similar, foreseen)
            return
        except StoreConflict:
            await _pause(attempt)
    raise StoreConflict(f"namespace {ns!r} is changed by others all the time; try again later")


async def current_merges(
    store: GraphStore, ns: str, *, similar: Similar | None = None
) -> Sequence[Merge]:
    """Return which names count as another and why, by entity key and name."""
    names = await store.names(ns)
    alike = await similar(names) if similar else ()
    return resolved(names, await store.decisions(ns), alike).merges


async def _merged_once(
    store: GraphStore,
    ns: str,
    document_ids: Sequence[str],
    decide: Decide,
    similar: Similar | None,
) -> int:
    revision = await _revision(store, ns)
    names = await store.names(ns)
    wanted = list(dict.fromkeys(document_ids))
    rows, clear = await _unmerged(store, ns, wanted, decide)
    foreseen = None
    if rows.merged:
        uses = uses_after(names, rows.mentions)
        expected = [NameRow(use.key, use.surface, use.count, "") for use in uses]
        alike = list(await similar(expected)) if similar else []
        decisions = await store.decisions(ns)
        resolution = resolve(uses, decisions, alike)
        moved, written = naming_for(resolution, names, await _entities(store, ns))
        change = replace(change_of(rows, clear), names=moved, entities=written)
        after = await store.apply(ns, revision, change)
        foreseen = _Foreseen(expected, resolution, None if names else after)
    await refresh_names(store, ns, similar=similar, foreseen=foreseen)
    return len(rows.merged)


async def _unmerged(
    store: GraphStore,
    ns: str,
    document_ids: Sequence[str],
    decide: Decide,
) -> tuple[Rows, list[str]]:
    """Return the rows that the view lacks, and the segments whose rows they replace."""
    rows, replaced = Rows(), []
    merged = await store.merged_segments(ns, *document_ids)
    segments = await store.segments_of(ns, *document_ids)
    contributions = await store.contributions(ns, *document_ids)
    for n, read in enumerate(readings(segments, contributions, decide)):
        before = merged.get(read.segment.id)
        if before is None or before != read.digest:
            rows.add(rows_of(read))
            replaced += [] if before is None else [read.segment.id]
        if n % _BREATH == _BREATH - 1:
            await asyncio.sleep(0)
    return rows, replaced


async def _refreshed_once(
    store: GraphStore, ns: str, similar: Similar | None, foreseen: "_Foreseen | None"
) -> None:
    revision = await _revision(store, ns)
    if foreseen is not None and foreseen.revision == revision:
        resolution = foreseen.resolution
    else:
        revision, resolution = await _resolved_again(store, ns, revision, similar, foreseen)
    spelled = respelled(await store.entities(ns, sorted(resolution.unspelled)))
    if spelled:
        await store.apply(ns, revision, Change(entities=spelled))


async def _resolved_again(
    store: GraphStore,
    ns: str,
    revision: int,
    similar: Similar | None,
    foreseen: "_Foreseen | None",
) -> tuple[int, Resolution]:
    names = await store.names(ns)
    if foreseen is not None and foreseen.holds_for(names):
        return revision, foreseen.resolution
    alike = await similar(names) if similar else ()
    resolution = resolved(names, await store.decisions(ns), alike)
    moved, written = naming_for(resolution, names, await _entities(store, ns))
    if moved or written:
        revision = await store.apply(ns, revision, Change(names=moved, entities=written))
    return revision, resolution


async def _entities(store: GraphStore, ns: str) -> dict[str, EntityRow]:
    listed = await store.list_entities(ns, _ALL)
    return {found.key: EntityRow(found.key, found.name, found.type) for found in listed}


async def _revision(store: GraphStore, ns: str) -> int:
    info = await store.namespace(ns)
    return info.revision if info else 0


async def _pause(attempt: int) -> None:
    await asyncio.sleep(min(_LONGEST_PAUSE, 0.01 * 2**attempt))
