"""Keys, types and forms of names, and when two names must stay separate."""

import re
from collections.abc import Iterable
from functools import lru_cache

from qrmem.text.numbers import designate_apart, numbers
from qrmem.text.spelling import normalise_name

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_TYPE = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*")
LONGEST_TYPE = 40
"""Maximum length of a name in characters."""


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
