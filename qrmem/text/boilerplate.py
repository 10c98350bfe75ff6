"""Finds headings and boilerplate: contents, title pages, licences, notes of editors."""

import re
from bisect import bisect
from collections.abc import Iterator
from functools import lru_cache

from qrmem.text.calendar_names import MONTHS
from qrmem.text.numbers import WORDS
from qrmem.types import Part

# --- Chapter headings and front matter of a text, passages of a joined context.

_KIND = "chapter|letter|book|part|volume|vol\\.|canto|act|scene|section|stave"
_COUNT = rf"\d{{1,4}}|[ivxlc]{{1,8}}|(?:the )?(?:{'|'.join(WORDS)}|last)(?:-[a-z]{{3,7}})?"
_CHAPTER_LINE = re.compile(
    r"^(?:(?P<mark>#{1,2}[ \t]+[^\s#][^\n]{0,200})$"
    r"|(?P<passage>Passage \d{1,6}):"
    rf"|[ \t]{{0,40}}(?P<chapter>(?i:(?:{_KIND}) (?:{_COUNT}))(?:[.:—–-][^\n]{{0,80}})?)[ \t]*$)",
    re.MULTILINE,
)
_BLANK_BEFORE = re.compile(r"(?:\A|\n)[ \t]*\n\Z|\A\Z")
_BLANK_AFTER = re.compile(r"[ \t]*(?:\n[ \t]*(?:\n|\Z)|\Z)")
_FENCE = re.compile(r"^(?:```|~~~)", re.MULTILINE)
_STACKED = 3
_REACH = 200


def headings(text: str) -> list[Part]:
    """Return the starts of chapters and passages, with their labels.

    A heading is a Markdown heading of the first two levels, a line such as `Chapter 7` or
    `LETTER IV.` alone between blank lines, or the start of a `Passage 3:` line. Headings that
    follow each other without a text are one: up to three are stacked (Part I, Chapter 1), more are
    a table of contents, from which only the last leads on to a text.
    """
    matches = [match for match in _CHAPTER_LINE.finditer(text) if _stands(text, match)]
    if "#" in text:
        fences = [fence.start() for fence in _FENCE.finditer(text)]
        matches = [match for match in matches if bisect(fences, match.start()) % 2 == 0]
    parts: list[Part] = []
    for run in _runs(text, matches):
        parts += [_part(run[0])]
        if len(run) > _STACKED:
            parts += [_part(run[-1])]
    return parts


def _stands(text: str, match: re.Match[str]) -> bool:
    """Whether a heading is valid: a chapter line must be alone, other headings are always valid."""
    if match["chapter"] is None:
        return True
    before = text[max(0, match.start() - _REACH) : match.start()]
    return bool(_BLANK_BEFORE.search(before)) and bool(_BLANK_AFTER.match(text, match.end()))


def _runs(text: str, found: list[re.Match[str]]) -> Iterator[list[re.Match[str]]]:
    """Yield groups of headings with only white space between them."""
    run: list[re.Match[str]] = []
    for match in found:
        if run and (run[-1]["passage"] or text[run[-1].end() : match.start()].strip()):
            yield run
            run = []
        run.append(match)
    if run:
        yield run


def _part(match: re.Match[str]) -> Part:
    label = match["mark"] or match["chapter"] or match["passage"]
    return Part(match.start(), label.strip("# \t").rstrip(".:"))


# Front matter: the fields before a Markdown text, between two lines of `---`.

_FRONT_MATTER = re.compile(r"---[ \t]*\n(.*?)\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_FIELD = re.compile(r"^([A-Za-z][\w -]{0,99}):[ \t]+(\S.*)$", re.MULTILINE)


def split_front_matter(text: str) -> tuple[dict[str, str], str]:
    """Return the fields of the front matter, one line each, and the text after it.

    A text without such a block, or with a block without fields, is returned unchanged.
    """
    block = _FRONT_MATTER.match(text)
    fields = dict(_FIELD.findall(block[1])) if block else {}
    if not block or not fields:
        return {}, text
    return {name: _unquoted(value.rstrip(" \t")) for name, value in fields.items()}, text[
        block.end() :
    ]


def _unquoted(value: str) -> str:
    value = value.rstrip(" \t")
    is_quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
    return value[1:-1] if is_quoted else value


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
_SENTENCE_END = re.compile(r"[a-z]{2}[.!?]['\"”’»)]*(?:\s|\Z)")
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


def is_heading(text: str) -> bool:
    """Whether a sentence or line is a heading: marked, or short without a final stop."""
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
    """Return the kind of boilerplate that a segment is, else "".

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
    if sum(map(_is_indexed, rows)) >= _MOSTLY * len(rows):
        return "index"
    is_prose = len(_SENTENCE_END.findall(text)) * 40 > words
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
    is_title = not words[-1].islower() and _opens([*words, "Page"]) and match["stop"] != "."
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
    is_marked = _HEADING.match(line) or line.casefold() in _BOOK_PARTS
    return "apparatus" if is_marked else "heading"


def is_said(line: str) -> bool:
    """Whether a line has a small word that occurs in sentences but not in headings."""
    return bool(_IS_SAID.search(line))


def _is_credit(line: str) -> bool:
    """Whether a line that begins like a credit only names makers of a book."""
    return bool(_CREDIT.search(line)) or not (is_said(line) or _ENDS.search(line))
