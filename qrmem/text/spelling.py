"""The form in which equal names are equal, and no letter of any script is lost."""

import re
import unicodedata
from functools import lru_cache

from qrmem.text.scripts import MARKS

APOSTROPHES = "'’‘`´ʼʻʹ′＇"
_APOSTROPHE = re.compile(f"[{APOSTROPHES}]")
_TAIL = re.compile(
    rf"(?:(?<!\d)[{APOSTROPHES}]s(?![^\W_])|[\s.,;:!?…\"“”()\[\]{{}}«»/\\|*_{APOSTROPHES}-])+\Z",
    re.I,
)
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_TOKEN = re.compile(
    rf"(?:(?<!\S)-(?=\d))?[^\W_](?:[^\W_]|[{MARKS}]|(?<=\d)\.(?=\d))*[+#]*|[%$€£¥°]"
)


@lru_cache(maxsize=1 << 13)
def normalise_name(name: str) -> str:
    """Return the form in which equal names are equal: words in lower case with single spaces.

    Compatibility forms are unified, a leading "the" and a final possessive go, punctuation goes but
    for what tells names apart (`C++`, `C#`, `5 %`, `-5`, `3.5`); `&` is "and". Letters and digits
    of every script stay, titles too. Idempotent; empty only for a name without a letter or digit.
    """
    if name.isascii() and name.replace(" ", "").isalpha():
        return _without_article(name.lower().split())
    done, text = "", name
    while (done := _normalised(text)) != text:
        text = done
    return done or _bare(name)


def _normalised(name: str) -> str:
    text = _folded(name)
    text = _APOSTROPHE.sub("", _TAIL.sub("", text) or text)
    text = _THOUSANDS.sub("", text.replace("&", " and ").replace("\u2212", "-"))
    words = _TOKEN.findall(text)
    if not any(char.isalnum() for word in words for char in word):
        return ""
    return _without_article(words)


def _without_article(words: list[str]) -> str:
    while len(words) > 1 and words[0] == "the":
        del words[0]
    return " ".join(words)


def _folded(name: str) -> str:
    """Return NFKC and case-folded text, digits in ASCII, invisible format characters dropped."""
    if name.isascii():
        return name.casefold()
    text = "".join(map(_kept_apart, name))
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return "".join(_plain(char) for char in text if unicodedata.category(char) != "Cf")


def _kept_apart(char: str) -> str:
    """Return a character so that NFKC cannot glue its digits to a neighbour's: 10⁶ is not 106."""
    if char in APOSTROPHES:
        return "'"
    return f" {char} " if char.isnumeric() and not char.isdecimal() and not char.isalpha() else char


def _plain(char: str) -> str:
    return str(unicodedata.decimal(char)) if char.isdecimal() else char


def _bare(name: str) -> str:
    """Return what is left of a name of modifier letters alone."""
    return " ".join(name.split()).casefold() if any(map(str.isalnum, name)) else ""
