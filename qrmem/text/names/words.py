"""Words as names are compared: those of a text, the names of a title, where names may stand."""

import re
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

_WORD = re.compile(r"[^\W_]+")
_BRACKET = re.compile(r"[(\[（][^()\[\]（）]*[)\]）]")
_POSSESSIVE = frozenset("'’")
_ARTICLES = ("the ", "a ", "an ")
_PARTED = frozenset("([（,")
LONGEST = 12
"""Maximum number of words of a name in a text."""
_LONGEST_LEAD = 8
_LEAD = 120
"""Characters at the beginning of a text in which its opening name is searched."""
_PARTING = frozenset("(,;:[")
_JOINING_WORDS = "of the de la le du da di von van der den and y for in on at to a an"
_JOINING = frozenset(_JOINING_WORDS.split())


@dataclass(frozen=True, slots=True)
class NameWords:
    """The words of a text, lower-cased, without a possessive s.

    Attributes:
        starts: first character of each word.
        ends: the character after each word.
        marked: whether a word starts with a capital or a digit, or its script has no capitals.
    """

    words: Sequence[str]
    starts: Sequence[int]
    ends: Sequence[int]
    marked: Sequence[bool]

    def joined(self, start: int, end: int) -> str:
        """Return the words from `start` up to `end` in the form of `plain`."""
        return " ".join(self.words[start:end])


def words_of(text: str) -> NameWords:
    """Return a text's words."""
    words = list(_each_word(text))
    return NameWords(*zip(*words, strict=True)) if words else NameWords((), (), (), ())


def _each_word(text: str) -> Iterator[tuple[str, int, int, bool]]:
    for match in _WORD.finditer(text):
        word, start = match.group(), match.start()
        if word in "sS" and start and text[start - 1] in _POSSESSIVE:
            continue
        lower = word.lower()
        yield lower if word.isascii() else _folded(lower), start, match.end(), not word[0].islower()


def _folded(word: str) -> str:
    """Drop the marks on Latin letters, so that `Émile` and `Emile` are equal."""
    parts = unicodedata.normalize("NFD", word)
    plain = "".join(char for char in parts if not unicodedata.combining(char))
    return plain if plain.isascii() else word


def plain(name: str) -> str:
    """Return the form in which names are compared: lower-case words."""
    if name.isascii() and "'" not in name:  # the usual case: nothing to fold or to leave out
        return " ".join(_WORD.findall(name.lower()))
    return " ".join(words_of(name).words)


def forms_of(title: str, text: str) -> dict[str, float]:
    """Return the names of a document, each with a confidence in (0, 1].

    Args:
        title: title of the document.
        text: its beginning; its opening name counts if it shares a word with the title.
    """
    weights: dict[str, float] = {}
    for form, weight in title_forms(title):
        weights.setdefault(form, weight)
    weights.setdefault(lead_name(text, title), 0.7)
    return {form: weight for form, weight in weights.items() if form and form.count(" ") < LONGEST}


def title_forms(title: str) -> Iterator[tuple[str, float]]:
    """Yield the names in a title, each with a confidence in (0, 1].

    These are the title itself, the title without brackets, its part before a comma, and without
    its article. A rank after a comma ("John, King of England") may also precede the name.
    """
    form = plain(title)
    yield form, 1.0
    if _PARTED.isdisjoint(title):  # the usual case
        yield from ((form.removeprefix(a), 0.6) for a in _ARTICLES if form.startswith(a))
        return
    short = _BRACKET.sub(" ", title)
    if short != title:
        short = " ".join(short.split())
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
    """Return the opening name of a text if it shares a word with the title; else ""."""
    words: list[str] = []
    last = 0
    for word, start, end, is_marked in _each_word(text[:_LEAD]):
        gap = text[last:start] if words else ""
        if len(gap) > 2 or not _PARTING.isdisjoint(gap) or len(words) == _LONGEST_LEAD:
            break
        if not (is_marked or word in _JOINING):
            break
        words.append(word)
        last = end
    while words and words[-1] in _JOINING:
        words.pop()
    if words and words[0] in {"the", "a", "an"}:
        words = words[1:]
    title_words = set(plain(title).split(" "))
    return " ".join(words) if title_words & set(words) - _JOINING else ""


def possible_names(
    text: NameWords, *, needs_capital: bool, skip: Collection[str] = ()
) -> Iterator[tuple[int, int]]:
    """Yield the spans of words that may be names: first word, and the word after the last.

    They come from left to right, the longest first at each place.

    Args:
        text: words of the text.
        needs_capital: whether a name's first and last word must start with a capital; `False`:
            only a name of one word needs one.
        skip: words that are no names by themselves (stop words).
    """
    size = len(text.words)
    for first in range(size):
        if needs_capital and not text.marked[first]:
            continue
        for end in range(min(size, first + LONGEST), first, -1):
            if _may_be(text, first, end - 1, needs_capital=needs_capital, skip=skip):
                yield first, end


def longest_names(
    text: NameWords, places: Sequence[tuple[int, int]], known: Collection[str]
) -> Iterator[str]:
    """Yield the known names from left to right, the longest at each place, without overlaps.

    Args:
        text: words of the text.
        places: result of `possible_names`.
        known: the names, in the form of `plain`.
    """
    free = 0
    for first, end in places:
        if first >= free and (name := text.joined(first, end)) in known:
            yield name
            free = end


def _may_be(
    text: NameWords, first: int, last: int, *, needs_capital: bool, skip: Collection[str]
) -> bool:
    if first == last and text.words[first] in skip:
        return False
    if last > first and not needs_capital:
        return True
    if not (text.marked[first] and text.marked[last]):
        return False
    return last > first or not _is_within_a_name(text, first, skip)


def _is_within_a_name(text: NameWords, place: int, skip: Collection[str]) -> bool:
    """Return whether a word's neighbour is capitalised too: `John` in `John Knox` isn't a John."""
    for before, after in ((place - 1, place), (place, place + 1)):
        if before < 0 or after >= len(text.words) or text.starts[after] - text.ends[before] != 1:
            continue
        other = before if after == place else after
        if text.marked[other] and text.words[other] not in skip:
            return True
    return False
