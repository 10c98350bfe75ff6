"""Addresses, numbers and ids in a text, which are whole terms: bob@example.com, INV-2024-001."""

import re
import unicodedata

from qrmem.text.spelling import INVISIBLE

_HIDDEN = re.compile(f"[{INVISIBLE}]")
_PHONE = re.compile(r"\+?[\d\s().-]+")
_LEAST_DIGITS = 6
_OF_IDS = re.compile(r"@|://|_|[^\W\d_]{2}\.[^\W\d_]{2}")
_SIGN = re.compile(r"\w[^\w\s]+\w")
_MARKS = ".,;:!?\"'()[]{}<>«»“”‘’"
_BEFORE = r"(?<![\w@+%-])(?<!\w[./])"
_AFTER = r"(?![\w@%-])(?![./:?#&=+]\w)"
_DIGITS_BEFORE, _DIGITS_AFTER = r"(?<!\w)(?<!\d[\s().-])", r"(?!\w)(?![\s().-]?\d)"


def identifier(query: str) -> str:
    """Return a query that is an identifier, without marks around it; "" for any other query.

    It is an email address, a domain, a URL, a number with signs such as a phone number, or an id
    with an underscore, or with a digit and a sign within.
    """
    text = _plain(query).strip().strip(_MARKS)
    if _PHONE.fullmatch(text):
        return text if len(re.findall(r"\d", text)) >= _LEAST_DIGITS else ""
    if not text or len(text.split()) > 1:
        return ""
    has_digit = any(map(str.isdigit, text)) and _SIGN.search(text)
    return text if has_digit or _OF_IDS.search(text) else ""


def has_identifier(text: str, wanted: str) -> bool:
    """Return whether a text has an identifier that is not a part of a longer one."""
    if _PHONE.fullmatch(wanted):
        digits = r"[\s().-]*".join(re.findall(r"\d", wanted))
        pattern = f"{_DIGITS_BEFORE}{digits}{_DIGITS_AFTER}"
    else:
        pattern = f"{_BEFORE}{re.escape(wanted)}{_AFTER}"
    return re.search(pattern, _plain(text)) is not None


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", _HIDDEN.sub("", text)).casefold()
