"""graphiti with Neo4j, as in its readme: `add_episode`, then `search`.

It stores facts; a fact names its episodes, which are passages here.
"""

import os
from collections.abc import Sequence
from datetime import UTC, datetime

from benchmarks.peers.runners.job import CHAT, EMBEDDER, KEY, Job, Passage, Shown, run, said

WHEN = datetime(2020, 1, 1, tzinfo=UTC)


class Graphiti:
    """A graph in a database."""

    def __init__(self, job: Job) -> None:
        os.environ["GRAPHITI_TELEMETRY_ENABLED"] = "false"
        from graphiti_core import Graphiti as Program
        from graphiti_core.cross_encoder.openai_reranker_client import OpenAIRerankerClient
        from graphiti_core.embedder.openai import OpenAIEmbedder, OpenAIEmbedderConfig
        from graphiti_core.llm_client.config import LLMConfig
        from graphiti_core.llm_client.openai_generic_client import OpenAIGenericClient
        from graphiti_core.nodes import EpisodeType

        chat = LLMConfig(api_key=KEY, model=CHAT, small_model=CHAT, base_url=job.url)
        vectors = OpenAIEmbedderConfig(
            embedding_model=EMBEDDER,
            embedding_dim=job.dimension,
            api_key=KEY,
            base_url=job.url,
        )
        self._graph = Program(
            job.neo4j["uri"],
            "neo4j",
            job.neo4j["password"],
            llm_client=OpenAIGenericClient(chat),
            embedder=OpenAIEmbedder(vectors),
            cross_encoder=OpenAIRerankerClient(chat),
        )
        self._text = EpisodeType.text
        self._passages: dict[str, str] = {}

    async def build(self, passages: Sequence[Passage]) -> Sequence[str]:
        """Add one episode after the other; return what failed."""
        await self._graph.build_indices_and_constraints()
        problems = []
        for passage in passages:
            try:
                added = await self._graph.add_episode(
                    name=passage.title,
                    episode_body=passage.whole,
                    source_description="an article",
                    reference_time=WHEN,
                    source=self._text,
                )
            except Exception as exc:
                problems.append(f"build: {said(exc)}")
                continue
            self._passages[added.episode.uuid] = passage.id
        return problems

    async def ask(self, question: str) -> Sequence[Shown]:
        """Return the passages of the facts that are found."""
        facts = await self._graph.search(question)
        from_them = [episode for fact in facts for episode in fact.episodes]
        return [Shown(id=self._passages[each]) for each in from_them if each in self._passages]


async def opened(job: Job) -> Graphiti:
    """Return an empty graph."""
    return Graphiti(job)


if __name__ == "__main__":
    run(opened)
