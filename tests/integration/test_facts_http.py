"""Facts that a chat model notes of turns, over real HTTP: found, capped, forgotten."""

import json
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from servers.faults import Faults
from servers.openai_server import Behaviour, OpenAIServer

import qrmem
from qrmem.errors import UsageError
from qrmem.llm.budget import Budget
from qrmem.types import Event

TRIP = [
    {"role": "user", "name": "Ann", "content": "The flight to Oslo is booked.", "at": "2026-04-01"},
    {"role": "user", "name": "Ann", "content": "It leaves on 3 May.", "at": "2026-04-01"},
    {"role": "assistant", "content": "Noted.", "at": "2026-04-01"},
]
NOTED = ["Ann has booked a flight to Oslo.", "Ann's flight to Oslo leaves on 3 May 2026."]


def noting(request: Mapping[str, Any]) -> str:
    """Note what is known of the turns that are shown."""
    said = request["messages"][-1]["content"]
    turns = said.split("Turns:\n")[1]
    known = {"is booked": NOTED[0], "on 3 May": NOTED[1], "moved to 5 May": "Ann's flight moved."}
    facts = [
        f"{n}|{fact}"
        for n, text in re.findall(r"<text (\d+)>\n(.*?)\n</text>", turns, re.DOTALL)
        for words, fact in known.items()
        if words in text
    ]
    return json.dumps({"facts": facts})


def opened(server: OpenAIServer, path: str = "memory://", **settings: Any) -> Any:
    return qrmem.open(path, model="test", base_url=server.url, embedder="none", **settings)


async def test_facts_are_kept_with_their_turn_and_found_by_their_words() -> None:
    async with OpenAIServer(answer=noting) as server, opened(server) as memory:
        assert (await memory.add(TRIP, session="trip", user="ann", extract=True)).is_complete
        report = await memory.wait()
        assert report.added == ("fact-00000001-1", "fact-00000002-1")
        assert (report.read, server.stats.requests, report.usage.calls) == (3, 1, 1)
        fact = await memory.document("fact-00000002-1")
        assert fact.text == NOTED[1]
        assert fact.metadata["noted_of"] == "turn-00000002"
        assert fact.metadata["user"] == "ann"
        recalled = await memory.recall("When does the flight to Oslo leave?", session="new")
        assert recalled.facts["turn-00000002"] == (NOTED[1],)
        assert f"(noted of this: {NOTED[1]})" in recalled.text
        assert recalled.tokens <= 2000
        assert NOTED[1] in [hit.text for hit in await memory.search("flight to Oslo")]
        assert [s.document_id for s in (await memory.entity("Oslo")).segments] == [
            "fact-00000001-1",
            "fact-00000002-1",
            "turn-00000001",
        ]
        assert [turn.id[-1] for turn in await memory.turns()] == ["1", "2", "3"]
        assert "facts" in {row.key for row in await memory.usage()}


async def test_the_prompt_shows_each_turn_with_its_speaker_role_weekday_and_time() -> None:
    seen: list[str] = []

    def answer(request: Mapping[str, Any]) -> str:
        seen.append(request["messages"][-1]["content"])
        return noting(request)

    said = [*TRIP, {"role": "user", "content": "Thanks.", "at": "2026-04-02T09:00"}]
    async with OpenAIServer(answer=answer) as server, opened(server) as memory:
        await memory.add(said, user="ann", extract=True)
        await memory.add_turn("user", "Hi.", user="u-17", at="2026-04-03", extract=True)
        await memory.wait()
    shown = [line for line in "\n".join(seen).splitlines() if ": " in line]
    assert shown == [
        "Ann (user), Wednesday 2026-04-01T00:00:00: The flight to Oslo is booked.",
        "Ann (user), Wednesday 2026-04-01T00:00:00: It leaves on 3 May.",
        "assistant, Wednesday 2026-04-01T00:00:00: Noted.",
        "Ann (user), Thursday 2026-04-02T09:00:00: Thanks.",
        "user, Friday 2026-04-03T00:00:00: Hi.",
    ]


async def test_facts_are_not_paid_for_again_after_an_export_and_an_import(tmp_path: Path) -> None:
    archive = str(tmp_path / "a.qrmem")
    async with OpenAIServer(answer=noting) as server:
        async with opened(server) as memory:
            await memory.add(TRIP, user="ann", extract=True)
            await memory.wait()
            await memory.export(archive)
        paid = server.stats.requests
        async with opened(server) as memory:
            await memory.load(archive)
            report = await memory.extract_facts()
            assert (report.read, report.added) == (0, ())
            assert len((await memory.recall("flight to Oslo", session="new")).facts) == 2
        assert server.stats.requests == paid


async def test_facts_go_with_their_turn_and_their_user() -> None:
    async with OpenAIServer(answer=noting) as server, opened(server) as memory:
        await memory.add(TRIP, user="ann", extract=True)
        await memory.wait()
        await memory.delete("turn-00000002")
        assert [info.id for info in await memory.documents()] == [
            "fact-00000001-1",
            "turn-00000001",
            "turn-00000003",
        ]
        assert await memory.forget_user("ann") == 3
        assert not await memory.documents()
        assert not (await memory.status()).counts["entities"]


async def test_a_failed_segment_is_reported_and_tried_again() -> None:
    told: list[Event] = []
    broken = OpenAIServer(answer=noting, faults=Faults(always="500"))
    async with broken as server, opened(server, listener=told.append, retries=0) as memory:
        await memory.add(TRIP, extract=True)
        report = await memory.wait()
        assert [id for id, _, _ in report.problems] == [f"turn-0000000{n}" for n in (1, 2, 3)]
        assert [e.data["what"] for e in told if e.kind == "warning"] == ["facts"]
        assert len(await memory.turns()) == 3
        server.faults = Faults()
        assert len((await memory.extract_facts()).added) == 2
        requests = server.stats.requests
        assert (await memory.extract_facts()).read == 0
        assert server.stats.requests == requests, "nothing is paid for twice"


