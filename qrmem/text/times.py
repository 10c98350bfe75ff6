"""Time words in English texts ("last summer", "in May", "two weeks ago") as spans of days."""

import re
from calendar import monthrange
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import date, timedelta
from itertools import islice
from typing import NamedTuple

from qrmem.text.calendar_names import DAYS, MONTHS
from qrmem.text.tense import SENTENCE, Direction, direction

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
_JOINED = re.compile(
    r"\s*(?:(?P<range>to|until|till|through|instead of|rather than|[-–—→])|and|but|,)\s*"
    r"(?:(?:not|to|on|in|the)\s+)*",
    re.IGNORECASE,
)
"""What stands between two dates that are resolved together: "from 12 June to 19 June"."""
_RESTATED = re.compile(r"\s*[,(]?\s*(?:(?:on|the)\s+)*", re.IGNORECASE)
"""What stands between a time and the same as a date: "on Friday, 5 June"."""
LONGEST, _MOST = 60, 100
"""Maximum number of characters of a time, and of times of a text that are read."""
_BETWEEN, _SENTENCE = 20, 150
"""Maximum number of characters between such dates, and between two dates of one sentence."""
_APART = 183
"""Two dates of one sentence that are further apart, in days, may be a change of plan."""
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
    Two dates that are joined ("from 12 June to 19 June") are resolved together: the first is the
    one nearest to the second. A date that the text has elsewhere with its year is that one.

    Args:
        text: an English text.
        said: the day on which it was said.
    """
    folded = text.casefold()
    if not (_YEAR.search(text) or any(word in folded for word in _TELLING)):
        return []  # the usual case, in a hundredth of the time of the whole pattern
    found = (one for one in _TIME.finditer(text) if len(one.group()) <= LONGEST)
    matches = [*islice(found, _MOST)]
    meant = [_possible_days(match, said) for match in matches]
    pairs = [(_name(match), days) for match, days in zip(matches, meant, strict=True)]
    in_full = {name: days for name, days in pairs if name and name.year and days}
    for n in range(len(matches) - 2, -1, -1):
        meant[n : n + 2] = _together(matches[n : n + 2], meant[n : n + 2], said)
    result: list[Period] = []
    for n, (match, days) in enumerate(zip(matches, meant, strict=True)):
        name, is_full = _name(match), bool(match["iso"] or match["isomonth"] or match["year"])
        is_full = is_full or bool(name and name.year)
        if name and not is_full and (other := _of_the_text(name, in_full)):
            days, is_full = other, True
        if days and (is_full or not _is_restated(match, matches[n + 1 : n + 2])):
            result.append(Period(match.group(), *days, not is_full))
    return result


class _Name(NamedTuple):
    """A date as it is written: month and day, with the year if it has one."""

    month: str
    day: str
    year: str


def _name(match: re.Match[str]) -> _Name | None:
    """Return the words of a named day or month; `None` for any other time."""
    groups = match.groupdict()
    group = next((name for name in ("m1", "m2", "m3") if groups[name]), "")
    if not group or not groups[group][0].isupper():
        return None
    day = groups["d1"] or groups["d2"] or ""
    return _Name(groups[group].lower(), day.lstrip("0"), groups[f"y{group[1]}"] or "")


def _of_the_text(name: _Name, in_full: Mapping[_Name, _Days]) -> _Days | None:
    """Return the date of this month and day that a text has with its year, if it is one only."""
    if not name.day:
        return None
    same = {days for other, days in in_full.items() if other[:2] == name[:2]}
    return same.pop() if len(same) == 1 else None


def _possible_days(match: re.Match[str], said: date) -> _Days | None:
    try:
        return _days(match, said)
    except (ValueError, OverflowError):  # the day does not exist
        return None


def _together(
    pair: Sequence[re.Match[str]], meant: Sequence[_Days | None], said: date
) -> list[_Days | None]:
    """Return the days of two times in a row; joined ones without a year depend on each other."""
    first, second = pair
    between = first.string[first.end() : _place(second)]
    joined = _JOINED.fullmatch(between) if len(between) <= _BETWEEN else None
    names = _name(first), _name(second)
    if joined is None:
        is_plan = all(name and not name.year for name in names) and _are_apart(meant, between)
        return [None, None] if is_plan else list(meant)
    if names[0] is None or names[1] is None:
        # "Monday to Friday" may be any week.
        are_open = joined["range"] and (first["weekday"] or first["season"] or second["weekday"])
        return [None, None] if are_open else list(meant)
    if names[0].year and not names[1].year:
        return [meant[0], _nearest(second, meant[0], said)]
    if names[0].year:
        return list(meant)
    last = meant[1] or _meant(_candidates(second, said), _direction(second, _group(second)), said)
    return [_nearest(first, last, said), last]


def _are_apart(meant: Sequence[_Days | None], between: str) -> bool:
    """Return whether two dates of one sentence are more than half a year apart."""
    first, second = meant
    if first is None or second is None or abs(first[0] - second[0]).days <= _APART:
        return False
    return len(between) <= _SENTENCE and SENTENCE.search(between) is None


def _place(match: re.Match[str]) -> int:
    """Return where a date begins, without a preposition."""
    return match.start(_group(match)) if _name(match) else match.start()


def _nearest(match: re.Match[str], to: _Days | None, said: date) -> _Days | None:
    """Return the date of a day or month that is nearest to another."""
    if to is None:
        return None
    days = _candidates(match, to[0])
    return min(days, key=lambda one: abs(one[0] - to[0]), default=None)


def _is_restated(match: re.Match[str], after: Sequence[re.Match[str]]) -> bool:
    """Return whether a time is given as a date directly after it: "on Friday, 5 June"."""
    if not after or _name(match) or not (after[0]["iso"] or after[0]["d1"] or after[0]["d2"]):
        return False
    between = match.string[match.end() : after[0].start()]
    return len(between) <= _BETWEEN and _RESTATED.fullmatch(between) is not None


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


def _group(match: re.Match[str]) -> str:
    """Return the group with which a named day or month begins."""
    return "d1" if match["m1"] else "m2" if match["m2"] else "m3"


def _candidates(match: re.Match[str], around: date) -> list[_Days]:
    """Return a named day or month in each of the years around a day, in order."""
    name = match["m1"] or match["m2"] or match["m3"]
    month, day = MONTHS.index(name.lower()) + 1, match["d1"] or match["d2"]
    days = []
    for number in range(around.year - _YEARS, around.year + _YEARS + 1):
        with suppress(ValueError):  # 29 February, and the limits of the calendar
            days.append(_in_year(number, month, day))
    return days


def _dated(match: re.Match[str], said: date) -> _Days | None:
    """Return a named day or month; "may" and "march" alone are no months."""
    name, before = _name(match), (match["before"] or "").lower()
    if name is None:
        return None
    if not (name.day or name.year or before or name.month not in ("march", "may")):
        return None
    month = MONTHS.index(name.month) + 1
    if name.year or before == "this":
        return _in_year(int(name.year or said.year), month, name.day)
    days = _candidates(match, said)
    if before in _STEP:
        return _next_to(days, _STEP[before], said)
    return _meant(days, _direction(match, _group(match)), said)


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
