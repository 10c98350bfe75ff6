"""A segment as the local reasoner sees it: sentences, and who is named where."""

import re
from dataclasses import dataclass
from functools import lru_cache

from qrmem.language.rules import Occurrence, Tagged, tagged
from qrmem.records import Mention
from qrmem.text.sentences import sentences

_SPACE = re.compile(r"\s+")
_OPENERS = "\"'“”‘’«»*_#>-–— \t"

FIGURES = frozenset({"DATE", "NUMBER"})
"""Types of which two together tell nothing: "1884" and "31 metres"."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence of a segment.

    Attributes:
        start: first character in the segment, white space before it left out.
        text: as it stands, white space around it left out.
        places: where entities are named, in order; offsets count in the segment.
    """

    start: int
    end: int
    text: str
    places: tuple[Occurrence, ...]

    @property
    def entities(self) -> tuple[int, ...]:
        """The entities named in it, in order of first occurrence."""
        return tuple(dict.fromkeys(place.entity for place in self.places))


@dataclass(frozen=True, slots=True)
class SegmentReading:
    """What one look at a segment gives."""

    sentences: tuple[Sentence, ...]
    mentions: tuple[Mention, ...]

    def names(self, sentence: Sentence) -> list[str]:
        """The names in a sentence, in order."""
        return [self.mentions[index].name for index in sentence.entities]


@lru_cache(maxsize=64)
def read(text: str) -> SegmentReading:
    """Return the sentences of a segment with the entities named in each."""
    found = tagged(text)
    return SegmentReading(tuple(_sentences(text, found)), found.mentions)


def _sentences(text: str, found: Tagged) -> list[Sentence]:
    result, at, places = [], 0, found.occurrences
    for start, end in sentences(text):
        raw = text[start:end]
        inner = raw.strip()
        start += len(raw) - len(raw.lstrip())
        first = at
        while at < len(places) and places[at].start < end:
            at += 1
        if inner:
            result.append(Sentence(start, start + len(inner), inner, places[first:at]))
    return result


def flat(text: str) -> str:
    """Return a text with every run of white space as one space."""
    return _SPACE.sub(" ", text).strip()


def opening(sentence: Sentence) -> int:
    """Return the first character of a sentence that is not a mark, counted in the segment."""
    return sentence.start + len(sentence.text) - len(sentence.text.lstrip(_OPENERS))
