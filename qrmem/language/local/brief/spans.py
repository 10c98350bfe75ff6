"""The spans of a sentence that could be an answer: names, dates, numbers, things, its title."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from qrmem.language.local.brief.nations import is_nationality
from qrmem.language.local.brief.told import UPPER, bare
from qrmem.language.local.brief.wanting import Wanted
from qrmem.language.local.evidence import Clue
from qrmem.language.local.things import things
from qrmem.language.rules import tagged

_PERSON = re.compile(
    rf"(?:{UPPER}[\w.’'-]*\s(?:(?:de|van|von|der|den|la|le|du|da|di|bin|ibn|al|el)\s)?){{1,3}}"
    rf"{UPPER}[\w’'-]+\Z"
)
_WHEREABOUTS = re.compile(r"\b(?:in|at|to|from|near)\s+(?:the\s+)?\Z", re.IGNORECASE)
_FIGURE = re.compile(
    r"(?<![\w.,])\d[\d,]*(?:\.\d+)?(?![\w])|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|"
    r"eleven|twelve|twenty|thirty|forty|fifty|hundred)\b"
)
_COUNT = re.compile(r"[$€£]?[\d.,]*\d%?(?:\s(?:million|billion|thousand))?")
_YEAR = re.compile(r"\b(?:1\d{3}|20\d{2})\b")
_MOST_THINGS = 4
_LONGEST_CUE = 40


@dataclass(frozen=True, slots=True)
class Span:
    """A span of a sentence, or, with no place in it, what its passage is about.

    Attributes:
        shape: its type; else NATION, `PLACE?`, NAME (of somebody), WORD by what it looks like.
        start: -1 for a title.
        before: what stands before it.
    """

    text: str
    shape: str
    start: int
    end: int
    before: str

    @property
    def is_title(self) -> bool:
        """Whether it is what the passage is about, and stands nowhere in the sentence."""
        return self.start < 0


def spans(clue: Clue, wanted: Wanted) -> Iterator[Span]:
    """Yield the spans of a sentence that could answer."""
    found = tagged(clue.text)
    taken = [(o.start, o.end) for o in found.occurrences]
    for occurrence in found.occurrences:
        kind = found.mentions[occurrence.entity].type
        yield _span(clue.text, occurrence.start, occurrence.end, kind, wanted)
    title = bare(clue.passage.title)
    if title:
        yield Span(title, _shape(title, ""), -1, -1, "")
    for start, end, kind in _others(clue, wanted):
        if not any(a < end and start < b for a, b in taken):
            yield _span(clue.text, start, end, kind, wanted)


def _others(clue: Clue, wanted: Wanted) -> Iterator[tuple[int, int, str]]:
    """Yield bare figures where a number is asked for; things where no name need be."""
    if wanted.kind == "NUMBER":
        for match in _FIGURE.finditer(clue.text):
            yield *match.span(), "FIGURE"
    if wanted.kind in {"any", "which"}:
        for thing in things(clue.line.sentence)[:_MOST_THINGS]:
            yield thing.start, thing.end, "THING"


def _span(text: str, start: int, end: int, kind: str, wanted: Wanted) -> Span:
    own, before = text[start:end], text[max(0, start - _LONGEST_CUE) : start]
    if kind == "NUMBER" and (count := _COUNT.match(own)):
        short = count[0]
    elif kind == "DATE" and wanted.is_year and (year := _YEAR.search(own)):
        short = year[0]
    else:
        short = own.strip(" ,;")
    return Span(short, kind or _shape(own, before), start, end, before)


def _shape(text: str, before: str) -> str:
    if is_nationality(text):
        return "NATION"
    if _WHEREABOUTS.search(before):
        return "PLACE?"
    return "NAME" if _PERSON.match(text) else "WORD"
