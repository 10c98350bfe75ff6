"""TSort: consecutive pieces of a book in random order, to be sorted (Ada-LEval, section 3.3)."""

import json
import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

from qrmem.errors import BadDocument, UsageError
from qrmem.eval.builders.writing import BuiltSet, case_files, counter_of, lengths_of
from qrmem.eval.registry import builder
from qrmem.text import files
from qrmem.text.headings import is_heading
from qrmem.text.normalise import normalise

PROMPT = 200
"""Tokens reserved for the instructions: the length minus the sum of Table 11's limits."""
_AROUND = ((2000, 200), (4000, 300), (8000, 400))
_MOST_AROUND = 500
_LONG = 32_000
"""From this length on the distance between cases is doubled."""
_SEAM = 1
"""Tokens of a break between two paragraphs."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Maximum tokens of the text before, of a segment and of the text after; stride of starts."""

    before: int
    segment: int
    after: int
    stride: int


@dataclass(frozen=True, slots=True)
class Cut:
    """A case as bounds in its book: n + 3 paragraph numbers for n segments."""

    start: int
    bounds: tuple[int, ...]
    tokens: int


@dataclass(frozen=True, slots=True)
class Book:
    """A text in order.

    Attributes:
        id: path below the source, or BookSum's id.
        paragraphs: the paragraphs, each on one line.
    """

    id: str
    paragraphs: tuple[str, ...]


