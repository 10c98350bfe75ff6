"""HippoRAG 2 as in its readme: `index`, then `retrieve`."""

import os
from collections.abc import Sequence

from benchmarks.peers.runners.job import CHAT, EMBEDDER, KEY, Job, Passage, Shown, run


class HippoRAG:
    """A working folder of HippoRAG."""

    def __init__(self, job: Job) -> None:
        os.environ["OPENAI_API_KEY"] = KEY
        from hipporag import HippoRAG as Program

        self._k = job.k
        self._rag = Program(
            save_dir=job.folder,
            llm_model_name=CHAT,
            llm_base_url=job.url,
            embedding_model_name=EMBEDDER,
            embedding_base_url=job.url,
        )

    async def build(self, passages: Sequence[Passage]) -> Sequence[str]:
        """Index all passages at once."""
        self._rag.index(docs=[passage.whole for passage in passages])
        return []

    async def ask(self, question: str) -> Sequence[Shown]:
        """Retrieve passages."""
        (found,) = self._rag.retrieve(queries=[question], num_to_retrieve=self._k)
        return [Shown(text=text) for text in found.docs]


async def opened(job: Job) -> HippoRAG:
    """Return an empty working folder."""
    return HippoRAG(job)


if __name__ == "__main__":
    run(opened)
