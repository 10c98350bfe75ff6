"""Which fuller names a name may be short for: found through shared words, then judged."""

import unicodedata
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter
from typing import Literal

from qrmem.text.names import differ_in_number, is_alias
from qrmem.text.numbers import canonical_number
from qrmem.text.titles import sex, titled, titles_clash

Kind = Literal["other form", "part"]

_SMALL = frozenset(
    "of the and for in on de la du des di da del von van der den el al".split()  # noqa: SIM905
)
"""Words that an acronym may leave out."""


@dataclass(frozen=True, slots=True)
class Fuller:
    """A name that another may be short for.

    Attributes:
        kind: `other form` for another spelling or an acronym, which name the same thing whatever it
            is; `part` where words are left out, which is how texts speak of people, but of other
            things often names another (Wyoming, Wyoming State Senate).
    """

    name: str
    kind: Kind


class Aliases:
    """An index of names by their words, by initial and last word, and by initials."""

    def __init__(self, names: Mapping[str, str]) -> None:
        """Index names.

        Args:
            names: normalised name to the name as the text writes it.
        """
        self._names = names
        self._by_word: dict[str, set[str]] = defaultdict(set)
        self._by_ends: dict[tuple[str, str], set[str]] = defaultdict(set)
        self._initialled: dict[tuple[str, str], set[str]] = defaultdict(set)
        self._by_initials: dict[str, set[str]] = defaultdict(set)
        self._opening_with_initials: set[str] = set()
        for name in names:
            words = core_words(name)
            for word in words:
                self._by_word[word].add(name)
            if len(words) > 1:
                ends = words[0][0], words[-1]
                self._by_ends[ends].add(name)
                if self._opens_with_initials(name):
                    self._opening_with_initials.add(name)
                    self._initialled[ends].add(name)
            for initials in initials_of(name):
                self._by_initials[initials].add(name)

    def fuller(self, name: str, is_fit: Callable[[str, Kind], bool]) -> list[Fuller]:
        """Return the names that a name may be short for, sorted.

        All are fuller in the order of `fullness`, so that two spellings of one name point one way.
        Names that differ in a number are never aliases, and bare numbers have none.

        Args:
            is_fit: what else is asked of a fuller name; asked first, as it says less about words.
        """
        words = core_words(name)
        if all(word.isdigit() for word in words):
            return []
        candidates = self._candidates(name, words) - {name}
        if not candidates:
            return []
        own = fullness(name)
        fitting = [
            Fuller(other, kind)
            for other in candidates
            if fullness(other) > own and is_fit(other, kind := _kind(words, core_words(other)))
        ]
        return [
            other
            for other in sorted(fitting, key=attrgetter("name"))
            if is_alias(self._names[name], self._names[other.name])
            and not differ_in_number(name, other.name)
        ]

    def rivals(self, name: str) -> list[str]:
        """Return the names that begin or end with a name's words, sorted.

        A person of such a name may be meant by it even where the judge of aliases has doubts:
        Mary could be Mary King. A name with a title has none, as a title tells people apart.
        """
        words = core_words(name)
        if titles_of(name):
            return []
        own = fullness(name)
        return sorted(
            other
            for other in self._sharing(words)
            if fullness(other) > own and _begins_or_ends(core_words(other), words)
        )

    def _candidates(self, name: str, words: tuple[str, ...]) -> set[str]:
        found = self._sharing(words)
        if len(words) == 1:
            return found | self._by_initials.get(words[0], set())
        ends = words[0][0], words[-1]
        is_opened = name in self._opening_with_initials
        either = self._by_ends if is_opened else self._initialled
        return found | either.get(ends, set())

    def _sharing(self, words: tuple[str, ...]) -> set[str]:
        containing = sorted((self._by_word.get(word, set()) for word in words), key=len)
        return containing[0].intersection(*containing[1:])

    def _opens_with_initials(self, name: str) -> bool:
        first = titled(name)[1][:1]
        written = next(iter(self._names[name].split()), "")
        return len("".join(first)) == 1 or (len(written) <= 3 and written.isupper())


def _kind(few: tuple[str, ...], many: tuple[str, ...]) -> Kind:
    is_acronym = len(few) == 1 and few[0] not in many
    return "other form" if is_acronym or len(few) == len(many) else "part"


@lru_cache(maxsize=200_000)
def core_words(name: str) -> tuple[str, ...]:
    """Return the words of a normalised name without accents and the titles before it.

    Numbers are in digits and letters that stand alone joined. Never empty, and title words are
    kept where there is nothing else.
    """
    titles, rest = titled(name)
    words: list[str] = []
    joining = False
    for at, word in enumerate(rest or titles or (name,)):
        plain = _without_accents((canonical_number(rest, at) or word) if rest else word)
        if joining and len(plain) == 1:
            words[-1] += plain
        else:
            words.append(plain)
        joining = len(plain) == 1
    return tuple(words)


@lru_cache(maxsize=200_000)
def fullness(name: str) -> tuple[int, int, str]:
    """Return by how much a normalised name says: words spelled out, letters, then any order."""
    return words_spelled_out(name), len(name), name


def words_spelled_out(name: str) -> int:
    """Return the number of words of more than one letter, titles in front not counted."""
    titles, rest = titled(name)
    return sum(len(word) > 1 for word in rest or titles)


def is_person(name: str, type: str) -> bool:
    """Whether a normalised name is a person's by its type, else by its title or given name."""
    if type:
        return type == "PERSON"
    titles, rest = titled(name)
    return bool(rest) and (bool(titles) or bool(sex(titles, rest)))


def titles_of(name: str) -> tuple[str, ...]:
    """Return the titles in front of a normalised name."""
    return titled(name)[0]


def speak_of_two(first: tuple[str, ...], second: tuple[str, ...]) -> bool:
    """Whether titles before one surname are those of two people: Mr and Miss, Mrs and Miss."""
    return len({sex(first, ()), sex(second, ())} - {""}) == 2 or titles_clash(first, second)


def _begins_or_ends(many: tuple[str, ...], few: tuple[str, ...]) -> bool:
    return few in (many[: len(few)], many[-len(few) :])


def initials_of(name: str) -> set[str]:
    """Return the acronyms that a normalised name of several words may have."""
    words = titled(name)[1]
    if len(words) < 2:
        return set()
    main = [word for word in words if word not in _SMALL]
    heads = ["".join(map(_head, part)) for part in (words, main, words[:-1], main[:-1])]
    return {initials for initials in heads if len(initials) > 1}


def _head(word: str) -> str:
    return word if word[0].isdigit() else word[0]


def _without_accents(word: str) -> str:
    if word.isascii():
        return word
    text = unicodedata.normalize("NFD", word)
    text = "".join(char for char in text if not "\u0300" <= char <= "\u036f")
    return unicodedata.normalize("NFC", text) or word
