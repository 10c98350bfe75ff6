"""Dates to the day, month or year, in statements and options."""

import re
from calendar import monthrange
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import NamedTuple

from qrmem.errors import UsageError
from qrmem.text.times import LONGEST, Period, periods

_DATE = re.compile(r"(\d{4})(?:-(\d\d)(?:-(\d\d))?)?")
_A_DATE = "write it as 2026-05-03, 2026-05 or 2026"
_UNDATED = date(2000, 1, 1)
_BOUND = re.compile(
    r"\b(?:(?P<since>since|from|as of|starting(?: from| in| on)?)|(?P<until>until|till|through|to))"
    r"\s+(?:the\s+|early\s+|late\s+|mid-?\s*)?$",
    re.IGNORECASE,
)
"""Words right before a time at which a statement begins or ends."""
_PREPOSITION = re.compile(r"(?:since|until|from|in|on|by|of|during)\s+", re.IGNORECASE)
_HINT = re.compile(r"\b(?:since|from|as of|starting|until|till|through)\b", re.IGNORECASE)
_CLAUSE = re.compile(r"[,;:]|\b(?:and|but|or|who|which|that|where|while|when|before|after)\b")


class Validity(NamedTuple):
    """The validity of a statement: first and last date, each to the day, month or year, or ""."""

    first: str = ""
    last: str = ""


def checked(text: str, what: str) -> str:
    """Return a date in ISO form unchanged, in its own precision; "" stays "".

    Raises:
        UsageError: it is not a date, or the day does not exist.
    """
    text = text.strip()
    if text and not is_date(text):
        raise UsageError(f"{what} {text[:40]!r} is not a date: {_A_DATE}")
    return text


def is_date(text: str) -> bool:
    """Whether a text is an existing day, month or year in ISO form."""
    try:
        _span(text)
    except ValueError:
        return False
    return True


def checked_moment(text: str, what: str) -> str:
    """Return a date, or a date with a time of day, in ISO form.

    Raises:
        UsageError: it is neither.
    """
    text = text.strip()
    if not text or (not is_date(text) and not _instant(text)):
        raise UsageError(f"{what} {text[:40]!r} is not a date: {_A_DATE}")
    return text


def as_of_moment(as_of: str | date) -> str:
    """Return the date or moment for a view of the memory, in ISO form; "" means now.

    Raises:
        UsageError: it is neither.
    """
    if isinstance(as_of, date):  # a `datetime` is one
        return as_of.isoformat()
    if not isinstance(as_of, str):
        raise UsageError(f"as_of {as_of!r} is not a date: {_A_DATE}")
    return checked_moment(as_of, "as_of") if as_of else ""


def today() -> str:
    """Return today's date in UTC, in ISO form."""
    return datetime.now(UTC).date().isoformat()


def is_said_by(said: str, as_of: str) -> bool:
    """Whether something was said by a given time; undated texts count as said before.

    Args:
        said: a date or moment in ISO form, or "".
        as_of: the same; "": any time.
    """
    return not as_of or not said or start_of(said) <= end_of(as_of)


def checked_validity(first: str, last: str) -> Validity:
    """Return a checked validity.

    Raises:
        UsageError: one is not a date, or the end is before the beginning.
    """
    validity = Validity(checked(first, "valid_from"), checked(last, "valid_until"))
    if is_backwards(validity):
        raise UsageError(f"valid_until {validity.last} lies before valid_from {validity.first}")
    return validity


def is_backwards(validity: Validity) -> bool:
    """Whether an end is before its beginning."""
    first, last = validity
    return bool(first and last) and end_of(last) < start_of(first)


@lru_cache(maxsize=1 << 12)
def start_of(text: str) -> str:
    """Return the first second of a date or moment, in UTC; the texts sort like times."""
    instant = _instant(text)
    return instant or f"{_span(text)[0].isoformat()}T00:00:00"


@lru_cache(maxsize=1 << 12)
def end_of(text: str) -> str:
    """Return the last second of a date or moment, in UTC."""
    instant = _instant(text)
    return instant or f"{_span(text)[1].isoformat()}T23:59:59"


def said_at(metadata: Mapping[str, object]) -> str:
    """Return when a document was said or written: its `at`, else its `date`.

    Returns:
        A date or moment in ISO form; "" if there is none that can be read.
    """
    for name in ("at", "date"):
        value = metadata.get(name)
        if isinstance(value, bool) or not isinstance(value, str | int):
            continue
        text = f"{value:04d}" if isinstance(value, int) else value.strip()
        if text and (is_date(text) or _instant(text)):
            return text
        if period := _one_period(text):
            return _period_text(period, is_end=False)
    return ""


