"""Closed lists of English that the rules stand on; other languages go by capitals and quotes alone.

The lists hold word classes (pronouns, titles, units …), never words of some particular book.
"""

import re
import sys

from qrmem.text import listed


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


FUNCTION_WORDS = _words(listed("function-words"))
"""Words that carry no name and no meaning of their own, at the start of a sentence or elsewhere."""

BARE_OPENERS = _words(listed("bare-openers"))
"""Words that often open a sentence, or a line, in capitals without being a name."""

WEEKDAYS = _words("monday tuesday wednesday thursday friday saturday sunday")
MONTHS = _words(
    "january february march april may june july august september october november december"
)
SEASONS = _words("spring summer autumn fall winter christmas easter midsummer michaelmas lent")

MALE_TITLES = _words(
    "mr mr. sir lord master father brother uncle king prince duke baron monsieur emperor abbot"
)
FEMALE_TITLES = _words(listed("female-titles"))
NEUTRAL_TITLES = _words(listed("neutral-titles"))
TITLES = MALE_TITLES | FEMALE_TITLES | NEUTRAL_TITLES
PERSON_TITLES = TITLES - _words("st st. saint general gen gen. major justice")
"""Titles after which a name is a person's; the others also open places, saints' days and firms."""

ABBREVIATED_TITLES = _words(
    "Mr Mrs Ms Dr Prof Capt Col Gen Maj Lt Sgt Rev Hon St Messrs Mme Mlle Jr Sr Mt Ft"
)

PARTICLES = _words(
    "de van von der den la le du da di del della des dos el bin ibn al y zu zur ter te"
)
"""Lower-case words inside a personal name."""

OF_HEADS = _words(listed("of-heads"))
"""A capitalised word before "of" that makes the whole a single name."""

PLACE_HEADS = _words(listed("place-heads"))
PLACE_OPENERS = _words("lake mount mt mt. cape fort ft ft. gulf isle isles river")
ORGANISATION_HEADS = _words(listed("organisation-heads"))
BUILDING_HEADS = _words(listed("building-heads"))
"""Heads that make a name of "X's Y" but say neither place nor organisation for sure."""

PARTNER_WORDS = _words("sons co co. company brothers partners daughters associates")
SECTION_WORDS = _words(
    "chapter letter volume section part book act scene figure fig table page appendix verse canto"
)

SPEECH_VERBS = _words(listed("speech-verbs"))
"""Verbs whose subject is a person; "said" and "announced" also go with firms and papers."""

WORK_CUES = _words(listed("work-cues"))

UNITS = _words(listed("units"))
BIG_NUMBER_WORDS = _words(listed("big-number-words"))
SMALL_NUMBER_WORDS = _words("one two three four five six seven eight nine ten")

FINITE_VERBS = _words(listed("finite-verbs"))
"""Verb forms that end neither in -ed nor in -s and can follow a subject."""


PERSON_VERBS = _words(listed("person-verbs"))
"""Verbs whose subject is nearly always a person."""

DOES = _words(listed("does"))
"""The same of today."""


def uppercase_class() -> str:
    """Return the inside of a regex class of all capital letters of the scripts that have case."""
    letters = [
        chr(c) for c in (*range(0x41, 0x2000), *range(0xA640, 0xA800), *range(0xFF21, 0xFF3B))
    ]
    capitals = [c for c in letters if c.isupper() or c.istitle()]
    ranges: list[list[str]] = []
    for letter in capitals:
        if ranges and ord(letter) == ord(ranges[-1][1]) + 1:
            ranges[-1][1] = letter
        else:
            ranges.append([letter, letter])
    return "".join(a if a == b else f"{a}-{b}" for a, b in ranges)


UPPER = sys.intern(uppercase_class())

PLURAL_OR_UNIT = re.compile(r"[a-z]{2,}(?:s|people|men|women|children)\Z")


def bare(word: str) -> str:
    """Return a word as the lists hold it: lower case, no final dot."""
    return word.casefold().rstrip(".")
