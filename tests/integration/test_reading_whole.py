"""Where everything fits the window and no strategy is named, it is read whole, in order."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from servers.openai_server import serving

import qrmem
from qrmem.config import Settings

PARTS = ["Ann Lee met Bob Hale in Rome.", "Bob Hale sold the mill.", "Cid Moor bought a horse."]


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[qrmem.Memory]:
    async with serving() as server:
        chosen = Settings(
            memory=str(tmp_path / "m.db"), model="test", base_url=server.url, embedder="none"
        )
        async with qrmem.open(settings=chosen) as memory:
            await memory.add([{"id": f"d{n}", "text": text} for n, text in enumerate(PARTS)])
            yield memory


async def read_by(memory: qrmem.Memory, trail: qrmem.Trail) -> list[str]:
    (step,) = [step for step in trail.steps if step.action == "read"]
    ids = [segment.segment_id for segment in step.read]
    return [s.document_id for s in await memory._session.store.segments("default", ids)]


async def test_a_text_that_fits_is_read_whole_and_the_trail_says_so(memory: qrmem.Memory) -> None:
    answer = await memory.ask("Who sold the mill to whom?")
    assert answer.trail.strategy == "whole"
    assert "all 3 segments fit the window" in answer.trail.steps[0].reason
    assert await read_by(memory, answer.trail) == ["d0", "d1", "d2"]


async def test_only_what_may_be_looked_at_counts(memory: qrmem.Memory) -> None:
    answer = await memory.ask("Who bought a horse?", documents=["d2", "d0"])
    assert await read_by(memory, answer.trail) == ["d0", "d2"]


async def test_a_named_strategy_walks(memory: qrmem.Memory) -> None:
    answer = await memory.ask("Who sold the mill?", strategy="reflection")
    assert answer.trail.strategy == "reflection"


async def test_a_text_that_does_not_fit_is_read_by_a_walk(memory: qrmem.Memory) -> None:
    text = " ".join(f"Captain Hale{n} met Doctor Reed{n} in Port Anvil{n}." for n in range(300))
    await memory.add({"id": "long", "text": text})
    assert (await memory.ask("Who sold the mill?")).trail.strategy == "reflection"
    assert (await memory.ask("Who sold the mill?", window=64_000)).trail.strategy == "whole"


@pytest.mark.parametrize(
    ("model", "window"),
    [("", 4096), ("own-model", 4096), ("gpt-5-nano", 16384), ("gpt-4", 8192), ("openai/o3", 16384)],
)
def test_the_window_is_the_models_where_it_is_known(model: str, window: int) -> None:
    assert Settings(model=model).window == window
    assert Settings().with_(model=model).window == window
    assert Settings(window=700).with_(model=model).window == 700
    assert Settings.from_env({"QRMEM_WINDOW": "4096"}).with_(model=model).window == 4096
