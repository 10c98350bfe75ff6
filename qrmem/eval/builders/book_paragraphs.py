"""Books for TSort: text, Gutenberg, EPUB and BookSum's form, as paragraphs without headings.

Chapter numbers, illustrations, footnotes and other marks of an edition are removed, so that
only the story shows the order (Ada-LEval, section 3.2).
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from qrmem.errors import BadDocument, UsageError
from qrmem.text import files
from qrmem.text.boilerplate import is_heading
from qrmem.text.normalise import normalise

_START = re.compile(r"\*\*\* ?START OF TH[EIS]+ PROJECT GUTENBERG.*?\*\*\*", re.DOTALL)
_END = re.compile(
    r"\*\*\* ?END OF TH[EIS]+ PROJECT GUTENBERG|^End of (?:the )?Project Gutenberg", re.M
)
_NOTE = re.compile(
    r"\[(?:illustrations?|footnote|note|transcriber|pg|page|sidenote|editor)\b[^\[\]]*\]|\[\d+\]|\{\d+\}",
    re.IGNORECASE,
)
_CHAPTER = re.compile(
    r"(?:(?:chapter|chap\.|letter|part|book|volume|vol\.|section|act|scene|canto|stave)\s+"
    r"(?:[ivxlcdm]+|\d+|[a-z-]+)|[ivxlcdm]+|\d+)\s*[.:)\]—–-]*(?:\s|\Z)",
    re.IGNORECASE,
)
_LABELS = re.compile(
    r"(?:(?:CHAPTER|CHAP\.|LETTER|PART|BOOK|VOLUME|VOL\.|SECTION|Chapter|Letter|Part|Book|Volume)\s+"
    r"(?:[IVXLCDM]+|\d+)\s*[.:]\s*(?:\([^()]{1,40}\))?[\s.,;:—–-]*)+(?=\S)"
)
"""Labels at the start of a paragraph of the story."""
_LONGEST_HEADING = 120
"""Maximum length in characters of a chapter's heading."""
_VERSE_LINE = 50
"""Length in characters of a line: wrapped prose has longer lines than most verse."""
_FEWEST_LINES = 4
_SALUTATION = re.compile(
    r"\W*(?:(?:my )?(?:very )?dear(?:est)?|to (?:mr|mrs|miss)\.?) [^.!?]{2,40}[,.:—]", re.I
)
_VERSE_SHARE, _LETTER_SHARE = 0.5, 0.05
"""A book with a larger share of such paragraphs is verse, or a novel in letters."""
_SENTENCE_END = re.compile(r"[.!?:][\"'”’»)\]]*\s*$")
_NUMBERED = re.compile(r"\D*(\d+)\D*")


@dataclass(frozen=True, slots=True)
class Book:
    """A text in order.

    Attributes:
        id: path below the source, or BookSum's id.
        paragraphs: the paragraphs, each on one line.
    """

    id: str
    paragraphs: tuple[str, ...]


def book_files(source: Path) -> list[Path]:
    """Return the files of a source, in order.

    Raises:
        UsageError: it has no files.
    """
    if source.is_file():
        return [source]
    paths = sorted(
        path
        for path in source.rglob("*")
        if path.suffix.lower() in _READ
        and path.is_file()
        and not any(part.startswith(".") for part in path.relative_to(source).parts)
    )
    if not paths:
        raise UsageError(f"{source} holds no text to build from (.txt, .md, .html, .epub, .jsonl)")
    return paths


def books(source: Path, left_out: Counter[str]) -> Iterator[Book]:
    """Yield the books of a source one at a time; verse and novels in letters are left out.

    Args:
        source: a file or a folder.
        left_out: counts books that are left out, by reason.
    """
    for id, texts in _texts(source, left_out):
        paragraphs = [p for text in texts for p in cleaned(text)]
        verse = sum(is_verse for _, is_verse in paragraphs)
        prose = tuple(text for text, is_verse in paragraphs if not is_verse)
        letters = sum(bool(_SALUTATION.match(text)) for text in prose)
        if verse > _VERSE_SHARE * max(1, len(paragraphs)):
            left_out["books in verse"] += 1
        elif letters > _LETTER_SHARE * max(1, len(prose)) and letters > 2:
            left_out["novels in letters"] += 1
        elif not prose:
            left_out["books without text"] += 1
        elif 2 * len(set(prose)) < len(prose):
            left_out["books that repeat most of their paragraphs"] += 1
        else:
            yield Book(id, prose)


