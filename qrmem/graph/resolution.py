"""Entity resolution: the names of each entity (QRMeM, section 2.1).

Every name has at most one parent, the name that it is short for, and an entity is a tree of names.
The parent depends only on the names of one block (`qrmem.text.names.blocks`), not on earlier
decisions. So a new or removed name only affects the names in its blocks:

1. A name without a type joins the equal name with a type, if there is only one.
2. A name joins the fuller name of its own block that it is short for, if that is the only one that
   it can be: what else it may mean is a form of that name, or is named far less often. A name with
   more words that is far rarer is no fuller name, so that two frequent names never meet in it.
3. Unless a short name has the first and last word of the fuller one, documents must name both:
   most of those with the short name, or several. All turns of a user count as one document.
4. A block with more than `MOST` names decides nothing, as a name that many share identifies none.

The user's decisions override the rules: "same" merges names, and "different" keeps them separate.
No rule merges names that differ in a number, or that have two known types.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from qrmem.graph.name_parents import (
    MOST,
    NUMERIC,
    NameUse,
    by_fullness,
    fullness,
    types_agree,
)
from qrmem.graphstore.protocol import EntityRow
from qrmem.text.names import differ_in_number, normalise_name, spells, split_key
from qrmem.text.names.blocks import blocks_of, own_block
from qrmem.types import Merge, MergeDecision

Reason = Literal["exact", "alias", "similar", "user"]

Candidates = Callable[[str], tuple[Sequence[str] | None, Sequence[str]]]
"""From a name to the names of its block (`None`: too many), and the equal ones of other types."""

_RARE = 100
"""A name this many times rarer than its entity's most frequent name is not the canonical name."""


@dataclass(frozen=True, slots=True)
class Resolution:
    """The result of entity resolution.

    Attributes:
        names: name key to entity key, for every name.
        entities: key to entity.
        merges: the merged names with reasons, by entity key and name.
    """

    names: dict[str, str]
    entities: dict[str, EntityRow]
    merges: tuple[Merge, ...]


def candidates_of(uses: Mapping[str, NameUse], said: Collection[str] = ()) -> Candidates:
    """Return a function that finds the candidates of one of all names of a namespace.

    Args:
        said: names that a chat model gave, whose other names are those that it gives.
    """
    in_block: dict[int, list[str]] = defaultdict(list)
    equal: dict[str, list[str]] = defaultdict(list)
    for key in uses:
        equal[split_key(key)[0]].append(key)
        for block in blocks_of(key):
            in_block[block].append(key)

    def candidates(key: str) -> tuple[Sequence[str] | None, Sequence[str]]:
        names = in_block[own_block(key)]
        is_open = len(names) <= MOST and key not in said
        return names if is_open else None, equal[split_key(key)[0]]

    return candidates


# --- from parents to entities --------------------------------------------------------------------


def resolution_of(
    uses: Mapping[str, NameUse],
    parents: Mapping[str, str],
    decisions: Sequence[MergeDecision] = (),
    similar: Iterable[tuple[str, str, float]] = (),
) -> Resolution:
    """Return the entities of names with known parents.

    Args:
        uses: names of whole entities, with all names that share an entity by rules or decisions.
        parents: name key to the key of its parent.
        decisions: the user's decisions.
        similar: pairs of name keys that an embedder finds similar, with their cosine.

    Returns:
        A result that does not depend on the order of names. An entity's key is the key of
        its canonical name: of its names that are not rare in it, the longest, then the
        most frequent.
    """
    trees = _Trees(uses)
    trees.follow(decisions)
    for key in sorted(filter(parents.get, parents), key=by_fullness, reverse=True):
        is_equal = split_key(key)[0] == split_key(parents[key])[0]
        trees.unite(key, parents[key], "exact" if is_equal else "alias")
    trees.unite_similar(similar)
    return trees.resolution()


