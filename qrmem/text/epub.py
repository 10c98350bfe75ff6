"""EPUB with the standard library: a zip of XHTML files, in the order that its package file gives.

The kept library for it is under the AGPL, which an Apache-licensed project should not ask for.
"""

import io
import posixpath
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import unquote
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

CONTAINER = "META-INF/container.xml"


@dataclass(frozen=True, slots=True)
class Book:
    """What an EPUB holds.

    Attributes:
        chapters: path and content of each file of the spine, in reading order; its own table of
            contents left out.
        labels: path to title, from the table of contents.
        missing: paths of the spine's files that the archive does not hold.
    """

    title: str
    chapters: tuple[tuple[str, bytes], ...]
    labels: Mapping[str, str]
    missing: tuple[str, ...] = ()


def open_book(data: bytes) -> Book:
    """Read an EPUB 2 or 3.

    Raises:
        zipfile.BadZipFile, KeyError, ElementTree.ParseError, ValueError: it is none, or broken.
    """
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        package = _package_path(archive)
        root = ElementTree.fromstring(archive.read(package))
        items = {e.get("id", ""): e for e in _below(root, "item")}
        paths = {id: _path(package, item.get("href", "")) for id, item in items.items()}
        contents = {id for id, item in items.items() if _is_contents(item)}
        spine = [e.get("idref", "") for e in _below(root, "itemref")]
        listed = [paths[id] for id in spine if id in items and id not in contents]
        held = set(archive.namelist())
        labels: dict[str, str] = {}
        for id in contents:
            labels = dict(_labels(archive, paths[id])) | labels
        return Book(
            title=next((_text(e) for e in _below(root, "title")), ""),
            chapters=tuple((path, archive.read(path)) for path in listed if path in held),
            labels=labels,
            missing=tuple(path for path in listed if path not in held),
        )


def _package_path(archive: zipfile.ZipFile) -> str:
    for entry in _below(ElementTree.fromstring(archive.read(CONTAINER)), "rootfile"):
        if path := entry.get("full-path"):
            return path
    raise ValueError("its container names no package file")


def _is_contents(item: Element) -> bool:
    is_nav = "nav" in item.get("properties", "").split()
    return is_nav or item.get("media-type") == "application/x-dtbncx+xml"


def _labels(archive: zipfile.ZipFile, path: str) -> Iterator[tuple[str, str]]:
    """Yield path and title of each entry of a table of contents: NCX, or the `nav` of EPUB 3."""
    root = ElementTree.fromstring(archive.read(path))
    for point in _below(root, "navPoint"):
        source = next((e.get("src", "") for e in _below(point, "content")), "")
        yield _path(path, source), next((_text(e) for e in _below(point, "text")), "")
    for link in _below(root, "a"):
        yield _path(path, link.get("href", "")), _text(link)


def _path(base: str, href: str) -> str:
    """Return where a link of the file `base` leads to, within the archive."""
    return posixpath.normpath(
        posixpath.join(posixpath.dirname(base), unquote(href.partition("#")[0]))
    )


def _below(root: Element, name: str) -> Iterator[Element]:
    """Yield the elements of a local name, whatever their namespace."""
    return (e for e in root.iter() if isinstance(e.tag, str) and e.tag.rpartition("}")[2] == name)


def _text(element: Element) -> str:
    return " ".join("".join(element.itertext()).split())
