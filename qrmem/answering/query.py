"""What a question asks: its words, its names, and the kind of thing that would answer it."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from qrmem.answering.content import content
from qrmem.extraction import vocabulary as voc
from qrmem.extraction.rules_tagger import tagged

_WORD = re.compile(r"[^\W_]+(?:[-’'][^\W_]+)*")
_QUOTED = re.compile(r"[“\"«‘]([^“”\"«»‘’]{2,80})[”\"»’]")
_HOW_MUCH = re.compile(
    r"\bhow\s+(?:many|much|far|long|old|tall|high|deep|wide|big|large|heavy|fast|often|late|early)\b"
    r"|\b(?:what|which)\s+(?:number|percentage|amount|age|price|distance|sum)\b",
    re.IGNORECASE,
)
_WHEN = re.compile(
    r"\bwhen\b|\b(?:what|which)\s+(?:year|day|date|month|century|decade|time)\b", re.IGNORECASE
)
_WHO = re.compile(r"\b(?:who|whom|whose)\b", re.IGNORECASE)
_WHERE = re.compile(
    r"\bwhere\b|\b(?:what|which)\s+(?:city|country|town|place|state)\b", re.IGNORECASE
)
_ASKING = frozenset(
    content("many much long name called kind type year happen say said tell told best")
)


@dataclass(frozen=True, slots=True)
class Query:
    """A question taken apart.

    Attributes:
        words: term to the word as the question has it, asking words left out.
        names: names in the question, in order.
        kind: `PERSON`, `PLACE`, `DATE`, `NUMBER`, or "" where anything may answer.
    """

    text: str
    words: dict[str, str]
    names: tuple[str, ...]
    kind: str

    @property
    def terms(self) -> frozenset[str]:
        """The terms that an answer should stand beside."""
        return frozenset(self.words)

    @property
    def name_terms(self) -> frozenset[str]:
        """The terms that belong to names, titles ("Captain") left out."""
        words = {word for name in self.names for word in name.casefold().split()}
        own = content(" ".join(words - voc.TITLES))
        return frozenset(term for term in own if term in self.words)

    def leaning(self) -> dict[str, frozenset[str]]:
        """Return what titles lean on: the "Captain" of one man says nothing of another."""
        found: dict[str, frozenset[str]] = {}
        for name in self.names:
            first, *rest = name.casefold().split()
            if rest and voc.bare(first) in voc.TITLES:
                found.update(dict.fromkeys(content(first), frozenset(content(" ".join(rest)))))
        return found

    @property
    def given(self) -> frozenset[str]:
        """The words of the question, case-folded: a name made of them leads nowhere new."""
        return frozenset(word.casefold() for word in _WORD.findall(self.text))


@lru_cache(maxsize=256)
def query(text: str) -> Query:
    """Take a question apart."""
    words: dict[str, str] = {}
    for word in _WORD.findall(text):
        for term in content(word):
            if word.casefold() not in voc.FUNCTION_WORDS and term not in _ASKING:
                words.setdefault(term, word)
    if not words:
        words = {term: term for term in content(text)}
    return Query(text, words, names_in([text]), _kind(text))


def _kind(text: str) -> str:
    for pattern, kind in (
        (_HOW_MUCH, "NUMBER"),
        (_WHEN, "DATE"),
        (_WHERE, "PLACE"),
        (_WHO, "PERSON"),
    ):
        if pattern.search(text):
            return kind
    return ""


def names_in(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the names and the quoted strings of texts, in order, without repeats."""
    found: dict[str, str] = {}
    for text in texts:
        for name in [m.name for m in tagged(text).mentions] + _QUOTED.findall(text):
            found.setdefault(name.casefold(), name)
    return tuple(found.values())
