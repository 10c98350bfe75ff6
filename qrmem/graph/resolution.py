"""Entity resolution: which names stand for one entity (QRMeM, section 2.1).

Every name has at most one parent, the name that it is short for, and an entity is a tree of names.
The parent depends on the names of one block alone (`qrmem.text.blocks`) and on nothing that was
decided before, so that adding or removing a name changes what is in its blocks and nothing else:

1. A name without a type joins the name that is equal to it and has one, if only one has.
2. A name joins the fullest name of its own block that it may be short for, if every other name that
   it may be short for, or that a reader could take it for, is itself short for a fuller one of
   them. A name that could be two is left alone.
3. A block with more than `MOST` names decides nothing: what so many share identifies none of them.

The user's decisions override the rules: "same" unites, and "different" keeps apart whatever else
would join them. Names that differ in a number never meet by a rule, nor do two known types.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import Literal

from qrmem.graphstore.protocol import EntityRow, NameRow
from qrmem.text.aliases import core_of, is_alias, plain_spelling
from qrmem.text.blocks import blocks_of, own_block
from qrmem.text.names import best_form, differ_in_number, normalise_name, spells, split_key
from qrmem.text.titles import COURTESY, MEN, sex, titled, titles_clash
from qrmem.types import Merge, MergeDecision

Reason = Literal["exact", "alias", "similar", "user"]

MOST = 32
"""Names of a block that are compared; a block with more of them decides nothing."""
NUMERIC = frozenset(
    "DATE TIME DURATION SET NUMBER ORDINAL CARDINAL QUANTITY PERCENT MONEY".split()  # noqa: SIM905
)
"""Types whose names are one only if they are equal."""
_RARE = 100
"""A name this many times rarer than its entity's most frequent one is not its canonical name."""


_WIFE = frozenset(("mrs", "mme", "lady"))
_FAR_MORE = 4
"""A surname means the person who is named this many times as often as all others of that name."""
_ENOUGH = 5
"""Occurrences of the two names from which on such a comparison says something."""
_SELDOM = 20
"""A name this many times rarer than another does not put that one's meaning in doubt."""


@dataclass(frozen=True, slots=True)
class NameUse:
    """A name of the namespace.

    Attributes:
        key: see `qrmem.text.names.name_key`.
        surface: the most frequent form that spells it; any form if none does.
        count: occurrences over all segments.
    """

    key: str
    surface: str
    count: int

    @classmethod
    def of(cls, row: NameRow) -> "NameUse":
        """Return what resolution needs of a stored name."""
        return cls(row.key, best_form(row.key, row.forms) or row.surface, row.count)


@dataclass(frozen=True, slots=True)
class Resolution:
    """What names stand for.

    Attributes:
        names: name key to entity key, for every name.
        entities: by key.
        merges: why a name counts as another, by entity key and name.
    """

    names: dict[str, str]
    entities: dict[str, EntityRow]
    merges: tuple[Merge, ...]


def resolve(
    names: Iterable[NameUse],
    decisions: Sequence[MergeDecision] = (),
    similar: Iterable[tuple[str, str, float]] = (),
) -> Resolution:
    """Return the entities of a namespace, all at once.

    Args:
        names: in any order; uses of one key are summed up.
        similar: pairs of name keys that an embedder finds close enough, with the cosine.

    Returns:
        The same for the same set of names, whatever their order. An entity's key is the key of
        its canonical name: of those that are not rare within the entity, the longest, then the
        most frequent.
    """
    uses = _summed(names)
    in_block: dict[int, list[str]] = defaultdict(list)
    for key in uses:
        for block in blocks_of(key):
            in_block[block].append(key)
    equal: dict[str, list[str]] = defaultdict(list)
    for key in uses:
        equal[split_key(key)[0]].append(key)
    judge = Judge(uses)
    parents = {}
    for key in uses:
        own = in_block[own_block(key)]
        parents[key] = judge.parent(
            key, own if len(own) <= MOST else None, equal[split_key(key)[0]]
        )
    return resolution_of(uses, parents, decisions, similar)


# --- one name and its block ----------------------------------------------------------------------


