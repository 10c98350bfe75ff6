"""Caps of a run over real HTTP: never exceeded, results are kept, the same call continues."""

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from servers.faults import Faults
from servers.openai_server import OpenAIServer, Stats, serving

import qrmem
from qrmem.errors import CapReached, UsageError
from qrmem.types.options import Strategy

SAMPLE = Path(qrmem.__file__).parent / "sample" / "harbour.md"
TEXT = "## ".join(SAMPLE.read_text().split("## ")[:6])
DOCUMENT = {"id": "book", "text": TEXT}
QUESTION = "Who keeps the light on Skarrow?"
PRICES = 'date = "2031-01-01"\n[models."test"]\ninput = 10.0\noutput = 40.0\n'


def opened(server: OpenAIServer, path: Path, **settings: Any) -> Any:
    path.mkdir(exist_ok=True)
    given: dict[str, Any] = {"model": "test", "base_url": server.url, "embedder": "none"}
    return qrmem.open(str(path / "memory.db"), **given | {"concurrency": 4} | settings)


def money(stats: Stats) -> float:
    return (10 * stats.tokens_in + 40 * stats.tokens_out) / 1_000_000


async def graph(memory: qrmem.Memory) -> Any:
    """All that a build made."""
    entities = await memory.entities(10_000)
    return entities, [await memory.entity(entity.name) for entity in entities[:20]]


async def built(path: Path, **settings: Any) -> tuple[Any, Stats]:
    """Build without caps; what came of it, and what the server counted."""
    async with serving() as server, opened(server, path, **settings) as memory:
        assert (await memory.add(DOCUMENT)).is_complete
        return await graph(memory), server.stats


@pytest.mark.parametrize("mode", ["compact", "paper"])
@pytest.mark.parametrize("cap", [0, 1, 7])
async def test_an_add_stops_at_its_cap_on_calls_and_continues_later(
    tmp_path: Path, mode: str, cap: int
) -> None:
    calm, stats = await built(tmp_path / "calm", mode=mode)
    async with serving() as server, opened(server, tmp_path, mode=mode) as memory:
        first = await memory.add(DOCUMENT, max_calls=cap)
        assert server.stats.requests == cap
        assert f"cap of {cap} call" in first.stopped
        assert not first.is_complete
        assert (await memory.add(DOCUMENT)).is_complete
        assert server.stats.requests == stats.requests, "nothing is paid for twice"
        assert await graph(memory) == calm


@pytest.mark.parametrize("share", [0.5, 0.6, 0.9])
async def test_a_cap_on_tokens_holds_through_faults(tmp_path: Path, share: float) -> None:
    _, stats = await built(tmp_path / "calm")
    cap = int(share * (stats.tokens_in + stats.tokens_out))
    faults = Faults(rates={"429": 0.1, "nonsense": 0.1}, seed=5)
    async with serving(faults=faults) as server, opened(server, tmp_path) as memory:
        report = await memory.add(DOCUMENT, max_tokens=cap)
        assert "tokens is reached" in report.stopped
        assert server.stats.tokens_in + server.stats.tokens_out <= cap
        assert server.stats.answered > 0
        kept = (await memory.usage())[0]
    assert kept.tokens_in > 0


async def test_a_cap_on_money_holds_against_what_the_server_counted(tmp_path: Path) -> None:
    (tmp_path / "prices.toml").write_text(PRICES)
    prices = str(tmp_path / "prices.toml")
    _, stats = await built(tmp_path / "calm")
    cap = 0.5 * money(stats)
    async with serving() as server, opened(server, tmp_path, prices=prices) as memory:
        report = await memory.add(DOCUMENT, max_cost=cap)
        assert "money is reached" in report.stopped
        assert 0 < money(server.stats) <= cap
        spent = sum(stage.cost or 0.0 for stage in report.usage.construction.values())
        assert spent == pytest.approx(money(server.stats))


async def test_money_of_a_model_without_a_price_cannot_be_capped(tmp_path: Path) -> None:
    async with serving() as server, opened(server, tmp_path) as memory:
        with pytest.raises(UsageError, match=r"^max_cost needs the price of test: add it"):
            await memory.add(DOCUMENT, max_cost=1.0)
        assert server.stats.requests == 0


