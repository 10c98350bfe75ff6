"""Names in a text: words as names are compared, the names of a title, where names may stand."""

import re
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

_WORD = re.compile(r"[^\W_]+")
_BRACKET = re.compile(r"\s*[(\[（][^)\]）]*[)\]）]\s*")
_POSSESSIVE = frozenset("'’")
_ARTICLES = ("the ", "a ", "an ")
_PARTED = frozenset("([（,")
LONGEST = 12
"""Words of the longest name that is looked for."""
_LONGEST_LEAD = 8
_LEAD = 120
"""Characters of a text in which the name that it opens with is looked for."""
_PARTING = frozenset("(,;:[")
_JOINING_WORDS = "of the de la le du da di von van der den and y for in on at to a an"
_JOINING = frozenset(_JOINING_WORDS.split())


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

    def joined(self, start: int, end: int) -> str:
        """Return the words from `start` up to `end` as a name is compared."""
        return " ".join(self.words[start:end])


def words_of(text: str) -> Words:
    """Return a text's words."""
    found = list(_each_word(text))
    return Words(*zip(*found, strict=True)) if found else Words((), (), (), ())


def _each_word(text: str) -> Iterator[tuple[str, int, int, bool]]:
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
    """Return a name as it is compared: its lower-cased words."""
    if name.isascii() and "'" not in name:  # most names: nothing to fold, nothing to leave out
        return " ".join(_WORD.findall(name.lower()))
    return " ".join(words_of(name).words)


def forms_of(title: str, text: str) -> dict[str, float]:
    """Return the names that a document goes by, with how surely each means it.

    Args:
        title: of the document.
        text: its beginning; the name that it opens with counts if it shares a word with the title.
    """
    found: dict[str, float] = {}
    for form, weight in title_forms(title):
        found.setdefault(form, weight)
    found.setdefault(lead_name(text, title), 0.7)
    return {form: weight for form, weight in found.items() if form and form.count(" ") < LONGEST}


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


def lead_name(text: str, title: str) -> str:
    """Return the name that a text opens with, if it shares a word with the title; else ""."""
    words: list[str] = []
    last = 0
    for word, start, end, marked in _each_word(text[:_LEAD]):
        gap = text[last:start] if words else ""
        if len(gap) > 2 or not _PARTING.isdisjoint(gap) or len(words) == _LONGEST_LEAD:
            break
        if not (marked or word in _JOINING):
            break
        words.append(word)
        last = end
    while words and words[-1] in _JOINING:
        words.pop()
    if words and words[0] in {"the", "a", "an"}:
        words = words[1:]
    own = set(plain(title).split(" "))
    return " ".join(words) if own & set(words) - _JOINING else ""


def possible_names(
    text: Words, *, needs_capital: bool, skip: Collection[str] = ()
) -> Iterator[tuple[int, int]]:
    """Yield where a name may stand, as first word and the word after the last.

    From left to right, the longest first at each place.

    Args:
        text: where to look.
        needs_capital: whether a name's first and last word must start with a capital; without it,
            only a name of one word needs one.
        skip: words that are no name when they stand alone (stop words).
    """
    size = len(text.words)
    for first in range(size):
        if needs_capital and not text.marked[first]:
            continue
        for end in range(min(size, first + LONGEST), first, -1):
            if _may_be(text, first, end - 1, needs_capital=needs_capital, skip=skip):
                yield first, end


def longest_names(
    text: Words, places: Sequence[tuple[int, int]], known: Collection[str]
) -> Iterator[str]:
    """Yield the known names from left to right, the longest at each place, none overlapping.

    Args:
        text: where they stand.
        places: from `possible_names`.
        known: the names, as `plain` gives them.
    """
    free = 0
    for first, end in places:
        if first >= free and (name := text.joined(first, end)) in known:
            yield name
            free = end


def _may_be(
    text: Words, first: int, last: int, *, needs_capital: bool, skip: Collection[str]
) -> bool:
    if first == last and text.words[first] in skip:
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
