"""Finds the name that a name is short for, from the names of its block (QRMeM, section 2.1).

`qrmem.graph.resolution` has the rules, and makes entities from these parents.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
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
from qrmem.text.names import best_form, differ_in_number, name_key, spells, split_key

MOST = 32
"""Maximum number of names in a block; a larger block decides nothing."""
NUMERIC = frozenset(
    "DATE TIME DURATION SET NUMBER ORDINAL CARDINAL QUANTITY PERCENT MONEY".split()  # noqa: SIM905
)
"""Types whose names match only if they are equal."""
_WIFE = frozenset(("mrs", "mme", "lady"))
_NO_RANK = COURTESY - {"sir"}
"""Titles of people who may go by a diminutive."""
_GIVEN_FOLLOWS = frozenset(("sir", "dame"))
"""Titles that only stand before a given name."""
_FAR_MORE = 4
"""A surname refers to the person who is named this many times as often as all others with it."""
_ENOUGH = 5
"""Least number of occurrences of the two names for such a comparison."""
_OFTEN = 3
"""Occurrences of a title with a full name from which on the given name tells two people apart."""
_SELDOM = 20
"""A name this many times rarer than another is ignored as its alternative."""


@dataclass(frozen=True)
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

    @cached_property
    def display(self) -> str:
        """The name for display: its form in the text, or else its key with capitals."""
        if spells(self.surface, self.key):
            return " ".join(self.surface.split())
        return split_key(self.key)[0].title()


class Judge:
    """Finds the parents of names from their spellings and counts."""

    def __init__(self, uses: Mapping[str, NameUse]) -> None:
        """Take names.

        Args:
            uses: by key; names may be added to it while the judge is used.
        """
        self._uses = uses
        self._block: Sequence[str] = ()  # of the name that is judged: who else may be meant

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
        self._block = block or ()
        if block is None or kind in NUMERIC or self._is_told_apart(key, block):
            return ""
        own = fullness(norm)
        fuller = [other for other in block if fullness(split_key(other)[0]) > own]
        fitting = [other for other in fuller if self._may_stand_for(key, other, block)]
        if not fitting:
            return ""
        block = self._without_rare_names(key, block, fitting)
        block = self._without_rare_titles(key, block, fitting)
        fitting = [other for other in fitting if other in block]
        of_type = [other for other in fitting if kind and _is_of_type(other, kind, norm)]
        return self._parent_of(key, of_type or fitting, block)

    def _without_rare_names(
        self, key: str, block: Sequence[str], fitting: Sequence[str]
    ) -> Sequence[str]:
        """Return a block without fuller names that are too rare to be meant by a common name.

        Where John is named often, and John Thorpe sometimes, one John Murray is no other John.
        """
        own, count = own_block(key), self._count(split_key(key)[0])
        most = max((self._uses[n].count for n in fitting if own_block(n) != own), default=0)
        if most < _FAR_MORE or count < _SELDOM:
            return block
        return [
            n
            for n in block
            if own_block(n) == own
            or self._uses[n].count * _FAR_MORE > most
            or self._uses[n].count * _SELDOM > count
        ]

    def _without_rare_titles(
        self, key: str, block: Sequence[str], fitting: Sequence[str]
    ) -> Sequence[str]:
        """Return a block without titles before a given name that is nearly always bare.

        Where Edmund Bertram is Edmund throughout, a Sir Edmund in jest is no other Edmund.
        """
        norm = split_key(key)[0]
        has_surname = any(len(core_of(split_key(name)[0])) > 1 for name in fitting)
        if len(norm.split()) > 1 or not has_surname:
            return block
        bare, own = self._count(norm), own_block(key)
        return [
            n
            for n in block
            if own_block(n) != own
            or not BEFORE_GIVEN.intersection(titles_of(split_key(n)[0]))
            or self._uses[n].count * _SELDOM > bare
        ]

    def _parent_of(self, key: str, fitting: Sequence[str], block: Sequence[str]) -> str:
        """Return which of some fuller names a name is short for, or ""."""
        ranked = sorted(fitting, key=by_fullness, reverse=True)
        if not ranked or self._is_contested(key, ranked[0], block):
            return ""
        others = dict.fromkeys([*ranked[1:], *self._rivals(key, block)])
        if all(self._leads(other, ranked) for other in others if other != ranked[0]):
            return ranked[0]
        return self._most_named(key, ranked, list(others))

    def _weight(self, name: str, names: Sequence[str]) -> int:
        """Return how often a name is used, with those of some names that are short for it."""
        return sum(self._uses[n].count for n in names if n == name or self._leads(n, [name]))

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
        beside Mr. Darcy, Darcy is not Miss Darcy. Nor does it mean Mrs. John Knightley.
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
            names_meant = [n for n in names_meant if not _is_titled_woman(n, words)] or names_meant
        weights = {name: self._weight(name, names_meant) for name in fullest}
        if not weights:
            return ""
        best = max(weights, key=lambda name: (weights[name], by_fullness(name)))
        rest = sum(
            self._uses[other].count
            for other in {*names_meant, *others}
            if other != best
            and not self._leads(other, [best])
            and not self._is_never_meant(other, key, best, weights[best])
        )
        evidence = weights[best] + self._uses[key].count
        is_clear = evidence >= _ENOUGH and weights[best] >= _FAR_MORE * rest
        return best if is_clear and best in ranked else ""

    def _is_never_meant(self, other: str, key: str, best: str, weight: int) -> bool:
        """Whether a bare surname cannot mean somebody, as a man is named who has it, too."""
        words = _plain_words(split_key(key)[0])
        titles = titles_of(split_key(other)[0])
        if titles_of(split_key(key)[0]) or sex(*titled(split_key(best)[0])) == "f" or not titles:
            return False
        if sex(titles, ()) == "f":
            return True
        if titles_clash(titles_of(split_key(best)[0]), titles):
            return False
        return _plain_words(split_key(other)[0]) == words and self._uses[other].count < weight

    def _may_stand_for(self, key: str, other: str, block: Sequence[str]) -> bool:
        """Whether a name is short for another, and no title of the other speaks against it.

        Miss de Bourgh is not Catherine de Bourgh where a text speaks of Lady Catherine de Bourgh,
        and Catherine alone is not Lady Catherine. Nobody with a rank goes by a diminutive.
        """
        if not self._is_short_for(key, other):
            return False
        norm, titles = split_key(key)[0], titles_of(split_key(key)[0])
        if _is_of_husband(other) and not _WIFE.intersection(titles):
            return False
        if _is_after_no_name(key, other) or _is_of_wife(norm, split_key(other)[0]):
            return False
        alike = [n for n in block if own_block(n) == own_block(other) and not _is_of_husband(n)]
        alike = [other] if _is_of_husband(other) else alike
        ranks = [titles_of(split_key(n)[0]) for n in alike]
        if len(norm.split()) == 1 and any("lady" in rank for rank in ranks):
            return False
        if titles and any(_speak_of_two(titles, rank) for rank in ranks if rank):
            return False
        if "mrs" in titles and not any("mrs" in rank for rank in ranks) and _is_wife(norm, block):
            return False
        given, rank = core_of(norm), (BEFORE_GIVEN - COURTESY).intersection(titles)
        is_first = core_of(split_key(other)[0])[: len(given)] == given
        is_given = is_first or bool(sex((), (*given, "")))
        if rank and is_given and not any(rank.intersection(others) for others in ranks):
            return False  # Prince Harry is no Harry Styles: nobody calls him Prince Harry Styles.
        is_short_form = titled(norm)[1] != core_of(norm)
        if titled(norm)[1][:1] == titled(split_key(other)[0])[1][:1]:
            return True
        return not is_short_form or not any(_ranks(split_key(name)[0]) for name in alike)

    def _is_told_apart(self, key: str, others: Sequence[str]) -> bool:
        """Whether a title and surname mean somebody else than one of some full names with it.

        A text that often says Mr. (or Mrs.) John Knightley beside Mr. Knightley speaks of his
        brother, if anybody else may be meant by Mr. Knightley: he has a wife, too, or a second
        full name. Mr. Wilson is Mr. Jabez Wilson if no other Wilson is there.
        """
        norm = split_key(key)[0]
        titles, words = titled(norm)
        if not titles or len(words) != 1:
            return False
        before, count = norm.removesuffix(words[0]), self._uses[key].count
        is_husband = sex(titles, ()) != "f" and self._count(f"mrs {words[0]}") > count
        for full in (titled(split_key(other)[0])[1] for other in others):
            if full[1:][-1:] == words:
                of_two = max(self._count(f"{title}{' '.join(full)}") for title in (before, "mrs "))
                is_often = of_two >= (1 if is_husband else _OFTEN) and of_two * _SELDOM > count
                if is_often and self._may_be_another(titles, full):
                    return True
        return False

    def _may_be_another(self, titles: tuple[str, ...], full: tuple[str, ...]) -> bool:
        """Whether a surname after a title may mean somebody else than a person of a full name."""
        is_woman = sex(titles, ()) == "f"
        for other_titles, words in (titled(split_key(other)[0]) for other in self._block):
            if words[-1:] != full[-1:] or words[-len(full) :] == full:
                continue
            other_sex = sex(other_titles, words)
            if len(words) == 1:
                if not is_woman and _WIFE.intersection(other_titles):
                    return True
            elif not other_sex or (other_sex == "f") == is_woman:
                return True
        return False

    def _has_wife(self, norm: str) -> bool:
        """Whether a title of either sex is a man's: beside Captain Harville there is his Mrs."""
        titles, words = titled(norm)
        return bool(titles) and not sex(titles, ()) and self._count(f"mrs {' '.join(words)}") > 0

    def _count(self, norm: str) -> int:
        uses = (self._uses.get(name_key(norm, kind)) for kind in ("", "PERSON"))
        return sum(use.count for use in uses if use)

    def _is_short_for(self, key: str, other: str) -> bool:
        (norm, kind), (fuller, other_kind) = split_key(key), split_key(other)
        if kind in NUMERIC or other_kind in NUMERIC or (kind and other_kind and kind != other_kind):
            return False
        if fullness(fuller) <= fullness(norm) or self._is_told_apart(key, [other]):
            return False
        if _is_of_another_given(norm, fuller):
            return False
        if self._has_wife(norm) and sex((), core_of(fuller)) == "f":
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
        King. A name with a title has no rivals, as the title identifies the person; but a rank
        alone does not tell who of a family has it.
        """
        norm = split_key(key)[0]
        words, own_fullness = _plain_words(norm), fullness(norm)
        if titles_of(norm):
            return [] if sex(titles_of(norm), ()) else _family(norm, block)
        is_short_form = titled(norm)[1] != core_of(norm)
        rivals = []
        for other in block:
            fuller, kind = split_key(other)
            if _is_of_husband(other) or _is_after_no_name(key, other):
                continue
            if is_short_form and _ranks(fuller):
                continue
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
        most = self._uses[key].count
        alike = [
            k
            for k in alike
            if self._uses[k].count * _SELDOM >= most or "miss" in titles_of(split_key(k)[0])
        ]
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
        return self._uses[key].display


def _is_wife(norm: str, block: Sequence[str]) -> bool:
    """Whether a man has the surname of a Mrs.: another woman with it may be his daughter."""
    named = [titled(split_key(name)[0]) for name in block]
    surname = titled(norm)[1]
    return any(words == surname and sex(titles, ()) != "f" for titles, words in named if titles)


def _family(norm: str, block: Sequence[str]) -> list[str]:
    """Return who may have a rank and surname: all full names with it, unless one says the rank."""
    titles, words = titled(norm)
    full = [n for n in block if titled(split_key(n)[0])[1][1:][-len(words) :] == words]
    if any(set(titles) & set(titles_of(split_key(n)[0])) for n in full):
        return []
    return [n for n in full if not titles_of(split_key(n)[0]) and is_person(*split_key(n))]


def _is_after_no_name(key: str, other: str) -> bool:
    """Whether a given name closes a longer name as no surname: dearest Jane, come Emma."""
    given, (titles, words) = titled(split_key(key)[0])[1], titled(split_key(other)[0])
    is_last = len(given) == 1 and len(words) > 1 and words[-1:] == given and not titles
    return is_last and bool(sex((), (*given, ""))) and not sex((), words) and len(words[0]) > 1


def _is_of_another_given(norm: str, fuller: str) -> bool:
    """Whether a name has Sir or Dame, and another given name than a fuller one."""
    if not _GIVEN_FOLLOWS.intersection(titles_of(norm)):
        return False
    return core_of(norm)[:1] != core_of(fuller)[:1]


def _is_of_husband(key: str) -> bool:
    """Whether a name is Mrs with a man's name: it says who the husband is."""
    titles, words = titled(split_key(key)[0])
    return bool(_WIFE.intersection(titles)) and sex((), words) == "m"


def _is_of_wife(norm: str, fuller: str) -> bool:
    """Whether a fuller name is Mrs. and a bare surname: Toller alone is her husband."""
    titles, words = titled(fuller)
    is_given = bool(sex((), (norm, "")))
    return "mrs" in titles and (norm,) == words and not is_given


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


def _ranks(norm: str) -> frozenset[str]:
    """Return the titles of a normalised name that say a rank."""
    return frozenset(titles_of(norm)) - _NO_RANK


def _speak_of_two(first: tuple[str, ...], second: tuple[str, ...]) -> bool:
    """Whether titles before one surname are those of two people: Mr and Miss, Mrs and Miss."""
    return len({sex(first, ()), sex(second, ())} - {""}) == 2 or titles_clash(first, second)
