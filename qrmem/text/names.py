"""Names: keys and forms, when two names must stay separate, and names in a text.

Merging two people is worse than splitting one, so every rule refuses in doubt. An alias means that
a name can refer to another one; `qrmem.graph.resolution`, which has all names of a memory, decides
whether it does.
"""

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from qrmem.text.aliases import is_alias
from qrmem.text.numbers import designate_apart, numbers
from qrmem.text.spelling import APOSTROPHES, MARKS, UNSPACED, normalise_name

__all__ = [
    "NameWords",
    "best_form",
    "camel_case",
    "differ_in_number",
    "forms_of",
    "is_alias",
    "is_type",
    "lead_name",
    "longest_names",
    "meant_name",
    "name_key",
    "normalise_name",
    "occurrences",
    "occurs_in",
    "plain",
    "possible_names",
    "spells",
    "split_key",
    "title_forms",
    "type_key",
    "words_of",
]


_APOSTROPHE = re.compile(f"[{APOSTROPHES}]")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_TYPE = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*")
LONGEST_TYPE = 40
"""Maximum length of a name in characters."""
_BORDERLESS = re.compile(f"[{UNSPACED}]")


def name_key(name: str, type: str) -> str:
    """Return the key of a name with a type: `<normalised name>|<type>`."""
    return f"{normalise_name(name)}|{type}"


def split_key(key: str) -> tuple[str, str]:
    """Return the normalised name and the type in a key."""
    norm, _, type = key.partition("|")
    return norm, type


def type_key(type: str) -> str:
    """Return the stored form of a type: `ShipYard` is `SHIP_YARD`."""
    return _HUMP.sub("_", type.strip()).replace(" ", "_").upper()


def camel_case(type: str) -> str:
    """Return the form of a type for classes and labels: `SHIP_YARD` is `ShipYard`."""
    return "".join(word.capitalize() for word in type.split("_"))


def is_type(type: str) -> bool:
    """Return whether every database accepts a stored type: ASCII letters, digits and `_`."""
    return len(type) <= LONGEST_TYPE and _TYPE.fullmatch(type) is not None


def meant_name(name: str) -> str:
    """Return the normalised name for a user's input, which may be a name or a key."""
    return split_key(name)[0] if "|" in name else normalise_name(name)


def spells(form: str, key: str) -> bool:
    """Return whether a form has exactly the words of a name, and not the capitals of a heading."""
    is_heading = form.isupper() and len(form.split()) > 1
    return not is_heading and normalise_name(form) == split_key(key)[0]


def best_form(key: str, forms: Iterable[tuple[str, int]]) -> str:
    """Return the most frequent form that spells a name, else one with its words, else any."""
    norm, forms = split_key(key)[0], [*forms]
    if len(forms) == 1:
        return forms[0][0]
    return min(
        forms,
        key=lambda f: (not spells(f[0], key), normalise_name(f[0]) != norm, -f[1], -len(f[0]), f),
        default=("", 0),
    )[0]


@lru_cache(maxsize=1 << 13)
def differ_in_number(first: str, second: str) -> bool:
    """Return whether two names contain different numbers, so that similarity must not merge them.

    Digits, Roman numerals, ordinals, number words and a minus sign count, and single letters that
    number a series (Vitamin A, Vitamin B). A number in only one of the names is a difference.
    """
    a, b = normalise_name(first).split(), normalise_name(second).split()
    return numbers(a) != numbers(b) or designate_apart(a, b)


def occurs_in(name: str, text: str) -> bool:
    """Return whether a text contains a name as whole words, in any case and across lines."""
    words = name.split()
    if not words or _APOSTROPHE.split(words[0])[0].lower() not in text.lower():
        return False
    return _pattern(name).search(text) is not None


def occurrences(name: str, text: str) -> list[str]:
    """Return each occurrence of a name in a text, in its spelling, on one line; see `occurs_in`."""
    if not name.split():
        return []
    if name.isascii() and text.isascii() and not _APOSTROPHE.search(name):
        return _plain_occurrences(" ".join(name.split()), text)
    return [" ".join(match.group().split()) for match in _pattern(name).finditer(text)]


