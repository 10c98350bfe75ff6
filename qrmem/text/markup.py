"""Reads HTML pages and EPUB books.

Blocks of a page become paragraphs; hidden elements are dropped. An EPUB is a zip of XHTML files, in
the order that its package file gives; the maintained library for it is under the AGPL, which an
Apache-licensed project should not require.
"""

import posixpath
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from html import unescape
from typing import Any
from urllib.parse import unquote

from lxml import etree
from lxml.etree import _Element as Element

from qrmem.errors import QrmemError
from qrmem.text.decoding import ByteBudget
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
        anchors: id of an element to the number of its paragraph.
    """

    def __init__(self) -> None:
        self._depth = self.deepest = 0
        self.title = ""
        self.paragraphs: list[str] = []
        self.headings: list[tuple[int, int, str]] = []
        self.anchors: dict[str, int] = {}
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
        for name in filter(None, (attributes.get("id"), attributes.get("name"))):
            self.anchors.setdefault(name, len(self.paragraphs))
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


@dataclass(frozen=True, slots=True)
class Page:
    """The content of a page.

    Attributes:
        title: that of the page, else its first `h1`, else "".
        headings: those of the first two levels.
        anchors: id of an element to the start of its paragraph.
    """

    text: str
    title: str
    headings: tuple[Part, ...]
    anchors: Mapping[str, int]


def read_page(page: str) -> Page:
    """Read a page.

    A blank line separates paragraphs, a line end list items and table rows, a tab cells. Scripts,
    styles and other invisible elements are left out, unless their end is missing: then the rest of
    the page would be lost with them.
    """
    reader = _read(_without_openings(page))
    starts, place = [], 0
    for paragraph in reader.paragraphs:
        starts.append(place)
        place += len(paragraph) + 2
    parts = tuple(Part(starts[at], label) for at, _, label in reader.headings)
    first = next((label for _, level, label in reader.headings if level == 1), "")
    anchors = {id: starts[at] for id, at in reader.anchors.items() if at < len(starts)}
    return Page("\n\n".join(reader.paragraphs), reader.title or first, parts, anchors)


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


CONTAINER = "META-INF/container.xml"


@dataclass(frozen=True, slots=True)
class Epub:
    """The content of an EPUB.

    Attributes:
        chapters: path and content of each file of the spine, once and in reading order, without
            its own table of contents.
        contents: path to the entries of the table of contents that lead into that file, in their
            order: the id of an element, "" for the start of the file, and a title.
        left_out: descriptions of what could not be read.
    """

    title: str
    chapters: tuple[tuple[str, bytes], ...]
    contents: Mapping[str, Sequence[tuple[str, str]]]
    left_out: tuple[str, ...] = ()


def open_book(archive: zipfile.ZipFile, budget: ByteBudget) -> Epub:
    """Read the intact parts of an EPUB 2 or 3.

    Raises:
        BadDocument: it unpacks to more than the budget has.
        zipfile.BadZipFile, KeyError, ValueError: not an EPUB, or its package file is broken.
    """
    package = _package_path(archive, budget)
    root = _parsed(budget.unpack(archive, package))
    items = {e.get("id", ""): e for e in _below(root, "item")}
    paths = {id: _path(package, item.get("href", "")) for id, item in items.items()}
    contents = {id for id, item in items.items() if _is_contents(item)}
    spine = [e.get("idref", "") for e in _below(root, "itemref")]
    paths_listed = dict.fromkeys(paths[id] for id in spine if id in items and id not in contents)
    left_out: list[str] = []
    titles: dict[tuple[str, str], str] = {}
    for path in dict.fromkeys(paths[id] for id in sorted(contents, reverse=True)):
        if data := _unpacked(archive, path, budget, left_out):
            titles.update(_titles(data, path))
    entries: dict[str, list[tuple[str, str]]] = {}
    for (path, id), title in titles.items():
        entries.setdefault(path, []).append((id, title))
    pages = [(path, _unpacked(archive, path, budget, left_out)) for path in paths_listed]
    return Epub(
        title=next((_text(e) for e in _below(root, "title")), ""),
        chapters=tuple((path, data) for path, data in pages if data is not None),
        contents=entries,
        left_out=tuple(left_out),
    )


def _unpacked(
    archive: zipfile.ZipFile, path: str, budget: ByteBudget, left_out: list[str]
) -> bytes | None:
    """Return a file of the archive; record a missing or broken one and continue."""
    try:
        return budget.unpack(archive, path)
    except QrmemError:
        raise
    except KeyError:
        left_out.append(f"{path} (missing)")
    except Exception:  # with a broken file zlib and zipfile raise any exception
        left_out.append(f"{path} (broken)")
    return None


def _parsed(data: bytes) -> Element:
    """Return the root of an XML file, repaired if broken; entities are not resolved.

    Raises:
        ValueError: it has no element.
    """
    parser = etree.XMLParser(recover=True, resolve_entities=False, no_network=True, huge_tree=True)
    root: Element | None = etree.fromstring(data, parser) if data.strip() else None
    if root is None:
        raise ValueError("one of its XML files is empty")
    return root


def _package_path(archive: zipfile.ZipFile, budget: ByteBudget) -> str:
    for entry in _below(_parsed(budget.unpack(archive, CONTAINER)), "rootfile"):
        if path := entry.get("full-path"):
            return path
    raise ValueError("its container lists no package file")


def _is_contents(item: Element) -> bool:
    is_nav = "nav" in item.get("properties", "").split()
    return is_nav or item.get("media-type") == "application/x-dtbncx+xml"


def _titles(data: bytes, path: str) -> Mapping[tuple[str, str], str]:
    """Return path and id to title, from a table of contents: NCX, or the `nav` of EPUB 3."""
    contents = _Contents()
    # The stubs have other names for the arguments of a target.
    target: Any = contents
    parser = etree.XMLParser(target=target, recover=True, resolve_entities=False, huge_tree=True)
    parser.feed(data)
    with suppress(etree.XMLSyntaxError):  # the links before a broken place count
        parser.close()
    return {
        (_path(path, link), unquote(link.partition("#")[2])): title
        for link, title in contents.titles.items()
        if title
    }


class _Contents:
    """Collects the links of a table of contents in one pass, at any depth of nesting.

    Lists of pages, of landmarks and of figures in the same file are left out.

    Attributes:
        titles: link to title; the later of two titles wins.
    """

    def __init__(self) -> None:
        self.titles: dict[str, str] = {}
        self._link = ""
        self._said: list[str] = []
        self._other_list = ""

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Handle the start of an element."""
        name = tag.rpartition("}")[2]
        kind = next((value for key, value in attributes.items() if key.endswith("type")), "toc")
        if name in ("pageList", "navList") or (name == "nav" and "toc" not in kind.split()):
            self._other_list = name
        if self._other_list:
            return
        if name in ("a", "text"):
            self._link, self._said = attributes.get("href", ""), []
        elif name == "content":  # the label of an NCX entry comes before its link
            self.titles[attributes.get("src", "")] = self._title()

    def end(self, tag: str) -> None:
        """Handle the end of an element."""
        name = tag.rpartition("}")[2]
        if name == self._other_list:
            self._other_list = ""
        elif name == "a" and not self._other_list:
            self.titles[self._link] = self._title()

    def data(self, data: str) -> None:
        """Handle a piece of text."""
        self._said.append(data)

    def close(self) -> None:
        """Handle the end of the file."""

    def _title(self) -> str:
        return " ".join("".join(self._said).split())


def _path(base: str, href: str) -> str:
    """Return the path in the archive to which a link of the file `base` leads."""
    return posixpath.normpath(
        posixpath.join(posixpath.dirname(base), unquote(href.partition("#")[0]))
    )


def _below(root: Element, name: str) -> Iterator[Element]:
    """Yield the elements with a local name, in any namespace."""
    return (e for e in root.iter() if isinstance(e.tag, str) and e.tag.rpartition("}")[2] == name)


def _text(element: Element) -> str:
    return " ".join("".join(map(str, element.itertext())).split())
