"""Scores of edges and segments for a query, for the strategies.

A score is the cosine; without an embedder it is BM25 over the query's maximum.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from qrmem.graphstore.reads import BestEffortWriter
from qrmem.retrieval import scoring
from qrmem.retrieval.searcher import Searcher
from qrmem.text.words import terms

if TYPE_CHECKING:
    from numpy.typing import NDArray


def vector_owner(text: str) -> str:
    """Return the owner key of an edge text's vector; a changed description gets another key."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


class EdgeScorer:
    """Scores edges and segments of one namespace against a query."""

    def __init__(self, searcher: Searcher, best_effort: BestEffortWriter | None = None) -> None:
        """Take a namespace's searcher.

        Args:
            best_effort: stores new vectors where the store accepts them.
        """
        self._searcher = searcher
        self._store = searcher.store
        self._ns = searcher.ns
        self._embedder = searcher.embedder
        self._best_effort = best_effort or BestEffortWriter(searcher.store)

    @property
    def is_dense(self) -> bool:
        """Whether scores are cosines; thresholds on cosines apply only then."""
        return self._embedder is not None

    async def score_edges(self, query: str, edges: Mapping[str, str]) -> dict[str, float]:
        """Score edge texts ("head - description - tail").

        Args:
            query: the question, or a query that a strategy made from it.
            edges: relation key to text.

        Returns:
            Relation key to score: cosine in [-1, 1], or BM25 over the maximum in [0, 1].
        """
        if not edges:
            return {}
        if self._embedder is None:
            return await self._edges_by_words(query, edges)
        vectors = await self._edge_vectors(list(edges.values()))
        return dict(zip(edges, await self._similarities(query, vectors), strict=True))

    async def score_segments(self, query: str, segment_ids: Sequence[str]) -> dict[str, float]:
        """Score segments; unknown segments are left out.

        Returns:
            Segment id to score: cosine in [-1, 1], or BM25 over the maximum among those given.
        """
        segment_scores = await self._searcher.score(query, segment_ids)
        scores = np.array(list(segment_scores.values()))
        if self._embedder is None:
            scores = scoring.normalised(scores)
        return {
            id_: round(float(score), 4) for id_, score in zip(segment_scores, scores, strict=True)
        }

    async def _similarities(self, query: str, vectors: "NDArray[np.float32]") -> list[float]:
        assert self._embedder is not None
        vector = await scoring.embed_query(self._embedder, query, vectors.shape[1])
        return [round(float(score), 4) for score in vectors @ vector]

    async def _edge_vectors(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """Return one vector per text; missing vectors are made and stored."""
        assert self._embedder is not None
        owners = {vector_owner(text): text for text in texts}
        stored_vectors = await self._store.vectors(self._ns, "relation", list(owners))
        row_of = {owner: row for row, owner in enumerate(stored_vectors.owners)}
        missing = [owner for owner in owners if owner not in row_of]
        matrix = stored_vectors.matrix
        if missing:
            new_vectors = await scoring.embed_texts(
                self._embedder, [owners[owner] for owner in missing]
            )
            await self._best_effort.write(
                lambda: self._store.put_vectors(self._ns, "relation", missing, new_vectors)
            )
            matrix = np.concatenate([matrix, new_vectors]) if row_of else new_vectors
            row_of |= {owner: len(stored_vectors.owners) + n for n, owner in enumerate(missing)}
        return matrix[[row_of[vector_owner(text)] for text in texts]]

    async def _edges_by_words(self, query: str, edges: Mapping[str, str]) -> dict[str, float]:
        """Score by BM25 over the maximum; rarities of words come from the namespace's segments."""
        query_weights = scoring.query_terms(query)
        vocabulary = await self._searcher.vocabulary(list(query_weights))
        weights = scoring.weighted(query_weights, vocabulary)
        bags = [terms(text) for text in edges.values()]
        length = max(sum(map(len, bags)) / len(bags), 1.0)
        counts = scoring.saturated(bags, list(weights), length)
        scores = scoring.normalised(counts @ np.array(list(weights.values())))
        return {key: round(float(score), 4) for key, score in zip(edges, scores, strict=True)}
