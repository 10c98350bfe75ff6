"""Names: when two of them are one, written differently, and when they must stay two.

Merging two people is worse than leaving one in two pieces, so every rule here refuses when in
doubt. An alias says that one name can stand for another; whether it stands for that one alone is
decided by who sees all names of a memory.
"""

import re
from collections.abc import Iterable
from functools import lru_cache

from qrmem.text.aliases import is_alias
from qrmem.text.numbers import designate_apart, numbers
from qrmem.text.scripts import MARKS, UNSPACED
from qrmem.text.spelling import APOSTROPHES, normalise_name

__all__ = [
    "best_form",
    "camel_case",
    "differ_in_number",
    "is_alias",
    "is_type",
    "meant_name",
    "name_key",
    "normalise_name",
    "occurrences",
    "occurs_in",
    "spells",
    "split_key",
    "type_key",
]

_APOSTROPHE = re.compile(f"[{APOSTROPHES}]")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_TYPE = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*")
LONGEST_TYPE = 40
"""Characters."""
_BORDERLESS = re.compile(f"[{UNSPACED}]")


def name_key(name: str, type: str) -> str:
    """Return the key of an entity of this name and type."""
    return f"{normalise_name(name)}|{type}"


def split_key(key: str) -> tuple[str, str]:
    """Return the normalised name and the type that a key was made of."""
    norm, _, type = key.partition("|")
    return norm, type


def type_key(type: str) -> str:
    """Return how a type is kept, whatever the form it is given in: `ShipYard` is `SHIP_YARD`."""
    return _HUMP.sub("_", type.strip()).replace(" ", "_").upper()


def camel_case(type: str) -> str:
    """Return a type as a class or a label is called: `SHIP_YARD` is `ShipYard`."""
    return "".join(word.capitalize() for word in type.split("_"))


def is_type(type: str) -> bool:
    """Whether a kept type is a name that every database takes: ASCII letters, digits and `_`."""
    return len(type) <= LONGEST_TYPE and _TYPE.fullmatch(type) is not None


def meant_name(name: str) -> str:
    """Return the normalised name that a user means who gives a name or a key."""
    return split_key(name)[0] if "|" in name else normalise_name(name)


def spells(form: str, key: str) -> bool:
    """Whether a form is a good spelling of a name: the same words, not a heading's capitals."""
    is_heading = form.isupper() and len(form.split()) > 1
    return not is_heading and normalise_name(form) == split_key(key)[0]


def best_form(key: str, forms: Iterable[tuple[str, int]]) -> str:
    """Return the most frequent form that spells a name, else one with its words, else any."""
    norm = split_key(key)[0]
    return min(
        forms,
        key=lambda f: (not spells(f[0], key), normalise_name(f[0]) != norm, -f[1], -len(f[0]), f),
        default=("", 0),
    )[0]


@lru_cache(maxsize=1 << 13)
def differ_in_number(first: str, second: str) -> bool:
    """Whether two names have other numbers in them, so that likeness must not merge them.

    Digits, Roman numerals, ordinals and number words count, a minus sign too, and so do single
    letters that number a series (Vitamin A, Vitamin B). A number in one name alone is a difference.
    """
    a, b = normalise_name(first).split(), normalise_name(second).split()
    return numbers(a) != numbers(b) or designate_apart(a, b)


def occurs_in(name: str, text: str) -> bool:
    """Whether a text holds a name as whole words, in any case, across line breaks too."""
    words = name.split()
    if not words or _APOSTROPHE.split(words[0])[0].lower() not in text.lower():
        return False
    return _pattern(name).search(text) is not None


def occurrences(name: str, text: str) -> list[str]:
    """Return how a text writes a name, once for each time, on one line; see `occurs_in`."""
    if not name.split():
        return []
    if name.isascii() and text.isascii() and not _APOSTROPHE.search(name):
        return _plain_occurrences(" ".join(name.split()), text)
    return [" ".join(match.group().split()) for match in _pattern(name).finditer(text)]


def _plain_occurrences(name: str, text: str) -> list[str]:
    """Do the same without a pattern, whose making takes longer than a text's reading."""
    text, low = _unbroken(text)
    wanted, found, at = name.lower(), list[str](), 0
    while (at := low.find(wanted, at)) >= 0:
        end = at + len(wanted)
        if _is_whole(low, at, end):
            found.append(text[at:end])
            at = end
        else:
            at += 1
    return found


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
