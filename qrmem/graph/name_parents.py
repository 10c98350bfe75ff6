"""Finds the name that a name is short for, from the names of its block (QRMeM, section 2.1).

`qrmem.graph.resolution` has the rules, and makes entities from these parents.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

from qrmem.graphstore.protocol import NameRow
from qrmem.text.aliases import (
    BEFORE_GIVEN,
    COURTESY,
    MEN,
    core_of,
    is_alias,
    plain_spelling,
    sex,
    titled,
    titles_clash,
)
from qrmem.text.blocks import own_block
from qrmem.text.names import best_form, differ_in_number, spells, split_key

MOST = 32
"""Maximum number of names in a block; a larger block decides nothing."""
NUMERIC = frozenset(
    "DATE TIME DURATION SET NUMBER ORDINAL CARDINAL QUANTITY PERCENT MONEY".split()  # noqa: SIM905
)
"""Types whose names match only if they are equal."""
_WIFE = frozenset(("mrs", "mme", "lady"))
_FAR_MORE = 4
"""A surname refers to the person who is named this many times as often as all others with it."""
_ENOUGH = 5
"""Least number of occurrences of the two names for such a comparison."""
_SELDOM = 20
"""A name this many times rarer than another is ignored as its alternative."""


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
        """Return the data of a stored name that resolution needs."""
        return cls(row.key, best_form(row.key, row.forms) or row.surface, row.count)


class Judge:
    """Finds the parents of names from their spellings and counts."""

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
            equal: equal names with other types.
        """
        norm, kind = split_key(key)
        typed = [other for other in equal if other != key and split_key(other)[1]]
        if not kind and typed:
            return typed[0] if len(typed) == 1 else ""
        if block is None:
            return ""
        fitting = [other for other in block if self._may_stand_for(key, other, block)]
        of_type = [other for other in fitting if kind and _is_of_type(other, kind, norm)]
        ranked = sorted(of_type or fitting, key=by_fullness, reverse=True)
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
        names_meant = [
            name
            for name in dict.fromkeys([*ranked, *others])
            if _plain_words(split_key(name)[0])[-len(words) :] == words
        ]
        fullest = [name for name in names_meant if not self._leads(name, names_meant)]
        if not titles_of(split_key(key)[0]):
            fullest = [name for name in fullest if not _is_titled_woman(name, words)] or fullest
        weights = {
            name: sum(
                self._uses[n].count for n in names_meant if n == name or self._leads(n, [name])
            )
            for name in fullest
        }
        if not weights:
            return ""
        best = max(weights, key=lambda name: (weights[name], by_fullness(name)))
        is_bare = not titles_of(split_key(key)[0]) and sex(*titled(split_key(best)[0])) != "f"
        rest = 0
        for other in {*names_meant, *others}:
            if other == best or self._leads(other, [best]):
                continue
            count = self._uses[other].count
            is_titled_only = (
                bool(titles_of(split_key(other)[0])) and _plain_words(split_key(other)[0]) == words
            )
            is_less = count < weights[best] or _is_titled_woman(other, words)
            of_ranks = titles_clash(titles_of(split_key(best)[0]), titles_of(split_key(other)[0]))
            is_known = is_bare and is_titled_only and is_less
            rest += 0 if is_known and not of_ranks else count
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
        if (BEFORE_GIVEN - COURTESY).intersection(titles) and len(core_of(norm)) < len(
            core_of(split_key(other)[0])
        ):
            # Where a baron has a given name, too, a master of that name may be anybody's servant.
            bearers = [titles_of(split_key(n)[0]) for n in block if own_block(n) == own_block(key)]
            if any(titles_clash(titles, rank) for rank in bearers):
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
        words, own_fullness = _plain_words(norm), fullness(norm)
        rivals = []
        for other in block:
            fuller, kind = split_key(other)
            if kind == "PERSON" and fullness(fuller) > own_fullness:
                many = _plain_words(fuller)
                if words in (many[: len(words)], many[-len(words) :]):
                    rivals.append(other)
        return rivals

    def _is_contested(self, key: str, target: str, block: Sequence[str]) -> bool:
        """Whether names equal in their words, but not in what they are, claim one fuller name.

        Two known types may fit one name without a type (Lincoln, the person and the place), and
        titles of two people one name without a title (Mr and Miss Darcy: Fitzwilliam Darcy).
        """
        block_of_key = own_block(key)
        alike = [k for k in block if own_block(k) == block_of_key and self._is_short_for(k, target)]
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
        return display(self._uses[key])


def _is_titled_woman(key: str, words: tuple[str, ...]) -> bool:
    """Whether a name is a surname after Mrs or Miss: the surname alone does not mean her."""
    norm = split_key(key)[0]
    return sex(titles_of(norm), ()) == "f" and _plain_words(norm) == words


def _is_of_type(key: str, kind: str, short: str) -> bool:
    """Whether a name has a type, or is a person of the surname `short` without a known type."""
    norm, own_type = split_key(key)
    if own_type or kind != "PERSON":
        return own_type == kind
    words = _plain_words(short)
    return is_person(norm, own_type) and _plain_words(norm)[-len(words) :] == words


def by_fullness(key: str) -> tuple[tuple[int, int, str], bool, str]:
    """Return a sort key of name keys: by fullness, typed names last."""
    norm, kind = split_key(key)
    return fullness(norm), bool(kind), key


@lru_cache(maxsize=1 << 13)
def _plain_words(norm: str) -> tuple[str, ...]:
    return tuple((plain_spelling(core_of(norm)) or norm).split())


@lru_cache(maxsize=1 << 13)
def fullness(norm: str) -> tuple[int, int, str]:
    """Return a sort key for the fullness of a normalised name: full words, letters, text."""
    return words_spelled_out(norm), len(norm), norm


def words_spelled_out(norm: str) -> int:
    """Return the number of words with more than one letter, without leading titles."""
    titles, rest = titled(norm)
    return sum(len(word) > 1 for word in rest or titles)


@lru_cache(maxsize=1 << 13)
def is_person(norm: str, type: str) -> bool:
    """Return whether a normalised name is a person's, by type, or else by title or given name."""
    if type:
        return type == "PERSON"
    titles, rest = titled(norm)
    return bool(rest) and (bool(titles) or bool(sex(titles, rest)))


def titles_of(norm: str) -> tuple[str, ...]:
    """Return the leading titles of a normalised name."""
    return titled(norm)[0]


def _speak_of_two(first: tuple[str, ...], second: tuple[str, ...]) -> bool:
    """Whether titles before one surname are those of two people: Mr and Miss, Mrs and Miss."""
    return len({sex(first, ()), sex(second, ())} - {""}) == 2 or titles_clash(first, second)


def display(use: NameUse) -> str:
    """Return a name for display: its form in the text, or else its key with capitals."""
    if spells(use.surface, use.key):
        return " ".join(use.surface.split())
    return split_key(use.key)[0].title()