class _Trees:
    """Names being united; every name starts as an entity of its own."""

    def __init__(self, uses: Mapping[str, NameUse]) -> None:
        self._uses = uses
        self._entity = {key: key for key in uses}
        self._members = {key: [key] for key in uses}
        self._why: dict[str, tuple[Reason, float]] = {}
        self._apart: dict[str, set[str]] = defaultdict(set)

    def follow(self, decisions: Sequence[MergeDecision]) -> None:
        """Apply the user's decisions: first names to keep apart, then names to merge."""
        if not decisions:
            return
        meaning = _meaning(self._uses)
        for decision in sorted(decisions, key=lambda d: (d.same, d.first, d.second)):
            for first, second in meaning(decision):
                if decision.same:
                    self.unite(first, second, "user")
                else:
                    self._apart[first].add(second)
                    self._apart[second].add(first)

    def unite(self, key: str, other: str, reason: Reason, score: float = 1.0) -> None:
        """Merge the entities of two names, unless the user keeps any of their names apart."""
        entity, target = self._entity[key], self._entity[other]
        if entity == target or self._are_kept_apart(entity, target):
            return
        for member in self._members.pop(entity):
            self._entity[member] = target
            self._members[target].append(member)
            self._why.setdefault(member, (reason, score))

    def unite_similar(self, pairs: Iterable[tuple[str, str, float]]) -> None:
        """Join each entity to the more frequent one that is similar to it, if there is only one."""
        close: dict[str, list[tuple[str, float]]] = defaultdict(list)
        for first, second, score in sorted(pairs):
            if first in self._uses and second in self._uses and _may_be_similar(first, second):
                close[first].append((second, score))
                close[second].append((first, score))
        ranked = sorted({self._entity[key] for key in close}, key=self._most_used, reverse=True)
        place = {entity: n for n, entity in enumerate(ranked)}
        for entity in ranked:
            fits: dict[str, tuple[bool, float]] = {}
            for key in self._members[entity]:
                for other, score in close.get(key, ()):
                    target = self._entity[other]
                    if place.get(target, len(place)) < place[entity]:
                        is_centre = self._why.get(other, ("exact", 1.0))[0] != "similar"
                        was_centre, best = fits.get(target, (False, 0.0))
                        fits[target] = was_centre or is_centre, max(best, score)
            if len(fits) == 1:
                ((target, (is_centre, score)),) = fits.items()
                if is_centre and self._types_agree(entity, target):
                    self.unite(entity, target, "similar", score)

    def resolution(self) -> Resolution:
        """Return the entities."""
        names: dict[str, str] = {}
        entities: dict[str, EntityRow] = {}
        merges: list[Merge] = []
        for members in self._members.values():
            uses = [self._uses[key] for key in members]
            row = _entity_row(uses)
            entities[row.key] = row
            for use in uses:
                names[use.key] = row.key
                if use.key != row.key:
                    merges.append(self._merge(use, row))
        merges.sort(key=lambda merge: (merge.entity, merge.name, merge.reason))
        return Resolution(
            dict(sorted(names.items())), dict(sorted(entities.items())), tuple(merges)
        )

    def _are_kept_apart(self, first: str, second: str) -> bool:
        return any(
            self._entity[other] == second
            for key in self._members[first]
            for other in self._apart.get(key, ())
        )

    def _types_agree(self, first: str, second: str) -> bool:
        one, other = (
            {split_key(key)[1] for key in self._members[entity]} - {""}
            for entity in (first, second)
        )
        return not one or not other or bool(one & other)

    def _most_used(self, entity: str) -> tuple[int, tuple[tuple[int, int, str], str]]:
        members = self._members[entity]
        fullest = max(fullness(split_key(key)[0]) for key in members)
        return sum(self._uses[key].count for key in members), (fullest, min(members))

    def _merge(self, use: NameUse, row: EntityRow) -> Merge:
        if split_key(use.key)[0] == split_key(row.key)[0]:
            reason, score = self._why.get(use.key, ("exact", 1.0))
            reason = "user" if reason == "user" else "exact"
        else:
            reason, score = self._why.get(use.key) or self._why.get(row.key) or ("alias", 1.0)
        return Merge(use.display, row.name, row.key, reason, score)


