"""Finds boilerplate: contents, title pages, indexes, licences, notes of editors."""

import re
from functools import lru_cache

from qrmem.text.calendar_names import MONTHS
from qrmem.text.headings import (
    FINAL_STOP,
    HEADING,
    LONGEST_HEADING,
    SENTENCE_END,
    is_heading,
    is_title_case,
)

_ENTRY = re.compile(
    r"(?:chapter|letter|part|book|volume|section|act|scene|appendix|canto|stave)\s*"
    r"(?:[ivxlcdm]+|\d+)\b[.:)]?(?:\s|\Z)|\d+(?:\.\d+)+\.?\s",
    re.IGNORECASE,
)
_PAGES = ("0123456789", "ivxlcIVXLC")
"""Characters of a page number."""
_NUMBERED = re.compile(r"(?:[ivxlcdm]+|\d+)\b[.:)]?(?:\s+|\Z)", re.IGNORECASE)
_ROMAN = re.compile(r"[IVXLC]+[.:)]\s")
_INDEXED = re.compile(
    r"(?P<head>.*[^\W\d_])(?P<comma>,?)\s+\d{1,3}(?:\s*[-–,;]\s*\d{1,3})*(?P<stop>[.;]?)\Z"
)
"""A subject of an index with its pages; a number of four digits is mostly a year."""
_LICENCE = re.compile(
    r"\b(?:licen[cs]e[ds]?|copyright(?:ed)?|trademark|redistribut\w+|warrant(?:y|ies)|liability"
    r"|royalt(?:y|ies)|refund|public domain|permission|all rights reserved|terms of use"
    r"|derivative works|project gutenberg(?:-tm|™)?|e-?books?|electronic works?|donations?)\b",
    re.IGNORECASE,
)
_BOOK_PARTS = frozenset(("contents", "table of contents", "illustrations", "the end", "finis"))
_FEWEST_LINES = 5
_MOST_WORDS_A_LINE = 12
_MOSTLY = 0.6
_FEWEST_CUES, _WORDS_A_CUE = 5, 60
"""A licence has at least so many of these words, at least one in so many words."""
_BLOCK = re.compile(r"^[^\S\n]*\S[^\n]*(?:\n[^\S\n]*\S[^\n]*)*", re.MULTILINE)
"""Consecutive lines without an empty one."""
_STARTS = re.compile(r"^\*\*\*\s?START OF (?:THE|THIS) .*$", re.MULTILINE)
_FINISHES = re.compile(
    r"^(?:\*\*\*\s?END OF (?:THE|THIS) |End of (?:the |this )?Project Gutenberg).*$", re.MULTILINE
)
_NOTE = re.compile(
    r"[\W_]*(?:transcriber['’]?s?['’]? notes?\b|\[illustration\b"
    r"|(?:produced|transcribed|digiti[sz]ed|scanned|prepared)\s+(?:by|from)\s"
    r"|e-?(?:text|book)\s(?:produced|prepared|transcribed)\s)",
    re.IGNORECASE,
)
_CREDIT = re.compile(r"\b(?:e-?texts?|e-?books?|proofread\w*|html|edition)\b|@|://", re.IGNORECASE)
_IS_SAID = re.compile(
    r"\b(?:am|is|are|was|were|be|been|has|have|had|do|does|did|will|would|can|could|may|might|must"
    r"|shall|should|said|says)\b"
)
"""Small words in sentences; in headings they would begin with a capital."""


@lru_cache(maxsize=1024)
def boilerplate(text: str, index: int = 1) -> str:
    """Return the kind of boilerplate that a segment is, else "".

    Args:
        index: the segment's place in its document; only the first can be a title page.

    Returns:
        `contents`, `heading`, `index`, `licence`, `title page` or "".
    """
    words = len(text.split())
    if words <= LONGEST_HEADING and HEADING.match(text) and is_title_case(text.split()):
        return "heading" if is_heading(text) else ""
    if _is_licence(text, words):
        return "licence"
    rows = [row.strip() for row in text.split("\n") if row.strip()]
    short = [row for row in rows if len(row.split()) <= _MOST_WORDS_A_LINE]
    if len(rows) < _FEWEST_LINES or len(short) < _MOSTLY * len(rows):
        return ""
    if sum(map(_is_entry, rows)) >= _MOSTLY * len(rows):
        return "contents"
    if sum(map(_is_indexed, rows)) >= _MOSTLY * len(rows):
        return "index"
    is_prose = len(SENTENCE_END.findall(text)) * 40 > words
    return "title page" if index == 0 and not is_prose else ""


def _is_entry(row: str) -> bool:
    """Whether a line is in a table of contents; a number alone is not enough: lists have them."""
    if _is_marked(row):
        return True
    numbered = _NUMBERED.match(row)
    return numbered is not None and is_heading(row[numbered.end() :].rstrip(" .,;"))


