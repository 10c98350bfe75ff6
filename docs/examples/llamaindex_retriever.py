"""A LlamaIndex retriever over a memory (needs llama-index-core)."""

from typing import Any

from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

import qrmem
import qrmem.sync


class MemoryRetriever(BaseRetriever):
    """Returns the segments that a search finds, with where they stand: `retrieve`, `aretrieve`."""

    def __init__(self, memory: qrmem.sync.Memory, k: int = 5, **options: Any) -> None:
        self._memory, self._k = memory, k
        super().__init__(**options)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return _nodes(self._memory.search(query_bundle.query_str, k=self._k))

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        query, k = query_bundle.query_str, self._k
        return _nodes(await self._memory.acall(lambda memory: memory.search(query, k=k)))


def _nodes(hits: list[qrmem.Hit]) -> list[NodeWithScore]:
    return [NodeWithScore(node=_node(hit), score=hit.score) for hit in hits]


def _node(hit: qrmem.Hit) -> TextNode:
    place = {"document_id": hit.document_id, "title": hit.title, "part": hit.part, "via": hit.via}
    return TextNode(id_=hit.segment_id, text=hit.text, metadata=place)
