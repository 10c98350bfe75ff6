"""qrmem with a chat model, as `qrmem add` builds and `qrmem search` searches."""

from collections.abc import Sequence
from pathlib import Path

import qrmem
from benchmarks.peers.runners.job import EMBEDDER, Job, Passage, Shown, run


class Qrmem:
    """A memory in a file; `model` "" reads by rules."""

    def __init__(self, job: Job, model: str) -> None:
        self._k = job.k
        settings = qrmem.Settings(
            model=model,
            base_url=job.url if model else "",
            embedder=f"openai:{EMBEDDER}",
            embed_base_url=job.url,
        )
        self._opening = qrmem.open(str(Path(job.folder) / "memory.db"), settings=settings)

    async def build(self, passages: Sequence[Passage]) -> Sequence[str]:
        """Add all passages at once."""
        self._memory = await self._opening
        report = await self._memory.add(
            {"id": each.id, "title": each.title, "text": each.text} for each in passages
        )
        return [str(problem) for problem in report.problems]

    async def ask(self, question: str) -> Sequence[Shown]:
        """Search."""
        hits = await self._memory.search(question, k=self._k)
        return [Shown(id=hit.document_id) for hit in hits]


async def opened(job: Job) -> Qrmem:
    """Return a memory that is read by the chat model."""
    return Qrmem(job, "gpt-4o-mini")


if __name__ == "__main__":
    run(opened)
