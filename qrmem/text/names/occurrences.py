"""Where names stand in a text: whole, without regard to case and line breaks."""

import re
from collections.abc import Iterable
from functools import lru_cache

from qrmem.text.spelling import APOSTROPHES, MARKS, UNSPACED

_APOSTROPHE = re.compile(f"[{APOSTROPHES}]")
_BORDERLESS = re.compile(f"[{UNSPACED}]")


def occurs_in(name: str, text: str) -> bool:
    """Return whether a text contains a name as whole words, in any case and across lines."""
    words = name.split()
    if not words or _APOSTROPHE.split(words[0])[0].lower() not in text.lower():
        return False
    return _pattern(name).search(text) is not None


def occurrences(name: str, text: str) -> list[str]:
    """Return each occurrence of a name in a text, in its spelling, on one line; see `occurs_in`."""
    if not name.split():
        return []
    if name.isascii() and text.isascii() and not _APOSTROPHE.search(name):
        return _plain_occurrences(" ".join(name.split()), text)
    return [" ".join(match.group().split()) for match in _pattern(name).finditer(text)]


def _plain_occurrences(name: str, text: str) -> list[str]:
    """Do the same without a regular expression, which is slow to compile."""
    text, low = _unbroken(text)
    lower_name, occurrences, at = name.lower(), list[str](), 0
    while (at := low.find(lower_name, at)) >= 0:
        end = at + len(lower_name)
        if _is_whole(low, at, end):
            occurrences.append(text[at:end])
            at = end
        else:
            at += 1
    return occurrences


def _is_whole(text: str, start: int, end: int) -> bool:
    begins = not text[start].isalnum() or not _is_of_word(text[start - 1 : start])
    ends = not text[end - 1].isalnum() or not _is_of_word(text[end : end + 1])
    return begins and ends


def _is_of_word(char: str) -> bool:
    return char.isalnum() or char == "_"


@lru_cache(maxsize=16)
def _unbroken(text: str) -> tuple[str, str]:
    """Return a text on one line, and the same in lower case."""
    text = " ".join(text.split())
    return text, text.lower()


@lru_cache(maxsize=20_000)
def _pattern(name: str) -> re.Pattern[str]:
    apostrophe = f"[{APOSTROPHES}]"
    body = r"\s+".join(_APOSTROPHE.sub(apostrophe, re.escape(word)) for word in name.split())
    first, last = name.strip()[0], name.strip()[-1]
    before = r"(?<!\w)" if _has_border(first) else ""
    after = rf"(?![\w{MARKS}])" if _has_border(last) else ""
    return re.compile(before + body + after, re.IGNORECASE)


def _has_border(char: str) -> bool:
    return char.isalnum() and not _BORDERLESS.match(char)


_LEAST_STEM = 4
"""Minimum letters of a name that may have an ending (Goethes); other scripts have no minimum."""
_ENDINGS = range(1, 4)
"""Maximum number of letters of an ending."""


class Occurrences:
    """Finds names in one text; case and line breaks do not matter."""

    def __init__(self, text: str) -> None:
        self._text = " ".join(text.split())
        lower = self._text.lower()
        self._lower = lower if len(lower) == len(self._text) else self._text

    def spelled(self, name: str) -> str | None:
        """Return a name in the text's spelling, or `None` if it does not occur.

        It must be a whole word, or begin one if an ending may follow.
        """
        name = " ".join(name.split())
        for text, name_wanted in ((self._text, name), (self._lower, name.lower())):
            for is_whole in (True, False):
                at = _place(name_wanted, text, 0, is_whole)
                if at >= 0:
                    return self._text[at : at + len(name_wanted)]
        return None

    def counted(self, forms: Iterable[str]) -> dict[str, int]:
        """Return the number of occurrences of each form, in the text's spelling.

        Occurrences within longer forms do not count; a form that only occurs there counts once.
        """
        counts: dict[str, int] = {}
        is_taken = bytearray(len(self._text))
        for form in sorted(set(forms), key=lambda form: (-len(form), form)):
            places = _places(form, self._text, True) or _places(form, self._text, False)
            free = [at for at in places if not is_taken[at]]
            for at in free:
                is_taken[at : at + len(form)] = b"\x01" * len(form)
            counts[form] = max(1, len(free))
        return counts


def _places(name: str, text: str, is_whole: bool) -> list[int]:
    """Return the positions of a name, as `_place` finds them, without overlaps."""
    places = []
    at = _place(name, text, 0, is_whole)
    while at >= 0:
        places.append(at)
        at = _place(name, text, at + len(name), is_whole)
    return places


def _place(name: str, text: str, start: int, is_whole: bool) -> int:
    """Return the next position of a name from `start`, whole or with an ending; -1 if none."""
    if not name or not (is_whole or len(name) >= _LEAST_STEM or not name.isascii()):
        return -1
    at = text.find(name, start)
    while at >= 0:
        end = at + len(name)
        if _is_border(text, at) and (
            _is_border(text, end)
            or (not is_whole and any(_is_border(text, end + n) for n in _ENDINGS))
        ):
            return at
        at = text.find(name, at + 1)
    return -1


def _is_border(text: str, at: int) -> bool:
    if at == 0 or at >= len(text):
        return True
    before, after = text[at - 1], text[at]
    if not (before.isalnum() and after.isalnum()):
        return True
    return bool(_BORDERLESS.match(before) or _BORDERLESS.match(after))
