"""The segments that a search considers for a question, and their direct scores."""

import asyncio
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from qrmem.retrieval import scoring
from qrmem.text.names import longest_names, possible_names, words_of
from qrmem.text.spelling import UNSPACED
from qrmem.text.words import STOP_WORDS, terms

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from qrmem.graphstore.protocol import Entry, GraphStore, Titled, Vocabulary

_CANDIDATES = 100
"""Number of segments from the index by words, and again by vectors."""
_LEXICAL, _DENSE, _NAMES = 0.4, 0.45, 0.3
"""Weights of BM25, the cosine and a title in the question in the direct score."""
_MARKS = ".,;:!?\"'()[]{}«»“”‘’"
_APART = re.compile(r"(?:->|[\s()\[\]{}<>=;:\"])+")
"""Characters between words, also in code."""
_LETTER = re.compile(f"[{UNSPACED}]")


@dataclass(frozen=True, slots=True)
class UnderstoodQuestion:
    """The analysis of a question for a search.

    Attributes:
        text: its words, in order.
        weights: its terms with their weights: count times rarity in the namespace.
        spelled: its terms as the question spells them.
        vocabulary: counts in the namespace for its terms.
        vector: `(dimension,)`, its embedding; `None` without an embedder.
        documents: ids of the only documents to search; `None`: all.
        segments: ids of the only segments to search; `None`: all.
        titled: names in it that are titles of documents.
        names: everything in it that may be a name, lower-cased.
    """

    text: str
    weights: Mapping[str, float]
    spelled: Mapping[str, str]
    vocabulary: "Vocabulary"
    vector: "NDArray[np.float32] | None"
    documents: Collection[str] | None
    segments: Collection[str] | None
    titled: "Mapping[str, Sequence[Titled]]"
    names: frozenset[str]

    @property
    def rarity(self) -> dict[str, float]:
        """Its terms with their rarity in the namespace, without their counts in the question."""
        return scoring.weighted(dict.fromkeys(self.weights, 1.0), self.vocabulary)

    @property
    def rarest(self) -> float:
        """The rarity of a word that no segment has."""
        return scoring.weighted({"": 1.0}, replace(self.vocabulary, frequencies={}))[""]

    @property
    def total(self) -> float:
        """The sum of its terms' weights."""
        return sum(self.weights.values())

    def share(self, found: frozenset[str]) -> float:
        """Return the share of the question that some terms cover, by weight."""
        covered = sum(weight for term, weight in self.weights.items() if term in found)
        return covered / self.total if covered else 0.0


async def understood(
    store: "GraphStore",
    ns: str,
    text: str,
    *,
    vector: "NDArray[np.float32] | None",
    documents: Collection[str] | None,
    segments: Collection[str] | None = None,
) -> UnderstoodQuestion:
    """Look up the terms and the names of a question."""
    query_weights = scoring.query_terms(text)
    words = words_of(text)
    places = list(possible_names(words, needs_capital=False, skip=STOP_WORDS))
    names = frozenset(words.joined(*place) for place in places)
    vocabulary, titles = await asyncio.gather(
        store.vocabulary(ns, list(query_weights)), store.titled(ns, sorted(names))
    )
    titled_names = longest_names(words, places, titles)
    return UnderstoodQuestion(
        text=text,
        weights=scoring.weighted(query_weights, vocabulary),
        spelled=_spelled(text, query_weights),
        vocabulary=vocabulary,
        vector=vector,
        documents=documents,
        segments=segments,
        titled={name: titles[name] for name in titled_names},
        names=names,
    )


def _spelled(question: str, wanted: Mapping[str, float]) -> dict[str, str]:
    spellings: dict[str, str] = {}
    for word in _APART.split(question):
        for term in terms(word):
            if term in wanted:
                # A text with the term 2 of "2.5" need not contain 2.5.
                is_whole = not (_LETTER.match(term) or (term.isdigit() and "." in word))
                spellings.setdefault(term, word.strip(_MARKS) if is_whole else term)
    return spellings


