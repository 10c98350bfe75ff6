"""Time words of English texts ("last summer", "in May", "two weeks ago") as spans of days."""

import re
from calendar import monthrange
from datetime import date, timedelta
from typing import NamedTuple

_MONTHS = (
    *("january", "february", "march", "april", "may", "june", "july", "august", "september"),
    *("october", "november", "december"),
)
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
_COUNTS = {
    word: n
    for n, words in enumerate(
        ("a an one", "two couple", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
        1,
    )
    for word in words.split()
}
_MONTH, _COUNT = "|".join(_MONTHS), "|".join(_COUNTS)
_TIME = re.compile(
    rf"""\b(?:
    (?P<iso>\d{{4}}-\d\d-\d\d)\b
  | (?P<d1>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?(?P<m1>{_MONTH})\b(?:,?\s+(?P<y1>\d{{4}}))?\b
  | (?P<m2>{_MONTH})\s+(?P<d2>\d{{1,2}})(?:st|nd|rd|th)?\b(?:,?\s+(?P<y2>\d{{4}}))?\b
  | (?:(?P<before>last|this|next|in|since|during|of|by|until|early|late|mid)[\s-]+)?
    (?P<m3>{_MONTH})\b(?:,?\s+(?P<y3>\d{{4}}))?\b
  | (?P<near>the\s+day\s+before\s+yesterday|yesterday|last\s+night|tomorrow|today|tonight
    |this\s+(?:morning|afternoon|evening))\b
  | (?P<count>\d{{1,3}}|{_COUNT})\s+(?:of\s+)?(?P<unit>day|week|month|year)s?\s+ago\b
  | (?P<which>last|past|this|next|coming)\s+
    (?P<what>week(?:end)?|month|year|{"|".join(_SEASONS)}|{"|".join(_DAYS)})\b
  | (?P<year>(?:19|20)\d\d)\b
    )""",
    re.IGNORECASE | re.VERBOSE,
)
_STEP = {"last": -1, "past": -1, "this": 0, "next": 1, "coming": 1}


class Period(NamedTuple):
    """A time that a text names.

    Attributes:
        text: as it is written.
        first: its first day.
        last: its last day.
        is_relative: whether it takes the day on which it was said to know it.
    """

    text: str
    first: date
    last: date
    is_relative: bool


def periods(text: str, said: date) -> list[Period]:
    """Return the times that a text names, in order.

    A month or day without a year is the latest one that is not after the text was said.

    Args:
        text: in English.
        said: the day on which it was said.
    """
    found = []
    for match in _TIME.finditer(text):
        try:
            days = _days(match, said)
        except (ValueError, OverflowError):  # there is no such day
            continue
        if days is not None:
            groups = match.groupdict()
            is_relative = not any(groups[name] for name in ("iso", "y1", "y2", "y3", "year"))
            found.append(Period(match.group(), *days, is_relative))
    return found


def _days(match: re.Match[str], said: date) -> tuple[date, date] | None:
    found = match.groupdict()
    if found["iso"]:
        return _day(date.fromisoformat(found["iso"]))
    if found["year"]:
        return _months(int(found["year"]), 1, 12)
    if found["near"]:
        return _day(said - timedelta(_days_back(found["near"].lower())))
    if found["count"]:
        return _ago(found["count"].lower(), found["unit"].lower(), said)
    if found["what"]:
        return _beside(_STEP[found["which"].lower()], found["what"].lower(), said)
    return _dated(found, said)


def _dated(found: dict[str, str], said: date) -> tuple[date, date] | None:
    """Return a day or a month that is named; "may" and "march" alone are no months."""
    name = found["m1"] or found["m2"] or found["m3"]
    day, year = found["d1"] or found["d2"], found["y1"] or found["y2"] or found["y3"]
    before = (found["before"] or "").lower()
    if not name[0].isupper() or not (day or year or before or name.lower() not in ("march", "may")):
        return None
    month = _MONTHS.index(name.lower()) + 1
    place = (month, int(day) if day else 1)
    guessed = said.year - (place > (said.month, said.day))
    number = int(year) if year else guessed + (before == "next")
    return _day(date(number, *place)) if day else _months(number, month, 1)


def _days_back(word: str) -> int:
    if word.startswith("the"):
        return 2
    return {"yesterday": 1, "last": 1, "tomorrow": -1}.get(word.split()[0], 0)


def _ago(count: str, unit: str, said: date) -> tuple[date, date]:
    number = int(count) if count.isdigit() else _COUNTS[count]
    if unit == "day":
        return _day(said - timedelta(number))
    return _beside(-number, unit, said)


def _beside(step: int, what: str, said: date) -> tuple[date, date]:
    """Return the week, month, year, season or day of the week that is `step` away from now."""
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
        begins = _SEASONS[what]
        has_begun = (said.month, said.day) >= (begins + 3, 1) if step < 0 else True
        year = said.year + (step if step > 0 or not has_begun else 0)
        return _months(year, begins, 3)
    return _day(_weekday(step, _DAYS.index(what), said))


def _weekday(step: int, day: int, said: date) -> date:
    """Return the last such day before, or the first one after, a day; of this week for 0."""
    if step < 0:
        return said - timedelta((said.weekday() - day - 1) % 7 + 1)
    if step > 0:
        return said + timedelta((day - said.weekday() - 1) % 7 + 1)
    return said + timedelta(day - said.weekday())


def _day(day: date) -> tuple[date, date]:
    return day, day


def _months(year: int, first: int, count: int) -> tuple[date, date]:
    """Return the first and last day of some months in a row."""
    place = first - 1 + count - 1
    last_year, last = year + place // 12, place % 12 + 1
    return date(year, first, 1), date(last_year, last, monthrange(last_year, last)[1])
