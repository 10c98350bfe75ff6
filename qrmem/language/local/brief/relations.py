"""Relations that questions ask along, and the words by which a text states them.

"The mother of the director of …": each is a word of a question, and cues before or behind a name.
General English; a text that puts it otherwise is left to the other rules.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from qrmem.language.local.brief.moments import Moment, moments
from qrmem.language.local.brief.nations import nations
from qrmem.language.local.brief.told import NAME, UPPER, Told, name_behind

Find = Callable[[Told], tuple[str, str] | None]
"""Finds a value in what is told of somebody, with the sentence that states it."""


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation.

    Attributes:
        asked: how a question names it.
        find: reads its value.
        is_end: whether the value is nobody whom a passage could tell of: a date, a nationality.
    """

    name: str
    asked: "re.Pattern[str]"
    find: Find
    is_end: bool = False


def _behind(*cues: str) -> Find:
    """The first name behind one of the cues, the first cue first."""
    patterns = [re.compile(rf"\b(?:{cue})", re.IGNORECASE) for cue in cues]

    def find(one: Told) -> tuple[str, str] | None:
        for pattern in patterns:
            for sentence in one.sentences:
                for match in pattern.finditer(sentence):
                    name = name_behind(sentence, match.end())
                    if name and not one.about.casefold().startswith(name.casefold()):
                        return name, sentence
        return None

    return find


_PARENTS = re.compile(
    r"\b(?:son|daughter|child)(?:\s+born)?\s+(?:of|to)\b|\bborn\b[^.;]{0,50}\bto\s(?=[A-Z])|\bparents\b"
)
_FEMALE = re.compile(r"\b(?:actress|queen|princess|lady|countess|duchess|empress|dame|mrs)\b", re.I)


def _father(one: Told) -> tuple[str, str] | None:
    return _parent(one, 0) or _behind(
        r"(?:his|her|whose)\s+father,?(?:\s+(?:was|is))?", r"father,?(?:\s+(?:was|is))?"
    )(one)


def _mother(one: Told) -> tuple[str, str] | None:
    return _parent(one, 1) or _behind(
        r"(?:his|her|whose)\s+mother,?(?:\s+(?:was|is))?",
        r"mother,?(?:\s+(?:was|is))?",
        r"by\s+his\s+(?:\w+\s+)?wife,?",
        r"and\s+his\s+(?:\w+\s+)?wife,?",
    )(one)


def _parent(one: Told, which: int) -> tuple[str, str] | None:
    """Return the first or the second name behind "son of"."""
    for sentence in one.sentences:
        for match in _PARENTS.finditer(sentence):
            first = name_behind(sentence, match.end())
            if not first:
                continue
            if which == 0:
                return first, sentence
            between = sentence[match.end() : sentence.find(first, match.end())]
            if _FEMALE.search(f"{between} {first}"):
                return first, sentence
            behind = sentence[sentence.find(first, match.end()) + len(first) :]
            link = re.search(r"\b(?:and|by|with)\b", behind[:120])
            second = name_behind(behind, link.end()) if link else ""
            if second:
                return second, sentence
    return None


_IN = re.compile(rf"\b(?:in|at|near)\s+(?:the\s+)?(?={UPPER})")
_LIFE = re.compile(r"\(([^()]*\d{4}[^()]*)\)")
_MONTH = re.compile(
    "January|February|March|April|May|June|July|August|September|October|November|December"
)


def _place(cue: str, side: int = -1) -> Find:
    """The place that is named behind a cue, or on a side of the dash in a life's brackets."""
    pattern = re.compile(rf"\b(?i:{cue})\b[^.;]{{0,90}}")

    def find(one: Told) -> tuple[str, str] | None:
        for sentence in one.sentences:
            life = _LIFE.search(sentence[:400]) if side >= 0 else None
            parts = re.split(r"\s*[–—]\s*|\s-\s", life[1]) if life else []
            if len(parts) == 2 and (place := _first_place(parts[side])):
                return place, sentence
            for match in pattern.finditer(sentence):
                if place := _first_place(match[0]):
                    return place, sentence
        return None

    return find


def _first_place(text: str) -> str:
    for match in _IN.finditer(text):
        name = NAME.match(text, match.end())
        if name and not _MONTH.match(name[0]):
            return name[0].rstrip(".")
    return ""


