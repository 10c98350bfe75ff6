"""Finding known names in a text: titles of documents and names of entities, longest first."""

import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from qrmem.retrieval.texts import Lookup, Texts

if TYPE_CHECKING:
    from numpy.typing import NDArray

_WORD = re.compile(r"[^\W_]+")
_BRACKET = re.compile(r"\s*[(\[（][^)\]）]*[)\]）]\s*")
_POSSESSIVE = frozenset("'’")
_ARTICLES = ("the ", "a ", "an ")
_PARTED = frozenset("([（,")
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
    for word, start, end, has_mark in each_word(text):
        words.append(word)
        starts.append(start)
        ends.append(end)
        marked.append(has_mark)
    return Words(words, starts, ends, marked)


def each_word(text: str) -> Iterator[tuple[str, int, int, bool]]:
    """Yield what `words_of` gives, word by word: for who needs a text's beginning only."""
    for match in _WORD.finditer(text):
        word, start = match.group(), match.start()
        if word in "sS" and start and text[start - 1] in _POSSESSIVE:
            continue
        lower = word.lower()
        yield lower if word.isascii() else _folded(lower), start, match.end(), not word[0].islower()


def _folded(word: str) -> str:
    """Drop the marks on Latin letters: `Émile` and `Emile` are one name."""
    parts = unicodedata.normalize("NFD", word)
    plain = "".join(char for char in parts if not unicodedata.combining(char))
    return plain if plain.isascii() else word


def plain(name: str) -> str:
    """Return a name as it is looked up: its lower-cased words."""
    if name.isascii() and "'" not in name:  # most names: nothing to fold, nothing to leave out
        return " ".join(_WORD.findall(name.lower()))
    return " ".join(words_of(name).words)


def title_forms(title: str) -> Iterator[tuple[str, float]]:
    """Yield the names that a title goes by, with how surely each means it.

    The title itself, without what is in brackets, before the comma, and without its article; a
    rank that follows a comma ("John, King of England") may go before the name.
    """
    form = plain(title)
    yield form, 1.0
    if _PARTED.isdisjoint(title):  # most titles
        yield from ((form.removeprefix(a), 0.6) for a in _ARTICLES if form.startswith(a))
        return
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


@cache
def _descending(bits: int) -> tuple[int, ...]:
    """Return the lengths that bits stand for, longest first."""
    return tuple(length for length in range(LONGEST, 0, -1) if bits >> length & 1)


class Names:
    """Names as they come, each numbered once."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._lengths: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._numbers)

    def table(self) -> "NameTable":
        """Return the table of those that came so far."""
        firsts = {word: place for place, word in enumerate(self._lengths)}
        return NameTable(list(self._numbers), self._numbers, firsts, list(self._lengths.values()))

    def add(self, name: str) -> int:
        """Return the number of a name (lower-cased words), new or known; -1 for no name."""
        number = self._numbers.get(name)
        if number is not None:
            return number
        length = name.count(" ") + 1
        if not name or length > LONGEST:
            return -1
        number = self._numbers[name] = len(self._numbers)
        first = name.partition(" ")[0]
        self._lengths[first] = self._lengths.get(first, 0) | 1 << length
        return number


class NameTable:
    """Known names by their words, in numbered order."""

    def __init__(
        self,
        names: Sequence[str],
        numbers: Mapping[str, int],
        firsts: Mapping[str, int],
        lengths: Sequence[int],
    ) -> None:
        """Take what `Names` or `packed` made.

        Args:
            names: in order of number.
            numbers: name to number.
            firsts: the words that names start with, numbered.
            lengths: for each of these words how many words such names have, as bits.
        """
        self.names = names
        self._numbers = numbers
        self._firsts = firsts
        self._lengths = lengths

    def packed(self) -> "tuple[Lookup, Lookup, NDArray[np.int64]]":
        """Return numbers of names, numbers of first words, and lengths."""
        names, firsts = (Lookup.of(Texts.of(list(one))) for one in (self._numbers, self._firsts))
        return names, firsts, np.array(self._lengths, dtype=np.int64)

    def number(self, name: str) -> int:
        """Return the number of a name, -1 for an unknown one."""
        return self._numbers.get(name, -1)

    def spots(
        self,
        text: Words,
        *,
        needs_capital: bool,
        skip: Collection[str] = (),
        only: bytes | None = None,
    ) -> Iterator[int]:
        """Yield the names in a text from left to right, the longest at each place.

        Args:
            text: where to look.
            needs_capital: whether a name's first and last word must start with a capital; without
                it, only a name of one word needs one.
            skip: words that are no name when they stand alone (stop words).
            only: by a name's number, whether it is looked for; `None`: all are.
        """
        words, place = text.words, -1
        while (place := place + 1) < len(words):
            if needs_capital and not text.marked[place]:  # most words; nothing else is looked at
                continue
            first = self._firsts.get(words[place], -1)
            for length in _descending(self._lengths[first]) if first >= 0 else ():
                last = place + length - 1
                if self._may_be(text, place, last, needs_capital=needs_capital, skip=skip):
                    found = self._numbers.get(" ".join(words[place : last + 1]), -1)
                    if found >= 0 and (only is None or only[found]):
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
