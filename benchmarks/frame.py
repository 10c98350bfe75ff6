"""The frame of a benchmark: a module of this package that yields figures.

A benchmark called NAME is the file `benchmarks/NAME.py`, with its name in `NAMES` of
`benchmarks/__main__.py`. Its docstring is its help. It has one function, `measure`, and may have
another, `options`:

    def options(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--turns", type=int, default=1000)

    def measure(chosen: argparse.Namespace) -> Iterator[Figure]:
        yield Figure("recall in 1,000 turns", 12.3, "ms", at_most=40)

Figures are printed as they come. All other output goes to standard error, through `note`.
"""

import sys
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured value.

    Attributes:
        name: what was measured, in words.
        unit: `ms`, `s`, `MB`, `%` …; empty for a ratio.
        at_most: the largest value that is good enough.
        at_least: the smallest value that is good enough.
    """

    name: str
    value: float
    unit: str = ""
    at_most: float | None = None
    at_least: float | None = None

    @property
    def is_met(self) -> bool:
        """Whether the value is within its bound."""
        above = self.at_most is not None and self.value > self.at_most
        below = self.at_least is not None and self.value < self.at_least
        return not (above or below)

    def line(self) -> str:
        """Return the figure as a line of a table in Markdown."""
        bound = ""
        if self.at_most is not None:
            bound = f"at most {self.at_most:g}"
        if self.at_least is not None:
            bound = f"at least {self.at_least:g}"
        missed = "" if self.is_met else " (missed)"
        return f"| {self.name} | {self.value:.4g} {self.unit} | {bound}{missed} |"


def note(*words: object) -> None:
    """Print a note on standard error."""
    print(*words, file=sys.stderr, flush=True)
