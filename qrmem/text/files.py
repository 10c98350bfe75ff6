"""Files into documents: which kind a file is, its text, its title, its parts."""

import re
import stat
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path, PurePath

from qrmem.errors import BadDocument
from qrmem.text.budget import ByteBudget
from qrmem.text.code.ignore_rules import IgnoreRules
from qrmem.text.code.languages import CODE_KEY, language_of
from qrmem.text.decoding import KINDS, PLAIN, decode
from qrmem.text.front_matter import split_front_matter
from qrmem.text.headings import headings
from qrmem.text.normalise import normalise
from qrmem.types import Document, Part
from qrmem.types.turns import SCOPES

_MARKDOWN_TITLE = re.compile(r"^# +(\S.*)$", re.MULTILINE)
_GUTENBERG_TITLE = re.compile(r"^Title:[ \t]+(\S.*)$", re.MULTILINE)
_HTML = re.compile(r"(?:<\?xml[^<>]*>\s*)?<(?:!doctype )?html", re.IGNORECASE)
_HEADER = 5_000
MOST_TITLE = 1_000
"""Characters of a title, which stands in every prompt that shows a passage of the document."""


def read(path: str | Path) -> Document:
    """Read one file into a document without an id; its `source` is the path as given.

    Raises:
        BadDocument: no such file, a folder or a pipe, not readable, empty, binary, broken,
            encrypted, or too large.
        MissingError: the kind of file needs the extra `files`.
    """
    return from_bytes(content(path), str(path))


def content(path: str | Path) -> bytes:
    """Return what a file holds; `read` says what is refused."""
    place = Path(path)
    shown = normalise(str(path))
    if place.is_dir():
        raise BadDocument(f"{shown} is a folder, not a file")
    budget = ByteBudget(shown)
    try:
        if not stat.S_ISREG(place.stat().st_mode):
            raise BadDocument(
                f"{shown} is a pipe or a device, not a file: use - for standard input"
            )
        with place.open("rb") as file:
            return budget.read(file)
    except FileNotFoundError:
        raise BadDocument(f"no such file: {shown}") from None
    except (OSError, ValueError) as exc:
        reason = getattr(exc, "strerror", None) or "not a path"
        raise BadDocument(f"{shown} cannot be read: {reason}") from exc


def from_bytes(data: bytes, name: str) -> Document:
    """Read the content of a file; the suffix of its name tells the kind, else what it begins with.

    Raises:
        BadDocument: empty, binary, broken, encrypted, or too large.
        MissingError: the kind of file needs the extra `files`.
    """
    shown = normalise(name)
    ByteBudget(shown).take(len(data))
    language = language_of(name)
    kind = "code" if language else KINDS.get(PurePath(name).suffix.lower()) or _kind(data)
    if not data:
        raise BadDocument(f"{shown} is empty")
    if kind not in PLAIN:
        from qrmem.text.binary_documents import read_binary

        text, title, parts, extra = read_binary(kind, data, shown, ByteBudget(shown))
    else:
        text, title, parts, extra = _read_text(kind, data, shown)
    if not text.strip():
        raise BadDocument(f"{shown} holds no text")
    if language:
        title, parts, extra = PurePath(shown).name, (), {**extra, CODE_KEY: language}
    return Document(
        text=text,
        title=title[:MOST_TITLE].rstrip()
        or unicodedata.normalize("NFC", PurePath(shown).stem)
        or shown,
        metadata={**extra, "source": shown},
        parts=parts,
    )


def _read_text(
    kind: str, data: bytes, name: str
) -> tuple[str, str, tuple[Part, ...], dict[str, str]]:
    decoded, encoding = decode(data, name)
    extra = {"encoding": encoding}
    if kind == "html" or (not kind and _HTML.match(decoded[:_HEADER].lstrip())):
        from qrmem.text.html import read_html  # with lxml, which a search does without

        return *read_html(decoded), extra
    text = normalise(decoded)
    if kind == "markdown":
        fields, text = split_front_matter(text)
        # Whose a document is, its reader says; a file's own word is kept under another name.
        own = {f"file_{k}" if k in SCOPES else k: value for k, value in fields.items()}
        extra = own | extra
    return text, extra.get("title") or _title(kind, text), tuple(headings(text)), extra


def _title(kind: str, text: str) -> str:
    if kind == "markdown" and (heading := _MARKDOWN_TITLE.search(text)):
        return heading[1].rstrip(" \t#")
    head = text[:_HEADER]
    if "Project Gutenberg" in head and (line := _GUTENBERG_TITLE.search(head)):
        return line[1].strip()
    return ""