def _is_indexed(row: str) -> bool:
    """Whether a line is in an index: a subject, a comma and its pages, or a title and its page.

    A sentence has small letters and no comma before its number ("Ann Miller has 12").
    """
    match = _INDEXED.match(row)
    if match is None or is_said(match["head"]):
        return False
    words = match["head"].split()
    if words[-1].casefold() in MONTHS:
        return False
    is_title = not words[-1].islower() and is_title_case([*words, "Page"]) and match["stop"] != "."
    return bool(match["comma"]) or is_title


def _is_marked(row: str) -> bool:
    """Whether a line begins like a chapter, or ends with dots or wide space and a page.

    The end is matched backwards. A table row may have thousands of spaces, and a regular
    expression that tries them from each position takes minutes.
    """
    for digits in _PAGES:
        title = row.rstrip(digits)
        if len(row) - len(title) == 4 and digits[0] == "0":  # a year, as in a table
            continue
        gap = title[len(title.rstrip()) :]
        if title != row and (len(gap) >= 3 or "\t" in gap or title.rstrip().endswith("...")):
            return True
    return _ENTRY.match(row) is not None


def _is_licence(text: str, words: int) -> bool:
    """Whether words of licences are dense in both halves of a text.

    Both halves count, because the end of a story in the same segment is worth reading.
    """
    places = [match.start() for match in _LICENCE.finditer(text)]
    first = sum(place < len(text) // 2 for place in places)
    is_dense = len(places) >= _FEWEST_CUES and words <= _WORDS_A_CUE * len(places)
    return is_dense and min(first, len(places) - first) >= 2


@lru_cache(maxsize=1024)
def apparatus(text: str) -> tuple[tuple[int, int], ...]:
    """Return the parts of a text that are boilerplate, as `(start, end)` in order.

    These are headings before text, contents, licences, credits of an electronic book, and the text
    before its start or after its end.
    """
    start = max((match.end() for match in _STARTS.finditer(text)), default=0)
    finish = min((match.start() for match in _FINISHES.finditer(text)), default=len(text))
    if (start, finish) == (0, len(text)) and _is_apparatus(text):
        return ((0, len(text)),)
    blocks = [match.span() for match in _BLOCK.finditer(text, start, max(start, finish))]
    kinds = [_kind_of_block(text[a:b]) for a, b in blocks]
    spans = [(0, start)] if start else []
    for n, (span, kind) in enumerate(zip(blocks, kinds, strict=True)):
        following = kinds[n + 1] if n + 1 < len(kinds) else "heading"
        before = kinds[n - 1] if n else ""
        # Consecutive single lines may be names in a list.
        is_one = kind == "heading" and following != "heading" and before != "heading"
        if is_one or kind == "apparatus":
            spans.append(span)
    return (*spans, (finish, len(text))) if finish < len(text) else tuple(spans)


def is_all_apparatus(text: str) -> bool:
    """Return whether a text that is not blank has no words outside the parts of `apparatus`."""
    spans = apparatus(text)
    between = zip([0, *(end for _, end in spans)], [*(a for a, _ in spans), len(text)], strict=True)
    return bool(spans) and not any(text[end:start].strip() for end, start in between)


def _is_apparatus(text: str) -> bool:
    """Whether a whole text is boilerplate; a numbered list of names is not."""
    kind = boilerplate(text)
    if kind != "contents":
        return bool(kind)
    rows = [row.strip() for row in text.split("\n") if row.strip()]
    entries = sum(bool(_is_marked(row) or _ROMAN.match(row)) for row in rows)
    is_list = all(len(row.split()) <= _MOST_WORDS_A_LINE for row in rows)
    return is_list and (entries >= _MOSTLY * len(rows) or rows[0].casefold() in _BOOK_PARTS)


def _kind_of_block(block: str) -> str:
    """Return `heading`, `apparatus` (certainly boilerplate) or ""."""
    line = " ".join(block.split())
    if _NOTE.match(block):
        is_bracketed = line.lstrip("_*").lower().startswith(("[", "transcriber"))
        return "apparatus" if is_bracketed or _is_credit(line) else ""
    if "\n" not in block and _ROMAN.match(line) and _is_entry(line):
        return "apparatus"
    if "\n" in block or is_said(line) or not is_heading(line):
        return "apparatus" if _is_apparatus(block) else ""
    is_marked = HEADING.match(line) or line.casefold() in _BOOK_PARTS
    return "apparatus" if is_marked else "heading"


def is_said(line: str) -> bool:
    """Whether a line has a small word that occurs in sentences but not in headings."""
    return bool(_IS_SAID.search(line))


def _is_credit(line: str) -> bool:
    """Whether a line that begins like a credit only names makers of a book."""
    return bool(_CREDIT.search(line)) or not (is_said(line) or FINAL_STOP.search(line))
