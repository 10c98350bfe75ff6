"""Files of extractions: HippoRAG's OpenIE results, and plain triples (JSON, JSON Lines, TSV).

A malformed record in a file of plain triples is an error that names its line. In a file of passages
the triples are a model's output, and some are always malformed: these are left out and counted, as
HippoRAG itself does.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

from qrmem.errors import BadImport
from qrmem.text.decoding import open_file
from qrmem.text.numbers import counted

_FIELDS = ("subject", "relation", "object", "passage")
_OF_TRIPLES = frozenset({*_FIELDS, "passage_id"})
_SUFFIXES = {".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "json"}


@dataclass(frozen=True, slots=True)
class Triple:
    """An open relation from a file."""

    subject: str
    relation: str
    object: str


@dataclass(slots=True)
class FilePassage:
    """A passage and its extractions.

    Attributes:
        where: place in the file, for messages.
        id: id of a document or a segment; "" if the text determines it.
        text: text of the passage, or `None` if the file does not have it.
    """

    where: str
    id: str = ""
    text: str | None = None
    title: str = ""
    entities: list[str] = field(default_factory=list)
    triples: list[Triple] = field(default_factory=list)


@dataclass(slots=True)
class Extraction:
    """All passages of a file, in its order.

    Attributes:
        malformed: number of malformed triples and names in passages.
        left_out: a message with the place for each passage without text.
    """

    passages: list[FilePassage] = field(default_factory=list)
    malformed: int = 0
    left_out: list[str] = field(default_factory=list)


class _MalformedRecord(ValueError):
    """A record is malformed."""


def read_openie(path: str | PathLike[str]) -> Extraction:
    """Read a file of extractions; its suffix, or else its first characters, give the format.

    Raises:
        BadImport: the file cannot be read, or a record is malformed; the message names it.
    """
    place = Path(path)
    try:
        with open_file(place) as file:
            text = file.read().decode("utf-8-sig")
    except OSError as exc:
        raise BadImport(f"cannot read {place}: {exc.strerror or exc}") from exc
    except UnicodeDecodeError as exc:
        raise BadImport(f"{place} is not UTF-8 text (byte {exc.start})") from exc
    collected = _Collected()
    for where, item in _items(place, text):
        try:
            collected.take(where, item)
        except _MalformedRecord as exc:
            raise BadImport(f"{place}, {where}: {exc}; nothing was imported") from exc
    if not collected.extraction.passages:
        why = f" ({collected.extraction.left_out[0]})" if collected.extraction.left_out else ""
        raise BadImport(f"{place} contains no passage and no triple{why}")
    return collected.extraction


# --- forms ---------------------------------------------------------------------------------------


def _items(path: Path, text: str) -> Iterator[tuple[str, Any]]:
    """Yield every record with its place."""
    form = _SUFFIXES.get(path.suffix.lower()) or _form_of(text)
    if form == "tsv":
        yield from _rows(text)
    elif form == "jsonl":
        for where, line in _lines(text):
            yield where, _parsed(path, line, where)
    else:
        yield from _whole(_parsed(path, text, ""))


def _form_of(text: str) -> str:
    first = text.lstrip()[:1]
    if first not in ("{", "["):
        return "tsv"
    try:
        json.JSONDecoder().decode(text)
    except json.JSONDecodeError as exc:
        return "jsonl" if exc.msg == "Extra data" else "json"
    except (ValueError, RecursionError):
        pass
    return "json"


def _lines(text: str) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield f"line {number}", line.removesuffix("\r")


def _rows(text: str) -> Iterator[tuple[str, list[str]]]:
    for where, line in _lines(text):
        cells = line.split("\t")
        names = {cell.strip().lower().replace(" ", "_") for cell in cells}
        if where == "line 1" and names <= {*_OF_TRIPLES, "id"}:
            continue
        yield where, cells


def _parsed(path: Path, text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as exc:
        raise BadImport(
            f"{path}, {where or f'line {exc.lineno}'}: it is not JSON ({exc.msg})"
        ) from exc
    except (ValueError, RecursionError) as exc:
        raise BadImport(f"{path}{where and f', {where}'}: its JSON cannot be read ({exc})") from exc


def _whole(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the records of a JSON document: a list, or HippoRAG's `{"docs": […]}`."""
    items = value.get("docs") if isinstance(value, dict) else value
    if not isinstance(items, list):
        yield "its beginning", value
        return
    for number, item in enumerate(items, 1):
        yield f"record {number}", item


