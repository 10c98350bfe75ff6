"""Cosine over stored vectors: a segment's score is the maximum over its windows."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from qrmem.errors import EmbedderMismatch, ModelUnavailable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from qrmem.types import Embedder, Segment


def cosines(
    matrix: "NDArray[np.float32]",
    rows: "NDArray[np.int64]",
    query: "NDArray[np.float32]",
    size: int,
) -> "NDArray[np.float64]":
    """Score segments against a query vector.

    Args:
        matrix: `(m, dimension)`, unit rows, a segment's windows next to each other.
        rows: `(m,)`, the segment that each row belongs to.
        query: `(dimension,)`, unit length.
        size: number of segments.

    Returns:
        `(size,)` in [-1, 1]; 0 for a segment without a vector.
    """
    result = np.zeros(size)
    if not rows.size:
        return result
    similarity = matrix @ query
    first = np.flatnonzero(np.r_[True, rows[1:] != rows[:-1]])
    result[rows[first]] = np.maximum.reduceat(similarity, first)
    return result


async def embed_query(embedder: "Embedder", text: str, dimension: int) -> "NDArray[np.float32]":
    """Return the vector of a query.

    Raises:
        EmbedderMismatch: its length isn't that of the memory's vectors.
        ModelUnavailable: the embedder returned something that is no number.
    """
    matrix = await embed_texts(embedder, [text], kind="query")
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
        ModelUnavailable: it isn't.
    """
    matrix = await embedder.embed(texts, kind=kind)
    if not np.isfinite(matrix).all():
        raise ModelUnavailable(f"the embedder {embedder.name} returned values that are no numbers")
    return matrix


def windows(embedder: "Embedder", segment: "Segment", title: str = "") -> list[str]:
    """Return the texts that stand for a segment: what its encoder reads whole.

    Its title heads the first of them: it says what a passage is about that doesn't name its
    subject. Heading the others too would push their ends out of the encoder's window.
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
