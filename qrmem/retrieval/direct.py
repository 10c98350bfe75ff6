"""What a question says about every segment by itself, before any link is followed."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from qrmem.retrieval import bm25, dense, fusion, lexical
from qrmem.retrieval.graph import FIRST_SEGMENTS
from qrmem.retrieval.spotting import words_of
from qrmem.text.scripts import UNSPACED
from qrmem.text.words import STOP_WORDS, terms

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from qrmem.graphstore.protocol import GraphStore
    from qrmem.retrieval.bm25 import Occurrences
    from qrmem.retrieval.columns import Columns
    from qrmem.retrieval.graph import Graph
    from qrmem.retrieval.settings import SearchSettings
    from qrmem.types import Embedder

_MARKS = ".,;:!?\"'()[]{}«»“”‘’"
_APART = re.compile(r"(?:->|[\s()\[\]{}<>=;:\"])+")
"""What stands between words, in code too."""
_LETTER = re.compile(f"[{UNSPACED}]")
_COMMON = 200
"""Documents of one title beyond which it names none of them."""


@dataclass(frozen=True, slots=True)
class Direct:
    """A question against all segments.

    Attributes:
        weights: the question's terms, each as rare as the namespace says.
        total: their sum.
        spelled: how the question writes them.
        found: where they occur.
        norms: `(n,)`, BM25's length norm of every segment.
        lexical: `(n,)` in [0, 1], BM25 over its maximum.
        top: that maximum.
        dense: `(n,)` in [0, 1], cosine over its maximum; all 0 without an embedder.
        named: `(n,)` in [0, 1], how surely the question names the segment's document.
        names: the names that the question gives.
        scores: `(n,)` in [0, 1], all of it together; 0 where a search is not allowed.
    """

    weights: Mapping[str, float]
    total: float
    spelled: Mapping[str, str]
    found: "Mapping[str, Occurrences]"
    norms: "NDArray[np.float64]"
    lexical: "NDArray[np.float64]"
    top: float
    dense: "NDArray[np.float64]"
    named: "NDArray[np.float64]"
    names: frozenset[int]
    scores: "NDArray[np.float64]"

    @property
    def is_dense(self) -> bool:
        """Whether there are cosines."""
        return bool(self.dense.any())

    def share(self, terms: frozenset[str]) -> float:
        """Return how much of the question some terms cover, by weight."""
        covered = sum(weight for term, weight in self.weights.items() if term in terms)
        return covered / self.total if covered else 0.0

    def term_weights(self) -> "NDArray[np.float64]":
        """Return `(t,)`: the weights of the terms in `found`, in its order."""
        return np.array([self.weights[term] for term in self.found])

    def profiles(self, rows: "NDArray[np.int64]") -> "NDArray[np.float64]":
        """Return `(len(rows), t)`: BM25's saturated counts of the terms in `found`."""
        counts = np.zeros((rows.size, len(self.found)))
        for column, where in enumerate(self.found.values()):
            place = np.minimum(np.searchsorted(where.rows, rows), where.rows.size - 1)
            inside = where.rows[place] == rows
            counts[inside, column] = where.counts[place[inside]]
        return 2.5 * counts / (counts + self.norms[rows][:, None])


async def score(
    store: "GraphStore",
    ns: str,
    columns: "Columns",
    graph: "Graph",
    question: str,
    *,
    embedder: "Embedder | None",
    allowed: "NDArray[np.bool_]",
    settings: "SearchSettings",
) -> Direct:
    """Score every segment by its words, its meaning and its document's title."""
    wanted = lexical.query_terms(question, settings.max_terms)
    found = await lexical.find(store, ns, columns, wanted)
    weights = bm25.weights(wanted, found, columns.size)
    norms = bm25.norms(columns.lengths, settings.k1, settings.b)
    by_words = bm25.scores(weights, found, norms, settings.k1) * allowed
    by_sense = np.zeros(columns.size)
    if embedder is not None and columns.matrix_rows.size:
        query = await dense.embed_query(embedder, question, columns.matrix.shape[1])
        by_sense = dense.cosines(columns.matrix, columns.matrix_rows, query, columns.size)
    named, names = _named(graph, question, columns.size)
    parts = [(settings.lexical, by_words), (settings.dense, by_sense * allowed)]
    together = fusion.fused(parts, columns.size) + settings.names * named * allowed
    return Direct(
        weights=weights,
        total=sum(weights.values()),
        spelled=_spelled(question, wanted),
        found={term: where for term, where in found.items() if where.rows.size},
        norms=norms,
        lexical=fusion.normalised(by_words),
        top=float(by_words.max(initial=0.0)),
        dense=fusion.normalised(by_sense * allowed),
        named=named * allowed,
        names=names,
        scores=fusion.normalised(together),
    )


def _spelled(question: str, wanted: Mapping[str, float]) -> dict[str, str]:
    result: dict[str, str] = {}
    for word in _APART.split(question):
        for term in terms(word):
            if term in wanted:
                own = term if _LETTER.match(term) else word.strip(_MARKS)
                result.setdefault(term, own)
    return result


def _named(
    graph: "Graph", question: str, size: int
) -> "tuple[NDArray[np.float64], frozenset[int]]":
    """Return how surely the question names each segment's document, and all names in it."""
    words = words_of(question)
    names = dict.fromkeys(
        name
        for known in graph.kinds
        for name in graph.table.spots(words, needs_capital=False, skip=STOP_WORDS, only=known)
    )
    result = np.zeros(size)
    for name in names:
        meant = graph.titled.by(name)
        if len(meant) > _COMMON:
            continue
        for document, sure in meant:
            rows = graph.rows_of_document[document][:FIRST_SEGMENTS]
            result[rows] = np.maximum(result[rows], sure / math.sqrt(len(meant)))
    return result, frozenset(names)
