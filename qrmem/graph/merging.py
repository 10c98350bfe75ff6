"""Bringing a namespace's view up to date with its facts, by compare-and-set.

The rows of new segments and the entities of their names are written in one transaction. Only the
names that a change affects are resolved, together with the names that they could match.
If rows are replaced, or an embedder compares names, the rows are written first and names are
resolved in a second transaction. If a run stops between the two, the next merge resolves them.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate, takewhile
from typing import TypeVar
from weakref import WeakKeyDictionary

from qrmem.errors import StoreConflict
from qrmem.graph.name_parents import MOST, Judge
from qrmem.graph.name_people import NameUse
from qrmem.graph.resolution import Resolution, resolution_of, resolve
from qrmem.graph.view_rows import Rows, change_of, forms_of, readings, rows_of, uses_of
from qrmem.graphstore.protocol import (
    EntityRow,
    GraphStore,
    NameFilter,
    NameRow,
    Unmerged,
    ViewUpdate,
)
from qrmem.graphstore.records import by_frequency
from qrmem.text.blocks import blocks_of, own_block
from qrmem.text.names import meant_name, split_key
from qrmem.types import Merge, MergeDecision

T = TypeVar("T")
Similar = Callable[[Sequence[NameRow]], Awaitable[Iterable[tuple[str, str, float]]]]
"""Function from all names to pairs of matching name keys, with their cosine."""

PORTION = 512
"""Number of segments per transaction."""
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


async def refresh_names(store: GraphStore, ns: str, *, similar: Similar | None = None) -> None:
    """Resolve stale names: after a merge, a deletion or a user's decision.

    Args:
        store: the store.
        ns: the namespace.
        similar: as in `merge_documents`.

    Raises:
        StoreConflict: other writers changed the namespace repeatedly.
    """
    await _retried(store, partial(_refreshed, store, ns, similar))


async def current_merges(
    store: GraphStore, ns: str, *, similar: Similar | None = None
) -> Sequence[Merge]:
    """Return the merged names and the reasons, by entity key and name."""
    names, decisions = await store.names(ns), (await store.unmerged(ns)).decisions
    if similar is not None:
        return resolve(map(NameUse.of, names), decisions, await similar(names)).merges
    # Most names stand alone: only the others, and names near them, are resolved again.
    sizes = Counter(row.entity for row in names)
    affected = AffectedNames(store, ns, decisions)
    await affected.take({row.key: row.entity for row in names if sizes[row.entity] > 1})
    return affected.resolution().merges


async def near_names(store: GraphStore, ns: str, keys: Iterable[str]) -> Sequence[NameRow]:
    """Return the stored names that could match some names, with all names of their entities."""
    blocks = dict.fromkeys((block for key in keys for block in blocks_of(key)), MOST)
    name_rows = await store.names(ns, NameFilter(blocks=blocks))
    return await store.names(ns, NameFilter(entities={row.entity for row in name_rows}))


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
    if clear or not resolves:
        change = await _unresolved(store, ns, rows, clear)
    else:
        change = await _resolved(store, ns, rows, unmerged)
    await store.apply(ns, unmerged.revision, change)
    return len(rows.merged), bool(change.resolved), is_whole


async def _unmerged(found: Unmerged, limit: int) -> tuple[Rows, list[str], bool]:
    """Return missing rows, the segments whose rows they replace, and whether these are all."""
    rows = Rows()
    replaced: list[str] = []
    for n, read in enumerate(readings(found.segments, found.contributions, found.said_at)):
        before = found.merged.get(read.segment.id)
        if before is None or before != read.digest:
            if len(rows.merged) == limit:
                return rows, replaced, False
            rows.add(rows_of(read))
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
    affected = AffectedNames(store, ns, found.decisions, forms_of(rows.mentions))
    resolved = await affected.take(found.stale)
    names, entities = _renamed(affected.names, affected.resolution(), affected.new)
    return replace(change_of(rows, (), names, entities), resolved=resolved)


# --- names ---------------------------------------------------------------------------------------


async def _refreshed(store: GraphStore, ns: str, similar: Similar | None) -> None:
    now = await store.unmerged(ns)
    if similar is not None:
        names = await store.names(ns)
        before = {row.key: row for row in names}
        resolved = resolve(map(NameUse.of, names), now.decisions, await similar(names))
    elif now.stale:
        affected = AffectedNames(store, ns, now.decisions)
        await affected.take(now.stale)
        before, resolved = affected.names, affected.resolution()
    else:
        return
    moved, changed = _renamed(before, resolved)
    if now.stale or moved or changed:
        change = ViewUpdate(names=moved, entities=changed, resolved=list(now.stale))
        await store.apply(ns, now.revision, change)


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


class AffectedNames:
    """Names whose mentions changed, and all names that the change can affect.

    The entity of a name depends on the names of its own block. So these names must be resolved
    again: the changed names, equal names of another type, and the names whose blocks have a changed
    name. All names of their former and present entities are included.

    Attributes:
        names: key to row of the included names; of each entity all or none.
        new: keys of names that the store does not have yet.
    """

    def __init__(
        self,
        store: GraphStore,
        ns: str,
        decisions: Sequence[MergeDecision],
        added: Mapping[str, Mapping[str, int]] | None = None,
    ) -> None:
        """Start with nothing.

        Args:
            added: forms of names, by key, that count as if they were already written.
        """
        self.names: dict[str, NameRow] = {}
        self.new: set[str] = set()
        self._added = added or {}
        self._grown: dict[str, NameRow] = {}
        self._store = store
        self._ns = ns
        self._decisions = decisions
        self._partners = _partners(decisions)
        self._rows: dict[str, NameRow] = {}
        self._uses = _Uses(self._rows)
        self._judge = Judge(self._uses)
        self._blocks: dict[int, Sequence[str] | None] = {}
        self._equal: dict[str, list[str]] = defaultdict(list)
        self._asked: set[str] = set()
        self._parents: dict[str, str] = {}

    async def take(self, stale: Mapping[str, str]) -> Sequence[str]:
        """Find all names whose entity may have changed.

        Args:
            stale: key of each changed name to its former entity.

        Returns:
            Keys of the changed names, with new ones.
        """
        changed = {**dict.fromkeys(self._added, ""), **stale}
        standing: dict[int, int] = defaultdict(int)
        for key in changed:
            for block in blocks_of(key):
                standing[block] += 1
        touched = await self._ask({split_key(key)[0] for key in changed}, standing)
        pending = {row.entity for row in touched} | set(stale.values())
        norms_done: set[str] = set()
        while pending:
            rows = await self._read(NameFilter(entities=pending))
            norms_done |= pending
            self._know(rows)
            self.names |= {row.key: row for row in rows}
            pending = await self._joined(rows) - norms_done
        return list(changed)

    def resolution(self) -> Resolution:
        """Return the entities of the names."""
        uses = {key: self._uses[key] for key in self.names}
        return resolution_of(uses, self._parents, self._decisions)

    async def _ask(self, norms: Collection[str], standing: Mapping[int, int]) -> list[NameRow]:
        """Read the names of some normalised forms, and blocks.

        Args:
            standing: block to the number of changed names that are, or were, in it.

        Returns:
            The names that must be resolved again because of them.
        """
        norms_wanted = set(norms) - self._asked
        most = {block: MOST + 1 + count for block, count in standing.items()}
        if not norms_wanted and not most:
            return []
        rows = await self._read(NameFilter(norms=norms_wanted, blocks=most))
        self._asked |= norms_wanted
        self._know(rows)
        touched, keys_by_block = list[NameRow](), {block: list[str]() for block in most}
        for row in rows:
            if (norm := split_key(row.key)[0]) in norms_wanted:
                self._equal[norm].append(row.key)
                touched.append(row)
            for block in _blocks_in(row, most):
                keys_by_block[block].append(row.key)
        for block, keys in keys_by_block.items():
            self._blocks[block] = keys if len(keys) <= MOST else None
        # A full block was too large before, and still decides nothing.
        small = {block for block, keys in keys_by_block.items() if len(keys) < most[block]}
        for row in rows:
            if not small.isdisjoint(_blocks_in(row, most)) and own_block(row.key) in small:
                touched.append(row)
        return touched

    async def _joined(self, rows: Sequence[NameRow]) -> set[str]:
        """Find the parents of names; return the entities of names that they join."""
        lacking = {own_block(row.key) for row in rows} - self._blocks.keys()
        norms = {split_key(row.key)[0] for row in rows}
        partners = {other for norm in norms for other in self._partners.get(norm, ())}
        await self._ask(norms | partners, dict.fromkeys(lacking, 0))
        entities = {self._rows[key].entity for norm in partners for key in self._equal[norm]}
        for row in rows:
            block, equal = self._blocks[own_block(row.key)], self._equal[split_key(row.key)[0]]
            parent = self._judge.parent(row.key, block, equal)
            self._parents[row.key] = parent
            if parent and parent not in self.names:
                entities.add(self._rows[parent].entity)
        return entities

    async def _read(self, wanted: NameFilter) -> list[NameRow]:
        """Return names by key, as if the added ones were written."""
        rows = {row.key: row for row in await self._store.names(self._ns, wanted)}
        if self._added and not self._grown:  # the first read includes all of them
            for key, forms in self._added.items():
                self._grown[key] = _with_occurrences(key, rows.get(key), forms)
            self.new = self._added.keys() - rows.keys()
        for key in rows.keys() & self._grown.keys():
            rows[key] = replace(self._grown[key], blocks=rows[key].blocks)
        for key in self.new:
            is_called = split_key(key)[0] in wanted.norms or key in wanted.entities
            if is_called or not wanted.blocks.keys().isdisjoint(blocks_of(key)):
                rows[key] = self._grown[key]
        return [rows[key] for key in sorted(rows)]

    def _know(self, rows: Iterable[NameRow]) -> None:
        for row in rows:
            self._rows.setdefault(row.key, row)


class _Uses(Mapping[str, NameUse]):
    """Uses of stored names, each made when it is needed: most names of a block never are."""

    def __init__(self, rows: Mapping[str, NameRow]) -> None:
        self._rows = rows
        self._made: dict[str, NameUse] = {}

    def __getitem__(self, key: str) -> NameUse:
        if key not in self._made:
            self._made[key] = NameUse.of(self._rows[key])
        return self._made[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)


def _blocks_in(row: NameRow, wanted: Mapping[int, int]) -> Collection[int]:
    """Return which of some requested blocks a name is in."""
    return wanted.keys() & blocks_of(row.key) if row.blocks is None else row.blocks


def _with_occurrences(key: str, row: NameRow | None, added: Mapping[str, int]) -> NameRow:
    """Return a name with more occurrences; a new name is its own entity until it is resolved."""
    if row is None:
        return NameRow(key, key, by_frequency(added))
    forms = Counter(dict(row.forms))
    forms.update(added)
    return replace(row, forms=by_frequency(forms))


def _partners(decisions: Sequence[MergeDecision]) -> Mapping[str, set[str]]:
    """Return for each normalised name the names that the user's decisions pair it with."""
    partners: dict[str, set[str]] = defaultdict(set)
    for decision in decisions:
        first, second = meant_name(decision.first), meant_name(decision.second)
        partners[first].add(second)
        partners[second].add(first)
    return partners


async def _retried(store: GraphStore, work: Callable[[], Awaitable[T]]) -> T:
    """Change the view under a lock of this process; retry after writes of other processes."""
    for attempt in range(_ATTEMPTS):
        try:
            async with _TURNS.setdefault(store, asyncio.Lock()):
                return await work()
        except StoreConflict:
            await asyncio.sleep(min(_LONGEST_PAUSE, 0.01 * 2**attempt))
    raise StoreConflict("other programs keep changing the namespace; try again later")
