from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from contract.reference import ReferenceStore

from qrmem.graphstore.protocol import GraphStore, NamespaceInfo, ViewUpdate
from qrmem.memory.add_state import IngestState
from qrmem.types import Document, DocumentInfo, LedgerRow, Segment

S = TypeVar("S", bound=ReferenceStore)


async def store_of(*ids: str, store: S) -> S:
    """Documents of one segment each; all of them are read and merged, and have vectors."""
    await store.create_namespace("n", NamespaceInfo("n", "t", 600, "e", 2))
    for id_ in ids:
        segment = Segment(f"s{id_}", id_, 0, 0, 4, "text", 1)
        await store.put_documents("n", [(Document("text", id=id_), [segment])])
        await store.record("n", [(LedgerRow(segment.id, "ok"), None)])
    await store.apply("n", 0, ViewUpdate(merged={f"s{id_}": "digest" for id_ in ids}))
    vectors = np.ones((len(ids), 2), dtype=np.float32)
    await store.put_vectors("n", "segment", [f"s{id_}" for id_ in ids], vectors)
    return store


async def done(store: GraphStore, *, is_embedded: bool = True) -> list[str]:
    found = IngestState(store, "n", is_embedded=is_embedded)
    ids = [info.id for info in await store.documents("n")]
    await found.look(ids)
    return [id_ for id_ in ids if found.is_done(id_)]


async def test_a_document_is_done_when_it_is_read_merged_and_embedded() -> None:
    store = await store_of("a", "b", "c", store=ReferenceStore())
    assert await done(store) == ["a", "b", "c"]
    await store.record("n", [(LedgerRow("sa", "partial"), None)])
    assert await done(store) == ["b", "c"]
    info = await store.namespace("n")
    assert info is not None
    await store.apply("n", info.revision, ViewUpdate(clear=["sb"]))
    assert await done(store) == ["c"]
    await store.set_embedder("n", "other", 3)
    assert await done(store) == []
    assert await done(store, is_embedded=False) == ["c"]


class Counting(ReferenceStore):
    """Counts the reads of the store."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = 0

    async def ledger(self, ns: str, *document_ids: str) -> Sequence[LedgerRow]:
        self.reads += 1
        return await super().ledger(ns, *document_ids)

    async def documents(self, *args: Any, **kwargs: Any) -> Sequence[DocumentInfo]:
        self.reads += 1
        return await super().documents(*args, **kwargs)


async def test_as_many_reads_are_made_for_many_documents_as_for_few() -> None:
    reads = []
    for count in (2, 40):
        ids = [f"{n:02}" for n in range(count)]
        store = await store_of(*ids, store=Counting())
        found = IngestState(store, "n", is_embedded=True)
        before = store.reads
        await found.look(ids)
        assert all(found.is_done(id_) for id_ in ids)
        reads.append(store.reads - before)
        assert found.info("01") is not None
    assert reads[0] == reads[1]
