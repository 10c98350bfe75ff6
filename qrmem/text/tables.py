"""Tables as lines of text: a row says what each of its cells is, so that it can be read alone."""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from qrmem.errors import BadDocument
from qrmem.text.decoding import ByteBudget

_DELIMITERS = ",;\t|"
_EMPTY = 10
"""Bytes that a row, and a cell without a value, count for: a small file may state millions."""
_LABEL = 60
"""Characters of a column's name at most."""
_FIGURE = re.compile(r"[-+(]?\W?\d")
"""What a number, a date or a sum of money begins with; a column's name does not."""


def table_lines(rows: Iterable[Sequence[object]], budget: ByteBudget) -> Iterator[str]:
    """Yield a line for each row: `name: Ann; born: 1851` under a row of names, else the cells.

    The first row with several cells names the columns if all of them are short, differ and are
    no figures; it is no line then.

    Args:
        budget: what all lines come to is taken from it, before they are made.
    """
    labels: Sequence[str] | None = None
    for row in rows:
        budget.take(_EMPTY * (1 + row.count(None)))
        cells = ["" if cell is None else _shown(cell) for cell in row]
        if not any(cells):
            continue
        if labels is None and len(list(filter(None, cells))) > 1:  # a title may stand above
            labels = _labels(cells)
            if labels:
                continue
        shown = []
        for n, cell in enumerate(cells):
            if cell:
                label = labels[n] if labels and n < len(labels) else ""
                budget.take(len(label) + len(cell))
                shown.append(f"{label}: {cell}" if label else cell)
        yield ("; " if labels else "\t").join(shown)


def csv_lines(text: str, budget: ByteBudget) -> Iterator[str]:
    """Yield the lines of a table whose cells are set apart by commas, semicolons, tabs or bars.

    Raises:
        BadDocument: a quotation mark opens a cell that does not end.
    """
    head = text.lstrip()[:10_000].partition("\n")[0]
    delimiter = max(_DELIMITERS, key=head.count)
    try:
        yield from table_lines(csv.reader(io.StringIO(text), delimiter=delimiter), budget)
    except csv.Error as exc:
        raise BadDocument(f"{budget.name} is no whole CSV file: {exc}") from exc


def _labels(cells: Sequence[str]) -> Sequence[str]:
    """Return the names that a first row gives its columns; none where it is a row like others."""
    while cells and not cells[-1]:
        cells = cells[:-1]
    are_names = all(c and len(c) <= _LABEL and not _FIGURE.match(c) for c in cells)
    is_table = len(cells) > 1 and len(set(cells)) == len(cells)
    return cells if are_names and is_table else ()


def _shown(cell: object) -> str:
    if isinstance(cell, datetime):
        return str(cell).removesuffix(" 00:00:00")
    return " ".join(str(cell).split())
