"""Time words in English texts ("last summer", "in May", "two weeks ago") as spans of days."""

import re
from calendar import monthrange
from collections.abc import Sequence
from contextlib import suppress
from datetime import date, timedelta
from typing import NamedTuple

from qrmem.text import listed

# Whether a time in an English sentence is in the past or in the future.

_IRREGULAR = "|".join(listed("irregular-past-forms").split())
_NO_PAST = (
    r"(?<!\ba\s)(?<!\ban\s)(?<!\bthe\s)(?<!\bmy\s)"
    r"(?!(?:need|feed|speed|bleed|breed|seed|indeed|exceed|proceed|succeed|bed|red)\b)"
)
_BE = r"(?:am|is|are|be|i['’]m|(?:we|you|they)['’]re|(?:it|he|she|that|there|what|when)['’]s)"
_VERBS = re.compile(
    rf"""(?<![\w-])(?:(?P<open>(?:was|were)(?:n['’]t|\s+not)?\s+
    (?:going|supposed|meant|planning|hoping|about|due)\s+to
  )|(?P<ahead>
    (?:will|won['’]t|\w+['’]ll)\s+(?:\w+\s+)?have\s+(?:been\s+)?\w+
  | would(?:n['’]t)?(?!\s+(?:\w+\s+)?have\b)
  |
    (?:{_BE}(?:\s+\w+)?|gets?)\s+\w+ed
  | (?:decided|agreed|promised|asked|reminded|invited|told)(?:\s+(?:me|us|him|her|them|you))?\s+to
  | could\s+(?:you|we|i)
  | will|won['’]t|\w+['’]ll|shall|must|can|may|should|going\s+to|have\s+to|has\s+to|{_BE}
  | needs?|wants?|hopes?|hoping|plans?|planned|planning|scheduled|expects?|expected|intends?
  | leaves|starts|begins|ends|expires|runs|opens|closes|arrives|departs|goes|comes|flies|moves
  | takes|turns|gets|has|visits|returns|continues
  )|(?P<back>{_IRREGULAR}|{_NO_PAST}\w+ed))\b""",
    re.IGNORECASE | re.VERBOSE,
)
"""Verbs that tell past or future, or allow both; the longest reading comes first."""
_PLAIN = re.compile(
    r"\b(?:i|we|you|he|she|they|it)\s+(?!(?:put|cut|let|set|hit|read|quit|hurt|shut|split|beat)\b)"
    r"[a-z]\w+|\b(?:deadline|due|appointment|reservation|upcoming|let['’]?s|let us)\b",
    re.IGNORECASE,
)
"""Words for the future if no verb decides: a verb in the present, a coming event."""
_MOVED = re.compile(
    r"\b(?:mov(?:ed|ing)|shift(?:ed|ing)|postponed|rescheduled|pushed|put|delayed|extended|set|fixed|scheduled|planned"
    r"|booked|reserved|arranged|invited|changed|brought)\b[^.;!?]*\b(?:to|for|until|till|through)\s*(?:the\s*)?"
    r"(?:(?:\d{1,2}(?:[:.]\d\d)?(?:\s*[ap]\.?m\.?|\s+o['’]clock)?|noon|midnight)\s+on\s*(?:the\s*)?)?$",
    re.IGNORECASE,
)
"""A plan for a time: "moved to 5 May", "booked a table for Friday", "put it to 9:30 on 3 June"."""
_ARRANGED = re.compile(
    r"\b(?:(?:signed\s+up|registered|enrol+ed)\s+(?:for|in|at)|(?:booked|reserved)"
    r"|(?:bought|got|ordered)\s+(?:\w+\s+){0,2}tickets?)\s[^.;,!?]*\b(?:on|in)\s*(?:the\s*)?$",
    re.IGNORECASE,
)
"""A time of an arrangement or of the event: "I signed up for a marathon in October"."""
_LIMIT = re.compile(r"\b(?:by|until|till)\s*(?:the\s*)?$", re.IGNORECASE)
_SINCE = re.compile(r"\bsince\s*(?:the\s*)?$", re.IGNORECASE)
_WORD = re.compile(r"\S+")
_NEAR, _BESIDE = 9, 4
"""Number of words before a time in which a verb may decide, and in which it surely does."""
_SENTENCE = re.compile(r"[.!?;]\s+|\n")
_CLAUSE = re.compile(r",\s+(?:and|but|so|yet|because|while|although)\s+", re.IGNORECASE)


