"""Chapter headings and front matter of a plain or Markdown text, passages of a joined context."""

import re
from bisect import bisect
from collections.abc import Iterator

from qrmem.text.numbers import WORDS
from qrmem.types import Part

_KIND = "chapter|letter|book|part|volume|vol\\.|canto|act|scene|section|stave"
_COUNT = rf"\d{{1,4}}|[ivxlc]{{1,8}}|(?:the )?(?:{'|'.join(WORDS)}|last)(?:-[a-z]{{3,7}})?"
_HEADING = re.compile(
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
    """Return where chapters and passages start, with their labels.

    A heading is a Markdown heading of the first two levels, a line such as `Chapter 7` or
    `LETTER IV.` alone between blank lines, or the start of a `Passage 3:` line. Headings that
    follow each other without a text are one: up to three are stacked (Part I, Chapter 1), more are
    a table of contents, from which only the last leads on to a text.
    """
    found = [match for match in _HEADING.finditer(text) if _stands(text, match)]
    if "#" in text:
        fences = [fence.start() for fence in _FENCE.finditer(text)]
        found = [match for match in found if bisect(fences, match.start()) % 2 == 0]
    parts: list[Part] = []
    for run in _runs(text, found):
        parts += [_part(run[0])]
        if len(run) > _STACKED:
            parts += [_part(run[-1])]
    return parts


def _stands(text: str, match: re.Match[str]) -> bool:
    """Whether a chapter line is alone; the other headings always stand."""
    if match["chapter"] is None:
        return True
    before = text[max(0, match.start() - _REACH) : match.start()]
    return bool(_BLANK_BEFORE.search(before)) and bool(_BLANK_AFTER.match(text, match.end()))


def _runs(text: str, found: list[re.Match[str]]) -> Iterator[list[re.Match[str]]]:
    """Yield headings with nothing but white space between them together."""
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


# The block of fields that may stand in front of a Markdown text, between two lines of `---`.

_BLOCK = re.compile(r"---[ \t]*\n(.*?)\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_FIELD = re.compile(r"^([A-Za-z][\w -]{0,99}):[ \t]+(\S.*)$", re.MULTILINE)


def split_front_matter(text: str) -> tuple[dict[str, str], str]:
    """Return the fields of one line each, and the text behind the block.

    A text without such a block, or whose block holds no field, is returned as it is.
    """
    block = _BLOCK.match(text)
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