class Judge:
    """Finds the parents of names, out of how they are written."""

    def __init__(self, uses: Mapping[str, NameUse]) -> None:
        """Take names.

        Args:
            uses: by key; names may be added to it while the judge is used.
        """
        self._uses = uses

    def parent(self, key: str, block: Sequence[str] | None, equal: Sequence[str]) -> str:
        """Return the name that a name joins, or "".

        Args:
            block: the names of its own block; `None` if there are too many.
            equal: the names that are equal to it but for the type.
        """
        norm, kind = split_key(key)
        typed = [other for other in equal if other != key and split_key(other)[1]]
        if not kind and typed:
            return typed[0] if len(typed) == 1 else ""
        if block is None:
            return ""
        fitting = [other for other in block if self._may_stand_for(key, other, block)]
        of_type = [other for other in fitting if kind and _is_of_type(other, kind, norm)]
        ranked = sorted(of_type or fitting, key=_by_fullness, reverse=True)
        if not ranked or self._is_contested(key, ranked[0], block):
            return ""
        others = dict.fromkeys([*ranked[1:], *self._rivals(key, block)])
        if all(self._leads(other, ranked) for other in others if other != ranked[0]):
            return ranked[0]
        return self._most_named(key, ranked, list(others))

    def _leads(self, other: str, ranked: Sequence[str]) -> bool:
        """Whether a name is itself short for one of some names, so that it is no second meaning."""
        norm, kind = split_key(other)
        for fuller in ranked:
            if fuller == other:
                continue
            if not kind and split_key(fuller)[0] == norm:
                return True
            if self._is_short_for(other, fuller):
                return True
        return False

    def _most_named(self, key: str, ranked: Sequence[str], others: Sequence[str]) -> str:
        """Return the one person of a surname who is named far more often than all others, or "".

        A bare surname does not mean those who are called by title and surname, if they are fewer:
        beside Mr. Darcy, Darcy is not Miss Darcy.
        """
        words = _plain_words(split_key(key)[0])
        if split_key(key)[1] in NUMERIC or not any(is_person(*split_key(n)) for n in ranked):
            return ""
        meant = [
            name
            for name in dict.fromkeys([*ranked, *others])
            if _plain_words(split_key(name)[0])[-len(words) :] == words
        ]
        fullest = [name for name in meant if not self._leads(name, meant)]
        weights = {
            name: sum(self._uses[n].count for n in meant if n == name or self._leads(n, [name]))
            for name in fullest
        }
        if not weights:
            return ""
        best = max(weights, key=lambda name: (weights[name], _by_fullness(name)))
        is_bare = not titles_of(split_key(key)[0]) and sex(*titled(split_key(best)[0])) != "f"
        rest = 0
        for other in {*meant, *others}:
            if other == best or self._leads(other, [best]):
                continue
            count = self._uses[other].count
            is_titled_only = (
                bool(titles_of(split_key(other)[0])) and _plain_words(split_key(other)[0]) == words
            )
            rest += 0 if is_bare and is_titled_only and count < weights[best] else count
        evidence = weights[best] + self._uses[key].count
        is_clear = evidence >= _ENOUGH and weights[best] >= _FAR_MORE * rest
        return best if is_clear and best in ranked else ""

    def _may_stand_for(self, key: str, other: str, block: Sequence[str]) -> bool:
        """Whether a name is short for another, and no title of the other speaks against it.

        Miss de Bourgh is not Catherine de Bourgh where a text speaks of Lady Catherine de Bourgh,
        and Catherine alone is not Lady Catherine. Nobody with a rank goes by a diminutive.
        """
        if not self._is_short_for(key, other):
            return False
        norm, titles = split_key(key)[0], titles_of(split_key(key)[0])
        ranks = [titles_of(split_key(n)[0]) for n in block if own_block(n) == own_block(other)]
        if len(norm.split()) == 1 and any("lady" in rank for rank in ranks):
            return False
        if titles and any(_speak_of_two(titles, rank) for rank in ranks if rank):
            return False
        is_short_form = titled(norm)[1] != core_of(norm)
        return not is_short_form or all(COURTESY.issuperset(rank) for rank in ranks)

    def _is_short_for(self, key: str, other: str) -> bool:
        (norm, kind), (fuller, other_kind) = split_key(key), split_key(other)
        if kind in NUMERIC or other_kind in NUMERIC or (kind and other_kind and kind != other_kind):
            return False
        if fullness(fuller) <= fullness(norm):
            return False
        if self._display(key).islower() and not self._display(other).islower():
            return False
        few, many = _plain_words(norm), _plain_words(fuller)
        if all(word.isdigit() for word in few):
            return False
        is_acronym = len(few) == 1 and few[0] not in many
        if not is_acronym and len(few) != len(many) and not self._may_be_part(key, other):
            return False
        return is_alias(self._display(key), self._display(other)) and not differ_in_number(
            norm, fuller
        )

    def _may_be_part(self, key: str, other: str) -> bool:
        """Whether a name with fewer words may mean the fuller one.

        That is how texts speak of people; of other things it often names another (Wyoming, Wyoming
        State Senate), unless the types agree and the fuller name begins with it.
        """
        (norm, kind), (fuller, other_kind) = split_key(key), split_key(other)
        if self._display(other).islower():
            return False
        if is_person(norm, kind) or is_person(fuller, other_kind):
            return True
        return bool(kind) and kind == other_kind and fuller.startswith(f"{norm} ")

    def _rivals(self, key: str, block: Sequence[str]) -> list[str]:
        """Return people whose names begin or end with a name's words.

        Such a person may be meant even where the rules for aliases have doubts: Mary could be Mary
        King. A name with a title has no rivals, as the title identifies the person.
        """
        norm = split_key(key)[0]
        if titles_of(norm):
            return []
        words, own = _plain_words(norm), fullness(norm)
        found = []
        for other in block:
            fuller, kind = split_key(other)
            if kind == "PERSON" and fullness(fuller) > own:
                many = _plain_words(fuller)
                if words in (many[: len(words)], many[-len(words) :]):
                    found.append(other)
        return found

    def _is_contested(self, key: str, target: str, block: Sequence[str]) -> bool:
        """Whether names equal in their words, but not in what they are, claim one fuller name.

        Two known types may fit one name without a type (Lincoln, the person and the place), and
        titles of two people one name without a title (Mr and Miss Darcy: Fitzwilliam Darcy).
        """
        own = own_block(key)
        alike = [k for k in block if own_block(k) == own and self._is_short_for(k, target)]
        alike = [k for k in alike if self._uses[k].count * _SELDOM >= self._uses[key].count]
        norm, kind = split_key(key)
        kinds = {split_key(other)[1] for other in alike} - {""}
        if kind and not split_key(target)[1] and len(kinds) > 1:
            return True
        titles = {titles_of(split_key(other)[0]) for other in alike}
        if "miss" in titles_of(norm) and any(MEN & {*titles_of(split_key(k)[0])} for k in block):
            # Beside a husband Mrs and Lady are his wife, so that a woman's full name is the Miss's.
            titles = {one for one in titles if not _WIFE.intersection(one)}
        of_two = any(_speak_of_two(a, b) for a, b in combinations(sorted(titles), 2))
        return of_two and bool(titles_of(norm))

    def _display(self, key: str) -> str:
        return _display(self._uses[key])