class Neighbourhood:
    """Segments, numbered in the order of discovery, with exact scores for a question.

    Attributes:
        entries: `n` index entries, one for each segment.
        row_of: segment id to its position in `entries`.
        profiles: `(n, t)`, BM25's saturated counts of the question's terms.
        cosines: `(n,)`, of the question's vector; all 0 without an embedder.
        dense: `(n,)` in [0, 1], cosine over its maximum.
        named: `(n,)` in [0, 1], how surely the question names the segment's document.
    """

    def __init__(
        self, store: "GraphStore", ns: str, question: UnderstoodQuestion, at_least: int = 0
    ) -> None:
        self._limit = max(_CANDIDATES, at_least)
        self.store = store
        self.ns = ns
        self.question = question
        self.entries: list[Entry] = []
        self.row_of: dict[str, int] = {}
        self.profiles = np.zeros((0, len(question.weights)))
        self.dense: NDArray[np.float64] = np.zeros(0)
        self.named: NDArray[np.float64] = np.zeros(0)
        self.cosines: NDArray[np.float64] = np.zeros(0)
        self._named_documents = _named_documents(question)

    async def start(self) -> None:
        """Add the best segments by words and by meaning, and those of documents that it names."""
        question, limit = self.question, self._limit
        (by_words,) = await self.store.matching_each(
            self.ns,
            [[list(question.weights)]],
            limit,
            question.documents,
            among=question.segments,
        )
        ids = list(by_words)
        if question.vector is not None:
            ids += await self.store.nearest(
                self.ns,
                question.vector,
                limit,
                documents=question.documents,
                among=None if question.segments is None else list(question.segments),
            )
        for documents in question.titled.values():
            ids += [id_ for one in documents for id_ in one.segments]
        await self.add(ids)

    async def add(self, ids: Iterable[str]) -> None:
        """Add segments; skip those that are known or excluded from the search."""
        new = [id_ for id_ in dict.fromkeys(ids) if id_ not in self.row_of]
        if self.question.segments is not None:
            new = [id_ for id_ in new if id_ in self.question.segments]
        entries = await self.store.entries(self.ns, new) if new else ()
        allowed = self.question.documents
        fresh = [e for e in entries if allowed is None or e.document_id in allowed]
        if not fresh:
            return
        fresh.sort(key=lambda entry: (entry.document_id, entry.index))  # whatever the order
        self.row_of |= {entry.id: row for row, entry in enumerate(fresh, len(self.entries))}
        self.entries += fresh
        self.profiles = np.concatenate([self.profiles, self._profiles(fresh)])
        title_scores = [self._named_documents.get(entry.id, 0.0) for entry in fresh]
        self.named = np.concatenate([self.named, title_scores])
        await self._measure(fresh)

    def _profiles(self, entries: "Sequence[Entry]") -> "NDArray[np.float64]":
        length = self.question.vocabulary.mean_length
        bags = (entry.terms for entry in entries)
        return scoring.saturated(bags, list(self.question.weights), length)

    async def _measure(self, entries: "Sequence[Entry]") -> None:
        vector, cosines = self.question.vector, np.zeros(len(entries))
        if vector is not None:
            ids = [entry.id for entry in entries]
            similarities = await self.store.nearest(self.ns, vector, len(ids), among=ids)
            cosines = np.array([similarities.get(id_, 0.0) for id_ in ids])
        self.cosines = np.concatenate([self.cosines, cosines])
        self.dense = scoring.normalised(self.cosines)

    @property
    def size(self) -> int:
        """Number of segments."""
        return len(self.entries)

    @property
    def weights(self) -> "NDArray[np.float64]":
        """`(t,)`: the weights of the question's terms."""
        return np.array(list(self.question.weights.values()))

    @property
    def bm25(self) -> "NDArray[np.float64]":
        """`(n,)`: BM25 of each segment."""
        result: NDArray[np.float64] = self.profiles @ self.weights
        return result

    @property
    def lexical(self) -> "NDArray[np.float64]":
        """`(n,)` in [0, 1]: BM25 over its maximum."""
        return scoring.normalised(self.bm25)

    @property
    def direct(self) -> "NDArray[np.float64]":
        """`(n,)` in [0, 1]: words, meaning and titles together."""
        return scoring.normalised(
            _LEXICAL * self.lexical + _DENSE * self.dense + _NAMES * self.named
        )

    def coverage(self, rows: "NDArray[np.int64] | int") -> "NDArray[np.float64]":
        """Return `(…, t)` in [0, 1]: how much of each of the question's terms segments have."""
        result: NDArray[np.float64] = np.minimum(self.profiles[rows], 1)
        return result

    def rows(self, ids: Iterable[str]) -> "NDArray[np.int64]":
        """Return the rows of segments; unknown segments are left out."""
        known_rows = [self.row_of[id_] for id_ in ids if id_ in self.row_of]
        return np.array(known_rows, dtype=np.int64)

    def best(self, scores: "NDArray[np.float64]", k: int) -> "NDArray[np.int64]":
        """Return the rows of the k highest positive scores, best first.

        Scores compare after rounding to 1e-4, so that the order doesn't depend on the machine's
        arithmetic; ties by (document id, index).
        """
        rounded = np.round(scores, 4)
        rows = np.flatnonzero(rounded > 0)
        if k < rows.size:
            edge = np.partition(rounded[rows], rows.size - k)[rows.size - k]
            rows = rows[rounded[rows] >= edge]
        ordered = sorted(rows.tolist(), key=lambda row: (-rounded[row], *self.place(row)))
        return np.array(ordered[:k], dtype=np.int64)

    def place(self, row: int) -> tuple[str, int]:
        """Return the sort key for equal scores."""
        return self.entries[row].document_id, self.entries[row].index


def _named_documents(question: UnderstoodQuestion) -> dict[str, float]:
    """Return the segments of the documents that a question names, with the certainty of each."""
    scores: dict[str, float] = {}
    for documents in question.titled.values():
        for one in documents:
            sure = one.sure / math.sqrt(len(documents))
            for id_ in one.segments:
                scores[id_] = max(scores.get(id_, 0.0), sure)
    return scores
