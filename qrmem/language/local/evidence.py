"""Which sentences of the passages speak to a question, and how much of it they cover."""

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from qrmem.language.local.query import Query
from qrmem.language.local.reading import FIGURES, SegmentReading, Sentence, read
from qrmem.ports import Passage
from qrmem.text.words import terms

BEFORE, AFTER, TITLE = 0.3, 0.15, 0.6
"""What a question's word is worth in the sentence before, in that after, in the passage's title."""

BEFORE_PRONOUN = 0.8
"""The same for the sentence before one that opens with a pronoun."""

KIND = 0.12
"""What the expected kind of answer adds to a sentence's score."""

_PRONOUN = re.compile(r"[\"'“‘*_]*(?:He|She|It|They|His|Her|Its|Their|This|These)\b")
_NUMBER = re.compile(
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w+teen|twenty|thirty|"
    r"forty|fifty|sixty|seventy|eighty|ninety|hundreds?|thousands?|millions?|dozen|half|several|"
    r"once|twice)\b",
    re.IGNORECASE,
)
_TIME = re.compile(
    r"\b\d{3,4}\b|\b\d{1,2}:\d\d\b|o['’]clock|\b(?:morning|evening|afternoon|night|midnight|noon|dawn|"
    r"dusk|day|week|month|year|century|spring|summer|autumn|winter|yesterday|today|tomorrow|ago|"
    r"monday|tuesday|wednesday|thursday|friday|saturday|sunday|january|february|march|april|june|july|"
    r"august|september|october|november|december|hours?|minutes?)s?\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Clue:
    """A sentence of a passage, as evidence.

    Attributes:
        names: what is named in it and in the passage's title, case-folded.
        covered: term of the question to how far this sentence covers it, in (0, 1].
        coverage: share of the question's weight that it covers.
        has_kind: it holds the expected kind of answer, beyond what the question names.
    """

    passage: Passage
    order: int
    sentence: Sentence
    own: frozenset[str]
    names: frozenset[str]
    covered: dict[str, float]
    coverage: float
    has_kind: bool

    @property
    def score(self) -> float:
        """What sentences are ranked by."""
        return self.coverage + KIND * self.has_kind


class Evidence:
    """The sentences of the passages, weighed against one question.

    Attributes:
        clues: in the order in which they were read.
        weights: term of the question to its rarity in the passages.
    """

    def __init__(self, asked: Query, passages: Sequence[Passage]) -> None:
        self.asked = asked
        lines = [
            _Line(p, s, r) for p in passages for r in [read(p.segment.text)] for s in r.sentences
        ]
        spread = Counter(term for line in lines for term in line.terms)
        self.sentences = len(lines)
        self.spread = spread
        self.weights = {term: self.rarity(term) for term in asked.words}
        self._total = sum(self.weights.values()) or 1.0
        self.clues = [self._clue(lines, at) for at in range(len(lines))]

    def rarity(self, term: str) -> float:
        """Return how telling a term is, from how few sentences hold it."""
        df = self.spread[term]
        return math.log(1 + (self.sentences - df + 0.5) / (df + 0.5))

    def share(self, covered: dict[str, float]) -> float:
        """Return the share of the question's weight in `covered`."""
        return sum(self.weights[term] * part for term, part in covered.items()) / self._total

    def _clue(self, lines: Sequence["_Line"], at: int) -> Clue:
        line = lines[at]
        covered = self._covered(lines, at)
        return Clue(
            line.passage,
            at,
            line.sentence,
            line.terms,
            line.names,
            covered,
            self.share(covered),
            line.has_kind(self.asked),
        )

    def _covered(self, lines: Sequence["_Line"], at: int) -> dict[str, float]:
        line = lines[at]
        opens = bool(_PRONOUN.match(line.sentence.text))
        near = [(line.title, TITLE)]
        if at and lines[at - 1].passage is line.passage:
            near.append((lines[at - 1].terms, BEFORE_PRONOUN if opens else BEFORE))
        if at + 1 < len(lines) and lines[at + 1].passage is line.passage:
            near.append((lines[at + 1].terms, AFTER))
        covered = {}
        for term in self.asked.words:
            worth = (
                1.0 if term in line.terms else max((w for own, w in near if term in own), default=0)
            )
            if worth:
                covered[term] = worth
        return covered

    def ranked(self) -> list[Clue]:
        """Return the clues that cover anything, best first, ties in reading order."""
        found = [clue for clue in self.clues if clue.coverage > 0]
        return sorted(found, key=lambda clue: (-round(clue.score, 9), clue.order))

    def found(self) -> dict[str, float]:
        """Return each of the question's terms that stands anywhere in the passages."""
        return {term: 1.0 for term in self.asked.words if self.spread[term]}

    def missing(self) -> list[str]:
        """Return the question's words that no passage holds, in the question's order."""
        titles = {t for clue in self.clues for t in terms(clue.passage.title)}
        return [w for t, w in self.asked.words.items() if not self.spread[t] and t not in titles]

    def pairs(self, best: Sequence[Clue]) -> Iterator[tuple[Clue, Clue]]:
        """Yield pairs of clues that share a name which the question does not give (two hops)."""
        asked = {word for name in self.asked.names for word in name.casefold().split()}
        asked |= {word.casefold() for word in self.asked.words.values()}
        for i, first in enumerate(best):
            for second in best[i + 1 :]:
                bridges = first.names & second.names
                if any(not set(name.split()) <= asked for name in bridges):
                    yield first, second


class _Line:
    """A sentence while evidence is gathered."""

    __slots__ = ("names", "passage", "reading", "sentence", "terms", "title")

    def __init__(self, passage: Passage, sentence: Sentence, reading: SegmentReading) -> None:
        self.passage, self.sentence, self.reading = passage, sentence, reading
        self.terms = frozenset(terms(sentence.text))
        self.title = frozenset(terms(passage.title))
        names = {
            reading.mentions[e].name.casefold()
            for e in sentence.entities
            if reading.mentions[e].type not in FIGURES
        }
        self.names = frozenset(names | ({passage.title.casefold()} if passage.title else set()))

    def has_kind(self, asked: Query) -> bool:
        """Whether the sentence holds what the question word asks for."""
        if asked.kind == "NUMBER":
            return bool(_NUMBER.search(self.sentence.text))
        if asked.kind == "DATE":
            return bool(_TIME.search(self.sentence.text))
        if asked.kind in {"PERSON", "PLACE"}:
            return any(not set(terms(name)) <= asked.terms for name in self.names)
        return False
