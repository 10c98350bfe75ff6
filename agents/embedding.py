"""Vectors of segments, made in batches and kept at once, so that it can be stopped and resumed."""

from collections.abc import Sequence

from qrmem.agents.state import silent
from qrmem.graphstore.protocol import GraphStore
from qrmem.llm.parallel import in_batches
from qrmem.retrieval import scoring
from qrmem.types import Embedder, Event, Listener

BATCH = 128
"""Segments that are embedded, and committed, together."""


async def embed_segments(
    store: GraphStore,
    ns: str,
    embedder: Embedder,
    segment_ids: Sequence[str],
    *,
    listener: Listener = silent,
) -> int:
    """Embed the segments that have no vectors yet; return how many these were.

    Raises:
        ModelUnavailable: the embedding server does not answer; what was embedded is kept.
    """
    missing: list[str] = []
    for ids in in_batches(segment_ids, BATCH):
        done = set(await store.owners(ns, "segment", ids))
        missing += [segment_id for segment_id in ids if segment_id not in done]
    if missing:
        listener(Event("phase", {"phase": "embedding", "segments": len(missing)}))
    for ids in in_batches(missing, BATCH):
        segments = await store.segments(ns, ids)
        of = list(dict.fromkeys(segment.document_id for segment in segments))
        titles = {info.id: info.title for info in await store.documents(ns, of)}
        wanted = [titles.get(segment.document_id, "") for segment in segments]
        owners, matrix = await scoring.embed_segments(embedder, segments, wanted)
        if owners:
            await store.put_vectors(ns, "segment", owners, matrix)
        listener(Event("embedded", {"count": len(segments)}))
    return len(missing)