def unread_date(metadata: Mapping[str, object]) -> str:
    """Return the `date` of a document that is none, such as 2026-02-31; "" if it can be read."""
    value = metadata.get("date", "")
    return "" if value in ("", None) or said_at(metadata) else str(value)


def read_date(text: str) -> str:
    """Return a date, written in ISO form or as `3 May 2019`, in ISO form; "" for other texts."""
    text = text.strip()
    if is_date(text):
        return text
    if _instant(text):
        return text[:10]
    period = _one_period(text)
    return _period_text(period, is_end=False) if period and period.text == text else ""


def _one_period(text: str) -> Period | None:
    """Return the only time that a text names, with its year; a longer text is no date."""
    periods_named = periods(text, _UNDATED) if len(text) <= LONGEST else []
    return (
        periods_named[0] if len(periods_named) == 1 and not periods_named[0].is_relative else None
    )


def day_of(moment: str) -> date | None:
    """Return the day of a moment, if it has one."""
    try:
        return date.fromisoformat(moment[:10])
    except ValueError:
        return None


def has_bounds(text: str) -> bool:
    """Whether a text may state a beginning or an end of a validity."""
    return _HINT.search(text) is not None


def stated_validity(sentence: str, ends: Iterable[str], moment: str) -> Validity:
    """Return the validity that a sentence states for a statement about two names.

    Only "since", "from", "as of", "starting", "until", "till" and "through" count, in the clause
    of the names or at the sentence's beginning.

    Args:
        ends: the names of the statement; all are in the sentence.
        moment: when it was said; without it only times with a year count.
    """
    if not has_bounds(sentence):
        return Validity()
    day_said = day_of(moment)
    behind = max(sentence.find(end) + len(end) for end in ends)
    validity, place = Validity(), 0
    for period in periods(sentence, day_said or _UNDATED):
        start = sentence.find(period.text, place)
        place = start + len(period.text)
        lead = _PREPOSITION.match(period.text)
        before = sentence[max(0, start - LONGEST) : start] + (lead.group() if lead else "")
        bound = _BOUND.search(before)
        if bound is None or (period.is_relative and day_said is None):
            continue
        is_opening = not sentence[: bound.start()].strip() and not validity.first
        between = sentence[behind : bound.start()]
        is_near = bound.start() >= behind and not _CLAUSE.search(between)
        if bound["until"] and (is_near or is_opening):
            is_alone = bound["until"].lower() == "to" and not validity.first
            validity = (
                validity if is_alone else validity._replace(last=_period_text(period, is_end=True))
            )
        elif bound["since"] and (is_near or is_opening):
            validity = validity._replace(first=_period_text(period, is_end=False))
    return Validity() if is_backwards(validity) else validity


def _period_text(period: Period, *, is_end: bool) -> str:
    """Return a period as a day, month or year if it is one, else its first or last day."""
    first, last = period.first, period.last
    is_months = first.day == 1 and last.day == monthrange(last.year, last.month)[1]
    if is_months and first.year == last.year:
        if (first.month, last.month) == (1, 12):
            return f"{first.year:04d}"
        if first.month == last.month:
            return first.isoformat()[:7]
    return (last if is_end else first).isoformat()


def _span(text: str) -> tuple[date, date]:
    """Return the first and last day of a date in ISO form; `ValueError` if it is not a date."""
    match = _DATE.fullmatch(text)
    if match is None or not text.isascii():
        raise ValueError(text)
    year, month, day = (int(part) if part else 0 for part in match.groups())
    if match[3]:
        return date(year, month, day), date(year, month, day)
    if match[2]:
        return date(year, month, 1), date(year, month, monthrange(year, month)[1])
    return date(year, 1, 1), date(year, 12, 31)


def _instant(text: str) -> str:
    """Return a moment with a time of day in UTC, to the second; "" if it is not one."""
    if "T" not in text and ":" not in text:
        return ""
    try:
        when = datetime.fromisoformat(text)
        when = when.astimezone(UTC) if when.tzinfo else when
    except (ValueError, OverflowError):
        return ""
    return when.replace(tzinfo=None).isoformat(timespec="seconds")
