"""Tables as lines of text: each row labels its cells, so that it can be read without others."""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from qrmem.errors import BadDocument
from qrmem.text.decoding import ByteBudget

_DELIMITERS = ",;\t|"
_EMPTY = 10
"""Bytes that a row, and an empty cell, count for: a small file may declare millions."""
_LABEL = 60
"""Maximum length in characters of a column's name."""
_FIGURE = re.compile(r"[-+(]?\W?\d")
"""Characters that begin a number, a date or an amount, but no column's name."""


def table_lines(rows: Iterable[Sequence[object]], budget: ByteBudget) -> Iterator[str]:
    """Yield a line for each row: `name: Ann; born: 1851` under a row of names, else the cells.

    The first row with several cells names the columns if all of them are short, different and not
    numeric; then it gives no line.

    Args:
        budget: the size of all lines is taken from it before they are made.
    """
    labels: Sequence[str] | None = None
    for row in rows:
        budget.take(_EMPTY * (1 + row.count(None)))
        cells = ["" if cell is None else _cell_text(cell) for cell in row]
        if not any(cells):
            continue
        if labels is None and len(list(filter(None, cells))) > 1:  # a title may be above
            labels = _labels(cells)
            if labels:
                continue
        rows_shown = []
        for n, cell in enumerate(cells):
            if cell:
                label = labels[n] if labels and n < len(labels) else ""
                budget.take(len(label) + len(cell))
                rows_shown.append(f"{label}: {cell}" if label else cell)
        yield ("; " if labels else "\t").join(rows_shown)


def csv_lines(text: str, budget: ByteBudget) -> Iterator[str]:
    """Yield the lines of a table whose cells are separated by commas, semicolons, tabs or bars.

    Raises:
        BadDocument: a quotation mark opens a cell that is never closed.
    """
    head = text.lstrip()[:10_000].partition("\n")[0]
    delimiter = max(_DELIMITERS, key=head.count)
    try:
        yield from table_lines(csv.reader(io.StringIO(text), delimiter=delimiter), budget)
    except csv.Error as exc:
        raise BadDocument(f"{budget.name} is not a complete CSV file: {exc}") from exc


def _labels(cells: Sequence[str]) -> Sequence[str]:
    """Return the column names in a first row; none if it is a row of data."""
    while cells and not cells[-1]:
        cells = cells[:-1]
    are_names = all(c and len(c) <= _LABEL and not _FIGURE.match(c) for c in cells)
    is_table = len(cells) > 1 and len(set(cells)) == len(cells)
    return cells if are_names and is_table else ()


def _cell_text(cell: object) -> str:
    if isinstance(cell, datetime):
        return str(cell).removesuffix(" 00:00:00")
    return " ".join(str(cell).split())
