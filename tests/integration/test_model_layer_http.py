"""The layers together over real HTTP: caps, cache, records, the probe, the server as a command."""

import asyncio
import json
import logging
import os
import subprocess
import sys
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from fakes import metered
from pydantic import BaseModel
from servers.faults import Faults
from servers.openai_server import OpenAIServer, main, serving

from qrmem.cli.doctor import probe
from qrmem.config import Settings
from qrmem.errors import AccessRefused, CapReached, MissingError, ModelUnavailable, UsageError
from qrmem.llm import client
from qrmem.llm.budget import Caps
from qrmem.llm.chat_model import ServerChatModel
from qrmem.llm.recorder import Recorder, Replayer
from qrmem.llm.reply_cache import ReplyCache
from qrmem.llm.routing import ChatModels
from qrmem.llm.servers import Endpoint
from qrmem.llm.structured import ask
from qrmem.llm.tokenizers import open_tokenizer
from qrmem.types import CallRecord, ChatRequest, Event, Message

SYSTEM = 'Name what the passage names.\nReply with JSON only: {"entities": ["…"]}'
TESTS = Path(__file__).parent.parent


class Names(BaseModel):
    entities: list[str]


def request(text: str, **changes: Any) -> ChatRequest:
    user = Message("user", f"Passage:\n<text>\n{text}\n</text>")
    given: dict[str, Any] = {"stage": "read", "max_tokens": 60} | changes
    return ChatRequest((Message("system", SYSTEM), user), **given)


def opened(server: OpenAIServer, **settings: Any) -> ServerChatModel:
    async def sleep(seconds: float) -> None:
        await asyncio.sleep(0)

    given = Settings(model="test", base_url=server.url, timeout=5.0).with_(**settings)
    return ServerChatModel(given, sleep=sleep)


async def test_the_ledger_adds_up_to_what_the_server_counted() -> None:
    faults = Faults(script={2: "429", 5: "500", 7: "nonsense"})
    async with serving(faults=faults) as server, opened(server) as chat:
        told: list[Event] = []
        meter = metered(chat, listener=told.append)
        await asyncio.gather(*(ask(meter, request(f"Ahab {n}"), Names) for n in range(6)))
        stats, usage = server.stats, meter.budget.usage()
    assert sum(event.data.get("attempts", 0) for event in told) == stats.requests
    assert usage.tokens_in == stats.tokens_in
    assert usage.tokens_out == stats.tokens_out
    assert usage.construction["read"].calls == 7


async def test_a_server_that_counts_nothing_is_counted_for() -> None:
    async with serving(gives_usage=False) as server, opened(server) as chat:
        meter = metered(chat)
        reply = (await ask(meter, request("Ahab met Pip"), Names)).raw
        assert meter.budget.usage().tokens_in >= server.stats.tokens_in
        assert meter.budget.usage().tokens_out == open_tokenizer("builtin").count(reply)


@pytest.mark.parametrize("cap", [100, 333, 1000])
async def test_a_cap_on_tokens_holds_against_what_the_server_counted(cap: int) -> None:
    faults = Faults(rates={"429": 0.1, "nonsense": 0.1}, seed=3)
    async with serving(latency=0.002, faults=faults) as server, opened(server) as chat:
        meter = metered(chat, caps=Caps(tokens=cap))
        calls = (ask(meter, request(f"Ahab met Pip {n}."), Names) for n in range(40))
        results = await asyncio.gather(*calls, return_exceptions=True)
        assert server.stats.tokens_in + server.stats.tokens_out <= cap
    assert any(isinstance(result, CapReached) for result in results)


async def test_a_cap_on_calls_counts_what_was_sent_retries_included() -> None:
    faults = Faults(rates={"500": 0.4}, seed=1)
    async with serving(faults=faults) as server, opened(server) as chat:
        meter = metered(chat, caps=Caps(calls=9))
        calls = (meter.complete(request(str(n))) for n in range(20))
        results = await asyncio.gather(*calls, return_exceptions=True)
        assert server.stats.requests == 9
    assert isinstance(results[-1], CapReached)


async def test_retries_end_with_the_runs_budget() -> None:
    async with serving(faults=Faults(always="503")) as server, opened(server) as chat:
        meter = metered(chat)
        calls = (meter.complete(request(str(n))) for n in range(20))
        results = await asyncio.gather(*calls, return_exceptions=True)
        assert server.stats.requests <= 20 + 10 + 20
    assert all(isinstance(result, ModelUnavailable) for result in results)


async def test_a_second_run_takes_every_reply_from_the_cache() -> None:
    kept: dict[str, Mapping[str, Any]] = {}

    async def get(key: str) -> Mapping[str, Any] | None:
        return kept.get(key)

    async def put(
        key: str, value: Mapping[str, Any], segments: Sequence[str], calls: Sequence[CallRecord]
    ) -> None:
        kept[key] = json.loads(json.dumps(value))

    async with serving(forms=["json_object", "text"]) as server:
        for run in range(2):
            async with opened(server) as chat:
                meter = metered(chat, cache=ReplyCache(get, put))
                asks = (ask(meter, request(f"Ahab {n}"), Names) for n in range(5))
                found = await asyncio.gather(*asks)
            assert all(one.value.entities for one in found)
            assert meter.budget.usage().calls == (5 if run == 0 else 0)
        assert server.stats.answered == 5


async def test_a_recorded_session_runs_again_with_the_server_gone(tmp_path: Path) -> None:
    async with serving() as server, opened(server) as chat:
        with Recorder(tmp_path / "tape.jsonl", chat.name) as recorder:
            recording = metered(ChatModels(chat, recorder=recorder))
            first = await ask(recording, request("Ahab met Pip"), Names)
        url = server.url
    again = await ask(Replayer(tmp_path / "tape.jsonl"), request("Ahab met Pip"), Names)
    assert again.value == first.value
    assert url not in (tmp_path / "tape.jsonl").read_text()


