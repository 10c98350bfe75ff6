"""Where names stand in a segment: the check that what was read out of it is in it."""

import re
from collections.abc import Iterable

from qrmem.text.spelling import UNSPACED

_BORDERLESS = re.compile(f"[{UNSPACED}]")
_LEAST_STEM = 4
"""Letters from which a name may be followed by an ending (Goethes); in other scripts any may."""

_ENDINGS = range(1, 4)
"""Letters that an ending may have."""


class Occurrences:
    """The names in one text; case and line breaks do not matter."""

    def __init__(self, text: str) -> None:
        self._text = " ".join(text.split())
        lower = self._text.lower()
        self._lower = lower if len(lower) == len(self._text) else self._text

    def spelled(self, name: str) -> str | None:
        """Return a name as the text spells it, or `None` if the text does not hold it.

        It must stand as a word of its own, or open one if an ending may follow it.
        """
        name = " ".join(name.split())
        for text, wanted in ((self._text, name), (self._lower, name.lower())):
            for is_whole in (True, False):
                at = _place(wanted, text, 0, is_whole)
                if at >= 0:
                    return self._text[at : at + len(wanted)]
        return None

    def counted(self, forms: Iterable[str]) -> dict[str, int]:
        """Return how often each form occurs, as spelled here and outside of longer forms.

        A form that occurs within longer ones only counts once.
        """
        counts: dict[str, int] = {}
        taken = bytearray(len(self._text))
        for form in sorted(set(forms), key=lambda form: (-len(form), form)):
            places = _places(form, self._text, True) or _places(form, self._text, False)
            free = [at for at in places if not taken[at]]
            for at in free:
                taken[at : at + len(form)] = b"\x01" * len(form)
            counts[form] = max(1, len(free))
        return counts


def _places(name: str, text: str, is_whole: bool) -> list[int]:
    """Return where a name stands, as `_place` has it; one does not begin in another."""
    places = []
    at = _place(name, text, 0, is_whole)
    while at >= 0:
        places.append(at)
        at = _place(name, text, at + len(name), is_whole)
    return places


def _place(name: str, text: str, start: int, is_whole: bool) -> int:
    """Return where a name stands from `start` on, as a whole or opening a longer word; or -1."""
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
