"""Hostile chat servers: echoed secrets, endless answers, redirects."""

import asyncio
import gzip
import json
import logging
import pickle
import traceback
import tracemalloc
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict
from types import SimpleNamespace
from typing import Any

import pytest
from fakes import metered
from servers.openai_server import Behaviour, OpenAIServer

import qrmem
from qrmem.config import Secret, Settings
from qrmem.errors import AccessRefused, ModelUnavailable, QrmemError
from qrmem.llm.budget import Budget, Caps
from qrmem.llm.chat_model import ServerChatModel
from qrmem.llm.embedders import RemoteEmbedder
from qrmem.llm.servers import endpoint, in_words
from qrmem.text.tokens import BuiltinTokenizer
from qrmem.types import ChatRequest, Message

KEY = "sk-marked-key-5316"
PASSWORD = "marked-password-5316"
AWAY = {"error": {"code": 502, "message": "Away"}, "message": {"content": ""}}
MARKS = ("5316", "bWFya2VkOm1hcmtlZC1wYXNzd29yZC01MzE2")


@asynccontextmanager
async def asked(raw: Any, address: str = "", **settings: Any) -> AsyncIterator[Any]:
    async with OpenAIServer(behaviour=Behaviour(raw=raw)) as server:
        url = server.url.replace("//", f"//{address}", 1)
        chosen = {"api_key": KEY, "retries": 0, **settings}
        async with ServerChatModel(
            Settings.from_env({}, model="m", base_url=url, **chosen)
        ) as chat:
            yield chat, server


async def failure(chat: ServerChatModel, *, is_watched: bool = False) -> QrmemError:
    request = ChatRequest((Message("user", "hello"),), max_tokens=8, is_watched=is_watched)
    with pytest.raises(QrmemError) as caught:
        await chat.complete(request)
    return caught.value


def answer(status: int, body: bytes, **headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status} Said", f"content-length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


def completion(text: str) -> bytes:
    choice = {"message": {"content": text}, "finish_reason": "stop"}
    return json.dumps({"choices": [choice]}).encode()


def everything(error: BaseException) -> str:
    """Return all that a user, a log or another process can get to see of an error."""
    seen = ["".join(traceback.format_exception(error)), repr(error), str(vars(error))]
    link: BaseException | None = error
    while link is not None:
        seen.append(f"{link!r} {vars(link)}")
        link = link.__cause__ or link.__context__
    seen.append(pickle.dumps(str(error)).decode("latin-1"))
    return "\n".join(seen)


# --- secrets -------------------------------------------------------------------------------------


def echo(status: int, way: str) -> Any:
    def raw(headers: Mapping[str, str]) -> bytes:
        said = headers["authorization"]
        if way == "split by control characters":
            said = "\x1b[31m" + "\x00".join(said)
        body = json.dumps({"error": {"message": f"bad header {said}"}}).encode()
        if way == "page":
            body = f"<html><b>{said}</b></html>".encode()
        if way == "text":
            body = said.encode()
        return answer(status, body, retry_after="0", x_said=headers["authorization"])

    return raw


