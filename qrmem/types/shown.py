"""How values are shown: one line in a console, HTML in a notebook, between tags to a model."""

import dataclasses
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import chain, count
from typing import Any

_TEXT, _ITEMS, _LINE = 60, 3, 400
"""Maximum length of a text, of a sequence and of a whole line."""


class Short:
    """Gives a dataclass a one-line representation of the fields that differ from their defaults."""

    __slots__ = ()

    def __repr__(self) -> str:
        parts = [f"{name}={brief(value)}" for name, value in _telling(self)]
        line = f"{type(self).__name__}({', '.join(parts)})"
        return line if len(line) <= _LINE else f"{line[: _LINE - 2]}…)"


def brief(value: Any) -> str:
    """Return a short text for a value, with the number of items that were left out."""
    if isinstance(value, str):
        return repr(value if len(value) <= _TEXT else f"{value[: _TEXT - 1]}…")
    if isinstance(value, Mapping):
        items = [f"{brief(key)}: {brief(item)}" for key, item in list(value.items())[:_ITEMS]]
        return "{" + _joined(items, len(value)) + "}"
    if isinstance(value, list | tuple | set | frozenset):
        items = [brief(item) for item in list(value)[:_ITEMS]]
        return "[" + _joined(items, len(value)) + "]"
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return f"{type(value).__name__}(…)"
    return repr(value)


def _joined(items: Sequence[str], count: int) -> str:
    count_left = count - len(items)
    return ", ".join([*items, *([f"… {count_left:,} more"] if count_left else [])])


def _telling(value: Any) -> list[tuple[str, Any]]:
    """Return the fields that have another value than their default."""
    parts = []
    for field in dataclasses.fields(value):
        default = field.default
        if field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        if (field_value := getattr(value, field.name)) != default:
            parts.append((field.name, field_value))
    return parts


# --- notebooks ------------------------------------------------------------------------------------


def marked(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """Return a text as HTML with marked spans."""
    pieces, at = [], 0
    for start, end in sorted(spans):
        if start >= at:
            pieces += [escape(text[at:start]), "<mark>", escape(text[start:end]), "</mark>"]
            at = end
    return "".join([*pieces, escape(text[at:])])


def quoted(text: str, spans: Iterable[tuple[int, int]], *place: str) -> str:
    """Return a quotation as HTML, with its place."""
    where = " · ".join(escape(part) for part in place if part)
    return f"<blockquote>{marked(text, spans)}<br><small>{where}</small></blockquote>"


def table(rows: Iterable[tuple[str, object]], title: str = "") -> str:
    """Return names and values as an HTML table."""
    body = "".join(
        f"<tr><th style='text-align:left'>{escape(name)}</th>"
        f"<td style='text-align:left'>{escape(str(value))}</td></tr>"
        for name, value in rows
    )
    caption = f"<caption>{escape(title)}</caption>" if title else ""
    return f"<table>{caption}{body}</table>"


__all__ = ["Short", "brief", "marked", "quoted", "table"]


def continued(text: str, indent: str) -> str:
    """Indent the lines of a text after the first, so that none looks like a line of the output."""
    return f"\n{indent}".join(text.splitlines())


def one_line(text: str) -> str:
    """Return a text within one line."""
    return " ".join(text.split())


_CLOSING = re.compile(r"<\s*/\s*(text[0-9]*)", re.IGNORECASE)


def _as_read(text: str) -> str:
    """Return a text as a model may read it: without invisible signs and full-width letters."""
    if text.isascii():
        return text
    text = unicodedata.normalize("NFKC", text)
    return "".join(char for char in text if unicodedata.category(char) not in ("Cf", "Mn"))


def fenced(text: str, label: str = "") -> str:
    """Put a text between tags that it cannot close, so that its end in a prompt is clear.

    Args:
        text: the text.
        label: added to the opening tag; only letters, digits and spaces.
    """
    # The closing tag is the first of `</text>`, `</text2>`, … that the text does not contain.
    tags_used = {match.group(1).lower() for match in _CLOSING.finditer(_as_read(text))}
    marks = chain(["text"], (f"text{n}" for n in count(2)))
    mark = next(name for name in marks if name not in tags_used)
    opening = f"<{mark} {label}>" if label else f"<{mark}>"
    return f"{opening}\n{text}\n</{mark}>"