async def test_a_cap_on_time_ends_a_run_and_keeps_what_came(tmp_path: Path) -> None:
    import_module("openai")  # the first time that alone takes seconds
    faults = Faults(always="hang", since=4)
    async with serving(faults=faults) as server, opened(server, tmp_path) as memory:
        report = await memory.add(DOCUMENT, max_seconds=2.5)
        assert "seconds is reached" in report.stopped
        assert sum(report.states.values()) - report.states.get("pending", 0) > 0
        status = await memory.status()
    assert status.states == report.states


async def test_the_local_reasoner_is_capped_in_time(tmp_path: Path) -> None:
    async with qrmem.open(str(tmp_path / "memory.db"), embedder="none") as memory:
        report = await memory.add(DOCUMENT, max_seconds=0)
        assert "cap of 0 seconds" in report.stopped
        assert (await memory.add(DOCUMENT)).is_complete
        with pytest.raises(CapReached):
            await memory.ask(QUESTION, max_seconds=0)


async def test_caps_are_settings_too_and_an_argument_beats_them(tmp_path: Path) -> None:
    async with serving() as server, opened(server, tmp_path, max_calls=2) as memory:
        assert (await memory.add(DOCUMENT)).stopped
        assert server.stats.requests == 2
        assert (await memory.add(DOCUMENT, max_calls=4)).stopped
        assert server.stats.requests == 6
        with pytest.raises(UsageError, match="max_cals"):
            await memory.add(DOCUMENT, max_cals=3)


@pytest.mark.parametrize("strategy", ["reflection", "graph-expansion", "entity-trial"])
async def test_a_question_stops_at_its_cap_and_continues_from_there(
    tmp_path: Path, strategy: str
) -> None:
    hard = "Why did the elephant of Skarrow weigh so much in Archangel?"
    async with serving() as server, opened(server, tmp_path) as memory:
        await memory.add(DOCUMENT)
        before = server.stats.requests
        with pytest.raises(CapReached, match="cap of 1 call "):
            await memory.ask(hard, strategy=strategy, start="entities", max_calls=1)
        assert server.stats.requests == before + 1
        answer = await memory.ask(hard, strategy=strategy, start="entities")
        assert server.stats.requests == before + 1 + answer.usage.calls
        assert answer.usage.calls > 0
        assert answer.trail.id


@pytest.mark.parametrize("cap", [1, 2])
async def test_embeddings_count_and_a_change_of_embedder_continues(
    tmp_path: Path, cap: int
) -> None:
    documents = [{"id": str(n), "text": f"Ahab met Pip in Port {n}. " * 30} for n in range(140)]
    async with serving() as server:
        path = str(tmp_path / "memory.db")
        given: dict[str, Any] = {"embed_base_url": server.url, "concurrency": 1}
        async with qrmem.open(path, embedder="none", **given) as memory:
            await memory.add(documents)
            with pytest.raises(CapReached, match=f"cap of {cap} call"):
                await memory.reembed("openai:e", max_calls=cap)
            assert server.stats.requests == cap
            await memory.reembed("openai:e")
            assert (await memory.reembed("openai:e")) == 0
            rows = {row.key: row for row in await memory.usage()}
            assert rows["embed"].requests == server.stats.requests
            assert rows["embed"].tokens_in > 0
            assert await memory.search("Who met Pip in Port 7?", k=1)


@pytest.mark.parametrize("strategy", ["passages", "fragment"])
async def test_embeddings_of_an_add_and_a_question_count(
    tmp_path: Path, strategy: Strategy
) -> None:
    async with serving() as server:
        given: dict[str, Any] = {"embed_base_url": server.url, "embedder": "openai:e"}
        async with qrmem.open(str(tmp_path / "memory.db"), **given) as memory:
            assert "cap of 0 calls" in (await memory.add(DOCUMENT, max_calls=0)).stopped
            assert server.stats.requests == 0
            assert (await memory.add(DOCUMENT)).is_complete
            answer = await memory.ask(QUESTION, strategy=strategy)
            assert answer.usage.online["embed"].calls >= 1
            found = {(row.phase, row.key): row.requests for row in await memory.usage()}
        assert found["construction", "embed"] + found["online", "embed"] == server.stats.requests
