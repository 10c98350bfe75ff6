"""Tables as rows of text, written as Markdown and as CSV."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Table:
    """A table.

    Attributes:
        name: of its CSV file, without the ending.
        notes: lines under it.
    """

    name: str
    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = field(default_factory=tuple)

    def markdown(self) -> str:
        """Return it for people."""
        lines = [self.head, ["---"] * len(self.head), *self.rows]
        table = "\n".join("| " + " | ".join(map(_cell, line)) + " |" for line in lines)
        notes = "".join(f"\n\n{note}" for note in self.notes)
        return f"## {self.title}\n\n{table}{notes}\n"

    def csv(self) -> str:
        """Return it for programs."""
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([self.head, *self.rows])
        return file.getvalue()


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def percent(value: float | None, digits: int = 1) -> str:
    """Return a share of one as percent, "" for none."""
    return "" if value is None else f"{100 * value:.{digits}f}"


def number(value: float | None) -> str:
    """Return a count or an amount, short."""
    if value is None:
        return ""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.2f}" if value >= 0.1 or not value else f"{value:.4f}"
