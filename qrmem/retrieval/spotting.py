"""Finding known names in a text: titles of documents and names of entities, longest first."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

_WORD = re.compile(r"[^\W_]+")
_BRACKET = re.compile(r"\s*[(\[（][^)\]）]*[)\]）]\s*")
_POSSESSIVE = frozenset("'’")
_ARTICLES = ("the ", "a ", "an ")
LONGEST = 12
"""Words of the longest name that is looked for."""


@dataclass(frozen=True, slots=True)
class Words:
    """The words of a text, lower-cased, without a possessive s.

    Attributes:
        starts: first character of each.
        ends: the character after each.
        marked: whether it starts with a capital or a digit, or its script knows no capitals.
    """

    words: Sequence[str]
    starts: Sequence[int]
    ends: Sequence[int]
    marked: Sequence[bool]


def words_of(text: str) -> Words:
    """Return a text's words."""
    words, starts, ends, marked = [], [], [], []
    for match in _WORD.finditer(text):
        word, start = match.group(), match.start()
        if word in "sS" and start and text[start - 1] in _POSSESSIVE:
            continue
        words.append(word.lower())
        starts.append(start)
        ends.append(match.end())
        marked.append(not word[0].islower())
    return Words(words, starts, ends, marked)


def plain(name: str) -> str:
    """Return a name as it is looked up: its lower-cased words."""
    return " ".join(words_of(name).words)


def title_forms(title: str) -> Iterator[tuple[str, float]]:
    """Yield the names that a title goes by, with how surely each means it.

    The title itself, without what is in brackets, before the comma, and without its article.
    """
    yield plain(title), 1.0
    short = _BRACKET.sub(" ", title).strip()
    if short != title:
        yield plain(short), 0.8
    before = short.split(",", 1)[0]
    if before != short:
        yield plain(before), 0.6
    for form in (plain(short), plain(before)):
        for article in _ARTICLES:
            if form.startswith(article):
                yield form.removeprefix(article), 0.6


@dataclass(frozen=True, slots=True)
class Spot:
    """A known name in a text: its number in the table, and its words' places."""

    name: int
    first: int
    last: int


class NameTable:
    """Known names by their words."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._lengths: dict[str, tuple[int, ...]] = {}
        self.names: list[str] = []

    def __len__(self) -> int:
        return len(self.names)

    def add(self, name: str) -> int:
        """Return the number of a name (lower-cased words), new or known; -1 for an empty one."""
        number = self._numbers.get(name)
        if number is not None:
            return number
        words = name.split(" ")
        if not name or len(words) > LONGEST:
            return -1
        self._numbers[name] = number = len(self.names)
        self.names.append(name)
        known = self._lengths.get(words[0], ())
        if len(words) not in known:
            self._lengths[words[0]] = tuple(sorted({*known, len(words)}, reverse=True))
        return number

    def find(self, name: str) -> int | None:
        """Return the number of a name, or `None`."""
        return self._numbers.get(name)

    def spots(
        self, text: Words, *, needs_capital: bool, skip: Iterable[str] = ()
    ) -> Iterator[Spot]:
        """Yield the names in a text from left to right, the longest at each place.

        Args:
            text: where to look.
            needs_capital: whether a name's first and last word must start with a capital; without
                it one capital is enough for a name of one word, and none for a longer one.
            skip: names of one word that are none (stop words).
        """
        words, marked, skipped = text.words, text.marked, frozenset(skip)
        place = 0
        while place < len(words):
            step = 1
            for length in self._lengths.get(words[place], ()):
                last = place + length - 1
                if last >= len(words):
                    continue
                is_free = not needs_capital and length > 1
                if not (is_free or (marked[place] and marked[last])):
                    continue
                if length == 1 and words[place] in skipped:
                    continue
                number = self._numbers.get(" ".join(words[place : last + 1]))
                if number is not None:
                    yield Spot(number, place, last)
                    step = length
                    break
            place += step
