"""A name of the memory, and what its words tell of its person: titles, sex, marriage, fullness.

Names are given as keys (`qrmem.text.names.name_key`), or `norm`: normalised, without a type.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from qrmem.graphstore.protocol import NameRow
from qrmem.text.aliases import COURTESY, core_of, plain_spelling, sex, titled, titles_clash
from qrmem.text.names import best_form, spells, split_key

WIFE = frozenset(("mrs", "mme", "lady"))
"""Titles of a wife."""
_NO_RANK = COURTESY - {"sir"}
"""Titles of people who may go by a diminutive."""
_GIVEN_FOLLOWS = frozenset(("sir", "dame"))
"""Titles that only stand before a given name."""


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


def is_wife(norm: str, block: Sequence[str]) -> bool:
    """Whether a man has the surname of a Mrs.: another woman with it may be his daughter."""
    named = [titled(split_key(name)[0]) for name in block]
    surname = titled(norm)[1]
    return any(words == surname and sex(titles, ()) != "f" for titles, words in named if titles)


def is_of_family(words: Sequence[str], block: Sequence[str]) -> bool:
    """Whether words are a surname that women have, too."""
    named = (titled(split_key(name)[0]) for name in block)
    return not is_given_name(words[0]) and any(sex(*name) == "f" for name in named)


def men_of(surname: str, block: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return who may be a man of a surname: with more words than it, and by title and surname."""
    named = {name: titled(split_key(name)[0]) for name in block}
    men = [n for n, who in named.items() if who[1][-1:] == (surname,) and sex(*who) != "f"]
    full = [name for name in men if len(named[name][1]) > 1]
    return full, [name for name in men if name not in full and named[name][0]]


def types_agree(key: str, other: str) -> bool:
    """Whether two names do not have two known types."""
    kind, other_kind = split_key(key)[1], split_key(other)[1]
    return not kind or not other_kind or kind == other_kind


def family_of(norm: str, block: Sequence[str]) -> list[str]:
    """Return who may have a rank and surname: all full names with it, unless one says the rank."""
    titles, words = titled(norm)
    full = [n for n in block if titled(split_key(n)[0])[1][1:][-len(words) :] == words]
    if any(set(titles) & set(titles_of(split_key(n)[0])) for n in full):
        return []
    return [n for n in full if not titles_of(split_key(n)[0]) and is_person(*split_key(n))]


def is_of_another_given(norm: str, fuller: str) -> bool:
    """Whether a name has Sir or Dame, and another given name than a fuller one."""
    if not _GIVEN_FOLLOWS.intersection(titles_of(norm)):
        return False
    return core_of(norm)[:1] != core_of(fuller)[:1]


def is_of_husband(key: str) -> bool:
    """Whether a name is Mrs with a man's name: it says who the husband is."""
    titles, words = titled(split_key(key)[0])
    return bool(WIFE.intersection(titles)) and sex((), words) == "m"


def is_of_wife(norm: str, fuller: str) -> bool:
    """Whether a fuller name is Mrs. and a bare surname: Toller alone is her husband."""
    titles, words = titled(fuller)
    return "mrs" in titles and (norm,) == words and not is_given_name(norm)


def is_titled_woman(key: str, words: tuple[str, ...]) -> bool:
    """Whether a name is a surname after Mrs or Miss: the surname alone does not mean her."""
    norm = split_key(key)[0]
    return sex(titles_of(norm), ()) == "f" and plain_words(norm) == words


def is_given_name(word: str) -> bool:
    """Whether a word is a known given name."""
    return bool(sex((), (word, "")))


def is_daughter(norm: str, fuller: str) -> bool:
    """Whether Lady stands before a surname, and before a given name with it in a fuller name.

    Lady St. Simon is the wife of a lord, Lady Clara St. Simon the daughter of one.
    """
    both_ladies = "lady" in titles_of(norm) and "lady" in titles_of(fuller)
    return both_ladies and not is_given_name(core_of(norm)[0])


def is_of_type(key: str, kind: str, short: str) -> bool:
    """Whether a name has a type, or is a person of the surname `short` without a known type."""
    norm, own_type = split_key(key)
    if own_type or kind != "PERSON":
        return own_type == kind
    words = plain_words(short)
    return is_person(norm, own_type) and plain_words(norm)[-len(words) :] == words


def by_fullness(key: str) -> tuple[tuple[int, int, str], bool, str]:
    """Return a sort key of name keys: by fullness, typed names last."""
    norm, kind = split_key(key)
    return fullness(norm), bool(kind), key


@lru_cache(maxsize=1 << 13)
def plain_words(norm: str) -> tuple[str, ...]:
    """Return a normalised name's words for comparisons, without titles and accents."""
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


def ranks_of(norm: str) -> frozenset[str]:
    """Return the titles of a normalised name that say a rank."""
    return frozenset(titles_of(norm)) - _NO_RANK


def speak_of_two(first: tuple[str, ...], second: tuple[str, ...]) -> bool:
    """Whether titles before one surname are those of two people: Mr and Miss, Mrs and Miss."""
    return len({sex(first, ()), sex(second, ())} - {""}) == 2 or titles_clash(first, second)


def says_who(key: str, other: str) -> bool:
    """Whether a short name says by itself whom it means: both have the same first and last words.

    James Stockdale is James Bond Stockdale in any text. Cash is Johnny Cash only where a text
    names him; and John Logan is no John Logan Bartholomew.
    """
    few, many = titled(split_key(key)[0])[1], titled(split_key(other)[0])[1]
    return len(few) > 1 and (few[:1], few[-1:]) == (many[:1], many[-1:])
