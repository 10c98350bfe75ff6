"""Headings, and segments that are no text to read: contents, title pages, indexes, licences."""

import re
from functools import lru_cache

_HEADING = re.compile(
    r"#{1,6}\s|(?:chapter|letter|part|book|volume|section|act|scene|appendix|canto|stave)\s+"
    r"(?:[ivxlcdm]+|\d+|[a-z]+)\b[.:]?(?:\s|\Z)",
    re.IGNORECASE,
)
_ENDS = re.compile(r"[.!?;:,…]['\"”’»)\]*_]*\Z")
_LONGEST_HEADING = 12
"""Words."""
_ENTRY = re.compile(
    r"(?:chapter|letter|part|book|volume|section|act|scene|appendix|canto|stave)\s*"
    r"(?:[ivxlcdm]+|\d+)\b[.:)]?(?:\s|\Z)|\d+(?:\.\d+)+\.?\s"
    r"|.*(?:\.{3,}|\s{3,}|\t)\s*(?:\d+|[ivxlc]+)\Z",
    re.IGNORECASE,
)
_NUMBERED = re.compile(r"(?:[ivxlcdm]+|\d+)\b[.:)]?(?:\s+|\Z)", re.IGNORECASE)
_INDEXED = re.compile(r".*[^\W\d_],?\s+\d+(?:\s*[-–,;]\s*\d+)*[.;]?\Z")
_LICENCE = re.compile(
    r"\b(?:licen[cs]e[ds]?|copyright(?:ed)?|trademark|redistribut\w+|warrant(?:y|ies)|liability"
    r"|royalt(?:y|ies)|refund|public domain|permission|all rights reserved|terms of use"
    r"|derivative works)\b",
    re.IGNORECASE,
)
_FEWEST_LINES = 5
_MOST_WORDS_A_LINE = 12
_MOSTLY = 0.6
_FEWEST_CUES, _WORDS_A_CUE = 5, 60
"""A licence has at least so many of its words, one in at most so many."""
_SENTENCE_END = re.compile(r"[a-z]{2}[.!?]['\"”’»)]*(?:\s|\Z)")


def is_heading(text: str) -> bool:
    """Whether a sentence or line is a heading: a marked or short one that no stop ends."""
    line = " ".join(text.split())
    words = line.split()
    if len(words) > _LONGEST_HEADING or not any(c.isalpha() for c in line):
        return not any(c.isalpha() for c in line)
    if _HEADING.match(line) and not (len(words) > 3 and _SENTENCE_END.search(line)):
        return True
    is_open = not _ENDS.search(line) and line[:1] not in "\"“‘'—-"
    return line.isupper() or (is_open and _opens(words))


def _opens(words: list[str]) -> bool:
    """Whether words are capitalised as in a title."""
    weighty = [word for word in words if len(word) > 3]
    return bool(weighty) and all(word[:1].isupper() or word[:1].isdigit() for word in weighty)


@lru_cache(maxsize=1024)
def boilerplate(text: str, index: int = 1) -> str:
    """Return what a segment is if it is no text to read, else "".

    Args:
        index: the segment's place in its document; only the first can be a title page.

    Returns:
        `contents`, `heading`, `index`, `licence`, `title page` or "".
    """
    words = len(text.split())
    if words <= _LONGEST_HEADING and _HEADING.match(text) and _opens(text.split()):
        return "heading" if is_heading(text) else ""
    if _is_licence(text, words):
        return "licence"
    rows = [row.strip() for row in text.split("\n") if row.strip()]
    short = [row for row in rows if len(row.split()) <= _MOST_WORDS_A_LINE]
    if len(rows) < _FEWEST_LINES or len(short) < _MOSTLY * len(rows):
        return ""
    if sum(map(_is_entry, rows)) >= _MOSTLY * len(rows):
        return "contents"
    if sum(bool(_INDEXED.match(row)) for row in rows) >= _MOSTLY * len(rows):
        return "index"
    is_prose = len(_SENTENCE_END.findall(text)) * 40 > words
    return "title page" if index == 0 and not is_prose else ""


def _is_entry(row: str) -> bool:
    """Whether a line is of a table of contents; a number alone makes none: lists have numbers."""
    numbered = _NUMBERED.match(row)
    return bool(_ENTRY.match(row)) or (numbered is not None and is_heading(row[numbered.end() :]))


def _is_licence(text: str, words: int) -> bool:
    """Whether the words of licences stand close together, in both halves of a text.

    The end of a story in the same segment is worth reading.
    """
    places = [match.start() for match in _LICENCE.finditer(text)]
    first = sum(place < len(text) // 2 for place in places)
    is_dense = len(places) >= _FEWEST_CUES and words <= _WORDS_A_CUE * len(places)
    return is_dense and min(first, len(places) - first) >= 2
