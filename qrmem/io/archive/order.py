"""What the lines of an archive must be to each other, seen before anything is written."""

import re
from collections.abc import Iterator
from typing import Any

from qrmem.errors import UsageError
from qrmem.graphstore.codec import Wrong, from_plain
from qrmem.graphstore.protocol import CacheEntry
from qrmem.io.archive.file import Reader
from qrmem.io.archive.form import (
    KINDS,
    OF_A_DOCUMENT,
    OF_RUNS,
    STARTS,
    DocumentLine,
    Head,
    SegmentLine,
    cache_kind,
    decoded,
)
from qrmem.text.normalise import normalise_value
from qrmem.types import ChatReply, Contribution

_LONGEST_ID = 1000
_REPLY = re.compile("[0-9a-f]{64}")
"""Keys of replies: hashes of what shaped them."""

_PLACE = {kind: place for place, kind in enumerate(KINDS)}


def ordered(reader: Reader) -> Iterator[tuple[str, Any]]:
    """Yield kind and record of every line, in an order and with references that make sense.

    Raises:
        BadImport: a line stands where it may not, repeats another, or speaks of what is not there.
    """
    seen = _Seen(reader.head)
    for number, kind, value in reader.lines():
        try:
            seen.take(kind, value)
        except Wrong as exc:
            raise reader.refused(number, str(exc)) from exc
        yield kind, value


class _Seen:
    """What came before."""

    def __init__(self, head: Head) -> None:
        self._head = head
        self._kind = ""
        self._ids: dict[str, set[str]] = {}
        self._text_length = 0
        self._own: set[str] = set()

    def take(self, kind: str, value: Any) -> None:
        """Look at the next line."""
        self._check_place(kind)
        match value:
            case DocumentLine():
                _check_id(value.id)
                _check_names(value)
                self._once(kind, value.id)
                self._text_length, self._own = len(value.text), set()
            case SegmentLine():
                _check_id(value.id)
                self._once(kind, value.id)
                self._own.add(value.id)
                self._check_span(value)
            case Contribution():
                self._check_own(value.segment_id)
                self._once(kind, repr((value.segment_id, value.kind, value.asked)))
            case CacheEntry():
                self._once("kept", value.key)
                _check_kept(kind, value)
            case _:
                self._take_other(kind, value)

    def _take_other(self, kind: str, value: Any) -> None:
        match kind:
            case "vector":
                self._check_own(value.owner)
                self._once(kind, value.owner)
                decoded(value, self._head.dimension)
            case "relation":
                self._once(kind, value.owner)
                decoded(value, self._head.dimension)
            case "entity":
                self._once(kind, value.key)
                for name in value.names:
                    self._once("name", name)
            case "trail":
                self._once(kind, value.id)

    def _check_place(self, kind: str) -> None:
        """See that kinds come in order; a document's own begin again with the next one."""
        if kind in OF_RUNS and not self._head.runs:
            raise Wrong(f"a {kind} stands in an archive without runs")
        before = self._kind
        is_first = not before and kind in OF_A_DOCUMENT and kind != "document"
        is_next = kind == "document" and before in ("", *OF_A_DOCUMENT)
        if is_first or not (is_next or not before or _PLACE[kind] >= _PLACE[before]):
            raise Wrong(f"a {kind} cannot follow {f'a {before}' if before else 'the head'}")
        self._kind = kind

    def _once(self, kind: str, id_: str) -> None:
        ids = self._ids.setdefault(kind, set())
        if id_ in ids:
            raise Wrong(f"the {kind} {id_[:80]!r} is there twice")
        ids.add(id_)

    def _check_own(self, segment_id: str) -> None:
        if segment_id not in self._own:
            raise Wrong(f"segment {segment_id[:80]!r} is none of the document above")

    def _check_span(self, line: SegmentLine) -> None:
        if not 0 <= line.start <= line.end <= self._text_length:
            raise Wrong(f"the segment's place {line.start}-{line.end} is not in the document")
        if not 0 <= line.tokens < 2**31:
            raise Wrong(f"the segment's tokens are {line.tokens}")


def _check_kept(kind: str, kept: CacheEntry) -> None:
    """See that what a command will use as its own is what it would have kept."""
    of = cache_kind(kind, kept.key)
    is_other = of in ("fold", "tree", "judgement", "code") and of != kind
    if is_other or not kept.key.startswith(STARTS.get(of, "")):
        raise Wrong(f"a {kind} has no key like {kept.key[:40]!r}")
    if kind == "fold" and not isinstance(kept.value.get("description"), str):
        raise Wrong("a fold has no description")
    if _REPLY.fullmatch(kept.key):
        from_plain(dict(kept.value), ChatReply, "reply.value")


def _check_names(line: DocumentLine) -> None:
    try:
        for name, value in line.metadata.items():
            normalise_value(name, value)
    except UsageError as exc:
        raise Wrong(str(exc)) from None


def _check_id(id_: str) -> None:
    if not id_.strip() or len(id_) > _LONGEST_ID or "\x00" in id_:
        raise Wrong(f"an id has 1 to {_LONGEST_ID} characters, not all blank, and no NUL")
