"""The names that a change affects, and the fuller names that they are short for.

Only these are read and resolved when a memory grows (`qrmem.graph.merging`).
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from qrmem.graph.name_parents import MOST, NameUse, parent_of
from qrmem.graph.resolution import Candidates, Resolution, resolution_of
from qrmem.graphstore.protocol import GraphStore, NameFilter, NameRow
from qrmem.graphstore.records import Places, by_frequency
from qrmem.text.names import meant_name, split_key
from qrmem.text.names.aliases import titled
from qrmem.text.names.blocks import blocks_of, own_block
from qrmem.types import MergeDecision

_COMPARED = 1000
"""Names that occur more often join without a look at their documents, so that time stays flat."""
_MOSTLY = 0.5
"""Share of a short name's occurrences that have to be in documents with the fuller name."""
_SEVERAL = 3
"""In so many documents together, half of this share is enough: as in the chapters of a book."""


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
        places: Places | None = None,
        said: Collection[str] = (),
    ) -> None:
        """Start with nothing.

        Args:
            added: forms of names, by key, that count as if they were already written.
            places: where they occur.
            said: those that a chat model named.
        """
        self.names: dict[str, NameRow] = {}
        self.new: set[str] = set()
        self._added = added or {}
        self._places = places
        self._said = frozenset(said)
        self._grown: dict[str, NameRow] = {}
        self._store = store
        self._ns = ns
        self._decisions = decisions
        self._partners = _partners(decisions)
        self._rows: dict[str, NameRow] = {}
        self._uses = _Uses(self._rows)
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
        keys = [row.key for row in rows]
        parents = await parents_of(
            self._store, self._ns, keys, self._candidates, self._uses, self._places
        )
        self._parents |= parents
        joined = {parent for parent in parents.values() if parent} - self.names.keys()
        return entities | {self._rows[parent].entity for parent in joined}

    def _candidates(self, key: str) -> tuple[Sequence[str] | None, Sequence[str]]:
        # What a chat model named is joined with other names by its word alone.
        block = None if self._rows[key].said else self._blocks[own_block(key)]
        return block, self._equal[split_key(key)[0]]

    async def _read(self, wanted: NameFilter) -> list[NameRow]:
        """Return names by key, as if the added ones were written."""
        rows = {row.key: row for row in await self._store.names(self._ns, wanted)}
        if self._added and not self._grown:  # the first read includes all of them
            for key, forms in self._added.items():
                grown = _with_occurrences(key, rows.get(key), forms)
                self._grown[key] = replace(grown, said=grown.said or key in self._said)
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


async def parents_of(
    store: GraphStore,
    ns: str,
    keys: Iterable[str],
    candidates: Candidates,
    uses: Mapping[str, NameUse],
    added: Places | None = None,
) -> dict[str, str]:
    """Return the parents of names, unless no document uses both names.

    A name that no document uses beside the equal name with a type may be short for a fuller one.

    Args:
        added: places that count as if they were already written.
    """
    left, parents = list(keys), dict[str, str]()
    for is_equal_allowed in (True, False):
        for key in left:
            block, equal = candidates(key)
            parents[key] = parent_of(uses, key, block, equal if is_equal_allowed else ())
        pairs = [
            (key, parents[key])
            for key in left
            if parents[key] and not says_who(key, parents[key])
            if max(uses[key].count, uses[parents[key]].count) <= _COMPARED
        ]
        names = {name for pair in pairs for name in pair}
        stored: Places = await store.places(ns, names) if names else {}
        places = {key: Counter(stored.get(key)) + Counter((added or {}).get(key)) for key in names}
        apart = [pair for pair in pairs if not _are_together(*(places[name] for name in pair))]
        parents |= {key: "" for key, _ in apart}
        left = [key for key, parent in apart if split_key(key)[0] == split_key(parent)[0]]
    return parents


def says_who(key: str, other: str) -> bool:
    """Return whether a short name says whom it means: both have the same first and last words.

    James Stockdale is James Bond Stockdale in any text. Cash is Johnny Cash only where a text
    names him; and John Logan is no John Logan Bartholomew.
    """
    few, many = titled(split_key(key)[0])[1], titled(split_key(other)[0])[1]
    return len(few) > 1 and (few[:1], few[-1:]) == (many[:1], many[-1:])


def _are_together(short: Mapping[str, int], full: Mapping[str, int]) -> bool:
    """Whether the documents that use a short name say whom it means.

    Args:
        short: document to the occurrences of the short name.
        full: the same for the fuller name.
    """
    shared = [count for document, count in short.items() if document in full]
    share = sum(shared) / max(1, sum(short.values()))
    return share > _MOSTLY or (len(shared) >= _SEVERAL and share >= _MOSTLY / 2)