async def test_a_password_in_the_address_lets_in_and_is_in_no_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with serving(key="ann:hunter@2") as server:
        guarded = server.url.replace("http://", "http://ann:hunter%402@")
        with caplog.at_level(logging.DEBUG):
            async with opened(server, base_url=guarded) as chat:
                assert (await chat.complete(request("Ada met Charles."))).text
        async with opened(server) as chat:
            with pytest.raises(AccessRefused):
                await chat.complete(request("Ada met Charles."))
    assert caplog.records
    assert "hunter" not in caplog.text


@pytest.mark.parametrize(
    "variable", [{"ALL_PROXY": "nonsense://h"}, {"SSL_CERT_FILE": "/gone.pem"}]
)
async def test_an_environment_without_a_terminal_to_ask_is_reported(
    variable: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variable.items():
        monkeypatch.setenv(name, value)
    async with serving() as server, opened(server) as chat:
        with pytest.raises(MissingError, match="cannot be called from here"):
            await chat.complete(request("Ada met Charles."))


async def test_a_model_name_that_cannot_be_sent_is_reported_at_once() -> None:
    async with serving() as server, opened(server, model="m\udcff") as chat:
        with pytest.raises(UsageError, match="characters that cannot be sent"):
            await chat.complete(request("Ada met Charles."))
        assert server.stats.requests == 0


@pytest.mark.parametrize("value", ["org-hunter2\n", "örg-hunter2"])
async def test_a_variable_of_the_client_that_cannot_be_sent_is_reported_without_its_value(
    value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", value)
    events: list[Event] = []
    async with serving() as server, opened(server) as chat:
        with pytest.raises(UsageError, match=r"OPENAI_ORG_ID .* cannot be sent") as refused:
            await metered(chat, listener=events.append).complete(request("Ada met Charles."))
    assert "hunter2" not in str(refused.value)
    assert not [event for event in events if event.kind == "warning"], "it was tried again"


async def test_retries_are_reported_with_their_reason() -> None:
    events: list[Event] = []
    faults = Faults(script={1: "503"})
    async with serving(faults=faults) as server:
        settings = Settings(model="test", base_url=server.url)

        async def sleep(seconds: float) -> None:
            await asyncio.sleep(0)

        async with ServerChatModel(
            settings, lambda event: events.append(event), sleep=sleep
        ) as chat:
            await chat.complete(request("Ahab", segment_id="s7"))
    assert [event.kind for event in events] == ["warning"]
    assert "503: Overloaded" in events[0].data["reason"]
    assert events[0].data["segment"] == "s7"


# --- the probe -----------------------------------------------------------------------------------


async def test_the_probe_tells_what_works_on_a_good_server() -> None:
    async with serving() as server, opened(server) as chat:
        found = await probe(chat)
    assert found.form == "json_schema"
    assert found.is_structured
    assert not found.repaired
    assert found.counts_tokens
    assert found.found == 1.0
    assert found.invented == ()
    assert found.problems == ()


async def test_the_probe_tells_what_is_wrong_with_a_bad_one() -> None:
    async with serving(forms=["text"], gives_usage=False) as server, opened(server) as chat:
        found = await probe(chat)
    assert found.form == "text"
    assert found.is_structured
    assert not found.counts_tokens
    async with serving(obeys_forms=False) as server, opened(server) as chat:
        found = await probe(chat)
    assert not found.is_structured
    assert found.found == 0.0
    assert found.problems


# --- the server as a command ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("option", "words"),
    [
        (["--fault", "3=nix"], "no fault is called 'nix'"),
        (["--fault", "nonsense"], "N=NAME is wanted"),
        (["--rate", "nix=0.5"], "no fault is called 'nix'"),
        (["--rate", "429=often"], "NAME=SHARE is wanted"),
    ],
)
def test_a_mistake_in_the_servers_options_is_reported(
    option: Sequence[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(option)
    assert words in capsys.readouterr().err


def test_the_server_runs_as_a_command_and_counts() -> None:
    words = ["--latency", "0.01", "--fault", "1=429", "--rate", "500=0.0", "--model", "small"]
    command = [sys.executable, "-m", "servers.openai_server", *words]
    environment = {**os.environ, "PYTHONPATH": str(TESTS)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            url = process.stdout.readline().strip()

            async def use() -> str:
                async with ServerChatModel(Settings(model="small", base_url=url)) as chat:
                    return (await chat.complete(request("Ahab"))).text

            assert "Ahab" in asyncio.run(use())
            with urllib.request.urlopen(url.removesuffix("/v1") + "/stats") as answer:
                stats = json.load(answer)
        finally:
            process.terminate()
    assert stats["requests"] == 2
    assert stats["answered"] == 1
    assert stats["faults"] == {"429": 1}


async def test_many_calls_share_some_clients_and_their_connections(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opened: list[Any] = []
    usual = client._open

    async def recorded(endpoint: Endpoint, seconds: float) -> Any:
        opened.append(await usual(endpoint, seconds))
        return opened[-1]

    monkeypatch.setattr(client, "_open", recorded)
    async with serving(latency=1.0) as server:
        settings = Settings(model="test", base_url=server.url, concurrency=40)
        async with ServerChatModel(settings) as chat:
            for wave in range(2):
                await asyncio.gather(*(chat.complete(request(f"{wave} {n}")) for n in range(40)))
        assert server.stats.most_in_flight == server.stats.connections == 40
    assert len(opened) == -(-40 // client.AT_ONCE)
    assert all(each.is_closed() for each in opened)
