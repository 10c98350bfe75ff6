"""Names that an embedder finds alike, within a type."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from qrmem.graph.merging import Similar
from qrmem.graph.name_parents import NUMERIC
from qrmem.graphstore.protocol import GraphStore, NameRow
from qrmem.llm.parallel import in_batches
from qrmem.retrieval import scoring
from qrmem.retrieval.similarity import vector_owner
from qrmem.text.names import split_key

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from qrmem.types import Embedder

MOST_NAMES = 5000
"""Names of a type that are compared, the most frequent ones: every pair of them is."""
BATCH = 256
"""Names that are embedded, or compared with all others, together."""


def alike_by(
    store: GraphStore, ns: str, embedder: "Embedder | None", threshold: float
) -> Similar | None:
    """Return what finds names alike; it has to be the same in every merge of a namespace.

    Args:
        embedder: the namespace's own.
        threshold: least cosine; 0 turns it off.

    Returns:
        `None` where nothing is compared.
    """
    if embedder is None or not threshold:
        return None

    async def similar(names: Sequence[NameRow]) -> Iterable[tuple[str, str, float]]:
        pairs: list[tuple[str, str, float]] = []
        for rows in _by_type(names):
            vectors = await _vectors(store, ns, embedder, [row.surface for row in rows])
            pairs += _close([row.key for row in rows], vectors, threshold)
        return pairs

    return similar


def _by_type(names: Iterable[NameRow]) -> list[list[NameRow]]:
    """Return names that may be one, most frequent first; numbers and dates are what they say."""
    groups: dict[str, list[NameRow]] = defaultdict(list)
    for name in names:
        kind = split_key(name.key)[1]
        if kind not in NUMERIC:
            groups[kind].append(name)
    ranked = (sorted(rows, key=lambda row: (-row.count, row.key)) for rows in groups.values())
    return [rows[:MOST_NAMES] for rows in ranked if len(rows) > 1]


async def _vectors(
    store: GraphStore, ns: str, embedder: "Embedder", names: Sequence[str]
) -> "NDArray[np.float32]":
    """Return a row per name; those that were not made before are kept beside the relations'."""
    owner_of = {name: vector_owner(name) for name in names}
    known = await store.vectors(ns, "relation", list(owner_of.values()))
    found = dict(zip(known.owners, known.matrix, strict=True))
    missing = [name for name, owner in owner_of.items() if owner not in found]
    for batch in in_batches(missing, BATCH):
        made = await scoring.embed_texts(embedder, batch)
        owners = [owner_of[name] for name in batch]
        if not store.is_read_only:
            await store.put_vectors(ns, "relation", owners, made)
        found.update(zip(owners, made, strict=True))
    return np.stack([found[owner_of[name]] for name in names])


def _close(
    keys: Sequence[str], vectors: "NDArray[np.float32]", threshold: float
) -> list[tuple[str, str, float]]:
    """Return the pairs from the threshold on; scores compare after rounding to 1e-4."""
    pairs = []
    for start in range(0, len(keys), BATCH):
        cosines = np.round(vectors[start : start + BATCH] @ vectors.T, 4)
        for row, column in np.argwhere(cosines >= threshold):
            first, second = start + int(row), int(column)
            if first < second:
                pairs.append((keys[first], keys[second], float(cosines[row, column])))
    return pairs
