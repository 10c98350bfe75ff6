"""nano-graphrag as in its readme: `insert`, then `query` in mode `local`.

That is the mode that shows passages; the default, `global`, shows reports of communities.
"""

import os
from collections.abc import Sequence

from benchmarks.peers.runners.job import EMBEDDER, KEY, Job, Passage, Shown, run


class NanoGraphRAG:
    """A working folder of nano-graphrag."""

    def __init__(self, job: Job) -> None:
        os.environ |= {"OPENAI_BASE_URL": job.url, "OPENAI_API_KEY": KEY}
        import numpy as np
        from nano_graphrag import GraphRAG, QueryParam
        from nano_graphrag._utils import wrap_embedding_func_with_attrs
        from openai import AsyncOpenAI

        client = AsyncOpenAI()

        async def embed(texts: list[str]) -> object:
            made = await client.embeddings.create(
                model=EMBEDDER, input=texts, encoding_format="float"
            )
            return np.array([row.embedding for row in sorted(made.data, key=lambda r: r.index)])

        sized = wrap_embedding_func_with_attrs(embedding_dim=job.dimension, max_token_size=8192)
        self._rag = GraphRAG(working_dir=job.folder, embedding_func=sized(embed))
        self._how = QueryParam(mode="local", only_need_context=True)

    async def build(self, passages: Sequence[Passage]) -> Sequence[str]:
        """Insert all passages at once."""
        await self._rag.ainsert([passage.whole for passage in passages])
        return []

    async def ask(self, question: str) -> Sequence[Shown]:
        """Return the context; its passages stand at its end."""
        return [Shown(text=str(await self._rag.aquery(question, self._how)))]


async def opened(job: Job) -> NanoGraphRAG:
    """Return an empty working folder."""
    return NanoGraphRAG(job)


if __name__ == "__main__":
    run(opened)