def _plain_occurrences(name: str, text: str) -> list[str]:
    """Do the same without a regular expression, which is slow to compile."""
    text, low = _unbroken(text)
    lower_name, occurrences, at = name.lower(), list[str](), 0
    while (at := low.find(lower_name, at)) >= 0:
        end = at + len(lower_name)
        if _is_whole(low, at, end):
            occurrences.append(text[at:end])
            at = end
        else:
            at += 1
    return occurrences


def _is_whole(text: str, start: int, end: int) -> bool:
    begins = not text[start].isalnum() or not _is_of_word(text[start - 1 : start])
    ends = not text[end - 1].isalnum() or not _is_of_word(text[end : end + 1])
    return begins and ends


def _is_of_word(char: str) -> bool:
    return char.isalnum() or char == "_"


@lru_cache(maxsize=16)
def _unbroken(text: str) -> tuple[str, str]:
    """Return a text on one line, and the same in lower case."""
    text = " ".join(text.split())
    return text, text.lower()


@lru_cache(maxsize=20_000)
def _pattern(name: str) -> re.Pattern[str]:
    apostrophe = f"[{APOSTROPHES}]"
    body = r"\s+".join(_APOSTROPHE.sub(apostrophe, re.escape(word)) for word in name.split())
    first, last = name.strip()[0], name.strip()[-1]
    before = r"(?<!\w)" if _has_border(first) else ""
    after = rf"(?![\w{MARKS}])" if _has_border(last) else ""
    return re.compile(before + body + after, re.IGNORECASE)


def _has_border(char: str) -> bool:
    return char.isalnum() and not _BORDERLESS.match(char)


# Names in a text: words as names are compared, the names of a title, where names may stand.

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


# Names in a segment: the check that an extracted name occurs in it.

_LEAST_STEM = 4
"""Minimum letters of a name that may have an ending (Goethes); other scripts have no minimum."""

_ENDINGS = range(1, 4)
"""Maximum number of letters of an ending."""


class Occurrences:
    """Finds names in one text; case and line breaks do not matter."""

    def __init__(self, text: str) -> None:
        self._text = " ".join(text.split())
        lower = self._text.lower()
        self._lower = lower if len(lower) == len(self._text) else self._text

    def spelled(self, name: str) -> str | None:
        """Return a name in the text's spelling, or `None` if it does not occur.

        It must be a whole word, or begin one if an ending may follow.
        """
        name = " ".join(name.split())
        for text, name_wanted in ((self._text, name), (self._lower, name.lower())):
            for is_whole in (True, False):
                at = _place(name_wanted, text, 0, is_whole)
                if at >= 0:
                    return self._text[at : at + len(name_wanted)]
        return None

    def counted(self, forms: Iterable[str]) -> dict[str, int]:
        """Return the number of occurrences of each form, in the text's spelling.

        Occurrences within longer forms do not count; a form that only occurs there counts once.
        """
        counts: dict[str, int] = {}
        is_taken = bytearray(len(self._text))
        for form in sorted(set(forms), key=lambda form: (-len(form), form)):
            places = _places(form, self._text, True) or _places(form, self._text, False)
            free = [at for at in places if not is_taken[at]]
            for at in free:
                is_taken[at : at + len(form)] = b"\x01" * len(form)
            counts[form] = max(1, len(free))
        return counts


def _places(name: str, text: str, is_whole: bool) -> list[int]:
    """Return the positions of a name, as `_place` finds them, without overlaps."""
    places = []
    at = _place(name, text, 0, is_whole)
    while at >= 0:
        places.append(at)
        at = _place(name, text, at + len(name), is_whole)
    return places


def _place(name: str, text: str, start: int, is_whole: bool) -> int:
    """Return the next position of a name from `start`, whole or with an ending; -1 if none."""
    if not name or not (is_whole or len(name) >= _LEAST_STEM or not name.isascii()):
        return -1
    at = text.find(name, start)
    while at >= 0:
        end = at + len(name)
        if _is_border(text, at) and (
            _is_border(text, end)
            or (not is_whole and any(_is_border(text, end + n) for n in _ENDINGS))
        ):
            return at
        at = text.find(name, at + 1)
    return -1


def _is_border(text: str, at: int) -> bool:
    if at == 0 or at >= len(text):
        return True
    before, after = text[at - 1], text[at]
    if not (before.isalnum() and after.isalnum()):
        return True
    return bool(_BORDERLESS.match(before) or _BORDERLESS.match(after))
