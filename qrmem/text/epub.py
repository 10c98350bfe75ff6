"""EPUB: a zip of XHTML files, in the order that its package file gives.

The maintained library is under the AGPL, which an Apache-licensed project should not require.
"""

import posixpath
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from lxml import etree
from lxml.etree import _Element as Element

from qrmem.errors import QrmemError
from qrmem.text.decoding import ByteBudget

CONTAINER = "META-INF/container.xml"


@dataclass(frozen=True, slots=True)
class Epub:
    """The content of an EPUB.

    Attributes:
        chapters: path and content of each file of the spine, once and in reading order, without
            its own table of contents.
        labels: path to title, from the table of contents.
        left_out: descriptions of what could not be read.
    """

    title: str
    chapters: tuple[tuple[str, bytes], ...]
    labels: Mapping[str, str]
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
    labels: dict[str, str] = {}
    for path in dict.fromkeys(paths[id] for id in sorted(contents)):
        data = _unpacked(archive, path, budget, left_out)
        labels = {**_labels(data, path), **labels} if data else labels
    pages = [(path, _unpacked(archive, path, budget, left_out)) for path in paths_listed]
    return Epub(
        title=next((_text(e) for e in _below(root, "title")), ""),
        chapters=tuple((path, data) for path, data in pages if data is not None),
        labels=labels,
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


def _labels(data: bytes, path: str) -> Mapping[str, str]:
    """Return path to title, from a table of contents: NCX, or the `nav` of EPUB 3."""
    contents = _Contents()
    # The stubs have other names for the arguments of a target.
    target: Any = contents
    parser = etree.XMLParser(target=target, recover=True, resolve_entities=False, huge_tree=True)
    parser.feed(data)
    with suppress(etree.XMLSyntaxError):  # the links before a broken place count
        parser.close()
    return {_path(path, link): title for link, title in contents.titles.items()}


class _Contents:
    """Collects the links of a table of contents in one pass, at any depth of nesting.

    Attributes:
        titles: link to title; the later of two titles wins.
    """

    def __init__(self) -> None:
        self.titles: dict[str, str] = {}
        self._link = ""
        self._said: list[str] = []

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Handle the start of an element."""
        name = tag.rpartition("}")[2]
        if name in ("a", "text"):
            self._link, self._said = attributes.get("href", ""), []
        elif name == "content":  # the label of an NCX entry comes before its link
            self.titles[attributes.get("src", "")] = self._title()

    def end(self, tag: str) -> None:
        """Handle the end of an element."""
        if tag.rpartition("}")[2] == "a":
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
