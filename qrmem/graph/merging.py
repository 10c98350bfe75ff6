"""Bringing a namespace's view up to date with its facts, by compare-and-set.

Two steps, each one transaction: the rows of segments go in, where new names stand for themselves at
first; then the names whose mentions changed are resolved, with the names that they could be one
with and no others. A memory that was left between the two is whole but for that, and whoever merges
next goes on with it.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TypeVar

from qrmem.errors import StoreConflict
from qrmem.graph.resolution import MOST, Judge, NameUse, Resolution, resolution_of, resolve
from qrmem.graph.view import Decide, Rows, change_of, decided, readings, rows_of, uses_of
from qrmem.graphstore.protocol import Change, EntityRow, GraphStore, NameRow
from qrmem.text.blocks import blocks_of, own_block
from qrmem.text.names import meant_name, split_key
from qrmem.types import Merge, MergeDecision

T = TypeVar("T")
Similar = Callable[[Sequence[NameRow]], Awaitable[Iterable[tuple[str, str, float]]]]
"""From all names to pairs of name keys that count as one, with their cosine."""

PORTION = 512
"""Segments whose rows are written, and whose names are resolved, together."""
_ATTEMPTS = 30
_LONGEST_PAUSE = 1.0
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

    Segments whose rows are those of what is stored are left alone.

    Args:
        decide: which generated questions count; the same as when the documents were read.
        similar: finds names that are alike for an embedder; all names are then resolved anew, which
            takes time in proportion to all that was kept before.

    Returns:
        How many segments' rows were made.

    Raises:
        StoreConflict: others changed the namespace again and again.
    """
    made = 0
    for portion in await _portions(store, ns, list(dict.fromkeys(document_ids))):
        made += await _retried(partial(_merged, store, ns, portion, decide))
        if similar is None:
            await refresh_names(store, ns)
    if similar is not None or not document_ids:
        await refresh_names(store, ns, similar=similar)
    return made


async def merge_document(store: GraphStore, ns: str, document_id: str) -> int:
    """Merge one document; see `merge_documents`."""
    return await merge_documents(store, ns, [document_id])


async def refresh_names(store: GraphStore, ns: str, *, similar: Similar | None = None) -> None:
    """Resolve the names that are stale: after a merge, a deletion or a user's decision.

    Args:
        similar: as in `merge_documents`.

    Raises:
        StoreConflict: others changed the namespace again and again.
    """
    await _retried(partial(_refreshed, store, ns, similar))


async def current_merges(
    store: GraphStore, ns: str, *, similar: Similar | None = None
) -> Sequence[Merge]:
    """Return which names count as another and why, by entity key and name."""
    names = await store.names(ns)
    alike = await similar(names) if similar else ()
    return resolve(map(NameUse.of, names), await store.decisions(ns), alike).merges


async def near_names(store: GraphStore, ns: str, keys: Iterable[str]) -> Sequence[NameRow]:
    """Return the stored names that could be one with some names, and the rest of their entities."""
    found = await store.names_in_blocks(
        ns, dict.fromkeys((block for key in keys for block in blocks_of(key)), MOST)
    )
    entities = dict.fromkeys(row.entity for rows in found.values() for row in rows)
    return await store.names_of(ns, list(entities))


# --- rows ----------------------------------------------------------------------------------------


async def _portions(
    store: GraphStore, ns: str, document_ids: Sequence[str]
) -> Sequence[Sequence[str]]:
    """Return documents in groups of about `PORTION` segments."""
    if len(document_ids) == 1:
        return [document_ids]
    sizes = {info.id: info.segments for info in await store.documents(ns, document_ids)}
    groups: list[list[str]] = [[]]
    size = 0
    for document_id in document_ids:
        if size >= PORTION:
            groups.append([])
            size = 0
        groups[-1].append(document_id)
        size += sizes.get(document_id, 0)
    return [group for group in groups if group]


async def _merged(store: GraphStore, ns: str, document_ids: Sequence[str], decide: Decide) -> int:
    revision = await _revision(store, ns)
    rows, clear = await _unmerged(store, ns, document_ids, decide)
    if not rows.merged:
        return 0
    used = {row.name for row in rows.mentions}
    known = await store.names_called(ns, sorted({split_key(key)[0] for key in used}))
    new = used - {row.key for row in known}
    alone = resolution_of(
        {use.key: use for use in uses_of(rows.mentions) if use.key in new}, dict.fromkeys(new, "")
    )
    change = change_of(rows, clear, alone.names, list(alone.entities.values()))
    await store.apply(ns, revision, change)
    return len(rows.merged)


