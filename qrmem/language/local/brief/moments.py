"""Dates in a text, as they stand and as something to compare."""

import re
from dataclasses import dataclass

_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_NAMES = "|".join(month.capitalize() for month in _MONTHS)
_MOMENT = re.compile(
    rf"\b(?:(?P<d1>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?)?(?P<m1>{_NAMES})"
    rf"(?:\s+(?P<d2>\d{{1,2}})(?:st|nd|rd|th)?)?,?\s+(?P<y1>[12]\d{{3}})\b"
    r"|(?<![\d.,/$£€#-])(?P<y2>1[0-9]\d\d|20\d\d)(?![\d%]|[.,]\d)"
)

Order = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Moment:
    """A date of a text.

    Attributes:
        order: year, month and day, 0 for what is not said.
    """

    text: str
    start: int
    end: int
    order: Order


def moments(text: str) -> list[Moment]:
    """Return the dates of a text in order."""
    return [
        Moment(match[0], match.start(), match.end(), _order(match))
        for match in _MOMENT.finditer(text)
    ]


def _order(match: "re.Match[str]") -> Order:
    if match["y2"]:
        return int(match["y2"]), 0, 0
    day = match["d1"] or match["d2"] or 0
    return int(match["y1"]), 1 + _MONTHS.index(match["m1"].lower()), int(day)
