"""Lines of a text by number, and labels such as `lines 21-40`."""

import re
from bisect import bisect_right
from itertools import accumulate

_LABEL = re.compile(r"lines? (\d+)")


class Lines:
    """Where the lines of a text start; `starts` ends with the end of the text."""

    def __init__(self, text: str) -> None:
        lengths = [len(line) + 1 for line in text.split("\n")]
        starts = list(accumulate(lengths, initial=0))
        starts[-1] = len(text)
        self.starts = starts if len(starts) < 3 or starts[-2] < len(text) else starts[:-1]

    @property
    def count(self) -> int:
        """Number of lines; what follows the last line's end is none."""
        return len(self.starts) - 1

    def at(self, offset: int) -> int:
        """Return the line that a character is in, from 0."""
        return min(bisect_right(self.starts, offset), self.count) - 1

    def label(self, start: int, end: int) -> str:
        """Return which lines a span has, as people count them."""
        first, last = self.at(start) + 1, self.at(max(start, end - 1)) + 1
        return f"lines {first}-{last}" if last > first else f"line {first}"


def label_within(label: str, text: str, start: int, end: int) -> str:
    """Return which lines a part of a fragment has, from the label of the fragment.

    Args:
        label: of the fragment; any that says no lines is returned as it is.
        text: the fragment's.
        start: first character of the part.
        end: the one after its last.
    """
    found = _LABEL.match(label)
    if found is None:
        return label
    first = int(found[1]) + text.count("\n", 0, start)
    last = first + text.count("\n", start, max(start, end - 1))
    return f"lines {first}-{last}" if last > first else f"line {first}"