# --- records -------------------------------------------------------------------------------------


class _Collected:
    """The passages so far; triples of one passage are collected from the whole file."""

    def __init__(self) -> None:
        self.extraction = Extraction()
        self._named: dict[str, FilePassage] = {}

    def take(self, where: str, item: Any) -> None:
        """Add a record."""
        if isinstance(item, Mapping) and "subject" in item:
            self._take_triple(where, _cells(item))
        elif isinstance(item, Mapping):
            self._take_passage(where, item)
        elif isinstance(item, Sequence) and not isinstance(item, str):
            self._take_triple(where, item)
        else:
            raise _MalformedRecord(f"it is a {type(item).__name__}, not a triple or a passage")

    def _take_triple(self, where: str, cells: Sequence[Any]) -> None:
        if len(cells) != len(_FIELDS):
            raise _MalformedRecord(
                f"it has {counted(len(cells), 'fields')}, not 4: subject, relation, object, "
                "passage id"
            )
        words = []
        for name, cell in zip(_FIELDS, cells, strict=True):
            word = _word(cell)
            if word is None:
                raise _MalformedRecord(
                    f"its {name} is {'empty' if isinstance(cell, str) else 'not text'}"
                )
            words.append(word)
        subject, relation, object, passage = words
        if passage not in self._named:
            self._add(FilePassage(where, passage))
        self._named[passage].triples.append(Triple(subject, relation, object))

    def _take_passage(self, where: str, item: Mapping[str, Any]) -> None:
        """Add a passage of HippoRAG: `title` and `text`, or both in `passage`."""
        text = item.get("text", item.get("passage"))
        title, id_ = item.get("title") or "", item.get("idx", item.get("id"))
        if isinstance(text, str) and not text.strip():
            self.extraction.left_out.append(f"{where}: it has no text")
            return
        if not isinstance(text, str) or not isinstance(title, str):
            raise _MalformedRecord(
                "it is not a passage: it has no text" if text is None else "it has no text"
            )
        if id_ is not None and _word(id_) is None:
            raise _MalformedRecord("its id is not text")
        passage = FilePassage(where, _word(id_) or "", text, title)
        passage.entities += self._keep(item, "extracted_entities", _word)
        passage.triples += self._keep(item, "extracted_triples", _triple)
        self._add(passage)

    def _keep(self, item: Mapping[str, Any], name: str, made: Any) -> list[Any]:
        values = item.get(name)
        values = [] if values is None else values
        if not isinstance(values, list):
            raise _MalformedRecord(f"its {name} are not a list")
        values_kept = [made(value) for value in values]
        self.extraction.malformed += values_kept.count(None)
        return [value for value in values_kept if value is not None]

    def _add(self, passage: FilePassage) -> None:
        self.extraction.passages.append(passage)
        if passage.id:
            self._named.setdefault(passage.id, passage)


def _cells(item: Mapping[str, Any]) -> Sequence[Any]:
    if unknown := item.keys() - _OF_TRIPLES:
        raise _MalformedRecord(
            f"it has a field {min(map(str, unknown))!r}, which a triple does not have"
        )
    *triple, passage = _FIELDS
    return [*(item.get(name) for name in triple), item.get(passage, item.get("passage_id"))]


def _triple(value: Any) -> Triple | None:
    if not isinstance(value, list) or len(value) != 3:
        return None
    words = [_word(cell) for cell in value]
    return Triple(*words) if all(words) else None  # type: ignore[arg-type]


def _word(value: Any) -> str | None:
    """Return a cell as text; a name may be a number."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    return (" ".join(value.split()) or None) if isinstance(value, str) else None


__all__ = ["Extraction", "FilePassage", "Triple", "read_openie"]