async def _unmerged(
    store: GraphStore, ns: str, document_ids: Sequence[str], decide: Decide
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


# --- names ---------------------------------------------------------------------------------------


async def _refreshed(store: GraphStore, ns: str, similar: Similar | None) -> None:
    revision = await _revision(store, ns)
    stale = await store.stale_names(ns)
    if similar is not None:
        names = await store.names(ns)
        before = {row.key: row for row in names}
        pairs = await similar(names)
        found = resolve(map(NameUse.of, names), await store.decisions(ns), pairs)
    elif stale:
        near = Neighbourhood(store, ns, await store.decisions(ns))
        await near.take(stale)
        before, found = near.names, near.resolution()
    else:
        return
    moved = {key: entity for key, entity in found.names.items() if before[key].entity != entity}
    stored = {
        row.entity: EntityRow(row.entity, row.entity_name, row.entity_type)
        for row in before.values()
    }
    changed = [row for key, row in found.entities.items() if stored.get(key) != row]
    if stale or moved or changed:
        change = Change(names=moved, entities=changed, resolved=list(stale))
        await store.apply(ns, revision, change)


class Neighbourhood:
    """Names whose mentions changed, and all that this can change.

    What a name stands for depends on the names of its own block. So what has to be decided again
    are the changed names, those equal to them but for the type, and those in whose blocks they
    stand; and what these belonged to, and belong to now, is brought along entity by entity.

    Attributes:
        names: rows of the names that were brought along, by key; of each entity all or none.
    """

    def __init__(self, store: GraphStore, ns: str, decisions: Sequence[MergeDecision]) -> None:
        """Start with nothing."""
        self.names: dict[str, NameRow] = {}
        self._store = store
        self._ns = ns
        self._decisions = decisions
        self._partners = _partners(decisions)
        self._rows: dict[str, NameRow] = {}
        self._uses: dict[str, NameUse] = {}
        self._judge = Judge(self._uses)
        self._blocks: dict[int, Sequence[str] | None] = {}
        self._equal: dict[str, list[str]] = defaultdict(list)
        self._asked: set[str] = set()
        self._parents: dict[str, str] = {}

    async def take(self, stale: Mapping[str, str]) -> None:
        """Find all names whose entity may be another now.

        Args:
            stale: key of each changed name, to the entity that it stood for.
        """
        standing: dict[int, int] = defaultdict(int)
        for key in stale:
            for block in blocks_of(key):
                standing[block] += 1
        touched = await self._look_into(standing)
        equal = await self._call(split_key(key)[0] for key in stale)
        pending = {row.entity for row in (*touched, *equal)} | set(stale.values())
        done: set[str] = set()
        while pending:
            rows = await self._store.names_of(self._ns, sorted(pending))
            done |= pending
            self._know(rows)
            self.names |= {row.key: row for row in rows}
            pending = await self._joined(rows) - done

    def resolution(self) -> Resolution:
        """Return what the names stand for now."""
        uses = {key: self._uses[key] for key in self.names}
        return resolution_of(uses, self._parents, self._decisions)

    async def _look_into(self, standing: Mapping[int, int]) -> list[NameRow]:
        """Read blocks; return the names that are to be decided again because of them.

        Args:
            standing: block to how many of the changed names stand, or stood, in it.
        """
        most = {block: MOST + 1 + count for block, count in standing.items()}
        found = await self._store.names_in_blocks(self._ns, most) if most else {}
        touched = []
        for block, rows in found.items():
            is_crowded = len(rows) > MOST
            self._blocks[block] = None if is_crowded else [row.key for row in rows]
            self._know(rows)
            if len(rows) < most[block]:  # else it was crowded before and decides nothing still
                touched += [row for row in rows if own_block(row.key) == block]
        return touched

    async def _call(self, norms: Iterable[str]) -> Sequence[NameRow]:
        """Read the names of some normalised forms, of any type."""
        wanted = sorted(set(norms) - self._asked)
        rows = await self._store.names_called(self._ns, wanted) if wanted else ()
        self._asked.update(wanted)
        self._know(rows)
        for row in rows:
            self._equal[split_key(row.key)[0]].append(row.key)
        return rows

    async def _joined(self, rows: Sequence[NameRow]) -> set[str]:
        """Decide on names; return the entities of those that they join, by rule or decision."""
        lacking = {own_block(row.key) for row in rows} - self._blocks.keys()
        await self._look_into(dict.fromkeys(lacking, 0))
        norms = {split_key(row.key)[0] for row in rows}
        await self._call(norms)
        partners = await self._call({other for norm in norms for other in self._partners[norm]})
        entities = {row.entity for row in partners}
        for row in rows:
            block, equal = self._blocks[own_block(row.key)], self._equal[split_key(row.key)[0]]
            parent = self._judge.parent(row.key, block, equal)
            self._parents[row.key] = parent
            if parent and parent not in self.names:
                entities.add(self._rows[parent].entity)
        return entities

    def _know(self, rows: Iterable[NameRow]) -> None:
        for row in rows:
            if row.key not in self._uses:
                self._uses[row.key] = NameUse.of(row)
                self._rows[row.key] = row


def _partners(decisions: Sequence[MergeDecision]) -> Mapping[str, set[str]]:
    """Return for each normalised name those that the user decided on together with it."""
    found: dict[str, set[str]] = defaultdict(set)
    for decision in decisions:
        first, second = meant_name(decision.first), meant_name(decision.second)
        found[first].add(second)
        found[second].add(first)
    return found


async def _retried(work: Callable[[], Awaitable[T]]) -> T:
    for attempt in range(_ATTEMPTS):
        try:
            return await work()
        except StoreConflict:
            await asyncio.sleep(min(_LONGEST_PAUSE, 0.01 * 2**attempt))
    raise StoreConflict("the namespace is changed by others all the time; try again later")


async def _revision(store: GraphStore, ns: str) -> int:
    info = await store.namespace(ns)
    return info.revision if info else 0
