"""Export of a memory as linked Markdown notes, for Obsidian and git.

The folder has `index.md`, a note for each document with its segments, and a note for each entity
with its statements; a statement has its times, its quotation and a link to its segment. Equal
memories give equal bytes.
"""

import hashlib
import json
import re
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from qrmem.errors import UsageError
from qrmem.io.place import unwritable
from qrmem.types import DocumentInfo, Entity, FactView, Segment

_LIST = ".qrmem-notes"
"""File with the digests and names of the exported notes; the next export replaces only these."""
_LISTED = re.compile(r"([0-9a-f]{64}) ((?:documents/|entities/)?[^/\\\x00]+\.md)")
_LONGEST = 60
"""Maximum length of a note's name in characters (up to 4 bytes each); a file name has 255 bytes."""
_MARKUP = re.compile(r"([\\`*_\[\]<>#|~$^=%&])")
_LINE_START = re.compile(r"(?m)^(\s*)([-+]|\d+(?=[.)]))")
_NO_NAME = re.compile(r'[\x00-\x1f\x7f\\/:*?"<>|#^\[\]%]+')
_PLAIN_KEY = re.compile(r"[A-Za-z_][\w-]*", re.ASCII)
_UNSEEN = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff]")
"""Characters that YAML refuses in a text, or reads as the end of a line."""
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\.|$)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Contents:
    """The content of the notes.

    Attributes:
        title: title of `index.md`.
        documents: all documents.
        segments: segments of all documents, in order within a document.
        entities: entities that get a note.
        facts: statements about them; an end without a note is named without a link.
        ends: entity keys of each statement's head and tail, by its id; names may be equal.
    """

    title: str
    documents: Sequence[DocumentInfo]
    segments: Sequence[Segment]
    entities: Sequence[Entity]
    facts: Sequence[FactView]
    ends: Mapping[str, tuple[str, str]] = field(default_factory=dict)


def write_notes(folder: Path, contents: Contents) -> int:
    """Write the notes and delete outdated notes of an earlier export; return the number written.

    Only notes that an export wrote are replaced or deleted, and only while they hold what it wrote.
    Every other file stays, also a note that was edited since: an own note gets another name beside
    it.

    Raises:
        UsageError: the folder has files that are not an export.
        StoreUnavailable: the folder cannot be written.
    """
    try:
        earlier = _earlier(folder)
        folder.mkdir(parents=True, exist_ok=True)
        for place in (folder / "documents", folder / "entities"):
            _require_folder(place)
        own = {name for name, digest in earlier if _digest_of(folder / name) == digest}
        notes = made_of(contents, _names_in(folder) - own)
        listed = {(name, _digest(text.encode())) for name, text in notes.items()}
        # The list has what was written and what will be, so that the next export knows both.
        _write(folder, _LIST, _listing({*earlier, *listed}))
        for name in sorted(own - notes.keys()):  # first: some file systems take Ann and ann for one
            (folder / name).unlink(missing_ok=True)
        for name, text in notes.items():
            (folder / name).parent.mkdir(exist_ok=True)
            _write(folder, name, text)
        _write(folder, _LIST, _listing(listed))
    except OSError as exc:
        raise unwritable(folder, exc) from exc
    return len(notes)


def _earlier(folder: Path) -> set[tuple[str, str]]:
    """Return names and digests of an earlier export's notes in a folder; refuse other files."""
    if not folder.exists():
        return set()
    if not folder.is_dir():
        raise UsageError(f"{folder} is a file; notes need a folder")
    list_file = folder / _LIST
    if list_file.is_symlink() or not list_file.is_file():
        if any(folder.iterdir()):
            raise UsageError(f"{folder} contains other files; choose an empty folder for the notes")
        return set()
    lines = list_file.read_text(encoding="utf-8", errors="replace").splitlines()
    return {(found[2], found[1]) for line in lines if (found := _LISTED.fullmatch(line))}


def _listing(notes: Iterable[tuple[str, str]]) -> str:
    return "".join(f"{digest} {name}\n" for name, digest in sorted(notes))


