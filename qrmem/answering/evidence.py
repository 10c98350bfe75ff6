"""Analyses a question, and scores the sentences of the passages as evidence for it."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from qrmem.extraction import vocabulary as voc
from qrmem.extraction.rules_tagger import tagged
from qrmem.retrieval.definitions import defines, identifiers
from qrmem.text import listed
from qrmem.text.code.languages import language_of
from qrmem.text.headings import is_heading
from qrmem.text.sentences import sentences
from qrmem.text.spelling import MARKS
from qrmem.text.words import terms
from qrmem.types import Passage

_RUN = rf"[^\W_]+(?:[{MARKS}]+[^\W_]*)*"
WORD = re.compile(rf"{_RUN}(?:[-’']{_RUN})*")
"""A word with its combining marks: without them Hindi and Tamil ones fall apart."""
_QUOTED = re.compile(r"[“\"«‘]([^“”\"«»‘’]{2,80})[”\"»’]")
_KINDS = {
    "NUMBER": re.compile(
        r"\bhow\s+(?:many|much|far|long|old|tall|high|deep|wide|big|large|heavy|fast|often|late"
        r"|early)\b|\b(?:what|which)\s+(?:number|percentage|amount|age|price|distance|sum)\b",
        re.IGNORECASE,
    ),
    "DATE": re.compile(
        r"\bwhen\b|\b(?:what|which)\s+(?:year|day|date|month|century|decade|time)\b",
        re.IGNORECASE,
    ),
    "PLACE": re.compile(
        r"\bwhere\b|\b(?:what|which)\s+(?:city|country|town|place|state)\b", re.IGNORECASE
    ),
    "PERSON": re.compile(r"\b(?:who|whom|whose)\b", re.IGNORECASE),
}
_NAME = re.compile(r"\b(?:who|whom|whose|where|which|names?|named|called)\b", re.IGNORECASE)


@lru_cache(maxsize=1)
def _bases() -> dict[str, str]:
    """Stem of an irregular form to the stem of its base."""
    bases: dict[str, str] = {}
    for line in listed("irregular-forms").split(";"):
        stems = terms(line)
        bases.update({stem: stems[0] for stem in stems[1:] if stem != stems[0]})
    return bases


def content(text: str) -> list[str]:
    """Return the terms of a text with irregular forms as their base ("struck" meets "strike")."""
    bases = _bases()
    return [bases.get(term, term) for term in terms(text)]


_ASKING = frozenset(
    content("many much long name called kind type year happen say said tell told best")
)


@dataclass(frozen=True, slots=True)
class Query:
    """An analysed question.

    Attributes:
        words: term to the word in the question, without question words.
        names: names in the question, in order.
        kind: `PERSON`, `PLACE`, `DATE`, `NUMBER`, or "" for any kind of answer.
    """

    text: str
    words: dict[str, str]
    names: tuple[str, ...]
    kind: str

    @property
    def terms(self) -> frozenset[str]:
        """The terms that should occur near an answer."""
        return frozenset(self.words)

    @property
    def wants_name(self) -> bool:
        """Whether a name may be the answer: of a person, a place, a thing."""
        return _NAME.search(self.text) is not None

    @property
    def name_terms(self) -> frozenset[str]:
        """The terms of names, without titles ("Captain")."""
        words = {word for name in self.names for word in name.casefold().split()}
        terms = content(" ".join(words - voc.TITLES))
        return frozenset(term for term in terms if term in self.words)

    def titles(self) -> dict[str, frozenset[str]]:
        """Return each title's terms with those of its name.

        One man's "Captain" is no evidence about another captain.
        """
        terms_by_title: dict[str, frozenset[str]] = {}
        for name in self.names:
            first, *rest = name.casefold().split()
            if rest and voc.bare(first) in voc.TITLES:
                terms_by_title.update(
                    dict.fromkeys(content(first), frozenset(content(" ".join(rest))))
                )
        return terms_by_title


@lru_cache(maxsize=256)
def query(text: str) -> Query:
    """Analyse a question."""
    words: dict[str, str] = {}
    for word in WORD.findall(text):
        for term in content(word):
            if word.casefold() not in voc.FUNCTION_WORDS and term not in _ASKING:
                words.setdefault(term, word)
    if not words:
        words = {term: term for term in content(text)}
    kind = next((kind for kind, pattern in _KINDS.items() if pattern.search(text)), "")
    return Query(text, words, names_in([text]), kind)


def names_in(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the names and quoted strings of texts, in order, without repeats."""
    names: dict[str, str] = {}
    for text in texts:
        for name in [m.name for m in tagged(text).mentions] + _QUOTED.findall(text):
            names.setdefault(name.casefold(), name)
    return tuple(names.values())


