"""Numbers of a text with their units, and which number of a later text may replace one of them.

English words tell the unit, the topic and whether a number changed.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from qrmem.text.times import MONTHS
from qrmem.text.words import terms

_MONTH = f"(?:{'|'.join(month.title() for month in MONTHS)})"
_COUNTS = (
    *("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve"),
)
_QUANTITY = re.compile(
    rf"""(?P<date>\b{_MONTH}\s+\d{{1,2}}(?!\d)|\b\d{{1,2}}\s+{_MONTH}\b)
  | (?P<time>\b\d{{1,2}}(?::\d\d)?\s*[aApP]\.?[mM]\b|\b\d{{1,2}}:\d\d\b)
  | (?P<money>[$€£]\s?)?(?<![\w./:-])
    (?P<number>\d[\d,]*(?:\.\d+)?(?![\d.]*\.\d)|\b(?:{"|".join(_COUNTS)})\b)
    (?P<share>\s?%|\spercent\b)?(?P<unit>[\s-]?[A-Za-z]+(?:\s[a-z]+){{0,2}})?""",
    re.VERBOSE,
)
_CHANGED = re.compile(
    r"\b(?:now(?!\s+(?:(?:i['’]m|i\s+am|we['’]re)\s+)?(?:trying|want|need))|recently|nowadays"
    r"|new|updat(?:ed|ing)|increased|extend(?:ed)?|raised?|grown|grew|reached|improved|expanded"
    r"|reduced|decreased|dropped|fallen|lowered|moved|postponed?|rescheduled|pushed|changed"
    r"|adjusted|revised"
    r"|shifted|boosted|added|actually|instead|(?:up|down)\s+to|went\s+(?:up|down)|shortened"
    r"|delayed|brought\s+forward)\b",
    re.IGNORECASE,
)
"""Words that say that a number was a different one before."""
_GREW = re.compile(
    r"\b(?:increased|extended|raised|grown|grew|risen|rose|expanded|boosted|added|went up|up to)\b",
    re.IGNORECASE,
)
_FELL = re.compile(
    r"\b(?:reduced|decreased|dropped|fallen|fell|lowered|shortened|cut|went down|down to)\b",
    re.IGNORECASE,
)
_IMPROVED = re.compile(r"\b(?:improved|optimi[sz]ed)\b", re.IGNORECASE)
_DURATIONS = frozenset(terms("ms millisecond second minute hour"))
_MEASURES = _DURATIONS | frozenset(terms("day week month year mb gb kb fps km kg mile"))
"""Units of a number by themselves: in "5 minutes before expiry", no expiries are counted."""
_FOLD = 10
"""A number that is so many times as large as an earlier one is of something else."""
_GONE = re.compile(
    r"\b(?:from|was|were|initially|originally|previously|instead of|than|under|over|below|least"
    r"|most|within|goal of|target of|between|reach(?:ing)?|achiev(?:e|ing)|ensur(?:e|ing)"
    r"|aim(?:ing)? for|by)\s(?:\w+\s)?$",
    re.IGNORECASE,
)
"""Words before a number that is outdated, a bound, a wish or a difference."""
_WISHED = re.compile(r"\b(?:goal|target(?:ing)?|aim(?:ing)?)\b", re.IGNORECASE)
_IS_STEP = re.compile(
    r"\s+(?:[a-z]+\s)?(?:increase|improvement|growth|raise|boost|gain|drop|reduction|decrease|cut|target|goal)s?\b"
)
"""Words after a difference or a wish: "a 12% salary increase", "an 85% coverage target"."""
_DATED_ANEW = re.compile(
    r"(?<!['’]s\s)(?<!\bis\s)\b(?:(?:now|new)(?:\s+(?:on|for|due|is))?"
    r"|new\s+(?:\w+\s+){0,3}(?:deadline|date|day|schedule|time|target)\s+(?:of|is|for|on|to)"
    r"|(?:mov(?:ed?|ing)|postponed?|rescheduled|pushed|changed|shifted|extended?|delayed|brought\s+forward)\b"
    r"[^.;!?]{0,40}?\b(?:to|until|till|for|on|by))(?:\s+the)?\s*$",
    re.IGNORECASE,
)
"""Words right before a date that changed: "new April 25", "moved to April 25"."""
_FROM = re.compile(r"\bfrom\s(?:[a-z]+\s)?[$€£]?(\w[\w,:.]*\w|\w)(?:\s(\d{1,2})\b)?", re.IGNORECASE)
_COUNTED_BEFORE = re.compile(
    r"\b(?:reached|(?:increased|grown|grew|gone up|went up|risen|rose|dropped|fallen|reduced)\s+to)"
    r"\s$"
)
"""Words between a counted noun and its number: "the number of mentees has grown to 7"."""
_CODE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_SENTENCE = re.compile(r"(?<=[.?!])\s+|\n+")
_EMPTY = frozenset(
    terms(
        "trying want help need make sure working using use can know like also able think how get"
        " give now recently already currently new understand improve complete implement optimize"
        " update increase reduce reach ms px kb mb"
    )
)
"""Words that do not tell the topic of a number."""
_ABOUT, _MARK = 14, 6
"""Number of words on either side of a number that tell its topic, and whether it changed."""


class Quantity(NamedTuple):
    """A number in a text.

    Attributes:
        units: terms of the counted noun; or only "date", "time", "share" or a currency sign.
        value: the number as written, without separators of its digits.
        about: terms around it.
        is_changed: whether its words say that it was a different one before.
        is_current: whether it is valid now: not "from 65%", and no bound, wish or difference.
        step: 1 if its words say that it grew, -1 if it fell, else 0.
        was: the earlier value that its sentence states ("from 65% to 70%"), or "".
    """

    units: frozenset[str]
    value: str
    about: frozenset[str]
    is_changed: bool
    is_current: bool
    step: int = 0
    was: str = ""


@lru_cache(4096)
def quantities(text: str) -> tuple[Quantity, ...]:
    """Return the numbers in a text, except for those in code."""
    return tuple(
        quantity
        for sentence in _SENTENCE.split(_CODE.sub("\n", text))
        for match in _QUANTITY.finditer(sentence)
        if (quantity := _quantity(sentence, match)) is not None
    )


def _quantity(sentence: str, match: re.Match[str]) -> Quantity | None:
    groups = match.groupdict()
    kind_named = next((kind for kind in ("date", "time", "money", "share") if groups[kind]), "")
    kind_named = groups["money"].strip() if kind_named == "money" else kind_named
    counted = terms(groups["unit"] or "")[:2]
    units = frozenset({kind_named} if kind_named else counted[: 1 if _is_measured(counted) else 2])
    if not units and _COUNTED_BEFORE.search(sentence[: match.start()]):
        units = frozenset(terms(sentence[: match.start()])[-_ABOUT:]) - _EMPTY
    if not units:
        return None
    value = groups["date"] or groups["time"] or groups["number"]
    end = match.end() if groups["date"] or groups["time"] else match.end("number")
    behind = match.end("share") if groups["share"] else end
    before, after = sentence[: match.start()].split(), sentence[end:].split()
    about = terms(" ".join([*before[-_ABOUT:], *after[:_ABOUT]]))
    marks = " ".join([*before[-_MARK:], "#", *after[: _MARK - 2]])
    lead, text_before = " ".join(before[-4:]) + " ", sentence[: match.start()]
    return Quantity(
        units,
        _plain(value),
        frozenset(term for term in about if not term.isdigit()) - _EMPTY,
        bool(_DATED_ANEW.search(text_before) if kind_named == "date" else _CHANGED.search(marks)),
        not (
            _GONE.search(lead)
            or _WISHED.search(" ".join(before[-_ABOUT:]))
            or _IS_STEP.match(sentence, behind)
        ),
        _step(" ".join([*before[-_MARK:], "#"]), units),
        _was(" ".join(before[-_ABOUT:])),
    )


def _is_measured(counted: Sequence[str]) -> bool:
    return bool(counted) and counted[0] in _MEASURES


def _step(lead: str, units: frozenset[str]) -> int:
    """Return 1 if the words before a number say that it grew, -1 if it fell, else 0."""
    if _FELL.search(lead) or (_IMPROVED.search(lead) and units & _DURATIONS):
        return -1
    return 1 if _GREW.search(lead) else 0


def _may_follow(old: Quantity, new: Quantity) -> bool:
    """Return whether a number may be the new value of an old one, by its size and direction."""
    try:
        before, now = float(old.value), float(new.value)
    except ValueError:  # a date or a time of day
        return True
    return (now - before) * new.step >= 0 and max(before, now) < _FOLD * min(before, now)


def _was(lead: str) -> str:
    """Return the value after the last "from" of some words: a month with its day, or a number."""
    from_match = [*_FROM.finditer(lead)][-1:]
    words = [one for match in from_match for one in match.groups() if one]
    is_value = any(any(char.isdigit() for char in word) for word in words)
    return _plain("".join(words)) if is_value else ""


def _plain(value: str) -> str:
    word = value.casefold().replace(",", "").replace(" ", "")
    return str(_COUNTS.index(word) + 1) if word in _COUNTS else word


@lru_cache(16384)
def updated_by(earlier: str, later: str) -> tuple[frozenset[str], ...]:
    """Return the common terms of earlier numbers and the later ones that may replace them.

    These are numbers of one unit with different values, where the later text says that the value
    changed. A text replaces nothing if it repeats the earlier number, or if the earlier text has
    the later number, too.
    """
    old, new = quantities(earlier), quantities(later)
    old_values = {(unit, one.value) for one in old for unit in one.units}
    new_values = {(unit, one.value) for one in new if one.is_current for unit in one.units}
    return tuple(
        one.about & other.about
        for other in new
        if other.is_changed and other.is_current
        for one in old
        if one.is_current
        and (other.was == one.value or (not other.was and _may_follow(one, other)))
        for units in [one.units & other.units]
        if units and all((unit, other.value) not in old_values for unit in units)
        if all((unit, one.value) not in new_values for unit in units)
        if len(one.about & other.about) > 1
    )
