"""A model whose replies cannot be parsed: the build stops early, and says why."""

from pathlib import Path
from typing import Any

import pytest
from servers.faults import Faults
from servers.openai_server import OpenAIServer, serving

import qrmem
from qrmem.errors import ModelUnusable
from qrmem.llm.breaker import PROVEN, UNKNOWN

CONCURRENCY = 4
STORY = {
    "id": "story",
    "text": "\n\n".join(
        f"# Part {n}\n\nIn the year {1800 + n} Ilse Brandt met Jonas Vey of Lund about letter {n}. "
        f"Mara Holt of Port Ellen had written it to Old Tobias in {1790 + n}."
        for n in range(60)
    ),
}


def opened(server: OpenAIServer, path: Path, **settings: Any) -> Any:
    given: dict[str, Any] = {
        "model": "test",
        "base_url": server.url,
        "embedder": "none",
        "segment_tokens": 60,
        "shared_tokens": 0,
        "concurrency": CONCURRENCY,
    }
    return qrmem.open(str(path / "memory.db"), **given | settings)


async def graph(memory: qrmem.Memory) -> Any:
    entities = await memory.entities(10_000)
    return entities, [await memory.entity(entity.name) for entity in entities]


@pytest.mark.parametrize("settings", [{}, {"mode": "paper"}, {"shared_tokens": 600}], ids=str)
async def test_a_model_that_talks_prose_is_given_up_after_a_few_replies(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    async with serving(obeys_forms=False) as server, opened(server, tmp_path, **settings) as memory:
        with pytest.raises(ModelUnusable, match=r"test can .*the last begins '.*doctor --model"):
            await memory.add(STORY)
        assert server.stats.requests <= UNKNOWN + CONCURRENCY
        status = await memory.status()
        assert not status.states.get("ok")
        assert status.usage.calls == server.stats.answered
    async with serving() as server, opened(server, tmp_path, **settings) as memory:
        assert (await memory.add(STORY)).is_complete
        found = await graph(memory)
    calm = tmp_path / "calm"
    calm.mkdir()
    async with serving() as server, opened(server, calm, **settings) as memory:
        await memory.add(STORY)
        assert await graph(memory) == found


async def test_a_model_that_stops_making_sense_is_given_up_and_what_it_said_before_is_kept(
    tmp_path: Path,
) -> None:
    faults = Faults(always="null", since=30)
    async with serving(faults=faults) as server, opened(server, tmp_path) as memory:
        with pytest.raises(ModelUnusable, match="the last is empty"):
            await memory.add(STORY)
        assert server.stats.requests <= 30 + PROVEN + CONCURRENCY
        assert (await memory.status()).states["extracted"] > 20


async def test_a_short_document_that_cannot_be_read_has_failed_segments(tmp_path: Path) -> None:
    short = {"id": "short", "text": STORY["text"].split("\n\n")[1]}
    async with serving(obeys_forms=False) as server, opened(server, tmp_path) as memory:
        assert (await memory.add(short)).states == {"failed": 1}
        assert server.stats.requests < UNKNOWN