def _names_in(folder: Path) -> set[str]:
    """Return the names of all files in a folder of notes, of whatever kind they are."""
    places = (folder, folder / "documents", folder / "entities")
    return {
        entry.relative_to(folder).as_posix()
        for place in places
        if place.is_dir()
        for entry in place.iterdir()
    }


def _digest_of(path: Path) -> str:
    """Return the digest of a file's content; "" if it is a link, a pipe or the like."""
    return _digest(path.read_bytes()) if path.is_file() and not path.is_symlink() else ""


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _write(folder: Path, name: str, text: str) -> None:
    """Write a file of the folder atomically; a link or a pipe in its place is not followed."""
    part = folder / f"{_LIST}.part"
    part.unlink(missing_ok=True)  # of a killed export
    try:
        with part.open("xb") as file:
            file.write(text.encode())
        part.replace(folder / name)
    finally:
        part.unlink(missing_ok=True)


def _require_folder(place: Path) -> None:
    """Refuse anything but a folder where a folder of notes belongs.

    Raises:
        UsageError: it is a link, as a stranger's vault may contain, or a file.
    """
    if place.is_symlink():
        raise UsageError(f"{place} is a link: notes would be written elsewhere; remove it first")
    if place.exists() and not place.is_dir():
        raise UsageError(f"{place} is a file; notes need a folder: move or rename it first")


def made_of(contents: Contents, taken: Iterable[str] = ()) -> dict[str, str]:
    """Return the text of each note by its path in the folder.

    Args:
        contents: the content of the notes.
        taken: paths in the folder that other files have.
    """
    pages = _Pages(contents, {_folded(path) for path in taken})
    return {
        f"{pages.start}.md": pages.index(),
        **{f"documents/{pages.documents[d.id]}.md": pages.document(d) for d in contents.documents},
        **{f"entities/{pages.entities[e.key]}.md": pages.entity(e) for e in contents.entities},
    }


class _Pages:
    def __init__(self, contents: Contents, taken: Collection[str]) -> None:
        self._contents = contents
        (self.start,) = _file_names([("", "index")], "", taken).values()
        titles = ((d.id, d.title or d.id) for d in contents.documents)
        self.documents = _file_names(titles, "documents/", taken)
        names = ((e.key, e.name) for e in contents.entities)
        self.entities = _file_names(names, "entities/", taken)
        self._segments = {segment.id: segment for segment in contents.segments}
        self._parts: dict[str, list[Segment]] = defaultdict(list)
        for segment in contents.segments:
            self._parts[segment.document_id].append(segment)
        self._facts: dict[str, list[FactView]] = defaultdict(list)
        self._stated: dict[str, set[tuple[str, str]]] = defaultdict(set)
        for fact in contents.facts:
            named = zip((fact.head, fact.tail), contents.ends[fact.id], strict=True)
            for name, key in dict.fromkeys(named):
                self._facts[key].append(fact)
                self._stated[fact.segment_id].add((name, key))

    def index(self) -> str:
        most = sorted(self._contents.entities, key=lambda e: (-len(e.segments), e.name))[:100]
        return _note(
            {"documents": len(self._contents.documents), "entities": len(self._contents.entities)},
            self._contents.title,
            "## Documents",
            "\n".join(f"- {self._document(d.id)}" for d in self._contents.documents),
            "## Most mentioned",
            "\n".join(f"- {self._name(e.name, e.key)} ({len(e.segments)})" for e in most),
        )

    def document(self, document: DocumentInfo) -> str:
        parts = []
        for segment in self._parts[document.id]:
            heading = f"## {segment.index + 1}{': ' if segment.part else ''}{plain(segment.part)}"
            names = ", ".join(self._name(*one) for one in sorted(self._stated[segment.id]))
            about = f"*{names}*" if names else ""
            # A link to a block leads to the paragraph with its mark.
            parts += [heading, f"{plain(segment.text.strip())} ^{_mark(segment)}", about]
        about_it = {"id": document.id, **document.metadata} | {"id": document.id}
        return _note(about_it, document.title or document.id, *parts)

    def entity(self, entity: Entity) -> str:
        forms = [name for name, _ in entity.forms if name != entity.name]
        kind = {"type": entity.type} if entity.type else {}
        segment_links = ", ".join(dict.fromkeys(map(self._segment, entity.segments)))
        return _note(
            {"key": entity.key, **kind, **({"aliases": forms} if forms else {})},
            entity.name,
            "\n".join(self._property(*one) for one in entity.values().items()),
            "\n".join(self._fact(fact, entity.key) for fact in self._facts[entity.key]),
            f"Named in: {segment_links}" if segment_links else "",
        )

    def _property(self, name: str, values: Mapping[str, str]) -> str:
        told = (f"{_line(value)} {self._segment(place)}" for value, place in values.items())
        return f"- {_line(name)}: {'; before: '.join(told)}"

    def _fact(self, fact: FactView, about: str) -> str:
        head, tail = self._contents.ends[fact.id]
        arrow, *other = ("→", fact.tail, tail) if head == about else ("←", fact.head, head)
        kind = f" {_line(fact.type)}" if fact.type else ""
        line = f"- {arrow} {self._name(*other)}{kind}: {_line(fact.description)}"
        until = fact.valid_until or (fact.superseded_at[:10] or "later") * bool(fact.superseded_by)
        times = [
            f"said {_line(fact.said_at[:10])}" if fact.said_at else "",
            "not yet" if fact.is_ahead else "",
            f"from {_line(fact.valid_from)}" if fact.valid_from else "",
            f"until {_line(until)}" if until else "",
            f"then: {_line(fact.then)}" if fact.superseded_by else "",
        ]
        when = "; ".join(filter(None, times))
        is_said = fact.quotation.rstrip(".").casefold() in fact.description.casefold()
        quoted = "" if is_said else f"\n  > {plain(fact.quotation)}"
        return f"{line}{f' ({when})' if when else ''} {self._segment(fact.segment_id)}{quoted}"

    def _name(self, name: str, key: str) -> str:
        page = self.entities.get(key)
        return f"[[entities/{page}|{_label(name)}]]" if page else _line(name)

    def _document(self, document_id: str) -> str:
        page = self.documents[document_id]
        return f"[[documents/{page}|{_label(page)}]]"

    def _segment(self, segment_id: str) -> str:
        segment = self._segments[segment_id]
        page = self.documents[segment.document_id]
        return f"[[documents/{page}#^{_mark(segment)}|{_label(page)} {segment.index + 1}]]"


