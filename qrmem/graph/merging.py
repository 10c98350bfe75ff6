"""Bringing a namespace's view up to date with its facts, by compare-and-set.

The rows of new segments and the entities of their names are written in one transaction. Only the
names that a change affects are resolved, together with the names that they could match.
If rows are replaced, an embedder compares names, or many names wait, the rows are written first,
and names are resolved in further transactions. If a run stops between, the next merge resolves
the rest.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate, takewhile, zip_longest
from operator import attrgetter, itemgetter
from typing import TypeVar
from weakref import WeakKeyDictionary

from qrmem.errors import StoreConflict
from qrmem.graph.affected_names import AffectedNames, parents_of
from qrmem.graph.name_parents import NameUse
from qrmem.graph.resolution import Resolution, candidates_of, resolution_of, summed
from qrmem.graph.view_rows import (
    Deletions,
    Read,
    Rows,
    change_of,
    forms_of,
    readings,
    rows_of,
    uses_of,
)
from qrmem.graphstore.protocol import (
    EntityRow,
    GraphStore,
    NameFilter,
    NameRow,
    Unmerged,
    ViewUpdate,
)
from qrmem.graphstore.records import Places
from qrmem.llm.parallel import in_batches
from qrmem.text.names import meant_name, split_key
from qrmem.types import Contribution, Merge, MergeDecision, Segment
from qrmem.types.turns import scope_of

T = TypeVar("T")
Similar = Callable[[Sequence[NameRow]], Awaitable[Iterable[tuple[str, str, float]]]]
"""Function from all names to pairs of matching name keys, with their cosine."""

PORTION = 512
"""Number of segments per transaction."""
_TOGETHER = 1000
"""Number of names whose entities are written in a transaction: a Neo4j has room for a few."""
_ATTEMPTS = 30
_LONGEST_PAUSE = 1.0
_BREATH = 100
"""Number of segments after which other tasks may run."""
_TURNS: WeakKeyDictionary[GraphStore, asyncio.Lock] = WeakKeyDictionary()


async def merge_documents(
    store: GraphStore,
    ns: str,
    document_ids: Sequence[str],
    *,
    similar: Similar | None = None,
) -> int:
    """Update the view from the contributions of some documents.

    Segments whose rows are current are left alone.

    Args:
        store: the store.
        ns: the namespace.
        document_ids: the documents.
        similar: finds similar names by an embedder; then all names are resolved again, in time
            proportional to the memory.

    Returns:
        The number of segments with new rows.

    Raises:
        StoreConflict: other writers changed the namespace repeatedly.
    """
    count_merged, limit = 0, PORTION
    is_open = similar is not None or not document_ids
    left = list(dict.fromkeys(document_ids))
    sizes = {i.id: i.segments for i in await store.documents(ns, left)} if left[1:] else {}

    async def merge() -> tuple[int, bool]:
        nonlocal left, limit
        portion = _portion(left, sizes, limit)
        try:
            count, is_resolved, is_whole = await _merged(
                store, ns, portion, limit, resolves=similar is None
            )
        except StoreConflict:
            limit = max(1, limit // 2)  # a smaller portion conflicts less
            raise
        limit = min(PORTION, 2 * limit)
        left = left[len(portion) :] if is_whole else left
        return count, is_resolved

    while left:
        count, is_resolved = await _retried(store, merge)
        count_merged += count
        is_open = is_open or not is_resolved
    if is_open:
        await refresh_names(store, ns, similar=similar)
    return count_merged


async def edit_statements(
    store: GraphStore,
    ns: str,
    document_ids: Sequence[str],
    edits_of: Callable[[Sequence[Read], Mapping[str, str]], Iterable[Contribution]],
) -> None:
    """Store a user's edits of statements with the rows that they change, in one transaction.

    Args:
        store: the store.
        ns: the namespace.
        document_ids: the documents with the statements.
        edits_of: returns the edits, from the segments and the users of the documents.

    Raises:
        StoreConflict: other writers changed the namespace repeatedly.
    """

    async def edit() -> None:
        found = await store.unmerged(ns, *document_ids)
        reads = readings(found.segments, found.contributions, found.said_at)
        edits: dict[str, list[Contribution]] = defaultdict(list)
        for made in edits_of(reads, found.users):
            edits[made.segment_id].append(made)
        rows = Rows()
        for read in reads:
            if read.segment.id in edits:
                rows.add(rows_of(read.with_edits(edits[read.segment.id])))
                rows.edits.extend(edits[read.segment.id])
        # No name and no mention changes: none becomes stale.
        resolved = {row.name for row in rows.mentions} - found.stale.keys()
        change = replace(change_of(rows, list(edits)), resolved=sorted(resolved))
        if edits:
            await store.apply(ns, found.revision, change)

    await merge_documents(store, ns, document_ids)
    await _retried(store, edit)


async def override_merge(
    store: GraphStore, ns: str, decision: MergeDecision, *, similar: Similar | None = None
) -> None:
    """Store a user's decision on two names with the entities that it changes.

    Args:
        similar: as in `merge_documents`.

    Raises:
        StoreConflict: other writers changed the namespace repeatedly.
    """
    await _retried(store, partial(_refreshed, store, ns, similar, decision))


async def refresh_names(
    store: GraphStore, ns: str, *, similar: Similar | None = None, attempts: int = _ATTEMPTS
) -> None:
    """Resolve stale names: after a merge or a deletion.

    Args:
        store: the store.
        ns: the namespace.
        similar: as in `merge_documents`.
        attempts: how often it is tried while other writers change the namespace.

    Raises:
        StoreConflict: other writers changed the namespace repeatedly.
    """
    await _retried(store, partial(_refreshed, store, ns, similar), attempts)


async def current_merges(
    store: GraphStore, ns: str, *, similar: Similar | None = None
) -> Sequence[Merge]:
    """Return the merged names and the reasons, by entity key and name."""
    names, decisions = await store.names(ns), (await store.unmerged(ns)).decisions
    if similar is not None:
        return (await _resolve(store, ns, names, decisions, similar)).merges
    # Most names stand alone: only the others, and names near them, are resolved again.
    sizes = Counter(row.entity for row in names)
    affected = AffectedNames(store, ns, decisions)
    await affected.take({row.key: row.entity for row in names if sizes[row.entity] > 1})
    return affected.resolution().merges


async def resolved_beside(
    store: GraphStore, ns: str, rows: Rows, segments: Sequence[Segment]
) -> tuple[list[NameRow], Resolution]:
    """Return the stored names near those of some rows, and all their entities if these were stored.

    Args:
        rows: rows whose names the store does not have.
        segments: the segments of these rows.
    """
    decisions = (await store.unmerged(ns)).decisions
    affected = AffectedNames(
        store,
        ns,
        decisions,
        forms_of(rows.mentions),
        _places(rows, segments),
        _said(rows),
    )
    await affected.take({})
    stored = [row for key, row in affected.names.items() if key not in affected.new]
    return stored, affected.resolution()


# --- rows ----------------------------------------------------------------------------------------


def _portion(ids: Sequence[str], sizes: Mapping[str, int], limit: int) -> Sequence[str]:
    """Return the first documents, at least one, with at most so many segments together."""
    fitting = takewhile(lambda n: n <= limit, accumulate(sizes.get(id, 0) for id in ids))
    return ids[: max(1, len(list(fitting)))]


async def _merged(
    store: GraphStore,
    ns: str,
    document_ids: Sequence[str],
    limit: int,
    *,
    resolves: bool,
) -> tuple[int, bool, bool]:
    """Write missing rows of the view, and resolve their names if that needs no further read.

    Args:
        limit: maximum number of segments.
        resolves: whether names may be resolved at once.

    Returns:
        The number of segments with new rows, whether no name is left to resolve, and whether no
        row is left to write.
    """
    unmerged = await store.unmerged(ns, *document_ids)
    rows, clear, is_whole = await _unmerged(unmerged, limit)
    if not rows.merged:
        return 0, not unmerged.stale, is_whole
    if clear or not resolves or len(unmerged.stale) > _TOGETHER:
        change = await _unresolved(store, ns, rows, clear)
    else:
        change = await _resolved(store, ns, rows, unmerged)
    await store.apply(ns, unmerged.revision, change)
    return len(rows.merged), bool(change.resolved), is_whole


async def _unmerged(found: Unmerged, limit: int) -> tuple[Rows, list[str], bool]:
    """Return missing rows, the segments whose rows they replace, and whether these are all."""
    rows = Rows()
    replaced: list[str] = []
    deletions = Deletions(found.edits)
    for n, read in enumerate(readings(found.segments, found.contributions, found.said_at)):
        before = found.merged.get(read.segment.id)
        if before is None or before != read.digest:
            if len(rows.merged) == limit:
                return rows, replaced, False
            again = deletions.again_in(read, found.users.get(read.segment.document_id, ""))
            rows.add(rows_of(read.with_edits(again)))
            rows.edits.extend(again)
            replaced += [] if before is None else [read.segment.id]
        if n % _BREATH == _BREATH - 1:
            await asyncio.sleep(0)
    return rows, replaced, True


async def _unresolved(store: GraphStore, ns: str, rows: Rows, clear: Sequence[str]) -> ViewUpdate:
    """Return the update in which each new name is its own entity."""
    names_used = {row.name for row in rows.mentions}
    names_known = await store.names(ns, NameFilter(norms={split_key(key)[0] for key in names_used}))
    new = names_used - {row.key for row in names_known}
    alone = resolution_of(
        {use.key: use for use in uses_of(rows.mentions) if use.key in new}, dict.fromkeys(new, "")
    )
    return change_of(rows, clear, alone.names, list(alone.entities.values()))


async def _resolved(store: GraphStore, ns: str, rows: Rows, found: Unmerged) -> ViewUpdate:
    """Return the update that adds rows, with the entities of their names."""
    affected = AffectedNames(
        store,
        ns,
        found.decisions,
        forms_of(rows.mentions),
        _places(rows, found.segments),
        _said(rows),
    )
    resolved = await affected.take(found.stale)
    names, entities = _renamed(affected.names, affected.resolution(), affected.new)
    return replace(change_of(rows, (), names, entities), resolved=resolved)


# --- names ---------------------------------------------------------------------------------------


async def _refreshed(
    store: GraphStore, ns: str, similar: Similar | None, made: MergeDecision | None = None
) -> None:
    now = await store.unmerged(ns)
    decisions, stale = now.decisions, dict(now.stale)
    if made is not None:
        others = (one for one in decisions if (one.first, one.second) != (made.first, made.second))
        decisions = sorted((*others, made), key=attrgetter("first", "second"))
        decided = NameFilter(norms={meant_name(made.first), meant_name(made.second)})
        stale = {row.key: row.entity for row in await store.names(ns, decided)} | stale
    updates: list[ViewUpdate] = []
    if similar is not None:
        names = await store.names(ns)
        found = await _resolve(store, ns, names, decisions, similar)
        updates += _updates(*_renamed({row.key: row for row in names}, found), stale)
    elif stale:
        affected = AffectedNames(store, ns, decisions)
        await affected.take(stale)
        updates += _updates(*_renamed(affected.names, affected.resolution()), stale)
    if made is not None:  # what a later update resolves stays stale until then
        first = updates[0] if updates else ViewUpdate()
        updates[:1] = [replace(first, decisions=[made])]
    revision = now.revision
    for change in updates:
        revision = await store.apply(ns, revision, change)


def _updates(
    moved: Mapping[str, str], changed: Iterable[EntityRow], stale: Collection[str]
) -> Iterator[ViewUpdate]:
    """Yield updates that give names to entities, each name with its entity's row."""
    rows, used = {row.key: row for row in changed}, set(moved.values())
    batches = (
        in_batches(sorted(moved.items(), key=itemgetter(1)), _TOGETHER),
        in_batches([row for row in rows.values() if row.key not in used], _TOGETHER),
        in_batches([key for key in stale if key not in moved], _TOGETHER),
    )
    for names, others, unmoved in zip_longest(*batches, fillvalue=()):
        entities = dict.fromkeys(entity for _, entity in names)
        yield ViewUpdate(
            names=dict(names),
            entities=[*(rows[key] for key in entities if key in rows), *others],
            resolved=[*(key for key, _ in names), *unmoved],
        )


