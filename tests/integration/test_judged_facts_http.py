"""Statements judged by a chat model, over real HTTP: kept by the pair, capped, planned, undone."""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from servers.openai_server import OpenAIServer

import qrmem
from qrmem.errors import UsageError

HOUSES = ("Rome", "Oslo", "Bonn", "Kiel", "Lyon", "Bath", "York", "Cork", "Riga", "Graz")
TURNS = [
    {"role": "user", "content": "Ann Miller keeps the keys at Rome House.", "at": "2026-01-03"},
    {"role": "user", "content": "Ann Miller keeps the keys at Oslo House.", "at": "2026-03-05"},
    {"role": "user", "content": "Ann Miller met Bob Stone.", "at": "2026-03-06"},
]


def saying(*verdicts: str) -> Callable[[Mapping[str, Any]], str]:
    """Answer every judging call with these items."""
    return lambda request: json.dumps({"verdicts": list(verdicts)})


def opened(server: OpenAIServer, path: str = "memory://", **settings: Any) -> Any:
    return qrmem.open(path, model="test", base_url=server.url, embedder="none", **settings)


async def kept(memory: qrmem.Memory) -> set[str]:
    """Return whose house holds."""
    found = await memory.facts(entity="Ann Miller")
    return {fact.tail for fact in found} & {"Rome House", "Oslo House"}


async def test_a_judged_statement_is_replaced_until_the_later_one_is_deleted(
    tmp_path: Path,
) -> None:
    async with (
        OpenAIServer(answer=saying("1|replaces")) as server,
        opened(server, str(tmp_path / "m.db")) as memory,
    ):
        await memory.add_messages(TURNS, user="ann")
        assert await kept(memory) == {"Rome House", "Oslo House"}
        plan = await memory.judge_facts(plan=True)
        assert (plan.pairs, plan.calls, server.stats.requests) == (1, 1, 0)
        report = await memory.judge_facts()
        assert (report.pairs, report.replaced, report.problems) == (1, 1, ())
        assert plan.tokens_in == pytest.approx(report.tokens_in, rel=0.25)
        assert await kept(memory) == {"Oslo House"}
        old = next(f for f in await memory.facts(superseded=True) if f.superseded_by)
        assert (old.superseded_at[:10], old.tail) == ("2026-03-05", "Rome House")
        view = await memory.entity("Rome House")
        assert "(until 2026-03-05; then: " in view.relations[0].description
        again = await memory.judge_facts()
        assert (again.pairs, again.calls, server.stats.requests) == (0, 0, 1)
        exported = await memory.export(tmp_path / "a.qrmem")
        async with opened(server, str(tmp_path / "other.db")) as other:
            await other.load(tmp_path / "a.qrmem")
            assert await kept(other) == {"Oslo House"}
            assert (await other.export(tmp_path / "b.qrmem")).checksum == exported.checksum
        await memory.delete("turn-00000002")
        assert await kept(memory) == {"Rome House"}
        assert not [f for f in await memory.facts(superseded=True) if f.superseded_by]


@pytest.mark.parametrize(
    "items",
    [
        [],
        ["1|perhaps"],
        ["7|replaces", "0|replaces", "x|replaces", "replaces"],
        ["1|replaces", "1|beside"],
        ["1|" + "replaces" * 9],
        ["9" * 5_000 + "|replaces", "\u0661|replaces"],
    ],
)
async def test_a_reply_that_leaves_out_a_pair_is_reported_and_asked_again(
    items: list[str],
) -> None:
    async with OpenAIServer(answer=saying(*items)) as server, opened(server) as memory:
        await memory.add_messages(TURNS, user="ann")
        report = await memory.judge_facts()
        assert (report.pairs, report.replaced) == (0, 0)
        assert report.problems[0].startswith("1 pair")
        assert await kept(memory) == {"Rome House", "Oslo House"}
        assert (await memory.judge_facts(plan=True)).pairs == 1


async def test_a_reply_without_json_is_reported() -> None:
    async with OpenAIServer(answer=lambda _: "Rather not.") as server, opened(server) as memory:
        await memory.add_messages(TURNS, user="ann")
        report = await memory.judge_facts()
        assert report.pairs == 0
        assert len(report.problems) == 1


async def test_two_users_a_cap_and_no_model() -> None:
    async with OpenAIServer(answer=saying("1|agrees")) as server, opened(server) as memory:
        for turn, user in zip(TURNS, ("ann", "bob", "ann"), strict=True):
            await memory.add_messages([turn], user=user)
        assert (await memory.judge_facts(plan=True)).pairs == 0
        await memory.add_messages([TURNS[1]], user="ann")
        report = await memory.judge_facts(max_calls=0)
        assert report.stopped
        assert server.stats.requests == 0
        assert (await memory.judge_facts()).agreed == 1
        assert await kept(memory) == {"Rome House", "Oslo House"}
    async with qrmem.open("memory://", model="", embedder="none") as memory:
        await memory.add_messages(TURNS)
        with pytest.raises(UsageError, match="judging statements needs a chat model"):
            await memory.judge_facts()


async def test_at_most_one_call_for_ten_turns() -> None:
    houses = [
        {"role": "user", "content": f"Ann Miller keeps the keys at {name} House.", "at": at}
        for n, name in enumerate(
            ["Rome", "Oslo", "Bonn", "Kiel", "Lyon", "Bath", "York", "Cork", "Riga", "Graz"], 1
        )
        for at in [f"2026-01-{n:02}"]
    ]

    def judged(request: Mapping[str, Any]) -> str:
        numbers = re.findall(r"<text (\d+)>", request["messages"][-1]["content"])
        return json.dumps({"verdicts": [f"{n}|beside" for n in numbers]})

    async with OpenAIServer(answer=judged) as server, opened(server) as memory:
        await memory.add_messages(houses)
        report = await memory.judge_facts()
        assert (report.pairs, report.calls, server.stats.requests) == (8, 1, 1)
        assert report.left == 45 - 8
