"""Readable text of an HTML page: blocks become paragraphs, hidden elements are dropped."""

import re
from collections.abc import Mapping
from html import unescape
from typing import Any

from lxml import etree

from qrmem.text.normalise import normalise
from qrmem.types import Part

_SKIPPED = frozenset(
    ["script", "style", "template", "noscript", "svg", "iframe", "object", "select"]
)
_BLOCKS = """
address article aside blockquote body caption dd div dl dt fieldset figcaption figure footer form
h1 h2 h3 h4 h5 h6 head header hr html main nav ol p pre section table title ul
"""
_PARAGRAPHS = frozenset(_BLOCKS.split())
_LINES = frozenset(["br", "li", "tr", "option"])
_CELLS = frozenset(["td", "th"])
_SPACE = re.compile(r"[ \t\n\r\f]+")
_OPENING = re.compile(rf"<({'|'.join(sorted(_SKIPPED))})\b[^<>]*>", re.IGNORECASE)
_ENDING = re.compile(rf"</({'|'.join(sorted(_SKIPPED))})\b", re.IGNORECASE)
_TAG = re.compile(r"<[^<>]*>")
_CHUNK = 32_768
"""Characters between two checks of the nesting depth."""
_DEEPEST = 2_000
"""Maximum nesting depth of a page for people; for a deeper one, the parser's time would grow
with the square of the depth."""


class _PageReader:
    """Collects the text of one page from its elements and texts in order.

    Attributes:
        deepest: greatest number of elements that were open at once.
    """

    def __init__(self) -> None:
        self._depth = self.deepest = 0
        self.title = ""
        self.paragraphs: list[str] = []
        self.headings: list[tuple[int, int, str]] = []
        self._line: list[str] = []
        self._lines: list[str] = []
        self._skipping: list[str] = []
        self._level = 0
        self._preformatted = 0
        self._in_title = False

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Handle the start of an element."""
        self._depth += 1
        self.deepest = max(self.deepest, self._depth)
        if tag in _SKIPPED:
            self._skipping.append(tag)
        elif tag in _PARAGRAPHS:
            self.end_paragraph()
        elif tag in _LINES:
            self._end_line()
            self._line += ["- "] if tag == "li" else []
        elif tag in _CELLS:
            self._line += ["\t"] if self._line else []
        self._preformatted += tag == "pre"
        self._in_title = tag == "title" and not self._skipping
        if tag in ("h1", "h2"):
            self._level = int(tag[1])

    def end(self, tag: str) -> None:
        """Handle the end of an element, whether it has an end tag or not."""
        self._depth -= 1
        if tag in self._skipping:
            del self._skipping[self._skipping.index(tag) :]
        elif tag in _PARAGRAPHS:
            self.end_paragraph()
        if tag == "pre" and self._preformatted:
            self._preformatted -= 1
        if tag in ("h1", "h2"):
            self._level = 0
        self._in_title = self._in_title and tag != "title"

    def data(self, data: str) -> None:
        """Handle a piece of text."""
        if self._in_title:
            self.title = self.title or normalise(" ".join(data.split()))
        elif not self._skipping and self._preformatted:
            first, *others = data.split("\n")
            self._line.append(first)
            for other in others:
                self._end_line()
                self._line.append(other)
        elif not self._skipping:
            self._line.append(_SPACE.sub(" ", data))

    def end_paragraph(self) -> None:
        """Close the open paragraph, if it is not empty."""
        self._end_line()
        lines = "\n".join(self._lines).strip("\n")
        if lines.strip():
            text = normalise(lines)
            if self._level:
                self.headings.append((len(self.paragraphs), self._level, " ".join(text.split())))
            self.paragraphs.append(text)
        self._lines = []

    def close(self) -> None:
        """Handle the end of the page."""
        self.end_paragraph()

    def _end_line(self) -> None:
        line = "".join(self._line)
        self._line = []
        if not self._preformatted:
            line = re.sub(" *\t *", "\t", re.sub("  +", " ", line)).strip()
            line = "" if line == "-" else line
        if line.strip() or self._preformatted:
            self._lines.append(line.rstrip())


def read_html(page: str) -> tuple[str, str, tuple[Part, ...]]:
    """Return text, title and headings of the first two levels of a page.

    A blank line separates paragraphs, a line end list items and table rows, a tab cells. Scripts,
    styles and other invisible elements are left out, unless their end is missing: then the rest of
    the page would be lost with them. The title is that of the page, else its first `h1`, else "".
    """
    reader = _read(_without_openings(page))
    starts, place = [], 0
    for paragraph in reader.paragraphs:
        starts.append(place)
        place += len(paragraph) + 2
    parts = tuple(Part(starts[at], label) for at, _, label in reader.headings)
    first = next((label for _, level, label in reader.headings if level == 1), "")
    return "\n\n".join(reader.paragraphs), reader.title or first, parts


def _without_openings(page: str) -> str:
    """Return the page without start tags of skipped elements that never end."""
    last = {match[1].lower(): match.start() for match in _ENDING.finditer(page)}

    def kept(match: re.Match[str]) -> str:
        is_closed = match.start() < last.get(match[1].lower(), -1) or match[0].endswith("/>")
        return match[0] if is_closed else ""

    return _OPENING.sub(kept, page)


def _read(page: str) -> _PageReader:
    reader = _PageReader()
    target: Any = reader  # the stubs have other names for the arguments of a target
    parser = etree.HTMLParser(target=target, encoding="utf-8", huge_tree=True)
    for at in range(0, len(page), _CHUNK):
        parser.feed(page[at : at + _CHUNK].encode("utf-8", "replace"))
        if reader.deepest > _DEEPEST:
            return _text_alone(page)
    parser.close()
    return reader


def _text_alone(page: str) -> _PageReader:
    """Read an extremely nested page: the text between its tags."""
    reader = _PageReader()
    reader.data(unescape(_TAG.sub(" ", page)))
    reader.close()
    return reader
