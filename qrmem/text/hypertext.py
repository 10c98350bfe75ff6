"""Readable text of an HTML page: blocks become paragraphs, what is not for readers goes."""

import re
from collections.abc import Set
from html.parser import HTMLParser

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


class _Reader(HTMLParser):
    """Reads one page.

    Attributes:
        open: skipped elements whose end has not come.
    """

    def __init__(self, skipped: Set[str]) -> None:
        super().__init__(convert_charrefs=True)
        self._not_read = skipped
        self.title = ""
        self.paragraphs: list[str] = []
        self.headings: list[tuple[int, int, str]] = []
        self._line: list[str] = []
        self._lines: list[str] = []
        self.open: list[str] = []
        self._level = 0
        self._preformatted = 0
        self._in_title = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in self._not_read:
            self.open.append(tag)
        elif tag in _PARAGRAPHS:
            self.end_paragraph()
        elif tag in _LINES:
            self._end_line()
            self._line += ["- "] if tag == "li" else []
        elif tag in _CELLS:
            self._line += ["\t"] if self._line else []
        self._preformatted += tag == "pre"
        self._in_title = tag == "title" and not self.open
        if tag in ("h1", "h2"):
            self._level = int(tag[1])

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self._not_read:
            self.handle_starttag(tag, attrs)
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in self.open:
            del self.open[self.open.index(tag) :]
        elif tag in _PARAGRAPHS:
            self.end_paragraph()
        if tag == "pre" and self._preformatted:
            self._preformatted -= 1
        if tag in ("h1", "h2"):
            self._level = 0
        self._in_title = self._in_title and tag != "title"

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.title = self.title or normalise(" ".join(data.split()))
        elif not self.open and self._preformatted:
            first, *others = data.split("\n")
            self._line.append(first)
            for other in others:
                self._end_line()
                self._line.append(other)
        elif not self.open:
            self._line.append(_SPACE.sub(" ", data))

    def end_paragraph(self) -> None:
        """Close the paragraph that is open, if there is anything in it."""
        self._end_line()
        lines = "\n".join(self._lines).strip("\n")
        if lines.strip():
            text = normalise(lines)
            if self._level:
                self.headings.append((len(self.paragraphs), self._level, " ".join(text.split())))
            self.paragraphs.append(text)
        self._lines = []

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

    Paragraphs stand apart by a blank line, list items and table rows on lines of their own, cells
    by a tab. Scripts, styles and other things that no reader sees are left out, unless their end is
    missing: the rest of the page isn't lost with them. The title is that of the page, else its
    first `h1`, else "".
    """
    reader = _read(page, _SKIPPED)
    if reader.open:
        reader = _read(page, _SKIPPED - set(reader.open))
    starts, place = [], 0
    for paragraph in reader.paragraphs:
        starts.append(place)
        place += len(paragraph) + 2
    parts = tuple(Part(starts[at], label) for at, _, label in reader.headings)
    first = next((label for _, level, label in reader.headings if level == 1), "")
    return "\n\n".join(reader.paragraphs), reader.title or first, parts


def _read(page: str, skipped: Set[str]) -> _Reader:
    reader = _Reader(skipped)
    reader.feed(page)
    reader.close()
    reader.end_paragraph()
    return reader