def cleaned(text: str) -> Iterator[tuple[str, bool]]:
    """Yield a text's paragraphs without headings and notes, and whether each is verse."""
    text = normalise(text)
    if start := _START.search(text):
        text = text[start.end() :]
    if end := _END.search(text):
        text = text[: end.start()]
    while (without := _NOTE.sub("", text)) != text:
        text = without
    blocks = re.split(r"\n[ \t]*\n+", text)
    if len(blocks) * 40 < text.count("\n"):  # no blank lines between paragraphs
        blocks = _sentences_whole(text.split("\n"))
    for block in blocks:
        lines = [line.strip() for line in block.split("\n") if line.strip()]
        joined = " ".join(" ".join(lines).replace("_", "").split())
        if any(c.isalpha() for c in joined) and not _is_heading(joined):
            label = _LABELS.match(joined)
            yield joined[label.end() :] if label else joined, _is_verse(lines)


def _sentences_whole(lines: Sequence[str]) -> list[str]:
    """Return lines as paragraphs; one that ends within a sentence is joined with the next."""
    groups: list[list[str]] = [[]]
    for line in lines:
        groups[-1].append(line)
        if _SENTENCE_END.search(line) or is_heading(line):
            groups.append([])
    return ["\n".join(group) for group in groups]


def _is_heading(text: str) -> bool:
    if len(text) > _LONGEST_HEADING:
        return False
    return bool(_CHAPTER.match(text) and text[-1:] not in ",;") or is_heading(text)


def _is_verse(lines: Sequence[str]) -> bool:
    """Return whether lines are verse: several short ones, most of them with a capital first."""
    if len(lines) < _FEWEST_LINES:
        return False
    short = sum(len(line) < _VERSE_LINE for line in lines)
    capitals = sum(line.lstrip("\"'“‘—-")[:1].isupper() for line in lines)
    return short >= 0.8 * len(lines) and capitals >= 0.7 * len(lines)


# --- sources -------------------------------------------------------------------------------------

_LINES = (".jsonl", ".json")
_READ = (".txt", ".text", ".md", ".html", ".htm", ".xhtml", ".epub", *_LINES)


def _texts(source: Path, left_out: Counter[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield an id and the texts of its chapters."""
    paths = book_files(source)
    base = source if source.is_dir() else source.parent
    lines = [path for path in paths if path.suffix.lower() in _LINES]
    for name, chapters in _by_book([path for path in paths if path not in lines], base).items():
        try:
            yield name, [files.read(path).text for path in chapters]
        except BadDocument as exc:
            if source.is_file():
                raise UsageError(str(exc)) from exc
            reason = "empty" if "is empty" in str(exc) else "unreadable"
            left_out[f"books with {reason} files"] += 1
    for path in lines:
        yield from _booksum(path)


def _by_book(paths: Sequence[Path], base: Path) -> dict[str, list[Path]]:
    """Group files; the numbered files of one sub-folder are the chapters of one book."""
    files_by_book: dict[str, list[Path]] = {}
    for path in paths:
        is_chapter = path.parent != base and _NUMBERED.fullmatch(path.stem)
        book_path = path.parent if is_chapter else path
        files_by_book.setdefault(book_path.relative_to(base).as_posix(), []).append(path)
    for chapters in files_by_book.values():
        chapters.sort(key=lambda p: (int(m[1]) if (m := _NUMBERED.fullmatch(p.stem)) else 0, p))
    return files_by_book


def _booksum(path: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield the books of BookSum's form: JSON lines of chapters, those of a book in a row.

    A row has `chapter` or `text`, and `bid` or `book_id`. Rows of several chapters together
    (`is_aggregate`) and second summaries of the same chapter (`chapter_path`) are skipped.
    """
    book, texts, chapters_seen = "", list[str](), set[str]()
    with path.open(encoding="utf-8", errors="replace") as file:
        for n, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
                text = str(row.get("chapter") or row["text"])
            except (ValueError, KeyError, AttributeError, TypeError):
                raise UsageError(
                    f"{path}: line {n} is not a BookSum chapter (an object with chapter or text, "
                    "and "
                    "bid or book_id); remove the file from the source"
                ) from None
            book_id = str(row.get("bid") or str(row.get("book_id", path.stem)).partition(".")[0])
            if book_id != book:
                if texts:
                    yield book, texts
                book, texts, chapters_seen = book_id, [], set()
            place = str(row.get("chapter_path") or n)
            if (
                str(row.get("is_aggregate", "")).lower() not in ("true", "1")
                and place not in chapters_seen
            ):
                chapters_seen.add(place)
                texts.append(text)
    if texts:
        yield book, texts
