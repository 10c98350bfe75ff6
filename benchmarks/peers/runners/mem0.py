"""mem0 as in its readme: `add` of one text after the other, then `search`.

It stores facts; a fact's metadata name its passage.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from benchmarks.peers.runners.job import CHAT, EMBEDDER, KEY, Job, Passage, Shown, run, said

WHO = {"user_id": "reader"}


class Mem0:
    """A memory with Qdrant in a folder, which is mem0's default."""

    def __init__(self, job: Job) -> None:
        os.environ |= {"MEM0_TELEMETRY": "False", "MEM0_DIR": job.folder}
        from mem0 import Memory

        server = {"openai_base_url": job.url, "api_key": KEY}
        vectors = {"path": str(Path(job.folder) / "vectors")}
        embedding = {"model": EMBEDDER, "embedding_dims": job.dimension}
        self._memory = Memory.from_config(
            {
                "llm": {"provider": "openai", "config": {"model": CHAT, **server}},
                "embedder": {"provider": "openai", "config": {**embedding, **server}},
                "vector_store": {
                    "provider": "qdrant",
                    "config": {**vectors, "embedding_model_dims": job.dimension},
                },
                "history_db_path": str(Path(job.folder) / "history.db"),
            }
        )

    async def build(self, passages: Sequence[Passage]) -> Sequence[str]:
        """Add one passage after the other; return those of which nothing was kept."""
        problems = []
        for passage in passages:
            try:
                kept = self._memory.add(passage.whole, metadata={"passage": passage.id}, **WHO)
            except Exception as exc:
                problems.append(f"build: {said(exc)}")
                continue
            if not kept["results"]:
                problems.append(f"build: nothing kept of {passage.id}")
        return problems

    async def ask(self, question: str) -> Sequence[Shown]:
        """Return the passages of the facts that are found."""
        found = self._memory.search(question, filters=WHO)
        return [Shown(id=fact["metadata"]["passage"]) for fact in found["results"]]


async def opened(job: Job) -> Mem0:
    """Return an empty memory."""
    return Mem0(job)


if __name__ == "__main__":
    run(opened)