def _kind(data: bytes) -> str:
    """Return the kind that content without a known suffix begins like, "" for text."""
    if data.startswith(b"%PDF-"):
        return "pdf"
    if data.startswith(b"PK\x03\x04"):
        return "epub" if b"application/epub+zip" in data[:200] else "docx"
    return ""


_OTHER = "of a kind that is not read"
_NAMED = 5
"""Kinds that are named at most."""
_OUTSIDE = "outside of the folder, by a link (--follow-links reads them)"
_BROKEN = "behind a broken link"
_NO_FILE = "not a file but a pipe or a device"


@dataclass(frozen=True, slots=True)
class Found:
    """Files to read, in order, and how many were passed over.

    Attributes:
        paths: sorted by their path below the folder.
        passed_over: files that are not read, by reason; those that a glob leaves out are not
            counted, nor hidden ones.
        unreadable: folders that could not be looked through, and why.
    """

    paths: tuple[Path, ...]
    passed_over: Mapping[str, int] = field(default_factory=dict)
    unreadable: tuple[tuple[Path, str], ...] = ()

    def __iter__(self) -> Iterator[Path]:
        return iter(self.paths)


def discover(folder: Path, glob: str | None = None, *, follow_links: bool = False) -> Found:
    """Return the files of a folder, which is searched to the bottom.

    Hidden files and folders are passed over, links that lead out of the folder and links to folders
    too; of source code also what git ignores, what is vendored or generated, and what is very
    large.

    Args:
        folder: where to look.
        glob: pattern for a file's name (`*.txt`) or path (`letters/*.md`); without it, every suffix
            that can be read.
        follow_links: whether links are followed wherever they lead.
    """
    walk = _Walk(folder.resolve(), follow_links)
    below = sorted(walk.files(folder), key=lambda file: file.relative_to(folder).as_posix())
    wanted = [file for file in below if _is_wanted(file.relative_to(folder), glob)]
    rules = IgnoreRules(folder)
    kept = [file for file in wanted if not (language_of(file) and rules.reason(file))]
    passed_over = walk.passed_over + rules.passed_over
    if glob is None and len(wanted) < len(below):
        known = set(wanted)
        others = [file for file in below if file not in known]
        passed_over[f"{_OTHER} ({_kinds(others)})"] += len(others)
    return Found(tuple(kept), passed_over, tuple(walk.unreadable))


def _kinds(files: Iterable[Path]) -> str:
    """Return the commonest endings of some files."""
    endings = Counter(file.suffix.lower() or file.name for file in files)
    named = [normalise(ending)[:20] for ending, _ in endings.most_common(_NAMED)]
    return ", ".join([*named, *(["…"] if len(endings) > _NAMED else [])])


@dataclass(slots=True)
class _Walk:
    """Goes through a folder.

    Attributes:
        passed_over: what is no file that may be read, by reason.
        unreadable: folders that could not be looked through, and why.
    """

    root: Path
    follow_links: bool
    passed_over: Counter[str] = field(default_factory=Counter)
    unreadable: list[tuple[Path, str]] = field(default_factory=list)
    _seen: set[Path] = field(default_factory=set)

    def files(self, folder: Path) -> Iterator[Path]:
        """Yield the files below a folder, each folder once."""
        self._seen.add(folder.resolve())
        try:
            entries = [(one, one.is_dir()) for one in folder.iterdir() if self._is_taken(one)]
        except OSError as exc:
            self.unreadable.append((folder, exc.strerror or str(exc)))
            return
        for entry, is_folder in entries:
            if is_folder:
                if entry.resolve() not in self._seen:
                    yield from self.files(entry)
            elif entry.is_file():
                yield entry
            else:
                self.passed_over[_NO_FILE if entry.exists() else _BROKEN] += 1

    def _is_taken(self, entry: Path) -> bool:
        is_hidden = entry.name.startswith(".")
        return not is_hidden and (not entry.is_symlink() or self._is_followed(entry))

    def _is_followed(self, link: Path) -> bool:
        if self.follow_links or not link.exists():
            return True
        if not link.resolve().is_relative_to(self.root):
            self.passed_over[_OUTSIDE] += 1
            return False
        return link.is_file()  # a folder within the folder is read where it stands


def _is_wanted(relative: PurePath, glob: str | None) -> bool:
    if glob is None:
        return relative.suffix.lower() in KINDS or bool(language_of(relative))
    path = relative.as_posix()
    return (
        fnmatchcase(relative.name, glob)
        or fnmatchcase(path, glob)
        or fnmatchcase(path, glob.replace("**/", ""))
    )