class Direction(NamedTuple):
    """Whether a time is in the past or in the future, by its sentence.

    Attributes:
        step: -1 in the past, 1 in the future, 0 if nothing tells.
        is_sure: whether the verb is right before the time.
        is_open: whether the words allow both.
    """

    step: int
    is_sure: bool = False
    is_open: bool = False


def direction(text: str, start: int, end: int) -> Direction:
    """Return whether a time in a sentence is in the past or in the future.

    Args:
        text: an English text.
        start: position of the time in the text, without a preposition.
        end: the position after it.
    """
    first, last = _around(_SENTENCE, text, start, end)
    clause = _around(_CLAUSE, text[first:last], start - first, end - first)
    before, after = text[first + clause[0] : start], text[end : first + clause[1]]
    if _SINCE.search(before):
        return Direction(-1, True)
    if _MOVED.search(before):
        return Direction(1)
    if _ARRANGED.search(before):
        return Direction(0, is_open=True)
    if verb := _last_verb(before, _BESIDE):
        return verb._replace(is_sure=bool(verb.step))
    if verb := _last_verb(before, _NEAR) or _first_verb(after):
        return verb
    if _LIMIT.search(before) or _PLAIN.search(f"{before} … {after}"):
        return Direction(1)
    return _last_verb(text[first:start], _NEAR) or _first_verb(text[end:last]) or Direction(0)


def _around(breaks: re.Pattern[str], text: str, start: int, end: int) -> tuple[int, int]:
    """Return the bounds of the piece around a position, between two breaks."""
    first = max((m.end() for m in breaks.finditer(text, 0, start)), default=0)
    after = breaks.search(text, end)
    return first, after.start() if after else len(text)


def _last_verb(before: str, words: int) -> Direction | None:
    """Return the direction by the last verb among some last words."""
    words_near = [*_WORD.finditer(before)][-words:]
    verbs = [*_VERBS.finditer(before)][-1:]
    return _told([verb for verb in verbs if verb.end() > words_near[0].start()])


def _first_verb(after: str) -> Direction | None:
    return _told([*_VERBS.finditer(after)][:1])


def _told(verbs: list[re.Match[str]]) -> Direction | None:
    if not verbs:
        return None
    if verbs[0]["open"]:
        return Direction(0, is_open=True)
    return Direction(1 if verbs[0]["ahead"] else -1)


