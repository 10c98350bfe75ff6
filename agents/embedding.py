"""Vectors of segments and names, computed in batches, each stored at once so that work resumes."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from qrmem.agents.build_state import silent
from qrmem.graph.merging import Similar
from qrmem.graph.name_parents import NUMERIC
from qrmem.graphstore.protocol import GraphStore, NameRow
from qrmem.llm.parallel import in_batches
from qrmem.retrieval import scoring
from qrmem.retrieval.scoring import vector_owner
from qrmem.text.names import split_key
from qrmem.types import Embedder, Event, Listener

if TYPE_CHECKING:
    from numpy.typing import NDArray


BATCH = 128
"""Number of segments per batch and commit."""


async def embed_segments(
    store: GraphStore,
    ns: str,
    embedder: Embedder,
    segment_ids: Sequence[str],
    *,
    listener: Listener = silent,
) -> int:
    """Embed the segments without vectors; return their number.

    Raises:
        ModelUnavailable: the embedding server does not answer; finished batches are kept.
    """
    missing: list[str] = []
    for ids in in_batches(segment_ids, BATCH):
        embedded = set(await store.owners(ns, "segment", ids))
        missing += [segment_id for segment_id in ids if segment_id not in embedded]
    if missing:
        listener(Event("phase", {"phase": "embedding", "segments": len(missing)}))
    for ids in in_batches(missing, BATCH):
        segments = await store.segments(ns, ids)
        of = list(dict.fromkeys(segment.document_id for segment in segments))
        titles = {info.id: info.title for info in await store.documents(ns, of)}
        segment_titles = [titles.get(segment.document_id, "") for segment in segments]
        owners, matrix = await scoring.embed_segments(embedder, segments, segment_titles)
        if owners:
            await store.put_vectors(ns, "segment", owners, matrix)
        listener(Event("embedded", {"count": len(segments)}))
    return len(missing)


# Names of one type that are similar by their vectors.

MOST_NAMES = 5000
"""Maximum number of names of a type to compare pairwise; the most frequent names are used."""
NAMES_AT_ONCE = 256
"""Number of names per batch."""


def alike_by(
    store: GraphStore, ns: str, embedder: "Embedder | None", threshold: float
) -> Similar | None:
    """Return the comparison of names by cosine; every merge of a namespace must use the same.

    Args:
        store: the store.
        ns: the namespace.
        embedder: the namespace's embedder.
        threshold: least cosine; 0 turns it off.

    Returns:
        The comparison; `None` if it is off.
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
    """Return names that may be merged, most frequent first; numbers and dates may not."""
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
    """Return a row for each name; new rows are stored with the relations' vectors."""
    owner_of = {name: vector_owner(name) for name in names}
    stored_vectors = await store.vectors(ns, "relation", list(owner_of.values()))
    vector_of = dict(zip(stored_vectors.owners, stored_vectors.matrix, strict=True))
    missing = [name for name, owner in owner_of.items() if owner not in vector_of]
    for batch in in_batches(missing, NAMES_AT_ONCE):
        new_vectors = await scoring.embed_texts(embedder, batch)
        owners = [owner_of[name] for name in batch]
        if not store.is_read_only:
            await store.put_vectors(ns, "relation", owners, new_vectors)
        vector_of.update(zip(owners, new_vectors, strict=True))
    return np.stack([vector_of[owner_of[name]] for name in names])


def _close(
    keys: Sequence[str], vectors: "NDArray[np.float32]", threshold: float
) -> list[tuple[str, str, float]]:
    """Return the pairs at or above the threshold; scores are rounded to 1e-4."""
    pairs = []
    for start in range(0, len(keys), NAMES_AT_ONCE):
        cosines = np.round(vectors[start : start + NAMES_AT_ONCE] @ vectors.T, 4)
        for row, column in np.argwhere(cosines >= threshold):
            first, second = start + int(row), int(column)
            if first < second:
                pairs.append((keys[first], keys[second], float(cosines[row, column])))
    return pairs