def _meaning(
    uses: Mapping[str, NameUse],
) -> Callable[[MergeDecision], list[tuple[str, str]]]:
    """Return a function that finds the pairs of names that a decision is about.

    If several types share a name, "same" means those that the other name's types allow, else the
    most frequent one.
    """
    by_norm: dict[str, list[str]] = defaultdict(list)
    for key in uses:
        by_norm[split_key(key)[0]].append(key)

    def keys_of(name: str) -> list[str]:
        if name in uses:
            return [name]
        keys = by_norm.get(normalise_name(name), ())
        return sorted(keys, key=lambda key: (-uses[key].count, key))

    def meant(decision: MergeDecision) -> list[tuple[str, str]]:
        firsts, seconds = keys_of(decision.first), keys_of(decision.second)
        pairs = [(a, b) for a in firsts for b in seconds if a != b]
        if not decision.same or len(pairs) < 2:
            return pairs
        agreeing = [(a, b) for a, b in pairs if types_agree(a, b)]
        return agreeing or pairs[:1]

    return meant


def _may_be_similar(first: str, second: str) -> bool:
    (one, kind), (other, other_kind) = split_key(first), split_key(second)
    if kind in NUMERIC or other_kind in NUMERIC:
        return False
    return types_agree(first, second) and not differ_in_number(one, other)


def _entity_row(uses: Sequence[NameUse]) -> EntityRow:
    """Return the entity of some names, with its canonical name, spelling and type."""
    if len(uses) == 1:  # as most entities have
        (use,) = uses
        norm, kind = split_key(use.key)
        is_spelled = normalise_name(use.surface) == norm
        return EntityRow(
            use.key, " ".join(use.surface.split()) if is_spelled else norm.title(), kind
        )
    counts: dict[str, int] = defaultdict(int)
    types: dict[str, int] = defaultdict(int)
    for use in uses:
        norm, kind = split_key(use.key)
        counts[norm] += use.count
        if kind:
            types[kind] += use.count
    norm = _canonical(counts)
    alike = [use for use in uses if split_key(use.key)[0] == norm]
    main_use = min(alike, key=lambda use: (not split_key(use.key)[1], -use.count, use.key))
    spelled = [use for use in alike if normalise_name(use.surface) == norm]
    best = min(
        spelled,
        key=lambda use: (not spells(use.surface, use.key), -use.count, -len(use.surface), use.key),
        default=None,
    )
    name = " ".join(best.surface.split()) if best else norm.title()
    type_ = min(types, key=lambda kind: (-types[kind], kind), default="")
    return EntityRow(main_use.key, name, type_)


def _canonical(counts: Mapping[str, int]) -> str:
    """Return the fullest common name of an entity.

    A form that occurs once is not common if another occurs three times or more.
    """
    most = max(counts.values())
    common = [n for n, count in counts.items() if count * _RARE >= most and (count > 1 or most < 3)]
    return min(
        common,
        key=lambda norm: (-fullness(norm)[0], -counts[norm], -len(norm), norm),
    )


# --- how names are spelled -----------------------------------------------------------------------


def summed(names: Iterable[NameUse]) -> dict[str, NameUse]:
    """Return names by key, with the sum of the uses of each."""
    by_key: dict[str, list[NameUse]] = defaultdict(list)
    for use in names:
        by_key[use.key].append(use)
    summed = {}
    for key, uses in sorted(by_key.items()):
        best = min(uses, key=lambda use: (-use.count, -len(use.surface), use.surface))
        summed[key] = NameUse(key, best.surface, sum(use.count for use in uses))
    return summed
