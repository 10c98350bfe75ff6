"""Analyses a question: its words, its names, and the expected kind of answer."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from qrmem.extraction import vocabulary as voc
from qrmem.extraction.rules_tagger import tagged
from qrmem.text import listed
from qrmem.text.spelling import MARKS
from qrmem.text.words import terms

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