def born(one: Told) -> tuple[Moment, str] | None:
    """Return when somebody was born: the first date in brackets, or behind "born"."""
    return _dated(one, r"\bborn\b[^.;]{0,40}?", 0)


def died(one: Told) -> tuple[Moment, str] | None:
    """Return when somebody died: the date behind a dash in brackets, or behind "died"."""
    return _dated(one, r"\b(?:died|death|killed|executed|assassinated)\b[^.;]{0,40}?", 1)


_DASH = re.compile(r"[–—-]")


def _dated(one: Told, cue: str, side: int) -> tuple[Moment, str] | None:
    for sentence in one.sentences[:2]:
        for match in re.finditer(r"\(([^()]*\d{4}[^()]*)\)", sentence[:400]):
            found = moments(match[1])
            is_life = len(found) > 1 and _DASH.search(match[1][found[0].end : found[-1].start])
            if is_life:
                return found[-1 if side else 0], sentence
            if found and not side and re.search(r"\bborn\b|\bb\.", match[1]):
                return found[0], sentence
    for sentence in one.sentences:
        for cued in re.finditer(cue, sentence, re.IGNORECASE):
            found = [m for m in moments(sentence) if cued.start() < m.start < cued.end() + 60]
            if found:
                return found[0], sentence
    return None


def first_date(one: Told) -> tuple[Moment, str] | None:
    """Return the first date that is told of something: when it came into the world."""
    for sentence in one.sentences:
        found = moments(sentence)
        if found:
            return found[0], sentence
    found = moments(one.passage.title)
    return (found[0], one.passage.title) if found else None


def _text(find: Callable[[Told], tuple[Moment, str] | None]) -> Find:
    def text(one: Told) -> tuple[str, str] | None:
        found = find(one)
        return (found[0].text, found[1]) if found else None

    return text


_CAUSE = re.compile(
    r"\b(?:died|dying|death|suicide)\b[^.;]{0,60}?\b(?:of|from|due to|caused by|by)\s+"
    r"(?:an?\s+|the\s+)?"
    r"([a-z][a-z -]+?)(?=[,.;()]|\s+(?:in|on|at|after|while|when|and)\b)"
)


def _cause(one: Told) -> tuple[str, str] | None:
    for sentence in one.sentences:
        found = _CAUSE.search(sentence)
        if found:
            return found[1], sentence
    return None


def country(one: Told) -> tuple[str, str] | None:
    """Return the first country or nationality that is named of somebody."""
    for sentence in one.sentences[:3]:
        inside = re.sub(r"\([^)]*\)", " ", sentence)
        named = nations(inside) or nations(sentence)
        if named:
            return named[0][0], sentence
    return None


def _asked(pattern: str) -> "re.Pattern[str]":
    return re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE)


_BY = r"(?:\s+and\s+(?:co-)?[\w-]+)?\s+by\b"

