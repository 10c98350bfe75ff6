"""Headings: chapters and passages of a text, and whether a line is a heading."""

import re
from bisect import bisect
from collections.abc import Iterator

from qrmem.text.numbers import WORDS
from qrmem.types import Part

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


HEADING = re.compile(
    r"#{1,6}\s|(?:chapter|letter|part|book|volume|section|act|scene|appendix|canto|stave)\s+"
    r"(?:[ivxlcdm]+|\d+|[a-z]+)\b[.:]?(?:\s|\Z)",
    re.IGNORECASE,
)
"""The beginning of a line that is marked as a heading."""
FINAL_STOP = re.compile(r"[.!?;:,…]['\"”’»)\]*_]*\Z")
"""Punctuation at the end of a line."""
LONGEST_HEADING = 12
"""Maximum number of words of a heading."""
SENTENCE_END = re.compile(r"[a-z]{2}[.!?]['\"”’»)]*(?:\s|\Z)")
"""The end of a sentence within a line or after it."""


def is_heading(text: str) -> bool:
    """Whether a sentence or line is a heading: marked, or short without a final stop."""
    line = " ".join(text.split())
    words = line.split()
    if len(words) > LONGEST_HEADING or not any(c.isalpha() for c in line):
        return not any(c.isalpha() for c in line)
    if HEADING.match(line) and not (len(words) > 3 and SENTENCE_END.search(line)):
        return True
    is_open = not FINAL_STOP.search(line) and line[:1] not in "\"“‘'—-"
    return line.isupper() or (is_open and is_title_case(words))


def is_title_case(words: list[str]) -> bool:
    """Whether words are capitalised as in a title."""
    weighty = [word for word in words if len(word) > 3]
    return bool(weighty) and all(word[:1].isupper() or word[:1].isdigit() for word in weighty)
