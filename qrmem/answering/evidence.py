"""Which sentences of the passages speak to a question, and how much of it they cover."""

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from qrmem.answering.content import content
from qrmem.answering.query import Query
from qrmem.extraction.named_sentences import FIGURES, Sentence, read
from qrmem.types import Mention, Passage

BEFORE, AFTER, TITLE = 0.3, 0.15, 0.6
"""What a question's word is worth in the sentence before, in that after, in the passage's title."""

TITLE_REACH = 4
"""Segments into a document at which its title is worth half: the farther on, the less a sentence
that does not name the title's subject is about it. A short document is about it throughout."""

BEFORE_PRONOUN = 0.8
"""The same for the sentence before one that opens with a pronoun."""

KIND = 0.12
"""What the expected kind of answer adds to a sentence's score."""

BACKGROUND = 15
"""Sentences without any of the question's words that are thought beside those read: in few
sentences, how many hold a word says little of how rare it is."""

ASKS = 0.7
"""What is left of the coverage of a sentence that is a question itself: it answers nothing."""

_PRONOUN = re.compile(r"[\"'“‘*_]*(?:He|She|It|They|His|Her|Its|Their|This|These)\b")
_CLOSERS = "\"'”’»)*_ "
_THINGS = frozenset({"PLACE", "WORK"})
"""Types of names that are nobody's."""