@pytest.mark.parametrize("address", ["", f"marked:{PASSWORD}@"])
@pytest.mark.parametrize("way", ["json", "split by control characters", "page", "text"])
@pytest.mark.parametrize("status", [200, 400, 401, 404, 429, 500])
async def test_a_key_that_a_server_echoes_is_shown_nowhere(
    status: int, way: str, address: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with asked(echo(status, way), address) as (chat, _):
        error = await failure(chat)
    shown = everything(error) + caplog.text
    assert not [mark for mark in MARKS if mark in shown.replace("\\x00", "").replace("\x00", "")]
    assert "\x1b" not in str(error)


def test_the_cause_of_an_error_quotes_no_answer() -> None:
    class Status(Exception):
        response = SimpleNamespace(status_code=401)

    spelled = r"\x00".join(KEY)
    cause = in_words(
        Status(f"Error code: 401 - {spelled}"), endpoint(Settings(api_key=Secret(KEY)))
    )
    assert str(cause) == "Status: status 401"


async def test_a_key_in_a_redirect_or_a_broken_stream_is_shown_nowhere() -> None:
    def stream(headers: Mapping[str, str]) -> bytes:
        body = b'data: {"error": "' + headers["authorization"].encode() + b'"}\n\n'
        return answer(200, body, content_type="text/event-stream")

    def redirect(headers: Mapping[str, str]) -> bytes:
        return answer(307, b"", location=f"http://{KEY}.example/")

    for raw, is_watched in ((stream, True), (redirect, False)):
        async with asked(raw, retries=0) as (chat, _):
            shown = everything(await failure(chat, is_watched=is_watched))
        assert "5316" not in shown


def test_settings_show_neither_keys_nor_passwords() -> None:
    settings = Settings.from_env(
        {},
        api_key=KEY,
        embed_api_key=KEY,
        neo4j_password=PASSWORD,
        base_url=f"https://marked:{PASSWORD}@example.org/v1",
        embed_base_url=f"https://marked:{PASSWORD}@example.org/v1",
        memory=f"neo4j://marked:{PASSWORD}@example.org",
    )
    assert "5316" not in f"{settings!r} {asdict(settings)} {settings}"
    assert "5316" not in json.dumps(asdict(settings), default=str)


@pytest.mark.parametrize(
    "address",
    [
        "http://u:pw5316@127.0.0.1:9/v1",
        "HTTP://u:pw5316@127.0.0.1:9",
        "http://u:p/w5316@127.0.0.1:9/v1",
        "http://u:p w5316@127.0.0.1:9/v1",
        "http://u:p#w5316@127.0.0.1:9/v1",
        "http://u:p@w5316@127.0.0.1:9/v1",
        "http://u:5316://w@127.0.0.1:9/v1",
        "http://u:pw\n5316@127.0.0.1:9/v1",
        "http://127.0.0.1:9/v1?key=sk5316",
        "http://127.0.0.1:9/v1#sk5316",
        "u:pw5316@127.0.0.1:9/v1",
        "//u:pw5316@127.0.0.1:9",
        "http:/u:pw5316@127.0.0.1/v1",
    ],
)
def test_an_address_written_wrongly_shows_no_password_either(address: str) -> None:
    for name in ("base_url", "embed_base_url", "memory", "tagger"):
        value = f"corenlp:{address}" if name == "tagger" else address
        chosen: dict[str, Any] = {name: value}
        settings = Settings.from_env({}, **chosen)
        assert "5316" not in f"{settings!r} {asdict(settings)} {getattr(settings, name)}"
        assert getattr(settings, name).reveal() == value
        with pytest.raises(TypeError, match="not pickled"):
            pickle.dumps(settings)


@pytest.mark.parametrize(
    "address",
    [
        "bolt://127.0.0.1:9?key=sk5316",
        "neo4j://?key=sk5316",
        "neo4j://127.0.0.1:9?key=sk5316",
        "neo4j://u:pw5316@127.0.0.1:9",
        "sqlite://memory.db?key=sk5316",
        "//u:pw5316@127.0.0.1",
        "http:u:pw5316@127.0.0.1",
        "http://u:pw5316@127.0.0.1",
    ],
)
async def test_a_memory_that_cannot_be_opened_shows_no_secret_of_its_address(address: str) -> None:
    with pytest.raises(QrmemError) as caught:
        await qrmem.open(address, settings=Settings(embedder="none", neo4j_patience=0.1))
    assert "5316" not in "".join(traceback.format_exception(caught.value))


def test_an_address_without_a_secret_is_shown_whole() -> None:
    for address in ("notes/a@b.db", "neo4j://localhost:7687", "https://host/v1/@cf/meta"):
        assert str(Settings.from_env({}, memory=address).memory) == address


# --- sizes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [200, 500])
@pytest.mark.parametrize("is_watched", [False, True])
@pytest.mark.parametrize("kind", ["plain", "gzip", "gzip twice"])
async def test_an_endless_answer_is_given_up_and_not_asked_for_again(
    kind: str, is_watched: bool, status: int
) -> None:
    body = b" " * 100_000_000 if kind != "plain" else b" " * 20_000_000
    for _ in range(("plain", "gzip", "gzip twice").index(kind)):
        body = gzip.compress(body, 1)
    said = {"content_encoding": ", ".join(["gzip"] * kind.count("gzip"))} if "gzip" in kind else {}
    if kind == "gzip twice":
        said = {"content_encoding": "gzip, gzip"}
    async with asked(lambda headers: answer(status, body, **said), retries=3) as (chat, server):
        tracemalloc.start()
        error = await failure(chat, is_watched=is_watched)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert type(error) is ModelUnavailable
    assert "longer than 8 MB" in str(error) or "compression" in str(error)
    assert server.stats.requests == 1
    assert most < 80_000_000


async def test_a_packed_answer_of_usual_size_is_read() -> None:
    body = gzip.compress(completion("Ada" * 1000))
    async with asked(lambda headers: answer(200, body, content_encoding="gzip")) as (chat, _):
        reply = await chat.complete(ChatRequest((Message("user", "hello"),)))
    assert reply.text == "Ada" * 1000


# --- elsewhere -----------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_prompt_is_not_sent_on_to_another_server(status: int) -> None:
    reached = []

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        reached.append(await reader.read(1000))
        writer.close()

    other = await asyncio.start_server(take, "127.0.0.1", 0)
    port = other.sockets[0].getsockname()[1]
    away = answer(status, b"", location=f"http://127.0.0.1:{port}/v1/chat/completions")
    async with other, asked(lambda headers: away) as (chat, server):
        error = await failure(chat)
    assert not reached
    assert server.stats.requests == 1
    assert f"127.0.0.1:{port}" in str(error)
    assert "base URL" in str(error)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_to_the_same_server_is_not_followed(status: int) -> None:
    again = answer(status, b"", location="/v1/elsewhere?key=5316")
    async with asked(lambda headers: again, retries=4) as (chat, server):
        error = await failure(chat)
        assert server.stats.requests == 1
        embedder = RemoteEmbedder("e", Settings(base_url=server.url))
        with pytest.raises(ModelUnavailable, match="/v1/elsewhere"):
            await embedder.embed(["two words"])
        await embedder.aclose()
    assert server.stats.requests == 2
    assert f"{server.url}/elsewhere: set the base URL" in str(error)
    assert "5316" not in str(error)


async def test_a_redirect_to_no_address_is_refused() -> None:
    async with asked(lambda headers: answer(307, b"", location="http://[5316")) as (chat, server):
        assert "redirects to no address" in str(await failure(chat))
    assert server.stats.requests == 1


@pytest.mark.parametrize("word", ["upstream", "temperatures"])
async def test_a_refusal_that_names_no_parameter_is_not_about_one(word: str) -> None:
    body = json.dumps({"error": {"message": f"refused by {word}"}}).encode()
    async with asked(lambda headers: answer(400, body)) as (chat, server):
        assert word in str(await failure(chat, is_watched=True))
    assert server.stats.requests == 1


@pytest.mark.parametrize(
    "counted",
    [-5, 10**400, 2.5, True, 2**39, "3", None, float("nan")],
    ids=["negative", "huge", "half", "true", "too many", "text", "none", "nan"],
)
async def test_an_invalid_count_of_tokens_is_ignored(counted: Any) -> None:
    rows = [{"index": 0, "embedding": [1.0, 0.0]}]
    body = json.dumps({"data": rows, "usage": {"prompt_tokens": counted}}).encode()
    async with OpenAIServer(behaviour=Behaviour(raw=lambda headers: answer(200, body))) as server:
        embedder = RemoteEmbedder("e", Settings(base_url=server.url))
        budget = Budget()
        await embedder.within(budget, BuiltinTokenizer()).embed(["two words"])
        await embedder.aclose()
    assert budget.usage().online["embed"].tokens_in == BuiltinTokenizer().count("two words")


USAGES: list[tuple[Any, tuple[int, int], bool]] = [
    ({"prompt_tokens": 1}, (1, 2), False),
    ({"completion_tokens": 7}, (1, 7), False),
    ({"prompt_tokens": 0, "completion_tokens": 0}, (1, 2), False),
    ({"prompt_tokens": -5, "completion_tokens": 7.5}, (1, 2), False),
    ({"prompt_tokens": "9", "completion_tokens": float("nan")}, (1, 2), False),
    ({"prompt_tokens": None, "completion_tokens": True}, (1, 2), False),
    ("many", (1, 2), False),
    (None, (1, 2), False),
    ({"prompt_tokens": 2**39, "completion_tokens": 2}, (1, 2), True),
    ({"prompt_tokens": 1, "completion_tokens": 2**39}, (1, 2), True),
    ({"prompt_tokens": 4000, "completion_tokens": 100_000}, (4000, 100_000), False),
]


@pytest.mark.parametrize(("usage", "counted", "is_told"), USAGES)
async def test_tokens_that_a_server_does_not_report_or_cannot_have_used_are_counted_here(
    usage: Any, counted: tuple[int, int], is_told: bool
) -> None:
    told: list[str] = []
    body = json.dumps({**json.loads(completion("two words")), "usage": usage}).encode()
    async with asked(lambda headers: answer(200, body)) as (chat, _):
        meter = metered(
            chat,
            caps=Caps(tokens=1_000_000),
            listener=lambda event: told.append(str(event.data.get("what"))),
        )
        for _ in range(2):
            await meter.complete(ChatRequest((Message("user", "hello"),), max_tokens=8))
    used = meter.budget.usage()
    assert (used.tokens_in, used.tokens_out) == (2 * counted[0], 2 * counted[1])
    assert meter.budget.used.tokens == 2 * sum(counted)
    assert told.count("usage") == is_told


@pytest.mark.parametrize("cached", [2**39, -1, "3"])
async def test_no_more_tokens_come_from_a_cache_than_were_sent(cached: Any) -> None:
    details = {"prompt_tokens_details": {"cached_tokens": cached}}
    usage = {"prompt_tokens": 5, "completion_tokens": 2, **details}
    body = json.dumps({**json.loads(completion("two words")), "usage": usage}).encode()
    async with asked(lambda headers: answer(200, body)) as (chat, _):
        meter = metered(chat)
        await meter.complete(ChatRequest((Message("user", "hello"),)))
    (stage,) = meter.budget.usage().construction.values()
    assert stage.cached_tokens in (0, 5)


@pytest.mark.parametrize(
    "said",
    [
        {"x_ratelimit_limit_tokens": "1"},
        {"x_ratelimit_limit_requests": "1", "x_ratelimit_limit_tokens": "1"},
    ],
)
async def test_a_rate_limit_delays_a_request_for_two_minutes_at_most(
    said: dict[str, str],
) -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    reply = answer(200, completion("two words"), **said)
    async with asked(lambda headers: reply) as (_, server):
        chat = ServerChatModel(Settings(model="m", base_url=server.url), sleep=sleep)
        async with chat:
            for _ in range(6):
                await chat.complete(ChatRequest((Message("user", "hello"),)))
    assert max(waits) <= 120


@pytest.mark.parametrize(
    "said", ["1e300", "inf", "nan", "-1", "1e999", "soon", "\u0663", "9" * 400]
)
async def test_no_answer_names_a_wait_without_an_end(said: str) -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    said = said.encode().decode("latin-1")
    for busy in (answer(429, b"{}", retry_after=said), answer(429, b"{}", retry_after_ms=said)):
        async with asked(lambda headers, busy=busy: busy) as (_, server):
            chat = ServerChatModel(Settings(model="m", base_url=server.url, retries=1), sleep=sleep)
            async with chat:
                error = await failure(chat)
        assert server.stats.requests <= 4
        assert len(str(error)) < 200
    assert max(waits, default=0) <= 120


@pytest.mark.parametrize(
    ("body", "kind", "says"),
    [
        ({"error": {"code": 401, "message": "No such key"}}, AccessRefused, "401"),
        ({"error": {"code": 503, "message": "Loading"}}, ModelUnavailable, "answers 503: Loading"),
        ({"error": "Unexpected endpoint or method. (POST /x)"}, ModelUnavailable, "ends in /v1"),
        ({"choices": [AWAY]}, ModelUnavailable, "answers 502: Away"),
    ],
    ids=["key", "busy", "path", "in the place of the message"],
)
async def test_an_error_in_an_answer_that_says_all_is_well_is_that_error(
    body: Any, kind: type[QrmemError], says: str
) -> None:
    async with asked(lambda headers: answer(200, json.dumps(body).encode())) as (chat, _):
        error = await failure(chat)
    assert isinstance(error, kind)
    assert says in str(error)


async def test_a_server_that_asks_for_a_day_is_given_up_and_reported() -> None:
    busy = answer(429, b'{"error": {"message": "slow down"}}', retry_after="86400")
    async with asked(lambda headers: busy, retries=4) as (chat, server):
        error = await failure(chat)
    assert server.stats.requests == 1
    assert "24 hours" in str(error)
    assert not isinstance(error, AccessRefused)
