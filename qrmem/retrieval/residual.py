"""The second hop without a link: what the question still needs, about the names just read.

A segment that names no page may still say enough: its names, and the words of the question that it
lacks, together are a new query.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from qrmem.retrieval import bm25, fusion, lexical

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from qrmem.graphstore.protocol import GraphStore
    from qrmem.retrieval.columns import Columns
    from qrmem.retrieval.direct import Direct
    from qrmem.retrieval.graph import Graph
    from qrmem.retrieval.reading import Sentence

_PLAIN_NAME = 0.3
"""What a name counts in a sentence that has nothing of the question."""
_TITLES_PER_SEED = 4
_COMMON = 200
"""Documents with a name in their title beyond which the name says too little."""


@dataclass(frozen=True, slots=True)
class Residual:
    """What the second hop finds over all segments.

    Attributes:
        scores: `(n,)`, words that are lacking and names that were read, as a geometric mean.
        sources: `(n,)`, the segment whose names they are; -1 where the score is 0.
        titles: `(n,)`, lacking words where a title holds a name that was read.
        title_sources: `(n,)`, likewise.
    """

    scores: "NDArray[np.float64]"
    sources: "NDArray[np.int64]"
    titles: "NDArray[np.float64]"
    title_sources: "NDArray[np.int64]"


async def find(
    store: "GraphStore",
    ns: str,
    columns: "Columns",
    graph: "Graph",
    direct: "Direct",
    readings: "Mapping[int, Sequence[Sentence]]",
    allowed: "NDArray[np.bool_]",
    *,
    k1: float = 1.5,
) -> Residual:
    """Ask again from each segment that was read."""
    bags = {row: _bag(graph, direct, reading) for row, reading in readings.items()}
    wanted = dict.fromkeys(sorted({term for bag in bags.values() for term in bag}), 1.0)
    found = await lexical.find(store, ns, columns, wanted)
    rarity = bm25.weights(wanted, found, columns.size)
    result = Residual(*_empty(columns.size), *_empty(columns.size))
    for row, bag in bags.items():
        lacking = _lacking(direct, row, k1)
        by_names = bm25.scores(
            {term: count * rarity[term] for term, count in bag.items()}, found, direct.norms, k1
        )
        by_names[row] = lacking[row] = 0.0
        together = np.sqrt(
            fusion.normalised(by_names * allowed) * fusion.normalised(lacking * allowed)
        )
        _keep(result.scores, result.sources, together * direct.scores[row], row)
        titled = _in_titles(columns, graph, direct, readings[row], lacking * allowed)
        _keep(result.titles, result.title_sources, titled * direct.scores[row], row)
    return result


def _empty(size: int) -> "tuple[NDArray[np.float64], NDArray[np.int64]]":
    return np.zeros(size), np.full(size, -1, dtype=np.int64)


def _keep(
    scores: "NDArray[np.float64]",
    sources: "NDArray[np.int64]",
    new: "NDArray[np.float64]",
    row: int,
) -> None:
    better = new > scores
    scores[better] = new[better]
    sources[better] = row


def _bag(graph: "Graph", direct: "Direct", reading: "Sequence[Sentence]") -> dict[str, float]:
    """Return the words of the names in a segment, weighed by the sentences that they stand in."""
    bag: dict[str, float] = {}
    for sentence in reading:
        weight = _PLAIN_NAME + direct.share(sentence.terms)
        for name in sentence.names:
            if name in direct.names:
                continue
            for term in graph.terms(name):
                if term not in direct.weights:
                    bag[term] = max(bag.get(term, 0.0), weight)
    return bag


def _lacking(direct: "Direct", row: int, k1: float) -> "NDArray[np.float64]":
    """Return BM25 of the question's words that a segment lacks."""
    covered = np.minimum(direct.profiles(np.array([row]))[0], 1)
    left = {
        term: direct.weights[term] * float(1 - share)
        for term, share in zip(direct.found, covered, strict=True)
    }
    return bm25.scores(left, direct.found, direct.norms, k1)


def _in_titles(
    columns: "Columns",
    graph: "Graph",
    direct: "Direct",
    reading: "Sequence[Sentence]",
    lacking: "NDArray[np.float64]",
) -> "NDArray[np.float64]":
    """Return the lacking words' share where a title has a name that was read; the best few only."""
    names = {name for sentence in reading for name in sentence.names} - direct.names
    documents = [graph.titles_with(columns, name) for name in sorted(names)]
    result = np.zeros(columns.size)
    few = [found for found in documents if 0 < found.size <= _COMMON]
    if not few or not direct.top:
        return result
    rows = graph.rows_of_document.firsts(np.unique(np.concatenate(few)))
    rows = rows[np.lexsort((rows, -lacking[rows]))][:_TITLES_PER_SEED]
    result[rows] = lacking[rows] / direct.top
    return result