async def _resolve(
    store: GraphStore,
    ns: str,
    names: Sequence[NameRow],
    decisions: Sequence[MergeDecision],
    similar: Similar,
) -> Resolution:
    """Return the entities of all names."""
    uses = summed(map(NameUse.of, names))
    said = {row.key for row in names if row.said}
    parents = await parents_of(store, ns, uses, candidates_of(uses, said), uses)
    return resolution_of(uses, parents, decisions, await similar(names))


def _places(rows: Rows, segments: Sequence[Segment]) -> Places:
    """Return where rows name the names."""
    document_of = {segment.id: scope_of(segment.document_id) for segment in segments}
    places: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows.mentions:
        places[row.name][document_of[row.segment_id]] += sum(count for _, count in row.forms)
    return places


def _said(rows: Rows) -> set[str]:
    """Return the names that a chat model gave."""
    return {row.name for row in rows.mentions if row.said}


def _renamed(
    before: Mapping[str, NameRow], found: Resolution, new: Collection[str] = ()
) -> tuple[dict[str, str], list[EntityRow]]:
    """Return the names whose entity changes, and the changed entities.

    Args:
        new: names that had no entity.
    """
    moved = {
        key: entity
        for key, entity in found.names.items()
        if key in new or before[key].entity != entity
    }
    stored_rows = {
        row.entity: EntityRow(row.entity, row.entity_name, row.entity_type)
        for key, row in before.items()
        if key not in new
    }
    return moved, [row for key, row in found.entities.items() if stored_rows.get(key) != row]


async def _retried(
    store: GraphStore, work: Callable[[], Awaitable[T]], attempts: int = _ATTEMPTS
) -> T:
    """Change the view under a lock of this process; retry after writes of other processes."""
    for attempt in range(attempts):
        try:
            async with _TURNS.setdefault(store, asyncio.Lock()):
                return await work()
        except StoreConflict:
            await asyncio.sleep(min(_LONGEST_PAUSE, 0.01 * 2**attempt))
    raise StoreConflict("other programs keep changing the namespace; try again later")
