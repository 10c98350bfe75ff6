"""What a search takes from a segment's text: its sentences, their words, and the names in them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from qrmem.retrieval.spotting import words_of
from qrmem.text.sentences import sentences
from qrmem.text.words import STOP_WORDS, terms

if TYPE_CHECKING:
    from qrmem.retrieval.graph import Graph


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of a segment.

    Attributes:
        terms: its words as BM25 counts them.
        names: numbers of the names in it.
    """

    text: str
    terms: frozenset[str]
    names: tuple[int, ...]


def read(text: str, graph: "Graph") -> Sequence[Sentence]:
    """Return a segment's sentences with the names that the graph knows."""
    return [_sentence(text[start:end].strip(), graph) for start, end in sentences(text)]


def _sentence(text: str, graph: "Graph") -> Sentence:
    """Titles and entities are looked for apart: one may stand inside the other."""
    words = words_of(text)
    names = dict.fromkeys(
        name
        for known in graph.kinds
        for name in graph.table.spots(words, needs_capital=True, skip=STOP_WORDS, only=known)
    )
    return Sentence(text, frozenset(terms(text)), tuple(names))
