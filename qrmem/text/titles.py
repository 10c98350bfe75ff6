"""Honorifics before a name, and what they say about the person: enough to keep two people apart."""

from collections.abc import Sequence
from functools import lru_cache


def _set(words: str) -> frozenset[str]:
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
"""Spelled-out honorifics and the short form by which they are compared."""

_MEN = """
mr sir lord king prince duke earl count viscount baron marquess marquis emperor tsar sultan father
brother uncle grandfather grandpa master monsieur herr sr fr abbot
"""
_WOMEN = """
mrs ms miss lady dame queen princess duchess countess viscountess baroness marchioness empress
tsarina sultana mother sister aunt grandmother grandma mme mlle madam frau sra abbess
"""
_EITHER = """
dr prof capt col gen lt sgt maj cpl pvt adm commander commodore cmdr inspector constable detective
officer judge justice rev pastor bishop archbishop cardinal pope rabbi imam sen gov president
chancellor minister secretary mayor chief coach st hon
"""
MEN = _set(_MEN)
WOMEN = _set(_WOMEN)
TITLES = MEN | WOMEN | _set(_EITHER)
"""Honorifics, in the form by which they are compared."""

COURTESY = _set("mr mrs ms miss monsieur mme mlle sr sra herr frau sir dr prof madam")
"""Titles that one person may bear beside another of these; they say nothing of rank."""

BEFORE_GIVEN = _set(
    """
    sir lady lord dame king queen prince princess emperor empress pope st brother sister father
    mother  uncle aunt miss master fr
    """
)
"""Titles that may stand before a given name alone; all others stand before a surname."""

_MENS_NAMES = """
james john robert michael william david richard joseph thomas charles christopher daniel matthew
anthony mark donald steven paul andrew joshua kenneth kevin brian george edward ronald timothy
jason jeffrey ryan jacob gary nicholas eric jonathan stephen larry justin scott brandon benjamin
samuel gregory frank alexander raymond patrick jack dennis jerry tyler aaron jose adam henry
nathan douglas peter zachary walter harold arthur albert carl ralph roger eugene lawrence victor
philip fred ernest howard louis martin oscar hugh edmund gilbert herbert frederick leonard
theodore francis simon oliver tom bill jim bob joe harry ben sam dick ned
"""
_WOMENS_NAMES = """
mary patricia jennifer linda elizabeth barbara susan jessica sarah karen lisa nancy betty sandra
margaret ashley kimberly emily donna michelle carol amanda melissa deborah stephanie rebecca
sharon laura cynthia dorothy amy kathleen angela shirley emma brenda pamela nicole anna samantha
katherine christine helen debra rachel carolyn janet maria catherine heather diane olivia julie
joyce victoria ruth virginia lauren kelly christina joan evelyn judith andrea hannah jacqueline
martha gloria teresa ann anne sara madison frances kathryn jean abigail alice julia judy sophia
grace denise amber doris marilyn danielle beverly isabella theresa diana natalie brittany
charlotte marie kayla alexis jane lydia harriet caroline agnes florence edith ethel lucy ellen
clara rose louisa eleanor kate eliza
"""
_MALE = _set(_MENS_NAMES)
_FEMALE = _set(_WOMENS_NAMES)


def split_titles(words: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the honorifics that open a normalised name, short, and the rest, which may be empty.

    In "Duke of Wellington" or "Lord of the Rings" the first word is no honorific.
    """
    at = 0
    while at < len(words) and SPELLINGS.get(words[at], words[at]) in TITLES:
        at += 1
    if words[at : at + 1] and words[at] in ("of", "the", "and"):
        at = 0
    return tuple(SPELLINGS.get(word, word) for word in words[:at]), tuple(words[at:])


def sex(titles: Sequence[str], names: Sequence[str]) -> str:
    """Return "m", "f" or "" for what titles, else a given name before a surname, say."""
    for title in titles:
        if title in MEN or title in WOMEN:
            return "m" if title in MEN else "f"
    if len(names) > 1:
        return "m" if names[0] in _MALE else "f" if names[0] in _FEMALE else ""
    return ""


@lru_cache(maxsize=200_000)
def titled(name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the titles before a normalised name, and its other words."""
    return split_titles(name.split())


def titles_clash(first: Sequence[str], second: Sequence[str]) -> bool:
    """Whether two people's titles say that they are two: of another sex, or of another rank.

    Mrs and Miss of one surname are two people, as are a colonel and a captain; Dr or Sir and Mr may
    be one. A title beside none clashes with nothing.
    """
    if not first or not second or set(first) & set(second):
        return False
    if {*first, *second} >= {"mrs", "miss"}:
        return True
    return not (COURTESY.intersection(first) and COURTESY.intersection(second))