def plain(text: str) -> str:
    """Escape a text for Markdown, so that it creates no link, tag or heading."""
    return _LINE_START.sub(r"\1\\\2", _MARKUP.sub(r"\\\1", text))


def _line(text: str) -> str:
    """Return the same within one line."""
    return plain(" ".join(text.split()))


def _label(name: str) -> str:
    """Return the label of a link, without brackets and bars."""
    return " ".join(re.sub(r"[\[\]|\\]", " ", name).split())


def _mark(segment: Segment) -> str:
    return f"s{segment.index + 1}"


def _file_names(
    named: Iterable[tuple[str, str]], folder: str, taken: Collection[str]
) -> dict[str, str]:
    """Return a file name without suffix for each key: readable, unique, allowed everywhere."""
    names_taken = set(taken)
    file_names = {}
    for key, name in named:
        base = " ".join(_NO_NAME.sub(" ", name).split())[:_LONGEST].strip(" .") or "unnamed"
        base = f"_{base}" if _RESERVED.match(base) else base
        file_name, number = base, 1
        # For some file systems Ann and ann are equal.
        while (path := _folded(f"{folder}{file_name}.md")) in names_taken:
            number += 1
            file_name = f"{base} ({number})"
        names_taken.add(path)
        file_names[key] = file_name
    return file_names


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", name.casefold())


def _note(front: Mapping[str, object], title: str, *blocks: str) -> str:
    lines = [
        f"{name if _PLAIN_KEY.fullmatch(name) else _yaml(name)}: {_yaml(value)}"
        for name, value in front.items()
    ]
    head = "\n".join(["---", *lines, "---"])
    return "\n\n".join([head, f"# {plain(' '.join(title.split()))}", *filter(None, blocks)]) + "\n"


def _yaml(value: object) -> str:
    """Return a value in YAML's form, of which JSON is a part."""
    text = json.dumps(value, ensure_ascii=False)
    return _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
