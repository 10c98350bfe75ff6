"""Finding known names in a text: titles of documents and names of entities, longest first."""

import re
import unicodedata
from collections.abc import Collection, Container, Iterator, Sequence
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
        words.append(word.lower() if word.isascii() else _folded(word.lower()))
        starts.append(start)
        ends.append(match.end())
        marked.append(not word[0].islower())
    return Words(words, starts, ends, marked)


def _folded(word: str) -> str:
    """Drop the marks on Latin letters: `Émile` and `Emile` are one name."""
    parts = unicodedata.normalize("NFD", word)
    plain = "".join(char for char in parts if not unicodedata.combining(char))
    return plain if plain.isascii() else word


def plain(name: str) -> str:
    """Return a name as it is looked up: its lower-cased words."""
    return " ".join(words_of(name).words)


def title_forms(title: str) -> Iterator[tuple[str, float]]:
    """Yield the names that a title goes by, with how surely each means it.

    The title itself, without what is in brackets, before the comma, and without its article; a
    rank that follows a comma ("John, King of England") may go before the name.
    """
    yield plain(title), 1.0
    short = _BRACKET.sub(" ", title).strip()
    if short != title:
        yield plain(short), 0.8
    before, comma, after = short.partition(",")
    if comma:
        rank, _, place = plain(after).partition(" of ")
        is_ranked = bool(place) and " " not in rank
        if not is_ranked or " " in before:
            yield plain(before), 0.6
        if is_ranked:
            yield f"{rank} {plain(before)}", 0.6
            yield f"{rank} {plain(before)} of {place}", 0.8
            yield f"{plain(before)} of {place}", 0.8
    for form in (plain(short), plain(before)):
        for article in _ARTICLES:
            if form.startswith(article):
                yield form.removeprefix(article), 0.6


class NameTable:
    """Known names by their words, in numbered order."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._lengths: dict[str, tuple[int, ...]] = {}
        self.names: list[str] = []

    def __len__(self) -> int:
        return len(self.names)

    def add(self, name: str) -> int:
        """Return the number of a name (lower-cased words), new or known; -1 for no name."""
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

    def spots(
        self,
        text: Words,
        *,
        needs_capital: bool,
        skip: Collection[str] = (),
        only: Container[int] | None = None,
    ) -> Iterator[int]:
        """Yield the names in a text from left to right, the longest at each place.

        Args:
            text: where to look.
            needs_capital: whether a name's first and last word must start with a capital; without
                it, only a name of one word needs one.
            skip: words that are no name when they stand alone (stop words).
            only: look for these names only.
        """
        words, place = text.words, -1
        while (place := place + 1) < len(words):
            if needs_capital and not text.marked[place]:  # most words; nothing else is looked at
                continue
            for length in self._lengths.get(words[place], ()):
                last = place + length - 1
                if self._may_be(text, place, last, needs_capital=needs_capital, skip=skip):
                    found = self._numbers.get(" ".join(words[place : last + 1]), -1)
                    if found >= 0 and (only is None or found in only):
                        yield found
                        place = last
                        break

    @staticmethod
    def _may_be(
        text: Words, first: int, last: int, *, needs_capital: bool, skip: Collection[str]
    ) -> bool:
        if last >= len(text.words) or (first == last and text.words[first] in skip):
            return False
        if last > first and not needs_capital:
            return True
        if not (text.marked[first] and text.marked[last]):
            return False
        return last > first or not _is_within_a_name(text, first, skip)


def _is_within_a_name(text: Words, place: int, skip: Collection[str]) -> bool:
    """Return whether a word's neighbour is capitalised too: `John` in `John Knox` isn't a John."""
    for before, after in ((place - 1, place), (place, place + 1)):
        if before < 0 or after >= len(text.words) or text.starts[after] - text.ends[before] != 1:
            continue
        other = before if after == place else after
        if text.marked[other] and text.words[other] not in skip:
            return True
    return False