_WHEREABOUTS = re.compile(
    r"\b(?:in|at|to|from|near|into|through|towards?|inside|outside|around|across|via|beside|of)"
    r"\s+(?:the\s+)?\Z",
    re.IGNORECASE,
)
_LONGEST_WHEREABOUTS = 16
_NUMBER = re.compile(
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w+teen|twenty|thirty|"
    r"forty|fifty|sixty|seventy|eighty|ninety|hundreds?|thousands?|millions?|dozen|half|several|"
    r"once|twice)\b",
    re.IGNORECASE,
)
_TIME = re.compile(
    r"\b\d{3,4}\b|\b\d{1,2}:\d\d\b|o['’]clock|\b(?:morning|evening|afternoon|night|midnight|noon|"
    r"dawn|dusk|day|week|month|year|century|decade|spring|summer|autumn|winter|yesterday|today|"
    r"tomorrow|ago|monday|tuesday|wednesday|thursday|friday|saturday|sunday|january|february|march|"
    r"april|june|july|august|september|october|november|december|hour|minute)s?\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Line:
    """A sentence with its terms and the names in it, case-folded, figures left out.

    Attributes:
        places: the names that something is said to be in, at, from, to.
        people: the names that nothing is in and that are no place's.
    """

    sentence: Sentence
    terms: frozenset[str]
    names: frozenset[str]
    places: frozenset[str]
    people: frozenset[str]
    goes_on: bool
    asks: bool


@lru_cache(maxsize=512)
def lines(text: str) -> tuple[Line, ...]:
    """Return the sentences of a segment; remembered, as a strategy reads a segment many times."""
    reading = read(text)
    found = []
    for sentence in reading.sentences:
        named = [reading.mentions[entity] for entity in sentence.entities]
        names = frozenset(m.name.casefold() for m in named if m.type not in FIGURES)
        places = _places(text, sentence, reading.mentions) & names
        people = names - places - {m.name.casefold() for m in named if m.type in _THINGS}
        found.append(
            Line(
                sentence,
                frozenset(content(sentence.text)),
                names,
                places,
                people,
                bool(_PRONOUN.match(sentence.text)),
                sentence.text.rstrip(_CLOSERS).endswith("?"),
            )
        )
    return tuple(found)


def _places(text: str, sentence: Sentence, mentions: Sequence[Mention]) -> frozenset[str]:
    """Return the names of places, and those that "in", "at", "from" … stands before."""
    found = set()
    for place in sentence.places:
        mention = mentions[place.entity]
        before = text[max(0, place.start - _LONGEST_WHEREABOUTS) : place.start]
        if mention.type == "PLACE" or (mention.type != "PERSON" and _WHEREABOUTS.search(before)):
            found.add(mention.name.casefold())
    return frozenset(found)


@dataclass(frozen=True, slots=True)
class Clue:
    """A sentence of a passage, as evidence.

    Attributes:
        order: its place in the reading order, from 0.
        covered: term of the question to how far this sentence covers it, in (0, 1].
        coverage: share of the question's weight that it covers.
        has_kind: it holds the expected kind of answer, beyond what the question names.
    """

    passage: Passage
    order: int
    line: Line
    covered: dict[str, float]
    coverage: float
    has_kind: bool

    @property
    def text(self) -> str:
        """The sentence, exactly as the segment has it."""
        return self.line.sentence.text

    @property
    def score(self) -> float:
        """What sentences are ranked by."""
        return self.coverage + KIND * self.has_kind


class Evidence:
    """The sentences of the passages, weighed against one question.

    Attributes:
        asked: the question, taken apart.
        clues: in the order in which they were read.
        spread: term to the number of sentences that hold it.
        weights: term of the question to its rarity in the passages.
    """

    def __init__(self, asked: Query, passages: Sequence[Passage]) -> None:
        self.asked = asked
        placed = [
            (p, at, own)
            for p in passages
            for own in [lines(p.segment.text)]
            for at in range(len(own))
        ]
        self.spread = Counter(term for _, at, own in placed for term in own[at].terms)
        self._leaning = asked.leaning()
        self._names = Counter(name for _, at, own in placed for name in own[at].names)
        self._sentences = len(placed)
        self.weights = {term: self.rarity(term) for term in asked.words}
        self._total = sum(self.weights.values()) or 1.0
        self._titles = {p.label: frozenset(content(p.title)) for p in passages}
        self.clues = [self._clue(n, *place) for n, place in enumerate(placed)]

    def rarity(self, term: str) -> float:
        """Return how telling a term is, from how few sentences hold it."""
        return self._rarity(self.spread[term])

    def _rarity(self, df: int) -> float:
        return math.log(1 + (self._sentences + BACKGROUND - df + 0.5) / (df + 0.5))

    def share(self, covered: dict[str, float]) -> float:
        """Return the share of the question's weight in `covered`."""
        return sum(self.weights[term] * part for term, part in covered.items()) / self._total

    def strength(self, covered: dict[str, float]) -> float:
        """Return how many words as rare as can be `covered` is worth."""
        return self.share(covered) * self._total / self._rarity(1)

    def _clue(self, order: int, passage: Passage, at: int, own: Sequence[Line]) -> Clue:
        title = TITLE * TITLE_REACH / (TITLE_REACH + passage.segment.index)
        covered = self._covered(title, self._titles[passage.label], at, own)
        if own[at].asks:
            covered = {term: worth * ASKS for term, worth in covered.items()}
        return Clue(
            passage, order, own[at], covered, self.share(covered), _has_kind(own[at], self.asked)
        )

    def _covered(
        self, worth_of_title: float, title: frozenset[str], at: int, own: Sequence[Line]
    ) -> dict[str, float]:
        near = [(title, worth_of_title)]
        if at:
            near.append((own[at - 1].terms, BEFORE_PRONOUN if own[at].goes_on else BEFORE))
        if at + 1 < len(own):
            near.append((own[at + 1].terms, AFTER))
        covered = {}
        for term in self.asked.words:
            if term in own[at].terms:
                covered[term] = 1.0
            elif worth := max((w for terms, w in near if term in terms), default=0.0):
                covered[term] = worth
        for term, name in self._leaning.items():
            if term in covered:
                covered[term] = min(
                    covered[term], max((covered.get(t, 0.0) for t in name), default=0.0)
                )
        return {term: worth for term, worth in covered.items() if worth}

    def ranked(self) -> list[Clue]:
        """Return the clues that cover anything, best first, ties in reading order."""
        found = [clue for clue in self.clues if clue.coverage > 0]
        return sorted(found, key=lambda clue: (-round(clue.score, 9), clue.order))

    def missing(self) -> list[str]:
        """Return the question's words that no passage holds, in the question's order."""
        titles = frozenset().union(*self._titles.values())
        words = self.asked.words.items()
        return [word for term, word in words if not self.spread[term] and term not in titles]

    def bridge(self, first: Clue, second: Clue) -> float:
        """Return how telling a name is that two sentences share and the question does not give.

        In [0, 1]; a passage's title names what the passage is about. 0: no such name.
        """
        given = self.asked.given
        a, b = _bridging(first), _bridging(second)
        if first.passage.segment.document_id == second.passage.segment.document_id:
            a, b = first.line.names, second.line.names
        shared = [name for name in a & b if not set(name.split()) <= given]
        most = self._rarity(1)
        return max((min(1.0, self._rarity(self._names[n]) / most) for n in shared), default=0.0)

    def pairs(self, best: Sequence[Clue]) -> Iterator[tuple[float, Clue, Clue]]:
        """Yield two sentences that a name joins, with the coverage that they reach together."""
        for first in best:
            for second in self.clues:
                if second is first or not second.covered.keys() - first.covered.keys():
                    continue
                strength = self.bridge(first, second)
                if strength:
                    together = self.share(joined(first.covered, second.covered))
                    gain = strength * (together - first.coverage)
                    yield first.coverage + gain, first, second


def joined(*parts: dict[str, float]) -> dict[str, float]:
    """Return what several sentences cover together."""
    together: dict[str, float] = {}
    for part in parts:
        for term, worth in part.items():
            together[term] = max(worth, together.get(term, 0.0))
    return together


def _bridging(clue: Clue) -> frozenset[str]:
    title = clue.passage.title.casefold()
    return clue.line.names | {title} if title else clue.line.names


def _has_kind(line: Line, asked: Query) -> bool:
    """Whether a sentence holds what the question word asks for."""
    if asked.kind == "NUMBER":
        return bool(_NUMBER.search(line.sentence.text))
    if asked.kind == "DATE":
        return bool(_TIME.search(line.sentence.text))
    names = {"PERSON": line.people, "PLACE": line.places}.get(asked.kind, frozenset())
    return any(not set(content(name)) <= asked.words.keys() for name in names)