RELATIONS: tuple[Relation, ...] = (
    Relation(
        "birthdate",
        _asked(
            r"date of birth|birth ?date|birthday|year of birth|when\b.*\bborn"
            r"|(?:year|day|date)\b.*\bborn"
        ),
        _text(born),
        True,
    ),
    Relation(
        "deathdate",
        _asked(
            r"date of death|death date|year of death|when\b.*\b(?:die|died)"
            r"|(?:year|day|date)\b.*\b(?:die|died)"
        ),
        _text(died),
        True,
    ),
    Relation(
        "birthplace",
        _asked(
            r"place of birth|birth ?place|where\b.*\bborn|(?:city|town|country|state)\b.*\bborn"
            r"|from which city"
        ),
        _place("born", 0),
    ),
    Relation(
        "deathplace",
        _asked(
            r"place of death|death place|where\b.*\b(?:die|died)|(?:city|town)\b.*\b(?:die|died)"
        ),
        _place("(?:died|dies|death|killed)", 1),
    ),
    Relation(
        "burial",
        _asked(r"place of burial|burial place|where\b.*\bburied|buried"),
        _place("(?:buried|interred|burial)"),
    ),
    Relation("cause", _asked(r"cause of death|why\b.*\bdie"), _cause, True),
    Relation(
        "country", _asked(r"nationality|(?:which|what) country|country of \w+"), country, True
    ),
    Relation(
        "director",
        _asked(r"directors?|directed|film-?maker"),
        _behind(rf"directed{_BY}", r"director\b", r"film\s+by\b"),
    ),
    Relation(
        "composer",
        _asked(r"composers?|composed"),
        _behind(
            rf"compos(?:ed|ition){_BY}",
            r"music\s+(?:was\s+)?(?:\w+\s+)?by\b",
            r"score\s+by\b",
            rf"written{_BY}",
            r"\bby\b",
        ),
    ),
    Relation(
        "performer",
        _asked(r"performers?|performed|singers?|sang|recorded"),
        _behind(
            rf"(?:performed|recorded|sung|released){_BY}",
            r"(?:song|single|album|track)\s+by\b",
            r"\bby\b",
            r"(?:singer|band|group|duo|rapper|artist)\b",
        ),
    ),
    Relation(
        "author",
        _asked(r"authors?|writers?|wrote|novelist|screenwriter"),
        _behind(rf"written{_BY}", r"(?:novel|book|story|play|poem)\s+by\b", r"author\b", r"\bby\b"),
    ),
    Relation("producer", _asked(r"producers?|produced"), _behind(rf"produced{_BY}", r"producer\b")),
    Relation(
        "founder",
        _asked(r"founders?|founded|established|creators?|created"),
        _behind(rf"(?:founded|established|created){_BY}", r"founder\b"),
    ),
    Relation("father", _asked(r"father|dad"), _father),
    Relation("mother", _asked(r"mother|mom"), _mother),
    Relation(
        "spouse",
        _asked(r"spouse|husband|wife|married|widow"),
        _behind(
            r"married(?:\s+to)?\b",
            r"(?:wife|husband|spouse|widow|widower)\s+(?:of|was|is)\b",
            r"(?:wife|husband|spouse|consort)\b,?",
            r"marriage\s+(?:to|with)\b",
        ),
    ),
    Relation(
        "child",
        _asked(r"child|children|son|daughter"),
        _behind(
            r"(?:father|mother)\s+of\b",
            r"(?:his|her|their)\s+(?:\w+\s+)?(?:son|daughter|children)\b,?",
            r"(?:son|daughter),",
        ),
    ),
    Relation(
        "sibling",
        _asked(r"siblings?|brother|sister"),
        _behind(r"(?:brother|sister|sibling)s?\s+of\b", r"(?:brother|sister|sibling)s?\b,?"),
    ),
    Relation(
        "school",
        _asked(r"educated|alma mater|graduated?(?: from)?|stud(?:y|ied)(?: at)?|attend(?:ed)?"),
        _behind(
            r"(?:graduated\s+from|educated\s+(?:at|in)|studied\s+[^.;]{0,30}?\bat|attended)\b",
            r"degree\s+[^.;]{0,40}?\b(?:at|from)\b",
        ),
    ),
    Relation(
        "award",
        _asked(r"awards?|prize"),
        _behind(r"(?:won|received|awarded|recipient\s+of|winner\s+of)\b"),
    ),
)

KIN: Mapping[str, tuple[str, str]] = {
    r"paternal grandfather": ("father", "father"),
    r"paternal grandmother": ("father", "mother"),
    r"maternal grandfather": ("mother", "father"),
    r"maternal grandmother": ("mother", "mother"),
    r"grandfather": ("father", "father"),
    r"grandmother": ("father", "mother"),
    r"father-in-law": ("spouse", "father"),
    r"mother-in-law": ("spouse", "mother"),
    r"(?:brother|sister|sibling)-in-law": ("spouse", "sibling"),
    r"(?:son|daughter|child)-in-law": ("child", "spouse"),
    r"step-?mother": ("father", "spouse"),
    r"step-?father": ("mother", "spouse"),
    r"uncle": ("father", "sibling"),
    r"aunt": ("mother", "sibling"),
    r"(?:co-husband|co-wife)": ("spouse", "spouse"),
}
"""Kinship put together of two relations, the nearer first."""

BY_NAME: Mapping[str, Relation] = {relation.name: relation for relation in RELATIONS}
