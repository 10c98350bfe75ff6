"""Exact scores of texts for a query: BM25 and cosines."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from qrmem.errors import EmbedderMismatch, ModelUnavailable
from qrmem.graphstore.records import K1, B
from qrmem.text.words import searched, terms

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from qrmem.graphstore.protocol import Vocabulary
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