def _is_of_type(key: str, kind: str, short: str) -> bool:
    """Whether a name has a type, or is a person of the surname `short` without a known type."""
    norm, own = split_key(key)
    if own or kind != "PERSON":
        return own == kind
    words = _plain_words(short)
    return is_person(norm, own) and _plain_words(norm)[-len(words) :] == words


def _by_fullness(key: str) -> tuple[tuple[int, int, str], bool, str]:
    norm, kind = split_key(key)
    return fullness(norm), bool(kind), key


@lru_cache(maxsize=200_000)
def _plain_words(norm: str) -> tuple[str, ...]:
    return tuple((plain_spelling(core_of(norm)) or norm).split())


@lru_cache(maxsize=200_000)
def fullness(norm: str) -> tuple[int, int, str]:
    """Return how much a normalised name says: words spelled out, letters, then any order."""
    return words_spelled_out(norm), len(norm), norm


def words_spelled_out(norm: str) -> int:
    """Return the number of words of more than one letter, titles in front not counted."""
    titles, rest = titled(norm)
    return sum(len(word) > 1 for word in rest or titles)


@lru_cache(maxsize=200_000)
def is_person(norm: str, type: str) -> bool:
    """Whether a normalised name is a person's by its type, else by its title or given name."""
    if type:
        return type == "PERSON"
    titles, rest = titled(norm)
    return bool(rest) and (bool(titles) or bool(sex(titles, rest)))


def titles_of(norm: str) -> tuple[str, ...]:
    """Return the titles in front of a normalised name."""
    return titled(norm)[0]


def _speak_of_two(first: tuple[str, ...], second: tuple[str, ...]) -> bool:
    """Whether titles before one surname are those of two people: Mr and Miss, Mrs and Miss."""
    return len({sex(first, ()), sex(second, ())} - {""}) == 2 or titles_clash(first, second)


# --- from parents to entities --------------------------------------------------------------------


