"""fast-graphrag as in its readme: `insert`, then `query` for the context alone."""

import os
from collections.abc import Sequence

from benchmarks.peers.runners.job import CHAT, EMBEDDER, KEY, Job, Passage, Shown, run


class FastGraphRAG:
    """A working folder of fast-graphrag."""

    def __init__(self, job: Job) -> None:
        os.environ["OPENAI_API_KEY"] = KEY
        from fast_graphrag import GraphRAG, QueryParam
        from fast_graphrag._llm import OpenAIEmbeddingService, OpenAILLMService

        self._rag = GraphRAG(
            working_dir=job.folder,
            domain="Articles of an encyclopedia",
            example_queries="\n".join(job.questions[:3]),
            entity_types=["Thing"],
            config=GraphRAG.Config(
                llm_service=OpenAILLMService(model=CHAT, base_url=job.url, api_key=KEY),
                embedding_service=OpenAIEmbeddingService(
                    model=EMBEDDER, base_url=job.url, api_key=KEY, embedding_dim=job.dimension
                ),
            ),
        )
        self._how = QueryParam(only_context=True)

    async def build(self, passages: Sequence[Passage]) -> Sequence[str]:
        """Insert all passages at once."""
        counts = await self._rag.async_insert([each.whole for each in passages])
        missed = len(passages) - counts[2]
        return [f"build: {missed} passages have no chunk"] if missed else []

    async def ask(self, question: str) -> Sequence[Shown]:
        """Return the passages of the context, in its order."""
        found = await self._rag.async_query(question, self._how)
        return [Shown(text=str(chunk.content)) for chunk, _ in found.context.chunks]


async def opened(job: Job) -> FastGraphRAG:
    """Return an empty working folder."""
    return FastGraphRAG(job)


if __name__ == "__main__":
    run(opened)
