"""Honorifics, and whether a name can be an alias of another: a part, initials, an acronym."""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from qrmem.text import listed
from qrmem.text.numbers import canonical_number, designate_apart, numbers, roman
from qrmem.text.spelling import normalise_name

# --- Honorifics, and what they tell about the person, to distinguish two people


def word_set(words: str) -> frozenset[str]:
    """Return the words of a text that are separated by white space."""
    return frozenset(words.split())


MEMO_SIZE = 1 << 16
"""Size of caches by name: more than the names that one portion of merging reads.

Those are some 43,000 in a memory of 10⁵ passages. A cache that is smaller is always missed.
"""

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
    "corporal": "cpl",
    "major": "maj",
    "reverend": "rev",
    "revd": "rev",
    "senator": "sen",
    "governor": "gov",
    "admiral": "adm",
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

COURTESY = word_set(
    "m mr mrs ms miss monsieur mme mlle sr sra herr frau sir dr prof rev madam comrade"
)
"""Titles of which one person may have several; they tell no rank."""

_CALLINGS = word_set("father brother sister nurse")
"""Titles of which a person may have one beside a title of courtesy."""

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
        if at and words[at] == "st" and len(words) > at + 1:
            break  # a surname: Mr. St. Clair
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
        name = BASE_NAMES.get(names[0], names[0])
        return "m" if name in _MALE else "f" if name in _FEMALE else ""
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

    Mrs and Miss of one surname are two people, as are Dr and Mrs, Sir and Mr, or a colonel and a
    captain; Dr and Mr may be one. A missing title clashes with nothing.
    """
    if not first or not second or set(first) & set(second):
        return False
    both = {*first, *second}
    if "comrade" in both and both & WOMEN:
        return True
    if _CALLINGS & both and COURTESY & both:
        return len({sex(first, ()), sex(second, ())} - {""}) == 2
    if both >= {"mrs", "miss"} or (MONSIEUR in both and both & WOMEN):
        return True
    if both >= {"mr", "sir"} or ("mrs" in both and both & {"dr", "prof", "rev"}):
        return True
    return not (COURTESY.intersection(first) and COURTESY.intersection(second))


# --- Aliases

_GENERATIONS = {"jr": "jr", "junior": "jr", "sr": "sr", "senior": "sr"}
_COMPANY = word_set("inc ltd llc plc corp corporation co company gmbh ag sa nv limited")
SMALL = word_set("of the and for in on de la du des di da del von van der den el al")
"""Words that an acronym may leave out."""
_JOINTS = word_set("and or in for to on with at from by vs versus as into over under")
_NOBLE = word_set("duke duchess earl count countess marquess marquis viscount baron prince")
_MODIFIERS = word_set(listed("modifiers-in-names"))
_GENERIC = word_set(listed("generic-heads-of-names"))
_LONE_LETTERS = re.compile(r"\b([^\W\d_]) (?=[^\W\d_]\b)")
_CAPITALS = re.compile(r"(?:[^\W\d_a-zß-öø-ÿ]\.?\d?){2,}\Z")


@dataclass(frozen=True, slots=True)
class _Name:
    """An analysed name.

    Attributes:
        titles: honorifics before it.
        words: all other words, numbers in digits; without an inner "the".
        core: the same without generation and company form; Lizzy is Elizabeth.
        generation: `jr`, `sr` or "".
        place: number of last words after a comma: Springfield, Illinois.
        compounds: the words of each hyphenated word.
        sex: sex by the titles or a given name.
        spelling: a form of `core` that is equal for two spellings of one name.
        numbers: numbers in `core`.
        acronym: its letters, if it is written like an acronym.
    """

    titles: tuple[str, ...]
    words: tuple[str, ...]
    core: tuple[str, ...]
    generation: str
    place: int
    compounds: tuple[frozenset[str], ...]
    sex: str
    spelling: str
    numbers: tuple[str, ...]
    acronym: str


@lru_cache(maxsize=1 << 13)
def is_alias(short: str, long: str) -> bool:
    """Whether `short` can be an alias of `long` in a text about it.

    True for another spelling of the same words, for a part that people use (Ranieri, Claudio
    Ranieri), for initials (J. R. Whitlow, John Robert Whitlow) and acronyms (BBC). False if
    numbers, titles or generations differ. Give names as the text writes them: an acronym is
    recognised by its capitals.
    """
    a, b = _parsed(short), _parsed(long)
    if not a.core or not b.core or _are_two(a, b):
        return False
    if a.spelling == b.spelling:
        return True
    if designate_apart(a.core, b.core):
        return False
    if a.numbers != b.numbers:
        return _is_acronym(a.acronym, b.words)
    return _is_initialled(a.core, b.core) or _is_acronym(a.acronym, b.words) or _is_part(a, b)


class _Parts(NamedTuple):
    """The parts of a normalised name that tell its blocks."""

    titles: tuple[str, ...]
    words: tuple[str, ...]
    core: tuple[str, ...]
    generation: str


@lru_cache(maxsize=MEMO_SIZE)
def _parts(norm: str) -> _Parts:
    words = norm.split()
    if len(words) > 2 and words[0] in ("a", "an") and len(words[1]) > 1:
        words = words[1:]
    titles, rest = split_titles(words)
    rest = tuple(word for i, word in enumerate(rest) if not i or word != "the")
    parsed_words = tuple(canonical_number(rest, i) or word for i, word in enumerate(rest))
    core, generation = (
        [BASE_NAMES.get(word, word) for word in parsed_words[:1]] + list(parsed_words[1:]),
        "",
    )
    if len(core) > 1 and core[-1] in _GENERATIONS:
        generation = _GENERATIONS[core.pop()]
    while len(core) > 1 and core[-1] in _COMPANY:
        core.pop()
    return _Parts(titles, parsed_words, tuple(core), generation)


@lru_cache(maxsize=1 << 13)
def _parsed(name: str) -> _Name:
    titles, words, core, generation = _parts(normalise_name(name))
    place = len(normalise_name(name.partition(",")[2]).split()) if "," in name else 0
    joined = (word for word in name.split() if "-" in word.strip("-")) if "-" in name else ()
    compounds = tuple(frozenset(normalise_name(word).split()) for word in joined)
    return _Name(
        titles,
        words=words,
        core=core,
        generation=generation,
        place=place,
        compounds=compounds,
        sex=sex(titles, core),
        spelling=plain_spelling(core),
        numbers=numbers(core),
        acronym=_acronym(name),
    )


def _are_two(a: _Name, b: _Name) -> bool:
    if a.sex and b.sex and a.sex != b.sex:
        return True
    if a.generation and b.generation and a.generation != b.generation:
        return True
    for one, other in ((a, b), (b, a)):
        if MONSIEUR in one.titles and len(other.core) > len(one.core) and other.core[0][0] != "m":
            return True
    same = len(a.core) > 1 and a.core == b.core
    return not same and titles_clash(a.titles, b.titles)


def core_of(name: str) -> tuple[str, ...]:
    """Return a normalised name's words without titles, generation and company form.

    Numbers are in digits.
    """
    return _parts(name).core


def words_of(name: str) -> tuple[str, ...]:
    """Return all words of a normalised name except titles; numbers in digits."""
    return _parts(name).words


def plain_spelling(words: Sequence[str]) -> str:
    """Return words without accents, with single letters joined: u s navy, us navy."""
    text = " ".join(words)
    if not text.isascii():
        text = unicodedata.normalize("NFD", text)
        text = "".join(c for c in text if not "\u0300" <= c <= "\u036f")
        text = unicodedata.normalize("NFC", text)
    elif 1 not in map(len, words):  # the usual case
        return text
    return _LONE_LETTERS.sub(r"\1", text)


def _is_initialled(a: Sequence[str], b: Sequence[str]) -> bool:
    """Whether all words match, some by their initial, and the last names are equal."""
    if not 2 <= len(a) <= len(b) or a[-1] != b[-1] or len(a[-1]) < 2:
        return False
    if len(a) == 2 and a[0] == "".join(word[0] for word in b[:-1]) and len(b) > 2:
        return True
    if not _agree(a[0], b[0]):
        return False
    places = iter(b[1:-1])
    return all(any(_agree(word, other) for other in places) for word in a[1:-1]) and any(
        len(word) == 1 for word in (*a[:-1], *b[:-1])
    )


def _agree(a: str, b: str) -> bool:
    return a == b or (1 in (len(a), len(b)) and a[0] == b[0] and a[0].isalpha())


def _acronym(name: str) -> str:
    compact = name.strip().removeprefix("the ").removeprefix("The ").replace(" ", "")
    if not _CAPITALS.match(compact):
        return ""
    return "".join(c for c in normalise_name(compact) if c.isalnum())


def _is_acronym(letters: str, long: Sequence[str]) -> bool:
    """BBC for British Broadcasting Corporation, UCLA, USA, WWII; with or without small words."""
    if not letters or len(long) < 2:
        return False
    number = "".join(c for c in letters if c.isdigit())
    heads = [word if word[0].isdigit() else word[0] for word in long]
    plain = [word if word[0].isdigit() else word[0] for word in long if word not in SMALL]
    if letters in ("".join(heads), "".join(plain)):
        return True
    return not number and _spelled_numeral(letters, plain)


def _spelled_numeral(letters: str, heads: Sequence[str]) -> bool:
    """Whether the letters end in the last number as a Roman numeral: WWII."""
    if not heads or not heads[-1].isdecimal():
        return False
    stem = "".join(heads[:-1])
    return letters.startswith(stem) and roman(letters[len(stem) :]) == int(heads[-1])


def _is_part(a: _Name, b: _Name) -> bool:
    """Whether the shorter name is a usual part of the longer one."""
    if not 0 < len(b.core) - len(a.core) <= 3 or not tells(a.core):
        return False
    if b.core[0] in _NOBLE and b.core[1:2] == ("of",):
        return a.core == b.core[2:]
    places = _places(a.core, b.core)
    if not places or not {0, len(b.core) - 1} & set(places):
        return False
    extra = [word for i, word in enumerate(b.core) if i not in places]
    if _JOINTS.intersection(extra) or extra[-1] in _GENERIC:
        return False
    if _MODIFIERS.intersection(b.core[: places[0]]):
        return False
    if "of" in b.core and places[0] > b.core.index("of"):
        return False
    if any(compound & set(a.core) and compound & set(extra) for compound in b.compounds):
        return False
    if b.place and places[0] >= len(b.core) - b.place:
        return False
    is_known = len(a.core) == 1 and bool(sex((), (*a.core, "")))
    is_given = is_known and a.titles == b.titles
    before_surname = not BEFORE_GIVEN.intersection(a.titles)
    if "miss" in a.titles and not b.titles and not is_known:
        before_surname = True  # Miss Ford is no part of the Ford Collection
    stands_for_surname = bool(a.titles) and before_surname and not is_given
    return not stands_for_surname or places[-1] == len(b.core) - 1


def tells(words: Sequence[str]) -> bool:
    """Whether words can be a name alone: more than one letter, and not only kinds of things."""
    return any(
        word not in _GENERIC
        and word not in SMALL
        and not word.isdigit()
        and (len(word) > 1 or ord(word) > 0x2E7F)
        for word in words
    )


def _places(part: Sequence[str], whole: Sequence[str]) -> list[int]:
    """Return the positions of the words of `part` in `whole`, in order; empty if one is missing.

    A last name is searched from the end, where last names are.
    """
    if list(whole[-len(part) :]) == list(part):
        return list(range(len(whole) - len(part), len(whole)))
    places, at = [], 0
    for word in part:
        if word not in whole[at:]:
            return []
        at = whole.index(word, at) + 1
        places.append(at - 1)
    return places
