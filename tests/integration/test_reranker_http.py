"""A reranker on a server, over real HTTP on loopback: search, ask, recall, and what goes wrong."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from servers.faults import Faults
from servers.openai_server import OpenAIServer, serving

import qrmem
from qrmem.errors import CapReached, UsageError
from qrmem.types import Event, Hit

QUESTION = "Which ship did the captain sail?"
DOCUMENTS = [
    {"id": f"d{n}", "text": f"The captain of ship number {n} did sail at dawn{' again' * n}."}
    for n in range(12)
]
PRICES = """
[models.rerank-1]
input = 1000
output = 0
"""


def later_is_better(query: str, text: str) -> float:
    """Score texts the other way round than search ranks them."""
    return text.count("again") / 20


def opened(
    server: OpenAIServer, folder: Path, told: list[str] | None = None, **more: Any
) -> AbstractAsyncContextManager[qrmem.Memory]:
    def listen(event: Event) -> None:
        if event.kind == "warning" and told is not None:
            told.append(event.data["message"])

    given = {"reranker": f"{server.url}/rerank", "rerank_model": "rerank-1", "timeout": 5.0}
    return qrmem.open(
        str(folder / "memory.db"), embedder="none", listener=listen, **{**given, **more}
    )


def ids(hits: list[Hit]) -> list[str]:
    return [hit.document_id for hit in hits]


async def test_a_search_has_the_order_of_the_reranker_and_its_calls_are_counted(
    tmp_path: Path,
) -> None:
    told: list[str] = []
    async with (
        serving(relevance=later_is_better, key="sk-rerank") as server,
        opened(server, tmp_path, told, rerank_api_key="sk-rerank") as memory,
    ):
        await memory.add(DOCUMENTS)
        plain = await memory.search(QUESTION, k=3, reranker="none")
        assert server.stats.requests == 0
        hits = await memory.search(QUESTION, k=3)
        assert ids(hits) == ["d11", "d10", "d9"] != ids(plain)
        assert "reranked: 0.55" in hits[0].via
        assert 1.0 == hits[0].score > hits[1].score > hits[2].score > 0.5
        (body,) = server.stats.bodies
        assert body["model"] == "rerank-1"
        assert body["query"] == QUESTION
        assert body["top_n"] == len(body["documents"]) == 12
        rows = {row.key: row for row in await memory.usage()}
        assert rows["rerank"].requests == 1
        assert rows["rerank"].tokens_in > 100
        assert not told


async def test_the_first_fifty_go_through_it_and_the_others_follow(tmp_path: Path) -> None:
    many = [{"id": f"d{n:03}", "text": f"The captain of ship {n} did sail."} for n in range(80)]
    async with (
        serving(relevance=lambda query, text: float(text.split()[4])) as server,
        opened(server, tmp_path) as memory,
    ):
        await memory.add(many)
        before = ids(await memory.search(QUESTION, k=80, reranker="none"))
        hits = await memory.search(QUESTION, k=80)
        assert len(server.stats.bodies[0]["documents"]) == 50
        assert ids(hits) == [*sorted(before[:50], reverse=True), *before[50:]]
        scores = [hit.score for hit in hits]
        assert scores == sorted(scores, reverse=True)


async def test_an_answer_and_its_trail_tell_the_reranking(tmp_path: Path) -> None:
    async with (
        serving(relevance=later_is_better) as server,
        opened(server, tmp_path) as memory,
    ):
        await memory.add(DOCUMENTS)
        answer = await memory.ask(QUESTION)
        assert answer.usage.online["rerank"].calls == 1
        assert any("reranked: 0.55" in one.via for s in answer.trail.steps for one in s.read)
        assert (await memory.trail()).usage.online["rerank"].calls == 1
        assert "rerank" not in (await memory.ask(QUESTION, reranker="none")).usage.online
        assert server.stats.requests == 1


async def test_a_plan_of_a_question_counts_the_reranking_and_sends_nothing(tmp_path: Path) -> None:
    async with serving() as server, opened(server, tmp_path) as memory:
        await memory.add(DOCUMENTS)
        plan = await memory.plan(ask=QUESTION)
        assert server.stats.requests == 0
        (stage,) = (stage for stage in plan.stages if stage.stage == "rerank")
        answer = await memory.ask(QUESTION)
        used = answer.usage.online["rerank"]
        assert stage.calls.low <= used.calls <= stage.calls.high
        assert stage.tokens_in.low <= used.tokens_in <= stage.tokens_in.high


async def test_recall_shows_first_what_the_reranker_puts_first(tmp_path: Path) -> None:
    said = [f"My sister's dog number {n} eats {'much ' * n}" for n in range(30)]
    async with (
        serving(relevance=lambda query, text: text.count("much") / 50) as server,
        opened(server, tmp_path) as memory,
    ):
        await memory.add_messages([("user", text) for text in said], at="2026-01-01", session="a")
        await memory.add_messages([("user", "Well.")] * 40, at="2026-02-01", session="b")
        prompt = "What does my sister's dog eat?"
        plain = await memory.recall(prompt, reranker="none", session="b", tokens=500)
        assert server.stats.requests == 0
        found = await memory.recall(prompt, session="b", tokens=500)
        assert found.tokens <= 500
        longest = {turn.text.count("much") for turn in found.related}
        assert longest == set(range(30 - len(longest), 30))
        assert longest != {turn.text.count("much") for turn in plain.related}
        assert (await memory.usage())[0].key == "rerank"


def _in_row(change: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
    return lambda rows: {"results": change(rows)}


BROKEN: dict[str, Any] = {
    "429": Faults(always="429-after:0.01"),
    "500": Faults(always="500"),
    "401": Faults(always="401"),
    "hang": Faults(always="hang"),
    "html": Faults(always="html"),
    "reset": Faults(always="reset"),
    "huge": lambda rows: {"results": rows, "more": "x" * 9_000_000},
    "no object": lambda rows: "[1, 2",
    "no results": lambda rows: {"data": rows},
    "nothing said": lambda rows: {"results": []},
    "an index too high": _in_row(lambda rows: [{"index": 99, "relevance_score": 1.0}, *rows]),
    "an index below 0": _in_row(lambda rows: [{"index": -1, "relevance_score": 1.0}]),
    "an index in words": _in_row(lambda rows: [{"index": "0", "relevance_score": 1.0}]),
    "one twice": _in_row(lambda rows: [rows[0], rows[0]]),
    "no number": _in_row(lambda rows: [{**rows[0], "relevance_score": "high"}]),
    "not a number": _in_row(lambda rows: [{**rows[0], "relevance_score": float("nan")}]),
}


@pytest.mark.parametrize("how", BROKEN)
async def test_without_a_reply_the_order_stays_and_one_warning_says_so(
    tmp_path: Path, how: str
) -> None:
    told: list[str] = []
    broken = BROKEN[how]
    wrong = {"faults": broken} if isinstance(broken, Faults) else {"told": broken}
    async with (
        serving(relevance=later_is_better, **wrong) as server,
        opened(server, tmp_path, told, timeout=0.4, retries=1, rerank_api_key="sk-1") as memory,
    ):
        await memory.add(DOCUMENTS)
        before = await memory.search(QUESTION, reranker="none")
        assert not told
        assert await memory.search(QUESTION) == before
        (message,) = told
        assert "not reranked; the order of the search stays" in message
        assert "sk-1" not in message
        assert server.stats.requests >= 1
        answer = await memory.ask(QUESTION)
        assert answer.citations
        assert sum("not reranked" in one for one in told) == 2, "once a run"


async def test_a_question_about_two_things_asks_a_dead_server_once(tmp_path: Path) -> None:
    told: list[str] = []
    async with (
        serving(faults=Faults(always="401")) as server,
        opened(server, tmp_path, told) as memory,
    ):
        await memory.add(DOCUMENTS)
        await memory.ask("Compare ship number 3 and ship number 4", strategy="reflection")
        assert server.stats.requests == 1
        assert sum("not reranked" in one for one in told) == 1


async def test_a_server_may_say_nothing_of_some(tmp_path: Path) -> None:
    async with (
        serving(relevance=later_is_better, told=_in_row(lambda rows: rows[:2])) as server,
        opened(server, tmp_path) as memory,
    ):
        await memory.add(DOCUMENTS)
        before = ids(await memory.search(QUESTION, k=12, reranker="none"))
        rest = [one for one in before if one not in ("d11", "d10")]
        assert ids(await memory.search(QUESTION, k=12)) == ["d11", "d10", *rest]


async def test_caps_limit_it(tmp_path: Path) -> None:
    told: list[str] = []
    prices = tmp_path / "prices.toml"
    prices.write_text(PRICES)
    async with serving(relevance=later_is_better) as server:
        async with opened(server, tmp_path, told, max_calls=0) as memory:
            await memory.add(DOCUMENTS)
            assert await memory.search(QUESTION) == await memory.search(QUESTION, reranker="none")
            assert "cap of 0 calls" in told[0]
        async with opened(server, tmp_path, max_cost=1.0) as memory:
            with pytest.raises(UsageError, match="price of rerank-1"):
                await memory.search(QUESTION)
        async with opened(server, tmp_path, told, max_cost=0.001, prices=str(prices)) as memory:
            await memory.search(QUESTION)
            assert "in money" in told[-1]
            with pytest.raises(CapReached):
                await memory.ask(QUESTION, max_calls=0)
        assert server.stats.requests == 0
        async with opened(server, tmp_path, prices=str(prices)) as memory:
            await memory.search(QUESTION)
            (row,) = (row for row in await memory.usage() if row.key == "rerank")
            assert row.cost == pytest.approx(row.tokens_in / 1000)


async def test_the_key_of_the_chat_model_goes_to_its_own_server_alone(tmp_path: Path) -> None:
    async with serving(key="sk-chat", relevance=later_is_better) as server:
        told: list[str] = []
        given = {"api_key": "sk-chat", "model": "m", "base_url": server.url}
        async with opened(server, tmp_path, told, **given) as memory:
            await memory.add(DOCUMENTS[:1])
            assert await memory.search(QUESTION)
            assert not told
        other = given | {"base_url": "http://127.0.0.1:9/v1"}
        async with opened(server, tmp_path, told, **other) as memory:
            assert await memory.search(QUESTION)
            assert "refuses the key (401)" in told[0]
            assert "sk-chat" not in told[0]


async def test_a_password_in_the_address_is_sent_and_never_shown(tmp_path: Path) -> None:
    told: list[str] = []
    async with serving(key="me:hunter2", relevance=later_is_better) as server:
        address = server.url.replace("://", "://me:hunter2@") + "/rerank"
        async with opened(server, tmp_path, reranker=address) as memory:
            await memory.add(DOCUMENTS)
            assert ids(await memory.search(QUESTION, k=1)) == ["d11"]
            kept = [await memory.trail((await memory.ask(QUESTION)).trail.id), memory]
            assert "hunter2" not in repr([*kept, await memory.usage(), memory._session.settings])
    async with opened(server, tmp_path, told, reranker=address) as memory:
        await memory.search(QUESTION)
        assert "not reranked" in told[0]
        assert "hunter2" not in told[0]


async def test_an_invalid_address_is_refused_with_an_example(tmp_path: Path) -> None:
    async with qrmem.open(str(tmp_path / "m.db"), embedder="none") as memory:
        await memory.add(DOCUMENTS[:1])
        for wrong in ("ftp://host/rerank", "http://", "http://a b/rerank"):
            with pytest.raises(UsageError, match="http://localhost:8000/v1/rerank"):
                await memory.search(QUESTION, reranker=wrong)
