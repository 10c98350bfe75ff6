"""Dates, and numbers with what they count."""

import re

from qrmem.extraction import vocabulary as voc

_MONTH = (
    r"(?:January|February|March|April|May|June|July|August|September|October|November|December"
    r"|(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\.?)"
)
_DAY = r"(?:[0-3]?\d(?:st|nd|rd|th)?)"
_YEAR = r"(?:1\d{3}|20\d{2}|1\d(?=—)—|1\d——?)"
_DATE = re.compile(
    rf"(?<![\w.,/-])(?:{_DAY}\s(?:of\s)?{_MONTH}(?:,?\s{_YEAR})?"
    rf"|{_MONTH}\s{_DAY}(?![\d:])(?:,?\s{_YEAR})?"
    rf"|{_MONTH},?\s{_YEAR}"
    r"|\d{4}-[01]\d-[0-3]\d"
    r"|[12]\d\d0s"
    r"|\d{1,2}(?:st|nd|rd|th)\scentury)(?![\w])"
)
_BARE_YEAR = re.compile(
    r"(?<![\w.,:/$£€#-])(?:1[0-9]\d\d|20\d\d)(?![\w%/:-]|[.,]\d|\s[a-z]{2,}s\b)"
    r"(?!\s(?:people|men|women|children|feet|foot|miles?)\b)"
)
_FIGURE = r"\d{1,3}(?:[,\u00a0]\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?"
_SCALE = r"(?:\s(?:hundred|thousand|million|billion|trillion))?"
_DIGITS = re.compile(
    rf"(?<![\w.,:/-])(?:[$£€¥]\s?(?:{_FIGURE}){_SCALE}(?![\d%])"
    rf"|(?:{_FIGURE}){_SCALE}(?:\s?%|(?:\s|-)(?:per\scent|[^\W\d_]{{1,14}}))?)(?![\w])"
)
_BIG = "|".join(sorted(voc.BIG_NUMBER_WORDS, key=len, reverse=True))
_SMALL = "|".join(voc.SMALL_NUMBER_WORDS)
_SPELLED = re.compile(
    rf"\b(?:(?:{_SMALL})[\s-]|a\s(?=(?:hundred|thousand|million|billion)\b))?(?:{_BIG})(?:(?:[\s-]|\sand\s)(?:{_BIG}|{_SMALL})){{0,8}}\s([a-z]+)\b",
    re.IGNORECASE,
)


def dates(text: str) -> list[tuple[int, int]]:
    """Return the spans of dates and years, in order."""
    found = [m.span() for m in _DATE.finditer(text)] if _has_digit(text) else []
    for match in _BARE_YEAR.finditer(text) if _has_digit(text) else ():
        if not any(a < match.end() and match.start() < b for a, b in found):
            found.append(match.span())
    return sorted(found)


def numbers(text: str, taken: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the spans of numbers that come with a unit, a currency or a counted noun."""
    found = []
    if _has_digit(text):
        for match in _DIGITS.finditer(text):
            if _counts_something(match.group()):
                found.append(match.span())
    for match in _SPELLED.finditer(text) if _has_number_word(text) else ():
        if match.group(1).casefold() in voc.UNITS:
            found.append(match.span())
    free = [s for s in found if not any(a < s[1] and s[0] < b for a, b in taken)]
    return sorted(free)


_DIGIT = re.compile(r"\d")


def _has_digit(text: str) -> bool:
    return _DIGIT.search(text) is not None


def _has_number_word(text: str) -> bool:
    """Whether it is worth while to look for spelled numbers, which takes long."""
    low = text.casefold()  # the pattern knows the long s of old print too
    return any(word in low for word in voc.BIG_NUMBER_WORDS)


def _counts_something(found: str) -> bool:
    if found[0] in "$£€¥" or found.endswith(("%", "per cent")):
        return True
    last = re.split(r"[\s-]", found)[-1]
    if last[:1].isdigit() or last.casefold() in voc.FUNCTION_WORDS:
        return False
    return last in voc.UNITS or bool(voc.PLURAL_OR_UNIT.match(last) and not last.endswith("ss"))
