"""Exact scores for a query: BM25 and cosines, of texts and of the edges that strategies compare."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from qrmem.errors import EmbedderMismatch, ModelUnavailable
from qrmem.graphstore.reads import BestEffortWriter
from qrmem.graphstore.records import K1, B
from qrmem.text.words import searched, terms

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from qrmem.graphstore.protocol import Vocabulary
    from qrmem.retrieval.searcher import Searcher
    from qrmem.types import Embedder, Segment


_MOST_TERMS = 256
"""Maximum number of distinct terms of a query; further ones are ignored."""


def query_terms(text: str) -> dict[str, float]:
    """Return a query's terms and how often each occurs."""
    return {term: float(count) for term, count in list(Counter(terms(text)).items())[:_MOST_TERMS]}


def weighted(query: Mapping[str, float], vocabulary: "Vocabulary") -> dict[str, float]:
    """Return each term's weight in a query: its count times its rarity.

    A term that no segment has gets the highest rarity: it may still occur in another text.
    """
    return {term: count * vocabulary.rarity(term) for term, count in query.items()}


def saturated(
    bags: Iterable[Sequence[str]], wanted: Sequence[str], mean_length: float
) -> "NDArray[np.float64]":
    """Return `(n, t)`: BM25's saturated counts of terms in texts, each in [0, K1 + 1].

    Args:
        bags: each text's terms with repeats.
        wanted: `t` terms.
        mean_length: terms of a text in the collection.
    """
    terms_known = frozenset(wanted)
    rows = []
    for bag in bags:
        terms_held = terms_known.intersection(bag)  # the usual case: a text has few of the terms
        rows.append([len(bag), *(bag.count(term) if term in terms_held else 0 for term in wanted)])
    table = np.array(rows, dtype=np.float64).reshape(-1, len(wanted) + 1)
    norms = K1 * (1 - B + B * table[:, :1] / mean_length)
    counts = table[:, 1:]
    result: NDArray[np.float64] = (K1 + 1) * counts / (counts + norms)
    return result


def normalised(scores: "NDArray[np.float64]") -> "NDArray[np.float64]":
    """Divide scores by their maximum; scores that are not positive become 0."""
    top = float(scores.max(initial=0.0))
    return np.maximum(scores, 0.0) / top if top > 0 else np.zeros_like(scores)


async def embed_query(embedder: "Embedder", text: str, dimension: int) -> "NDArray[np.float32]":
    """Return the vector of a query.

    Raises:
        EmbedderMismatch: its length differs from that of the memory's vectors.
        ModelUnavailable: the embedder returned a value that is not a finite number.
    """
    matrix = await embed_texts(embedder, [searched(text)], kind="query")
    vector: NDArray[np.float32] = matrix[0]
    if vector.shape[0] != dimension:
        raise EmbedderMismatch(
            f"the memory's vectors have {dimension} dimensions, {embedder.name} gives "
            f"{vector.shape[0]}; `qrmem reembed` changes the memory"
        )
    return vector


async def embed_texts(
    embedder: "Embedder", texts: Sequence[str], *, kind: Literal["passage", "query"] = "passage"
) -> "NDArray[np.float32]":
    """Embed texts and check that every number is finite.

    Raises:
        ModelUnavailable: a number is not finite.
    """
    matrix = await embedder.embed(texts, kind=kind)
    if not np.isfinite(matrix).all():
        raise ModelUnavailable(f"the embedder {embedder.name} returned values that are not numbers")
    return matrix


def windows(embedder: "Embedder", segment: "Segment", title: str = "") -> list[str]:
    """Return the texts to embed for a segment; each fits the encoder's window.

    The first one begins with the title, because a passage may not name its subject. With the title,
    the other texts would exceed the encoder's window.
    """
    return list(embedder.windows(f"{title}\n{segment.text}" if title else segment.text))


async def embed_segments(
    embedder: "Embedder", segments: Sequence["Segment"], titles: Sequence[str]
) -> "tuple[list[str], NDArray[np.float32]]":
    """Return owners and rows for `GraphStore.put_vectors(ns, "segment", …)`."""
    owners, texts = [], []
    for segment, title in zip(segments, titles, strict=True):
        parts = windows(embedder, segment, title)
        owners += [segment.id] * len(parts)
        texts += parts
    return owners, await embed_texts(embedder, texts)


def vector_owner(text: str) -> str:
    """Return the owner key of an edge text's vector; a changed description gets another key."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


class EdgeScorer:
    """Scores edges and segments of one namespace against a query."""

    def __init__(self, searcher: "Searcher", best_effort: BestEffortWriter | None = None) -> None:
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
            scores = normalised(scores)
        return {
            id_: round(float(score), 4) for id_, score in zip(segment_scores, scores, strict=True)
        }

    async def _similarities(self, query: str, vectors: "NDArray[np.float32]") -> list[float]:
        assert self._embedder is not None
        vector = await embed_query(self._embedder, query, vectors.shape[1])
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
            new_vectors = await embed_texts(self._embedder, [owners[owner] for owner in missing])
            await self._best_effort.write(
                lambda: self._store.put_vectors(self._ns, "relation", missing, new_vectors)
            )
            matrix = np.concatenate([matrix, new_vectors]) if row_of else new_vectors
            row_of |= {owner: len(stored_vectors.owners) + n for n, owner in enumerate(missing)}
        return matrix[[row_of[vector_owner(text)] for text in texts]]

    async def _edges_by_words(self, query: str, edges: Mapping[str, str]) -> dict[str, float]:
        """Score by BM25 over the maximum; rarities of words come from the namespace's segments."""
        query_weights = query_terms(query)
        vocabulary = await self._searcher.vocabulary(list(query_weights))
        weights = weighted(query_weights, vocabulary)
        bags = [terms(text) for text in edges.values()]
        length = max(sum(map(len, bags)) / len(bags), 1.0)
        counts = saturated(bags, list(weights), length)
        scores = normalised(counts @ np.array(list(weights.values())))
        return {key: round(float(score), 4) for key, score in zip(edges, scores, strict=True)}