async def test_a_cap_holds_for_all_that_waits_together_and_ends_nothing_for_good() -> None:
    many = [{**TRIP[n % 3], "content": f"{TRIP[n % 3]['content']} {n}"} for n in range(20)]
    async with OpenAIServer(answer=noting) as server, opened(server, max_calls=1) as memory:
        await memory.add(many, extract=True)
        report = await memory.wait()
        assert server.stats.requests == 1
        assert "cap of 1 call" in report.stopped
        assert len(report.problems) == 12
        await memory.add(TRIP, extract=True)
        report = await memory.wait()
        assert (server.stats.requests, report.stopped, report.problems) == (2, "", ())


async def test_a_cap_on_seconds_counts_from_when_there_is_something_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    later = [0.0]
    defaults = {
        **(Budget.__init__.__kwdefaults__ or {}),
        "clock": lambda: time.monotonic() + later[-1],
    }
    monkeypatch.setattr(Budget.__init__, "__kwdefaults__", defaults)
    async with OpenAIServer(answer=noting) as server, opened(server, max_seconds=20.0) as memory:
        await memory.add(TRIP, extract=True)
        await memory.wait()
        later.append(600.0)
        await memory.add(TRIP, extract=True)
        report = await memory.wait()
    assert (report.stopped, report.read) == ("", 3)


async def test_each_wait_tells_what_was_used_since_the_last_one() -> None:
    async with OpenAIServer(answer=noting) as server, opened(server) as memory:
        used = []
        for n in range(3):
            await memory.add([{**TRIP[0], "content": f"The flight is booked, {n}."}], extract=True)
            used.append((await memory.wait()).usage)
        assert [one.calls for one in used] == [1, 1, 1]
        assert sum(one.tokens_in for one in used) == server.stats.tokens_in
        assert (await memory.wait()).usage.calls == 0


async def test_facts_are_drawn_after_the_models_were_opened_again(tmp_path: Path) -> None:
    async with OpenAIServer(answer=noting) as server:
        given: dict[str, Any] = {"embed_base_url": server.url, "record": str(tmp_path / "tape")}
        async with opened(server, str(tmp_path / "m.db"), **given) as memory:
            await memory.add(TRIP, extract=True)
            await memory.reembed("openai:e")
            assert len((await memory.wait()).added) == 2
            await memory.add([{**TRIP[0], "content": "The ferry is booked."}], extract=True)
            report = await memory.wait()
    assert (report.added, report.problems) == (("fact-00000004-1",), ())


async def test_closing_waits_for_what_is_being_noted(tmp_path: Any) -> None:
    async with OpenAIServer(answer=noting) as server:
        async with opened(server, str(tmp_path / "m.db")) as memory:
            await memory.add(TRIP, extract=True)
        async with opened(server, str(tmp_path / "m.db")) as memory:
            assert (await memory.status()).counts["documents"] == 5


async def test_turns_that_do_not_fit_a_call_together_are_halved_until_they_do() -> None:
    long = " The reply goes on about the harbour." * 100
    said = [{**TRIP[n % 2], "content": f"{TRIP[n % 2]['content']}{long} {n}"} for n in range(8)]
    async with OpenAIServer(answer=noting) as server, opened(server, window=4096) as memory:
        await memory.add(said, extract=True)
        report = await memory.wait()
        assert (report.read, report.problems) == (8, ())
        assert {id[5:13] for id in report.added} == {f"0000000{n}" for n in range(1, 9)}
        assert 2 <= server.stats.requests < 8
        paid = server.stats.requests
        assert (await memory.extract_facts()).read == 0
        assert server.stats.requests == paid


async def test_turns_that_do_not_fit_a_servers_smaller_context_are_halved() -> None:
    long = " The reply goes on about the harbour." * 100
    said = [{**TRIP[n % 2], "content": f"{TRIP[n % 2]['content']}{long} {n}"} for n in range(8)]
    server = OpenAIServer(answer=noting, behaviour=Behaviour(context=3000))
    async with server, opened(server, window=64_000) as memory:
        await memory.add(said, extract=True)
        report = await memory.wait()
        assert (report.read, report.problems) == (8, ())
        assert {id[5:13] for id in report.added} == {f"0000000{n}" for n in range(1, 9)}


async def test_a_turn_that_does_not_fit_alone_is_cut_and_told() -> None:
    told: list[Event] = []
    said = [TRIP[0], {**TRIP[1], "content": TRIP[1]["content"] + " And so on." * 4000}]
    said.append({**TRIP[0], "content": "The ferry is booked."})
    async with (
        OpenAIServer(answer=noting) as server,
        opened(server, window=4096, listener=told.append) as memory,
    ):
        await memory.add(said, extract=True)
        report = await memory.wait()
        assert report.read == 3
        assert {id[5:13] for id in report.added} == {f"0000000{n}" for n in (1, 2, 3)}
        ((id, index, problem),) = report.problems
        assert (id, index) == ("turn-00000002", 0)
        assert re.fullmatch(r"only its first [\d,]+ of 44,019 characters fit the window", problem)
        assert any(problem in e.data["message"] for e in told if e.kind == "warning")
        paid = server.stats.requests
        assert (await memory.extract_facts()).read == 0
        assert server.stats.requests == paid == 3


async def test_without_a_model_nothing_is_kept() -> None:
    async with qrmem.open("memory://", embedder="none") as memory:
        with pytest.raises(UsageError, match="chat model"):
            await memory.add(TRIP, extract=True)
        assert not await memory.turns()