def resolution_of(
    uses: Mapping[str, NameUse],
    parents: Mapping[str, str],
    decisions: Sequence[MergeDecision] = (),
    similar: Iterable[tuple[str, str, float]] = (),
) -> Resolution:
    """Return the entities of names whose parents are known.

    Args:
        uses: whole entities: with a name all that share its entity by the rules or by decisions.
    """
    trees = _Trees(uses)
    trees.follow(decisions)
    for key in sorted(parents, key=_by_fullness, reverse=True):
        if parents[key]:
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
        """Take the user's decisions: first who stays apart, then who is one."""
        if not decisions:
            return
        meant = _meaning(self._uses)
        for decision in sorted(decisions, key=lambda d: (d.same, d.first, d.second)):
            for first, second in meant(decision):
                if decision.same:
                    self.unite(first, second, "user")
                else:
                    self._apart[first].add(second)
                    self._apart[second].add(first)

    def unite(self, key: str, other: str, reason: Reason, score: float = 1.0) -> None:
        """Make two names one entity, unless the user keeps some of theirs apart."""
        entity, target = self._entity[key], self._entity[other]
        if entity == target or self._are_kept_apart(entity, target):
            return
        for member in self._members.pop(entity):
            self._entity[member] = target
            self._members[target].append(member)
            self._why.setdefault(member, (reason, score))

    def unite_similar(self, pairs: Iterable[tuple[str, str, float]]) -> None:
        """Join each entity to the only more frequent one that is close to it."""
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
        return Merge(_display(use), row.name, row.key, reason, score)


def _meaning(
    uses: Mapping[str, NameUse],
) -> Callable[[MergeDecision], list[tuple[str, str]]]:
    """Return what finds the pairs of names that a decision speaks of.

    A name that several types share means, for "same", those that the other name's types allow,
    else the most frequent one.
    """
    by_norm: dict[str, list[str]] = defaultdict(list)
    for key in uses:
        by_norm[split_key(key)[0]].append(key)

    def keys_of(name: str) -> list[str]:
        if name in uses:
            return [name]
        found = by_norm.get(normalise_name(name), ())
        return sorted(found, key=lambda key: (-uses[key].count, key))

    def meant(decision: MergeDecision) -> list[tuple[str, str]]:
        firsts, seconds = keys_of(decision.first), keys_of(decision.second)
        pairs = [(a, b) for a in firsts for b in seconds if a != b]
        if not decision.same or len(pairs) < 2:
            return pairs
        agreeing = [(a, b) for a, b in pairs if _types_may_agree(a, b)]
        return agreeing or pairs[:1]

    return meant


def _types_may_agree(first: str, second: str) -> bool:
    one, other = split_key(first)[1], split_key(second)[1]
    return not one or not other or one == other


def _may_be_similar(first: str, second: str) -> bool:
    (one, kind), (other, other_kind) = split_key(first), split_key(second)
    if kind in NUMERIC or other_kind in NUMERIC:
        return False
    return _types_may_agree(first, second) and not differ_in_number(one, other)


def _entity_row(uses: Sequence[NameUse]) -> EntityRow:
    """Return the entity of some names: its canonical name, how that is spelled, and its type."""
    counts: dict[str, int] = defaultdict(int)
    types: dict[str, int] = defaultdict(int)
    for use in uses:
        norm, kind = split_key(use.key)
        counts[norm] += use.count
        if kind:
            types[kind] += use.count
    norm = _canonical(counts)
    alike = [use for use in uses if split_key(use.key)[0] == norm]
    chosen = min(alike, key=lambda use: (not split_key(use.key)[1], -use.count, use.key))
    spelled = [use for use in alike if normalise_name(use.surface) == norm]
    best = min(
        spelled,
        key=lambda use: (not spells(use.surface, use.key), -use.count, -len(use.surface), use.key),
        default=None,
    )
    name = " ".join(best.surface.split()) if best else norm.title()
    type_ = min(types, key=lambda kind: (-types[kind], kind), default="")
    return EntityRow(chosen.key, name, type_)


def _canonical(counts: Mapping[str, int]) -> str:
    """Return the fullest of an entity's names that is common.

    A form seen once is not common where another is seen three times and more.
    """
    most = max(counts.values())
    common = [n for n, count in counts.items() if count * _RARE >= most and (count > 1 or most < 3)]
    return min(
        common,
        key=lambda norm: (-words_spelled_out(norm), -counts[norm], -len(norm), norm),
    )


# --- how names are spelled -----------------------------------------------------------------------


def _display(use: NameUse) -> str:
    if spells(use.surface, use.key):
        return " ".join(use.surface.split())
    return split_key(use.key)[0].title()


def _summed(names: Iterable[NameUse]) -> dict[str, NameUse]:
    by_key: dict[str, list[NameUse]] = defaultdict(list)
    for use in names:
        by_key[use.key].append(use)
    summed = {}
    for key, uses in sorted(by_key.items()):
        best = min(uses, key=lambda use: (-use.count, -len(use.surface), use.surface))
        summed[key] = NameUse(key, best.surface, sum(use.count for use in uses))
    return summed