NEAR = (0.5, 0.25, 0.12)
"""Weight of a question's word that is one, two or three sentences away."""

IN_TITLE, IN_PASSAGE = 0.3, 0.3
"""Weight of a word in the passage's title, and of one farther away in the passage."""

KIND, RANK, DEFINITION, NAME = 0.15, 0.5, 1.0, 0.1
"""What is added to a sentence's coverage: for the expected kind of answer, for its passage's
score in the search (as a share of the best one), for code that defines what is asked for, and,
where a name would answer, for the name that stands most often where the question's words do."""

ASKS, HEADING = 0.8, 0.1
"""Factors on a sentence's score if it is a question itself, and if it is a heading."""

BACKGROUND = 15
"""Number of sentences without the question's words that are added to the read ones, because the
counts in few sentences do not show how rare a word is."""

_TITLES = frozenset(content(" ".join(voc.TITLES)))
_CLOSERS = "\"'”’»)*_ "
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
_CAPITALISED = re.compile(r"(?<=[\w,;:’'\"“] )[^\W\d_a-z][^\W\d_]+|^[^\W\d_a-z][^\W\d_]+(?= [a-z])")
_PLACE = re.compile(
    r"\b(?:in|at|to|from|near|into|through|towards?|inside|outside|around|across|via|beside|of)"
    r"\s+(?:the\s+)?([^\W\d_a-z][^\W\d_]+)"
)


@dataclass(frozen=True, slots=True)
class Line:
    """A sentence of a segment: its offsets in the segment's text, and its terms."""

    start: int
    end: int
    text: str
    terms: frozenset[str]
    is_heading: bool
    is_question: bool


@lru_cache(maxsize=512)
def lines(text: str) -> tuple[Line, ...]:
    """Return the sentences of a segment; cached, because a strategy reads a segment many times."""
    result = []
    for start, end in sentences(text):
        raw = text[start:end]
        inner = raw.strip()
        if inner:
            start += len(raw) - len(raw.lstrip())
            result.append(
                Line(
                    start,
                    start + len(inner),
                    inner,
                    frozenset(content(inner)),
                    is_heading(inner),
                    inner.rstrip(_CLOSERS).endswith("?"),
                )
            )
    return tuple(result)


@dataclass(frozen=True, slots=True)
class Clue:
    """A sentence of a passage, as evidence.

    Attributes:
        at: its number among the sentences of its passage.
        order: its position in the reading order, from 0.
        coverage: share of the question's weight that it and its neighbours cover, in [0, 1].
        has_kind: whether it holds the expected kind of answer.
        score: score that ranks sentences.
    """

    passage: Passage
    at: int
    order: int
    line: Line
    coverage: float
    has_kind: bool
    score: float