def limits(length: int, parts: int) -> Limits:
    """Return the limits of Table 11, for any length and number of parts.

    Raises:
        UsageError: the length leaves no room.
    """
    around = next((size for most, size in _AROUND if length <= most), _MOST_AROUND)
    around = min(around, length // 10)
    segment = (length - PROMPT - 2 * around) // parts
    if segment < 20:
        raise UsageError(
            f"a length of {length} tokens leaves no room for {parts} parts beside the prompt's "
            f"{PROMPT}; use a longer one"
        )
    return Limits(around, segment, around, 128 if length >= _LONG else 64)


@builder("tsort", "TSort: parts of a book to be put in order (Ada-LEval)", is_repeatable=True)
def build(
    data: Path,
    out: Path,
    *,
    length: str = "8k",
    seed: int = 0,
    count: int = 0,
    parts: int = 4,
    stride: int = 0,
    tokenizer: str = "auto",
) -> BuiltSet:
    """Write `tsort_LENGTH.jsonl` for each length.

    Args:
        data: a book, or a folder of books (see `books`).
        length: number of tokens of a case with its prompt: `8k`, or several separated by commas.
        seed: seed of the order of parts, and of the choice of cases.
        count: maximum number of cases per length; 0 for all.
        parts: number of segments to sort.
        stride: number of paragraphs between the starts of two cases; 0 uses the paper's, 64, or 128
            from 32k on.
        tokenizer: `auto` is cl100k if its file is on the machine, else the built-in counter.

    Raises:
        UsageError: no case can be made; the message says why.
    """
    counter = counter_of(tokenizer)
    if not 2 <= parts <= 7:
        raise UsageError(f"parts are 2 to 7, not {parts}")
    bounds = {name: limits(tokens, parts) for name, tokens in lengths_of(length).items()}
    left_out: Counter[str] = Counter()
    cuts: Places = {name: {} for name in bounds}
    for n, book in enumerate(books(data, left_out)):
        sums = [0, *accumulate(counter.count(text) + _SEAM for text in book.paragraphs)]
        for name, limit in bounds.items():
            for cut in _of_book(book, sums, limit, parts, stride or limit.stride, left_out):
                cuts[name][n, cut.start] = cut
    empty = [name for name, book_cuts in cuts.items() if not book_cuts]
    if empty:
        raise UsageError(_why(data, empty[0], left_out))
    if count:
        cuts = {
            name: _sample_cuts(book_cuts, count, f"{seed}:{name}")
            for name, book_cuts in cuts.items()
        }
    return BuiltSet(counter, book_files(data), _write(data, out, cuts, seed), left_out)


Place = tuple[int, int]
"""Number of the book and of the first paragraph."""
Places = dict[str, dict[Place, Cut]]
"""Length to start to case; texts are not kept."""


def _sample_cuts(cuts: Mapping[Place, Cut], count: int, seed: str) -> dict[Place, Cut]:
    sampled = random.Random(seed).sample(sorted(cuts), min(count, len(cuts)))
    return {place: cuts[place] for place in sorted(sampled)}


def _of_book(
    book: Book,
    sums: Sequence[int],
    limit: Limits,
    parts: int,
    step: int,
    left_out: Counter[str],
) -> Iterator[Cut]:
    sizes = [limit.before, *[limit.segment] * parts, limit.after]
    last = len(sums) - 1
    told = [0, *accumulate(bool(_TOLD.search(text)) for text in book.paragraphs)]
    for start in range(0, max(1, last), step):
        bounds = [start]
        for size in sizes:
            bounds.append(_reach(sums, bounds[-1], size))
        inner = bounds[1:-1]
        if bounds[-2] >= last:
            left_out["starts too near to the end of the text"] += 1
        elif any(a == b for a, b in pairwise(bounds)):
            left_out["starts with a paragraph longer than its part may be"] += 1
        elif _has_twins(book, inner):
            left_out["starts with paragraphs that occur twice"] += 1
        elif told[inner[0]] < told[inner[-1]]:
            left_out["starts with prose that tells a chapter's number"] += 1
        else:
            yield Cut(start, tuple(bounds), sums[bounds[-1]] - sums[start] + PROMPT)


def _reach(sums: Sequence[int], start: int, size: int) -> int:
    """Return the end of whole paragraphs from `start` with at most `size` tokens."""
    end = start
    while end + 1 < len(sums) and sums[end + 1] - sums[start] <= size:
        end += 1
    return end


def _has_twins(book: Book, inner: Sequence[int]) -> bool:
    """Return whether two parts have mostly the same paragraphs, so that no order is right."""
    parts = [set(book.paragraphs[a:b]) for a, b in pairwise(inner)]
    return any(
        2 * len(one & other) >= min(len(one), len(other))
        for n, one in enumerate(parts)
        for other in parts[n + 1 :]
    )


def _write(data: Path, out: Path, cuts: Places, seed: int) -> list[dict[str, Any]]:
    by_book: dict[int, list[tuple[str, Cut]]] = {}
    for name, book_cuts in cuts.items():
        for (n, _), cut in book_cuts.items():
            by_book.setdefault(n, []).append((name, cut))
    with case_files(out, "tsort", cuts) as files:
        for n, book in enumerate(books(data, Counter())):
            for name, cut in by_book.get(n, ()):
                files[name].add(_case(book, cut, seed))
    return [file.about for file in files.values()]


def _case(book: Book, cut: Cut, seed: int) -> dict[str, Any]:
    """Return a case; `answer` names the parts in the right order, from 1."""
    pieces = ["\n\n".join(book.paragraphs[a:b]) for a, b in pairwise(cut.bounds)]
    order_shown = list(range(len(pieces) - 2))
    random.Random(f"{seed}:{book.id}:{cut.start}").shuffle(order_shown)
    return {
        "book_id": book.id,
        "para_offset": cut.start,
        "before": pieces[0],
        "segments": [pieces[1 + at] for at in order_shown],
        "after": pieces[-1],
        "answer": [1 + order_shown.index(at) for at in range(len(order_shown))],
        "tokens": cut.tokens,
    }


def _why(data: Path, length: str, left_out: Counter[str]) -> str:
    causes = ", ".join(f"{count} {reason}" for reason, count in left_out.most_common())
    return (
        f"{data} gives no case of {length}: {causes or 'it holds no text'}; give longer prose in "
        "paragraphs, or a shorter length"
    )


# Books: text, Gutenberg, EPUB and BookSum's form, as paragraphs without headings.
#
# Chapter numbers, illustrations, footnotes and other marks of an edition are removed, so that
# only the story shows the order (Ada-LEval, section 3.2).


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
_LABEL = (
    r"(?:CHAPTER|CHAP\.|LETTER|PART|BOOK|VOLUME|VOL\.|SECTION|Chapter|Letter|Part|Book|Volume)\s+"
    r"(?:[IVXLCDM]+|\d+)"
)
_LABELS = re.compile(rf"(?:{_LABEL}\s*[.:]\s*(?:\([^()]{{1,40}}\))?[\s.,;:—–-]*)+(?=\S)")
"""Labels at the start of a paragraph of the story."""
_TOLD = re.compile(rf"\b{_LABEL}\b")
"""A label within the prose: "Thus ends BOOK II"; it may give the order away."""
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
