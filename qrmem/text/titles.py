"""Honorifics before a name, and what they tell about the person, to distinguish two people."""

from collections.abc import Sequence
from functools import lru_cache

from qrmem.text import listed


def word_set(words: str) -> frozenset[str]:
    """Return the words of a text that are separated by white space."""
    return frozenset(words.split())


SPELLINGS = {
    "mister": "mr",
    "doctor": "dr",
    "professor": "prof",
    "captain": "capt",
    "colonel": "col",
    "general": "gen",
    "lieutenant": "lt",
    "lieut": "lt",
    "sergeant": "sgt",
    "major": "maj",
    "reverend": "rev",
    "revd": "rev",
    "senator": "sen",
    "governor": "gov",
    "saint": "st",
    "ste": "st",
    "madame": "mme",
    "mademoiselle": "mlle",
    "señor": "sr",
    "señora": "sra",
    "missus": "mrs",
}
"""Spelled-out honorifics, with the short form for comparisons."""

MEN = word_set(listed("titles-of-men"))
WOMEN = word_set(listed("titles-of-women"))
TITLES = MEN | WOMEN | word_set(listed("titles-of-either"))
"""Honorifics, in the form for comparisons."""

COURTESY = word_set("m mr mrs ms miss monsieur mme mlle sr sra herr frau sir dr prof madam")
"""Titles of which one person may have several; they tell no rank."""

BEFORE_GIVEN = word_set(listed("titles-before-given-names"))
"""Titles that may precede a given name alone; all others precede a surname."""

_MALE = word_set(listed("given-names-of-men"))
_FEMALE = word_set(listed("given-names-of-women"))


MONSIEUR = "m"
"""A single M. before one name abbreviates Monsieur, or is an initial."""


def split_titles(words: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the leading honorifics of a normalised name, in short form, and the rest.

    The rest may be empty. In "Duke of Wellington" or "Lord of the Rings" the first word is no
    honorific.
    """
    words, at = tuple(words), 0
    while at < len(words) and SPELLINGS.get(words[at], words[at]) in TITLES:
        at += 1
    if not at and words[:1] == ("m",) and len(words) == 2 + (words[1:2] in (("de",), ("du",))):
        return (MONSIEUR,), words[1:]
    if words[at : at + 1] and words[at] in ("of", "the", "and"):
        at = 0
    return tuple(SPELLINGS.get(word, word) for word in words[:at]), words[at:]


def sex(titles: Sequence[str], names: Sequence[str]) -> str:
    """Return the sex by titles, or by a given name before a surname: "m", "f" or ""."""
    for title in titles:
        if title in MEN or title in WOMEN:
            return "m" if title in MEN else "f"
    if len(names) > 1:
        return "m" if names[0] in _MALE else "f" if names[0] in _FEMALE else ""
    return ""


_DIMINUTIVES = listed("short-forms-of-given-names")
BASE_NAMES = {
    short: base
    for base, *shorts in map(str.split, _DIMINUTIVES.split(";")[:-1])
    for short in shorts
}
"""Short forms of given names that have letters of the full one, with the full one."""


@lru_cache(maxsize=1 << 13)
def titled(name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the titles of a normalised name, and its other words."""
    return split_titles(name.split())


def titles_clash(first: Sequence[str], second: Sequence[str]) -> bool:
    """Return whether titles show two different people: of different sex, or of different rank.

    Mrs and Miss of one surname are two people, and so are a colonel and a captain; Dr or Sir and Mr
    may be one. A missing title clashes with nothing.
    """
    if not first or not second or set(first) & set(second):
        return False
    both = {*first, *second}
    if both >= {"mrs", "miss"} or (MONSIEUR in both and both & WOMEN):
        return True
    return not (COURTESY.intersection(first) and COURTESY.intersection(second))