MONTHS = (
    *("january", "february", "march", "april", "may", "june", "july", "august", "september"),
    *("october", "november", "december"),
)
DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
_COUNTS = {
    word: n
    for n, words in enumerate(
        ("a an one", "two couple", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
        1,
    )
    for word in words.split()
}
_MONTH, _COUNT = "|".join(MONTHS), "|".join(_COUNTS)
_TIME = re.compile(
    rf"""\b(?:
    (?P<iso>\d{{4}}-\d\d-\d\d)\b
  | (?P<isomonth>(?:19|20)\d\d-(?:0[1-9]|1[0-2]))\b(?!-\w)
  | (?P<d1>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?(?P<m1>{_MONTH})\b(?:,?\s+(?P<y1>\d{{4}}))?\b
  | (?P<m2>{_MONTH})\s+(?P<d2>\d{{1,2}})(?:st|nd|rd|th)?\b(?:,?\s+(?P<y2>\d{{4}}))?\b
  | (?:(?P<before>last|this|next|in|since|during|of|by|until|early|late|mid)[\s-]+)?
    (?P<m3>{_MONTH})\b(?!\s+\d{{1,2}}(?:st|nd|rd|th)?\b)(?:,?\s+(?P<y3>\d{{4}}))?\b
  | (?P<near>the\s+day\s+before\s+yesterday|yesterday|last\s+night|tomorrow|today|tonight
    |this\s+(?:morning|afternoon|evening))\b
  | (?P<count>\d{{1,3}}|{_COUNT})\s+(?:of\s+)?(?P<unit>day|week|month|year)s?\s+ago\b
  | (?P<which>last|past|this|next|coming)\s+
    (?P<what>week(?:end)?|month|year|{"|".join(_SEASONS)}|{"|".join(DAYS)})\b
  | (?<!every\s)(?<!each\s)(?P<weekday>{"|".join(DAYS)})\b
  | (?:in|during|over|by|until|since)\s+(?:the\s+)?(?P<season>{"|".join(_SEASONS)})\b
  | in\s+(?P<ahead>\d{{1,3}}|{_COUNT})\s+(?:of\s+)?(?P<step>day|week|month|year)s?\b(?!\s+ago)
  | (?P<year>(?:19|20)\d\d)\b(?!-(?!(?:19|20)\d\d\b)(?:\d+-|\d{{4}}))
    )""",
    re.IGNORECASE | re.VERBOSE,
)
_YEAR = re.compile(r"\d{4}")
_TELLING = (
    *("day", "week", "month", "year", "night", "tomorrow", "morning", "afternoon", "evening"),
    *(*MONTHS, *_SEASONS),
)
"""Every text that names a time has one of these, or a year; "day" is in each weekday."""
_YEARS = 4
"""Years before and after a text in which a day without a year is searched (29 February)."""
_AS_NEAR, _OPEN_AS_NEAR = 6, 2
"""Two dates are equally near if their distances differ by less than this share of their sum: a
sixth, or half of it if the words allow both."""
_NEARER = 6
"""A date that is so many times nearer is chosen, unless a verb right before it contradicts."""
_Days = tuple[date, date]
_STEP = {"last": -1, "past": -1, "this": 0, "next": 1, "coming": 1}


class Period(NamedTuple):
    """A time that a text names.

    Attributes:
        text: its words.
        first: its first day.
        last: its last day.
        is_relative: whether it depends on the day on which it was said.
    """

    text: str
    first: date
    last: date
    is_relative: bool


def periods(text: str, said: date) -> list[Period]:
    """Return the times that a text names, in order.

    A month, day, weekday or season without a year is past or future as its sentence tells. If the
    sentence does not tell, it is the nearest one; if both are about equally near, it is left out.

    Args:
        text: an English text.
        said: the day on which it was said.
    """
    result: list[Period] = []
    folded = text.casefold()
    if not (_YEAR.search(text) or any(word in folded for word in _TELLING)):
        return result  # the usual case, in a hundredth of the time of the whole pattern
    for match in _TIME.finditer(text):
        try:
            days = _days(match, said)
        except (ValueError, OverflowError):  # the day does not exist
            continue
        if days is not None:
            groups = match.groupdict()
            is_relative = not any(
                groups[name] for name in ("iso", "isomonth", "y1", "y2", "y3", "year")
            )
            result.append(Period(match.group(), *days, is_relative))
    return result


def _days(match: re.Match[str], said: date) -> _Days | None:
    groups = match.groupdict()
    if groups["iso"]:
        return _day(date.fromisoformat(groups["iso"]))
    if groups["isomonth"]:
        year, month = map(int, groups["isomonth"].split("-"))
        return _months(year, month, 1)
    if groups["year"]:
        return _months(int(groups["year"]), 1, 12)
    if groups["near"]:
        return _day(said - timedelta(_days_back(groups["near"].lower())))
    if groups["count"]:
        return _away(-1, groups["count"].lower(), groups["unit"].lower(), said)
    if groups["ahead"]:  # "we built it in two weeks" is no date
        is_ahead = _direction(match, "ahead").step > 0
        return _away(1, groups["ahead"].lower(), groups["step"].lower(), said) if is_ahead else None
    if groups["what"]:
        return _beside(_STEP[groups["which"].lower()], groups["what"].lower(), said)
    if groups["weekday"]:
        return _named_weekday(match, said)
    if groups["season"]:
        begins = _SEASONS[groups["season"].lower()]
        years = [_months(said.year + n, begins, 3) for n in range(-2, 3)]
        return _meant(years, _direction(match, "season"), said)
    return _dated(match, said)


def _direction(match: re.Match[str], group: str) -> Direction:
    return direction(match.string, match.start(group), match.end())


def _named_weekday(match: re.Match[str], said: date) -> _Days | None:
    if not match.group()[0].isupper():
        return None
    day = DAYS.index(match.group().lower())
    both = [_day(_weekday(step, day, said)) for step in (-1, 1)]
    return _meant(both, _direction(match, "weekday"), said)


def _dated(match: re.Match[str], said: date) -> _Days | None:
    """Return a named day or month; "may" and "march" alone are no months."""
    groups = match.groupdict()
    group = next(name for name in ("m1", "m2", "m3") if groups[name])
    name, day, year = groups[group], groups["d1"] or groups["d2"], groups[f"y{group[1]}"]
    before = (groups["before"] or "").lower()
    if not name[0].isupper() or not (day or year or before or name.lower() not in ("march", "may")):
        return None
    month = MONTHS.index(name.lower()) + 1
    if year:
        return _in_year(int(year), month, day)
    if before == "this":
        return _in_year(said.year, month, day)
    years = []
    for number in range(said.year - _YEARS, said.year + _YEARS + 1):
        with suppress(ValueError):  # 29 February, and the limits of the calendar
            years.append(_in_year(number, month, day))
    if before in _STEP:
        return _next_to(years, _STEP[before], said)
    start = "d1" if group == "m1" else group
    return _meant(years, _direction(match, start), said)


def _in_year(year: int, month: int, day: str | None) -> _Days:
    return _day(date(year, month, int(day))) if day else _months(year, month, 1)


def _meant(dates: Sequence[_Days], where: Direction, said: date) -> _Days | None:
    """Return the date that the words mean, out of candidates in order."""
    behind = next((days for days in reversed(dates) if days[0] <= said), None)
    ahead = next((days for days in dates if days[1] >= said), None)
    if behind is None or ahead is None or behind == ahead:
        return behind if where.step < 0 else ahead
    back, on = (said - behind[1]).days, (ahead[0] - said).days
    is_near = _NEARER * min(back, on) < max(back, on)
    if where.step and (where.is_sure or not is_near):
        return behind if where.step < 0 else ahead
    if abs(back - on) * (_OPEN_AS_NEAR if where.is_open else _AS_NEAR) < back + on:
        return None
    return behind if back < on else ahead


def _next_to(dates: Sequence[_Days], step: int, said: date) -> _Days | None:
    """Return the last past date, or the first future one."""
    if step < 0:
        return next((days for days in reversed(dates) if days[1] < said), None)
    return next((days for days in dates if days[0] > said), None)


def _days_back(word: str) -> int:
    if word.startswith("the"):
        return 2
    return {"yesterday": 1, "last": 1, "tomorrow": -1}.get(word.split()[0], 0)


def _away(step: int, count: str, unit: str, said: date) -> _Days | None:
    number = step * (int(count) if count.isdigit() else _COUNTS[count])
    if unit == "day":
        return _day(said + timedelta(number))
    return _beside(number, unit, said)


def _beside(step: int, what: str, said: date) -> _Days | None:
    """Return the week, month, year, season or weekday that is `step` units away from now."""
    monday = said - timedelta(said.weekday())
    if what in ("week", "weekend"):
        first = monday + timedelta(7 * step + 5 * (what == "weekend"))
        return first, monday + timedelta(7 * step + 6)
    if what == "month":
        place = 12 * said.year + said.month - 1 + step
        return _months(place // 12, place % 12 + 1, 1)
    if what == "year":
        return _months(said.year + step, 1, 12)
    if what in _SEASONS:
        years = [_months(said.year + n, _SEASONS[what], 3) for n in range(-2, 3)]
        now = next((days for days in years if days[0] <= said <= days[1]), years[2])
        return _next_to(years, step, said) if step else now
    return _day(_weekday(step, DAYS.index(what), said))


def _weekday(step: int, day: int, said: date) -> date:
    """Return the last such day before, or the first one after, a day; of this week for 0."""
    if step < 0:
        return said - timedelta((said.weekday() - day - 1) % 7 + 1)
    if step > 0:
        return said + timedelta((day - said.weekday() - 1) % 7 + 1)
    return said + timedelta(day - said.weekday())


def _day(day: date) -> _Days:
    return day, day


def _months(year: int, first: int, count: int) -> _Days:
    """Return the first and last day of some months in a row."""
    place = first - 1 + count - 1
    last_year, last = year + place // 12, place % 12 + 1
    return date(year, first, 1), date(last_year, last, monthrange(last_year, last)[1])
