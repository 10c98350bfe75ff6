"""LightRAG as in its readme: `ainsert`, then `aquery_data` in its default mode, `mix`.

The reranker, which is off unless one is configured, is off.
"""

from collections.abc import Sequence
from functools import partial

from benchmarks.peers.runners.job import CHAT, EMBEDDER, KEY, Job, Passage, Shown, run


class LightRAG:
    """A working folder of LightRAG."""

    def __init__(self, job: Job) -> None:
        from lightrag import LightRAG as Program
        from lightrag import QueryParam
        from lightrag.llm.openai import openai_complete_if_cache, openai_embed
        from lightrag.utils import EmbeddingFunc

        embed = partial(openai_embed.func, model=EMBEDDER, base_url=job.url, api_key=KEY)
        chat = partial(openai_complete_if_cache, CHAT, base_url=job.url, api_key=KEY)
        self._rag = Program(
            working_dir=job.folder,
            llm_model_func=chat,
            embedding_func=EmbeddingFunc(job.dimension, embed, max_token_size=8192),
        )
        self._how = QueryParam(enable_rerank=False)

    async def build(self, passages: Sequence[Passage]) -> Sequence[str]:
        """Insert all passages at once; return the documents that it notes as failed."""
        await self._rag.initialize_storages()
        await self._rag.ainsert(
            [passage.whole for passage in passages],
            ids=[passage.id for passage in passages],
            file_paths=[f"{passage.id}.txt" for passage in passages],
        )
        counts = await self._rag.get_processing_status()
        left = {how: n for how, n in counts.items() if n and how != "processed"}
        return [f"build: {n} documents {how}" for how, n in left.items()]

    async def ask(self, question: str) -> Sequence[Shown]:
        """Return the passages of the context, in its order."""
        found = await self._rag.aquery_data(question, self._how)
        return [Shown(text=chunk["content"]) for chunk in found.get("data", {}).get("chunks", [])]


async def opened(job: Job) -> LightRAG:
    """Return an empty working folder."""
    return LightRAG(job)


if __name__ == "__main__":
    run(opened)
