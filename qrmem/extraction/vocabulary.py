"""Closed lists of English words for the rules; other languages use only capitals and quotes.

The lists hold word classes (pronouns, titles, units …), never words of a particular book.
"""

import re
import sys

from qrmem.text import listed


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


FUNCTION_WORDS = _words(listed("function-words"))
"""Function words, which are never a name by themselves."""

KIN = _words(listed("kin"))
BARE_OPENERS = _words(listed("bare-openers")) | KIN
"""Words that often begin a sentence or a line with a capital letter and are not a name."""

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
"""Titles that are followed by a person; other titles also begin places, saints' days and firms."""

ABBREVIATED_TITLES = _words(
    "Mr Mrs Ms Dr Prof Capt Col Gen Maj Lt Sgt Rev Hon St Messrs Mme Mlle Jr Sr Mt Ft"
)

PARTICLES = _words(
    "de van von der den la le du da di del della des dos el bin ibn al y zu zur ter te"
)
"""Lower-case words within a personal name."""

OF_HEADS = _words(listed("of-heads"))
"""Capitalised words that form one name with "of" and the following name."""

PLACE_HEADS = _words(listed("place-heads"))
PLACE_OPENERS = _words("lake mount mt mt. cape fort ft ft. gulf isle isles river")
ORGANISATION_HEADS = _words(listed("organisation-heads"))
BUILDING_HEADS = _words(listed("building-heads"))
"""Heads Y of a name "X's Y" that may be a place or an organisation."""

PARTNER_WORDS = _words("sons co co. company brothers partners daughters associates")
SECTION_WORDS = _words(
    "chapter letter volume section part book act scene figure fig table page appendix verse canto"
)

BODY_PARTS = _words(listed("body-parts"))
"""What only a person has, as `KIN`: somebody's face, somebody's wife."""
SPEECH_VERBS = _words(listed("speech-verbs"))
"""Verbs whose subject is a person; "said" and "announced" also have firms and papers."""

WORK_CUES = _words(listed("work-cues"))

UNITS = _words(listed("units"))
BIG_NUMBER_WORDS = _words(listed("big-number-words"))
SMALL_NUMBER_WORDS = _words("one two three four five six seven eight nine ten")

FINITE_VERBS = _words(listed("finite-verbs"))
"""Verb forms without -ed or -s that can follow a subject."""


PERSON_VERBS = _words(listed("person-verbs"))
"""Verbs whose subject is nearly always a person."""

DOES = _words(listed("does"))
"""The same verbs in the present tense."""


def uppercase_class() -> str:
    """Return the content of a regex class of all capital letters, of every script with case."""
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
    """Return a word in the form of the lists: lower case, without a final dot."""
    return word.casefold().rstrip(".")
