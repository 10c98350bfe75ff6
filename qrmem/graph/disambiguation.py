"""Which names stand for one entity (Q11): a pure function of all names and the user's decisions.

In this order, each step leaving what the ones before it settled:

1. The user's word: "same" unites, "different" keeps apart whatever the rules below say.
2. Equal normalised names: an untyped one joins the only typed one; of two known types they stay
   apart, and an untyped one that fits two stays its own.
3. Aliases, longest names first: a name that fits exactly one longer name joins it. One that fits
   two is left apart, and one joins the longer name itself, never another alias of it: a star, no
   chain.
4. Names that the caller found similar (cosine within a type), by the same rule.

Names that differ in a number never meet by 3 or 4.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Literal

from qrmem.graph.aliases import (
    Aliases,
    Kind,
    fullness,
    is_person,
    speak_of_two,
    titles_of,
    words_spelled_out,
)
from qrmem.graphstore.protocol import EntityRow
from qrmem.text.names import differ_in_number, normalise_name, split_key
from qrmem.types import Merge, MergeDecision

Reason = Literal["exact", "alias", "similar", "user"]

NUMERIC = frozenset(
    "DATE TIME DURATION SET NUMBER ORDINAL CARDINAL QUANTITY PERCENT MONEY".split()  # noqa: SIM905
)
"""Types whose names are one only if they are equal."""

_RARE = 100
"""A name this many times rarer than its entity's most frequent one is not its canonical name."""


@dataclass(frozen=True, slots=True)
class NameUse:
    """A name of the namespace.

    Attributes:
        key: see `qrmem.text.names.name_key`.
        surface: most frequent surface form; it may be a shorter form of the same segments.
        count: occurrences over all segments.
    """

    key: str
    surface: str
    count: int


@dataclass(frozen=True, slots=True)
class Resolution:
    """What names stand for.

    Attributes:
        names: name key to entity key, for every name.
        entities: by key.
        merges: why a name counts as another, by entity key and name.
        unspelled: keys of entities whose canonical name no surface spells, so that its capitals
            are guessed: its other forms may know better.
    """

    names: dict[str, str]
    entities: dict[str, EntityRow]
    merges: tuple[Merge, ...]
    unspelled: frozenset[str]


def resolve(
    names: Iterable[NameUse],
    decisions: Sequence[MergeDecision] = (),
    similar: Iterable[tuple[str, str, float]] = (),
) -> Resolution:
    """Return the entities of a namespace.

    Args:
        names: in any order; uses of one key are summed up.
        similar: pairs of name keys that an embedder finds close enough, with the cosine.

    Returns:
        The same for the same set of names, whatever their order. An entity's key is the key of
        its canonical name: of those that are not rare within the entity, the longest, then the
        most frequent.
    """
    uses = _summed(names)
    merging = _Merging(uses)
    merging.follow(decisions)
    merging.unite_equal()
    merging.unite_aliases()
    merging.unite_similar(similar)
    return merging.resolution()