class Evidence:
    """The sentences of the passages, scored for one question.

    Attributes:
        asked: the analysed question.
        clues: the sentences in reading order.
        spread: term to the number of sentences that hold it.
    """

    def __init__(self, asked: Query, passages: Sequence[Passage]) -> None:
        self.asked = asked
        lines_of = [(passage, lines(passage.segment.text)) for passage in passages]
        self.spread = Counter(
            term for _, passage_lines in lines_of for line in passage_lines for term in line.terms
        )
        self._sentences = sum(len(passage_lines) for _, passage_lines in lines_of)
        weights = {term: self.rarity(term) for term in asked.words}
        total = sum(weights.values()) or 1.0
        self._weights = {term: weight / total for term, weight in weights.items()}
        self._titles = asked.titles()
        self._best = max((passage.score for passage in passages), default=0.0)
        self.clues: list[Clue] = []
        for passage, passage_lines in lines_of:
            self._weigh(passage, passage_lines)
        if asked.wants_name:
            self._prefer_names()

    def rarity(self, term: str) -> float:
        """Return the rarity of a term among the sentences."""
        df = self.spread[term]
        return math.log(1 + (self._sentences + BACKGROUND - df + 0.5) / (df + 0.5))

    def ranked(self) -> list[Clue]:
        """Return the clues with any coverage, best first, ties in reading order."""
        covering = [clue for clue in self.clues if clue.coverage > 0]
        return sorted(covering, key=lambda clue: (-round(clue.score, 9), clue.order))

    def missing(self) -> list[str]:
        """Return the question's words that no passage has, in the question's order."""
        titles = frozenset(content(" ".join(clue.passage.title for clue in self.clues)))
        words = self.asked.words.items()
        return [word for term, word in words if not self.spread[term] and term not in titles]

    def _weigh(self, passage: Passage, own: Sequence[Line]) -> None:
        far = dict.fromkeys(frozenset[str]().union(*(line.terms for line in own)), IN_PASSAGE)
        far.update(dict.fromkeys(content(passage.title), IN_TITLE))
        rank = RANK * max(passage.score, 0.0) / self._best if self._best > 0 else 0.0
        language = language_of(passage.title)
        names = identifiers(self.asked.text) if language else ()
        for at, line in enumerate(own):
            covered = self._covered(at, own, far)
            coverage = sum(self._weights[term] * worth for term, worth in covered.items())
            has_kind = _has_kind(line, self.asked)
            score = coverage + KIND * has_kind + rank
            score *= _weight(line)
            if language and any(defines(line.text, name, language) for name in names):
                coverage, score = 1.0, score + DEFINITION
            self.clues.append(Clue(passage, at, len(self.clues), line, coverage, has_kind, score))

    def _prefer_names(self) -> None:
        """Raise scores of sentences by names: a name counts what its sentences cover together.

        The name that answers often occurs near the question's words. A single sentence cannot show
        which of a passage's names that is.
        """
        terms_of: dict[str, set[int]] = {}
        for clue in self.clues:
            for name in _names(clue.passage.segment.text, clue.line, self.asked):
                terms_of.setdefault(name, set()).add(clue.order)
        worth = {
            name: sum(self.clues[order].coverage for order in orders)
            for name, orders in terms_of.items()
        }
        top = max(worth.values(), default=0.0) or 1.0
        best: dict[int, float] = {}
        for name, orders in terms_of.items():
            for order in orders:
                best[order] = max(best.get(order, 0.0), worth[name] / top)
        self.clues = [
            replace(clue, score=clue.score + NAME * best.get(clue.order, 0.0) * _weight(clue.line))
            for clue in self.clues
        ]

    def _covered(self, at: int, own: Sequence[Line], far: dict[str, float]) -> dict[str, float]:
        covered = {}
        for term in self.asked.words:
            worth = 1.0 if term in own[at].terms else _nearby(term, at, own) or far.get(term, 0.0)
            if worth:
                covered[term] = worth
        for term, name in self._titles.items():
            if term in covered:
                worth = max((covered.get(t, 0.0) for t in name), default=0.0)
                covered[term] = min(covered[term], worth)
        return covered


def _weight(line: Line) -> float:
    """Return the factor for a sentence's score by its form."""
    return (ASKS if line.is_question else 1) * (HEADING if line.is_heading else 1)


@lru_cache(maxsize=512)
def _name_places(text: str) -> tuple[tuple[int, str], ...]:
    """Return the positions of names in a segment, and each name's terms without titles ("Mrs.")."""
    tags = tagged(text)
    names = [" ".join(sorted(set(content(mention.name)) - _TITLES)) for mention in tags.mentions]
    return tuple((one.start, names[one.entity]) for one in tags.occurrences)


def _names(text: str, line: Line, asked: Query) -> set[str]:
    """Return the names in a sentence that are not in the question."""
    return {
        name
        for start, name in _name_places(text)
        if line.start <= start < line.end and not asked.words.keys() >= set(name.split())
    }


def _nearby(term: str, at: int, own: Sequence[Line]) -> float:
    """Return the weight of a term in a neighbouring sentence; 0 if none near has it."""
    for distance, worth in enumerate(NEAR, 1):
        if at >= distance and term in own[at - distance].terms:
            return worth
        if at + distance < len(own) and term in own[at + distance].terms:
            return worth
    return 0.0


def _has_kind(line: Line, asked: Query) -> bool:
    """Whether a sentence has the expected kind of answer, other than a name in the question."""
    if asked.kind == "NUMBER":
        return bool(_NUMBER.search(line.text))
    if asked.kind == "DATE":
        return bool(_TIME.search(line.text))
    pattern = {"PERSON": _CAPITALISED, "PLACE": _PLACE}.get(asked.kind)
    matches = pattern.findall(line.text) if pattern else ()
    return any(not set(content(name)) <= asked.words.keys() for name in matches)