class _Merging:
    """Names being united; every name starts as an entity of its own."""

    def __init__(self, uses: dict[str, NameUse]) -> None:
        self._uses = uses
        self._split = {key: split_key(key) for key in uses}
        self._spelled = {
            key: " ".join(use.surface.split())
            for key, use in uses.items()
            if spells(use.surface, key)
        }
        self._entity = {key: key for key in uses}
        self._members = {key: [key] for key in uses}
        self._why: dict[str, tuple[Reason, float]] = {}
        self._apart: dict[str, set[str]] = defaultdict(set)
        self._by_norm: dict[str, list[str]] = defaultdict(list)
        self._people: set[str] = set()
        self._lower: set[str] = set()
        for key, (norm, kind) in self._split.items():
            self._by_norm[norm].append(key)
            if is_person(norm, kind):
                self._people.add(key)
            if self._display([key]).islower():
                self._lower.add(key)

    # --- the four steps ---------------------------------------------------------------------------

    def follow(self, decisions: Sequence[MergeDecision]) -> None:
        ordered = sorted(decisions, key=lambda d: (d.same, d.first, d.second))
        for decision in ordered:
            for first, second in self._meant(decision):
                if not decision.same:
                    self._apart[first].add(second)
                    self._apart[second].add(first)
                elif self._may_meet(self._entity[first], self._entity[second]):
                    self._unite(first, self._entity[second], "user")

    def unite_equal(self) -> None:
        for keys in self._by_norm.values():
            typed = {self._entity[key] for key in keys if self._split[key][1]}
            for key in keys:
                if not self._split[key][1] and len(typed) == 1:
                    (target,) = typed
                    if self._may_meet(self._entity[key], target):
                        self._unite(key, target, "exact")

    def unite_aliases(self) -> None:
        fuller, rivals = self._fuller_names()
        touched = {self._entity[key] for key in fuller}
        for entity in sorted(touched, key=self._fullest, reverse=True):
            fits = {self._entity[k]: False for key in self._members[entity] for k in rivals[key]}
            for key in self._members[entity]:
                for other in fuller.get(key, ()):
                    target = self._entity[other]
                    is_centre = other not in self._why or self._why[other][0] != "alias"
                    fits[target] = fits.get(target, False) or is_centre
            self._join_the_only(entity, fits, "alias", {})

    def unite_similar(self, pairs: Iterable[tuple[str, str, float]]) -> None:
        close: dict[str, list[tuple[str, float]]] = defaultdict(list)
        for first, second, score in sorted(pairs):
            if first in self._uses and second in self._uses and self._may_be_one(first, second):
                close[first].append((second, score))
                close[second].append((first, score))
        touched = {self._entity[key] for key in close}
        ranked = sorted(touched, key=self._most_used, reverse=True)
        place = {entity: n for n, entity in enumerate(ranked)}
        for entity in ranked:
            fits: dict[str, bool] = {}
            scores: dict[str, float] = {}
            for key in self._members[entity]:
                for other, score in close.get(key, ()):
                    target = self._entity[other]
                    if place.get(target, len(place)) < place[entity]:
                        is_centre = self._why.get(other, ("exact", 1.0))[0] != "similar"
                        fits[target] = fits.get(target, False) or is_centre
                        scores[target] = max(score, scores.get(target, score))
            self._join_the_only(entity, fits, "similar", scores)

    # --- what they are made of --------------------------------------------------------------------

    def _meant(self, decision: MergeDecision) -> list[tuple[str, str]]:
        """Return the pairs of names that a decision speaks of.

        A name that several types share means, for "same", those that the other name's types allow,
        else the most frequent one.
        """
        firsts, seconds = self._keys_of(decision.first), self._keys_of(decision.second)
        pairs = [(a, b) for a in firsts for b in seconds if a != b]
        if not decision.same or len(pairs) < 2:
            return pairs
        agreeing = [(a, b) for a, b in pairs if self._types_agree([a], [b])]
        return agreeing or pairs[:1]

    def _keys_of(self, name: str) -> list[str]:
        if name in self._uses:
            return [name]
        keys = self._by_norm.get(normalise_name(name), ())
        return sorted(keys, key=lambda key: (-self._uses[key].count, key))

    def _fuller_names(self) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
        """Return for each name the names that it may join, and the people it could mean too."""
        written = self._as_written()
        aliases = Aliases(written)
        fuller: dict[str, list[str]] = {}
        rivals: dict[str, list[str]] = defaultdict(list)
        for found in map(partial(self._fuller_of, aliases), list(written)):
            for key, fitting, people in found:
                fuller[key], rivals[key] = fitting, people
        self._leave_contested(fuller, rivals)
        return fuller, rivals

    def _fuller_of(self, aliases: Aliases, norm: str) -> list[tuple[str, list[str], list[str]]]:
        """Return what one normalised form adds to `_fuller_names`, by key."""
        found = aliases.fuller(norm, partial(self._are_short, norm))
        others = [(key, f.kind) for f in found for key in self._by_norm[f.name]]
        added = []
        for key in self._by_norm[norm] if others else ():
            if fitting := self._fitting(key, others):
                people = (f"{name}|PERSON" for name in aliases.rivals(norm))
                added.append((key, fitting, [one for one in people if one in self._uses]))
        return added

    def _leave_contested(self, fuller: dict[str, list[str]], rivals: dict[str, list[str]]) -> None:
        """Turn what two kinds of names claim into a rival of theirs: neither kind joins it.

        Two known types may fit one untyped name (Lincoln, the person and the place), and titles of
        two people one name without a title (Mr and Miss Darcy: Fitzwilliam Darcy).
        """
        types: dict[str, set[str]] = defaultdict(set)
        titles: dict[str, set[tuple[str, ...]]] = defaultdict(set)
        for key, others in fuller.items():
            norm, kind = self._split[key]
            for other in others:
                types[other] |= {kind} - {""}
                titles[other].add(titles_of(norm))
        of_two = {
            other
            for other, found in titles.items()
            if len(found) > 1 and any(speak_of_two(a, b) for a, b in combinations(found, 2))
        }
        for key, others in fuller.items():
            norm, kind = self._split[key]
            contested = [
                other
                for other in others
                if (kind and not self._split[other][1] and len(types[other]) > 1)
                or (other in of_two and titles_of(norm))
            ]
            fuller[key] = [other for other in others if other not in contested]
            rivals[key] += contested

    def _as_written(self) -> dict[str, str]:
        return {
            norm: self._display(keys)
            for norm, keys in self._by_norm.items()
            if norm and any(self._split[key][1] not in NUMERIC for key in keys)
        }

    def _fitting(self, key: str, others: Sequence[tuple[str, Kind]]) -> list[str]:
        kind = self._split[key][1]
        if kind in NUMERIC:
            return []
        fitting = [other for other, how in others if self._may_be_short(key, other, how)]
        same = [other for other in fitting if kind and self._split[other][1] == kind]
        return same or fitting

    def _are_short(self, norm: str, fuller: str, how: Kind) -> bool:
        """Whether a name of one form may be short for one of another, by all but their words."""
        keys, others = self._by_norm[norm], self._by_norm[fuller]
        if len(keys) == len(others) == 1:  # nearly always, and this is asked about every pair
            return self._may_be_short(keys[0], others[0], how)
        return any(self._may_be_short(key, other, how) for key in keys for other in others)

    def _may_be_short(self, key: str, other: str, how: Kind) -> bool:
        (norm, kind), (fuller, other_kind) = self._split[key], self._split[other]
        if other_kind in NUMERIC or (kind and other_kind and kind != other_kind):
            return False
        if how == "other form":
            return True
        if key in self._lower and other not in self._lower:
            return False
        if key in self._people or other in self._people:
            return True
        return bool(kind) and kind == other_kind and fuller.startswith(f"{norm} ")

    def _may_be_one(self, first: str, second: str) -> bool:
        (one, kind), (other, other_kind) = self._split[first], self._split[second]
        if kind in NUMERIC or other_kind in NUMERIC:
            return False
        return self._types_agree([first], [second]) and not differ_in_number(one, other)

    def _join_the_only(
        self, entity: str, fits: dict[str, bool], reason: Reason, scores: dict[str, float]
    ) -> None:
        if entity in fits or len(fits) != 1:  # what the user united with a name that fits has it
            return
        ((target, is_centre),) = fits.items()
        members, others = self._members[entity], self._members[target]
        if is_centre and self._types_agree(members, others) and self._may_meet(entity, target):
            self._unite(entity, target, reason, scores.get(target, 1.0))

    def _unite(self, key: str, target: str, reason: Reason, score: float = 1.0) -> None:
        entity = self._entity[key]
        if entity == target:
            return
        for member in self._members.pop(entity):
            self._entity[member] = target
            self._members[target].append(member)
            self._why.setdefault(member, (reason, score))

    def _may_meet(self, first: str, second: str) -> bool:
        return not any(
            self._entity[other] == second
            for key in self._members[first]
            for other in self._apart.get(key, ())
        )

    def _types_agree(self, first: Sequence[str], second: Sequence[str]) -> bool:
        one = {self._split[key][1] for key in first} - {""}
        other = {self._split[key][1] for key in second} - {""}
        return not one or not other or bool(one & other)

    def _fullest(self, entity: str) -> tuple[tuple[int, int, str], str]:
        members = self._members[entity]
        return max(fullness(self._split[key][0]) for key in members), min(members)

    def _most_used(self, entity: str) -> tuple[int, tuple[tuple[int, int, str], str]]:
        return sum(self._uses[key].count for key in self._members[entity]), self._fullest(entity)

    # --- the outcome ------------------------------------------------------------------------------

    def resolution(self) -> Resolution:
        names: dict[str, str] = {}
        entities: dict[str, EntityRow] = {}
        merges: list[Merge] = []
        unspelled: set[str] = set()
        for members in self._members.values():
            canonical = self._canonical(members)
            norm = self._split[canonical][0]
            alike = [key for key in members if self._split[key][0] == norm]
            spelling = self._spelling(alike)
            row = EntityRow(canonical, spelling or _guessed(norm), self._type(members))
            entities[canonical] = row
            if not spelling:
                unspelled.add(canonical)
            for key in members:
                names[key] = canonical
                if key != canonical:
                    merges.append(self._merge(key, row))
        merges.sort(key=lambda merge: (merge.entity, merge.name, merge.reason))
        return Resolution(
            names=dict(sorted(names.items())),
            entities=dict(sorted(entities.items())),
            merges=tuple(merges),
            unspelled=frozenset(unspelled),
        )

    def _canonical(self, members: Sequence[str]) -> str:
        if len(members) == 1:
            return members[0]
        counts: dict[str, int] = defaultdict(int)
        for key in members:
            counts[self._split[key][0]] += self._uses[key].count
        most = max(counts.values())
        norm = min(
            (norm for norm, count in counts.items() if count * _RARE >= most),
            key=lambda norm: (-words_spelled_out(norm), -counts[norm], -len(norm), norm),
        )
        alike = [key for key in members if self._split[key][0] == norm]
        return min(alike, key=lambda key: (not self._split[key][1], -self._uses[key].count, key))

    def _spelling(self, keys: Sequence[str]) -> str:
        """Return the most frequent surface that spells names of one normalised form, or ""."""
        if len(keys) == 1:
            return self._spelled.get(keys[0], "")
        uses = [self._uses[key] for key in keys if key in self._spelled]
        return self._spelled[_most_frequent(uses).key] if uses else ""

    def _display(self, keys: Sequence[str]) -> str:
        return self._spelling(keys) or _guessed(self._split[keys[0]][0])

    def _type(self, members: Sequence[str]) -> str:
        counts: dict[str, int] = defaultdict(int)
        for key in members:
            if kind := self._split[key][1]:
                counts[kind] += self._uses[key].count
        return min(counts, key=lambda kind: (-counts[kind], kind)) if counts else ""

    def _merge(self, key: str, row: EntityRow) -> Merge:
        if self._split[key][0] == split_key(row.key)[0]:
            reason, score = self._why.get(key, ("exact", 1.0))
            reason = "user" if reason == "user" else "exact"
        else:
            reason, score = self._why.get(key) or self._why.get(row.key) or ("alias", 1.0)
        return Merge(self._display([key]), row.name, row.key, reason, score)


def spells(form: str, key: str) -> bool:
    """Whether a form is a good spelling of a name: the same words, not a heading's capitals."""
    is_heading = form.isupper() and len(form.split()) > 1
    return not is_heading and normalise_name(form) == split_key(key)[0]


def _guessed(norm: str) -> str:
    return norm.title()


def _summed(names: Iterable[NameUse]) -> dict[str, NameUse]:
    by_key: dict[str, list[NameUse]] = defaultdict(list)
    for use in names:
        by_key[use.key].append(use)
    summed = {}
    for key, uses in sorted(by_key.items()):
        if len(uses) == 1:
            (summed[key],) = uses
        else:
            count = sum(use.count for use in uses)
            summed[key] = NameUse(key, _most_frequent(uses).surface, count)
    return summed


def _most_frequent(uses: Sequence[NameUse]) -> NameUse:
    return min(uses, key=lambda use: (-use.count, -len(use.surface), use.surface))
