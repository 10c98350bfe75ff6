"""The chat client over real HTTP on loopback."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from pydantic import BaseModel
from servers.faults import READABLE, UNREADABLE, Faults
from servers.openai_server import OpenAIServer, form_of, serving

from qrmem.config import Secret, Settings
from qrmem.errors import AccessRefused, ContextExceeded, ModelOutputError, ModelUnavailable
from qrmem.llm.chat_model import Call, ServerChatModel
from qrmem.llm.negotiation import FORMS
from qrmem.llm.replies import strict_schema
from qrmem.llm.structured import ask
from qrmem.types import ChatRequest, Event, Message

PASSAGE = "Ahab hunted Moby Dick. Ishmael sailed with Queequeg from Nantucket."


class Names(BaseModel):
    entities: list[str]


SYSTEM = 'Name what the passage names.\nReply with JSON only: {"entities": ["…"]}'


def request(text: str = PASSAGE, **changes: Any) -> ChatRequest:
    messages = (Message("system", SYSTEM), Message("user", f"Passage:\n<text>\n{text}\n</text>"))
    return ChatRequest(messages=messages, stage="read", **changes)


def structured_request(**changes: Any) -> ChatRequest:
    return request(schema=strict_schema(Names), schema_name="names", **changes)


@asynccontextmanager
async def chatting(
    server: OpenAIServer, events: list[Event] | None = None, **settings: Any
) -> AsyncIterator[ServerChatModel]:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)
        await asyncio.sleep(0)

    given = Settings(model="test", base_url=server.url, timeout=5.0).with_(**settings)

    def listener(event: Event) -> None:
        if events is not None:
            events.append(event)

    async with ServerChatModel(given, listener, sleep=sleep) as chat:
        chat.waits = waits  # type: ignore[attr-defined]
        yield chat


async def test_a_reply_comes_with_what_the_server_counted() -> None:
    async with serving() as server, chatting(server) as chat:
        reply = await chat.complete(structured_request())
        stats = server.stats
    assert "Moby Dick" in reply.text
    assert (reply.tokens_in, reply.tokens_out) == (stats.tokens_in, stats.tokens_out)
    assert reply.tokens_in > 0
    assert reply.finish_reason == "stop"


async def test_the_key_is_sent_and_a_missing_one_does_no_harm_on_a_local_server() -> None:
    key = Secret("sk-right")
    async with serving(key="sk-right") as server, chatting(server, api_key=key) as chat:
        assert (await chat.complete(request())).text
    async with serving() as server, chatting(server) as chat:
        assert (await chat.complete(request())).text


async def test_a_refused_key_fails_at_once_and_is_never_shown() -> None:
    async with (
        serving(key="sk-right") as server,
        chatting(server, api_key=Secret("sk-wrong-and-secret")) as chat,
    ):
        with pytest.raises(AccessRefused, match=r"refuses the key \(401\)") as caught:
            await chat.complete(request())
        assert server.stats.requests == 0  # refused before it was counted as a chat request
    assert "sk-wrong-and-secret" not in str(caught.value) + repr(caught.value)


@pytest.mark.parametrize("fault", ["403", "404-model", "429-quota"])
async def test_permanent_errors_are_not_tried_again(fault: str) -> None:
    async with serving(faults=Faults(always=fault)) as server, chatting(server) as chat:
        with pytest.raises(AccessRefused):
            await chat.complete(request())
        assert server.stats.requests == 1


async def test_an_unknown_model_is_named() -> None:
    async with serving(models=["other"]) as server, chatting(server) as chat:
        with pytest.raises(AccessRefused, match="'test'"):
            await chat.complete(request())


async def test_a_wrong_path_says_what_may_be_wrong() -> None:
    async with serving() as server:
        settings = Settings(model="test", base_url=server.url.removesuffix("/v1"))
        async with ServerChatModel(settings) as chat:
            with pytest.raises(ModelUnavailable, match="usually ends in /v1"):
                await chat.complete(request())


PASSING = "429 500 500-empty 502-html 503 reset refuse cut-body html no-choices error-200"


@pytest.mark.parametrize("fault", PASSING.split())
async def test_temporary_errors_are_tried_again_until_they_pass(fault: str) -> None:
    events: list[Event] = []
    async with (
        serving(faults=Faults(script={2: fault, 3: fault})) as server,
        chatting(server, events) as chat,
    ):
        await chat.complete(request("first"))
        reply = await chat.complete(request())
        assert server.stats.requests == 4
    assert "Ahab" in reply.text
    assert [event.data["what"] for event in events] == ["retry", "retry"]
    assert all(event.data["reason"] for event in events)


@pytest.mark.parametrize(
    ("fault", "tries", "words"),
    [
        ("429", 7, "429: Rate limit reached"),
        ("500", 5, "500: The server had an error"),
        ("500-empty", 5, "500: no reason given"),
        ("502-html", 5, "502: 502 Bad Gateway Bad Gateway"),
        ("reset", 5, "broke the connection"),
        ("refuse", 5, "broke the connection"),
        ("html", 5, "no reply: "),
        ("cut-body", 5, "no reply: "),
        ("no-choices", 5, "no reply: "),
        ("error-200", 5, "upstream went away"),
    ],
)
async def test_the_last_failure_is_reported_when_retries_are_used_up(
    fault: str, tries: int, words: str
) -> None:
    async with (
        serving(faults=Faults(always=fault)) as server,
        chatting(server, retries=2) as chat,
    ):
        with pytest.raises(ModelUnavailable, match=words) as caught:
            await chat.complete(request())
        assert server.stats.requests == tries
    assert "127.0.0.1" in str(caught.value)
    assert f"tried {tries} times" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("fault", "least", "most"), [("429-after:7", 7, 8), ("429-date:9", 4, 10)])
async def test_a_server_that_says_when_to_retry_is_obeyed(
    fault: str, least: float, most: float
) -> None:
    async with serving(faults=Faults(script={1: fault})) as server, chatting(server) as chat:
        await chat.complete(request())
        waits: list[float] = chat.waits  # type: ignore[attr-defined]
    assert len(waits) == 1
    assert least <= waits[0] <= most


async def test_a_server_that_asks_for_an_hour_is_given_up_at_once() -> None:
    faults = Faults(script={1: "429-after:3600"})
    async with serving(faults=faults) as server, chatting(server) as chat:
        with pytest.raises(ModelUnavailable, match="Rate limit"):
            await chat.complete(request())
        assert server.stats.requests == 1


async def test_a_hanging_server_does_not_hang_the_call() -> None:
    async with (
        serving(faults=Faults(always="hang")) as server,
        chatting(server, timeout=0.5, retries=1) as chat,
    ):
        with pytest.raises(ModelUnavailable, match=r"did not answer within 0\.5 s"):
            await chat.complete(request())


@pytest.mark.parametrize("answers", [0, 1])
async def test_a_server_that_is_silent_to_everyone_is_soon_given_up(answers: int) -> None:
    """However many retries are set: each would cost a whole time-out."""
    faults = Faults(always="hang", since=answers + 1)
    async with (
        serving(faults=faults) as server,
        chatting(server, timeout=1.0) as chat,  # enough for those that are answered
    ):
        for number in range(answers):
            await chat.complete(request(f"Ahab {number}"))
        with pytest.raises(ModelUnavailable, match="QRMEM_TIMEOUT"):
            await chat.complete(request())
        assert server.stats.requests == answers + 2


async def test_a_dripping_reply_is_bounded_as_a_whole() -> None:
    async with (
        serving(faults=Faults(always="drip")) as server,
        chatting(server, timeout=0.5, retries=0) as chat,
    ):
        with pytest.raises(ModelUnavailable, match=r"did not answer within 0\.5 s"):
            await chat.complete(request())


async def test_an_absent_server_is_reported_at_once_without_credentials() -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody else gets this port, and nobody listens there
        port = taken.getsockname()[1]
        settings = Settings(model="test", base_url=f"http://user:secret@127.0.0.1:{port}/v1")
        async with ServerChatModel(settings, sleep=sleep) as chat:
            with pytest.raises(ModelUnavailable, match="cannot be reached") as caught:
                await chat.complete(request())
    assert not waits, "it was tried again"
    assert "secret" not in str(caught.value)


async def test_a_prompt_that_is_too_long_for_the_model_has_its_own_error() -> None:
    async with serving(context=10) as server, chatting(server) as chat:
        with pytest.raises(ContextExceeded, match="10 tokens"):
            await chat.complete(request())
        assert server.stats.requests == 1


# --- output forms --------------------------------------------------------------------------------


def sent_forms(server: OpenAIServer) -> list[str]:
    return [form_of(body) for body in server.stats.bodies]


@pytest.mark.parametrize(
    ("taken", "expected"),
    [
        (["json_schema", "json_object", "text"], ["json_schema"] * 2),
        (["json_object+schema", "text"], ["json_schema", *["json_object+schema"] * 2]),
        (["json_object", "text"], ["json_schema", "json_object+schema", *["json_object"] * 2]),
        (["text"], ["json_schema", "json_object+schema", "json_object", "text", "text"]),
    ],
)
async def test_the_strictest_form_is_found_once(taken: list[str], expected: list[str]) -> None:
    async with serving(forms=taken) as server:
        async with chatting(server) as chat:
            await ask(chat, request(), Names)
            found = await ask(chat, request("Pip met Stubb."), Names)
        assert sent_forms(server) == expected
    assert found.value.entities == ["Pip", "Stubb"]
    assert len(found.replies) == 1


@pytest.mark.parametrize("status", [400, 422, 500])
async def test_a_form_may_be_refused_with_any_status_that_servers_use(status: int) -> None:
    forms = ["json_object+schema"]
    async with serving(forms=forms, refusal=status) as server, chatting(server) as chat:
        assert (await ask(chat, request(), Names)).value.entities
        assert len(server.stats.bodies) == 2


async def test_one_client_does_not_use_what_another_negotiated() -> None:
    async with serving(forms=["text"]) as server, chatting(server) as first:
        await first.complete(structured_request())
        assert first.form == "text"
        async with chatting(server) as second:
            assert second.form == FORMS[0]


async def test_a_refusal_without_a_reason_still_leads_to_a_form_that_works() -> None:
    faults = Faults(script={1: "400", 2: "400", 3: "400"})
    async with serving(faults=faults) as server, chatting(server) as chat:
        assert (await ask(chat, request(), Names)).value.entities
        assert (await ask(chat, request("Pip"), Names)).value.entities
        assert sent_forms(server) == [*FORMS, "text"]


async def test_a_server_that_refuses_every_form_is_out_of_reach_and_says_why() -> None:
    async with serving(faults=Faults(always="400")) as server, chatting(server) as chat:
        with pytest.raises(ModelUnavailable, match="400: Bad request"):
            await chat.complete(structured_request())
        assert len(server.stats.bodies) == len(FORMS)


async def test_a_form_that_is_ignored_is_given_up_for_a_weaker_one() -> None:
    async with serving(obeys_forms=False) as server, chatting(server) as chat:
        with pytest.raises(ModelOutputError):
            await ask(chat, request(), Names, retries=7)
        assert sent_forms(server) == [form for form in FORMS for _ in range(2)]


@pytest.mark.parametrize("name", ["max_tokens", "temperature", "top_p"])
async def test_a_parameter_that_is_refused_is_left_out_from_then_on(name: str) -> None:
    async with serving(parameters=[name]) as server, chatting(server) as chat:
        await chat.complete(request(top_p=0.5, temperature=0.7))
        await chat.complete(request("Pip", top_p=0.5, temperature=0.7))
        bodies = server.stats.bodies
    assert [name in body for body in bodies] == [True, False, False]
    if name == "max_tokens":
        assert [body.get("max_completion_tokens") for body in bodies] == [None, 512, 512]


@pytest.mark.parametrize("status", [400, 500])
async def test_without_a_system_role_the_users_message_begins_with_its_text(status: int) -> None:
    async with serving(roles=False, refusal=status) as server, chatting(server) as chat:
        found = await ask(chat, request(), Names)
        await ask(chat, request("Stubb"), Names)
        refused, *taken = server.stats.bodies
    assert "Ahab" in found.value.entities
    assert [message["role"] for message in refused["messages"]] == ["system", "user"]
    joined = "\n\n".join(message["content"] for message in refused["messages"])
    assert taken[0]["messages"] == [{"role": "user", "content": joined}]
    assert [[message["role"] for message in body["messages"]] for body in taken] == [["user"]] * 2


async def test_several_calls_that_find_out_at_once_agree() -> None:
    async with (
        serving(forms=["text"], parameters=["max_tokens"], latency=0.01) as server,
        chatting(server) as chat,
    ):
        found = await asyncio.gather(
            *(ask(chat, request(f"Ahab met Pip {n}."), Names) for n in range(8))
        )
        before = len(server.stats.bodies)
        await ask(chat, request("Stubb"), Names)
        assert len(server.stats.bodies) == before + 1
    assert all(one.value.entities == ["Ahab", "Pip"] for one in found)


# --- replies -------------------------------------------------------------------------------------


LOSSY = ("bad-item",)


async def test_a_reply_that_lost_a_part_is_asked_for_once_more_and_the_better_one_counts() -> None:
    for script, attempts in ({1: "cut"}, 2), ({1: "cut", 2: "bad-item"}, 2), ({2: "cut"}, 1):
        async with serving(faults=Faults(script=script)) as server, chatting(server) as chat:
            found = await ask(chat, request(), Names)
            assert server.stats.requests == len(found.replies) == attempts
        assert len(found.value.entities) == 5


async def test_a_reply_that_always_loses_a_part_is_taken_with_its_problems() -> None:
    async with serving(faults=Faults(always="cut")) as server, chatting(server) as chat:
        found = await ask(chat, request(), Names)
        assert server.stats.requests == 2
    assert found.value.entities == ["Ahab", "Moby Dick", "Ishmael"]
    assert found.problems == ("the reply breaks off",)


@pytest.mark.parametrize("fault", sorted(READABLE.keys() - LOSSY))
async def test_a_reply_that_holds_the_answer_is_read_the_first_time(fault: str) -> None:
    async with serving(faults=Faults(always=fault)) as server, chatting(server) as chat:
        found = await ask(chat, request(), Names)
        assert server.stats.requests == 1
    assert found.value.entities == ["Ahab", "Moby Dick", "Ishmael", "Queequeg", "Nantucket"]


@pytest.mark.parametrize("fault", sorted(UNREADABLE))
async def test_a_reply_that_holds_none_is_asked_for_again_with_the_error(fault: str) -> None:
    async with serving(faults=Faults(script={1: fault})) as server, chatting(server) as chat:
        found = await ask(chat, request(), Names)
        bodies = server.stats.bodies
    assert len(found.replies) == 2
    assert found.value.entities[:1] == ["Ahab"]
    assert "cannot be used" in bodies[1]["messages"][-1]["content"]
    assert len(found.replies) == 2


async def test_a_model_that_thinks_its_reply_away_may_use_more_within_the_window() -> None:
    async with serving(thought=1000) as server, chatting(server) as chat:
        found = await ask(chat, request(), Names)
        limits = [body["max_tokens"] for body in server.stats.bodies]
        assert limits == [512, 1024, 2048][: len(limits)]
        assert found.value.entities[:1] == ["Ahab"]

        def fits(turn: ChatRequest) -> bool:
            return turn.max_tokens <= 600

        with pytest.raises(ModelOutputError, match="QRMEM_RESERVE"):
            await ask(chat, request("Stubb"), Names, fits=fits)
        assert {body["max_tokens"] for body in server.stats.bodies[len(limits) :]} == {512}


async def test_the_temperature_rises_after_the_re_ask() -> None:
    async with serving(faults=Faults(always="nonsense")) as server, chatting(server) as chat:
        with pytest.raises(ModelOutputError, match="5 tries") as caught:
            await ask(chat, request(), Names)
        temperatures = [body["temperature"] for body in server.stats.bodies]
    assert temperatures == [0.0, 0.0, 0.7, 0.7, 0.7]
    assert "large language model" in caught.value.raw


async def test_a_reply_cut_at_the_token_limit_keeps_its_whole_items() -> None:
    async with serving() as server, chatting(server) as chat:
        found = await ask(chat, request(max_tokens=14), Names)
    assert found.raw.endswith('"Moby Dick"')
    assert found.value.entities == ["Ahab", "Moby Dick"]
    assert found.problems == ("the reply breaks off", "the reply was cut off at the token limit")


async def test_a_refusal_is_not_asked_for_twice() -> None:
    async with serving(faults=Faults(always="refusal")) as server, chatting(server) as chat:
        with pytest.raises(ModelOutputError, match="refuses: I cannot help"):
            await ask(chat, request(), Names)
        assert server.stats.requests == 1


async def test_no_more_calls_are_in_flight_than_were_allowed() -> None:
    async with serving(latency=0.02) as server, chatting(server, concurrency=3) as chat:
        await asyncio.gather(*(chat.complete(request(str(n))) for n in range(12)))
        assert server.stats.most_in_flight == 3


async def test_a_call_that_waits_to_be_sent_again_holds_up_no_other() -> None:
    came: list[str] = []
    others = asyncio.Event()

    async def one(chat: ServerChatModel, text: str) -> None:
        await chat.complete(request(text))
        came.append(text)
        if len(came) == 2:
            others.set()

    async def sleep(seconds: float) -> None:
        await asyncio.wait_for(others.wait(), 60)

    async with serving(faults=Faults(script={1: "429-after:0.3"})) as server:
        settings = Settings(model="test", base_url=server.url, concurrency=1)
        async with ServerChatModel(settings, sleep=sleep) as chat:
            await asyncio.gather(*(one(chat, text) for text in ("first", "second", "third")))
    assert came == ["second", "third", "first"]


@pytest.mark.parametrize(
    ("headers", "settings", "longest"),
    [
        ({}, {}, 0),
        ({"x-ratelimit-limit-requests": "60"}, {}, 5),
        ({"x-ratelimit-limit-tokens": "4000"}, {}, 70),
        ({"x-ratelimit-limit-tokens": "4000"}, {"tokens_per_minute": 1000}, 280),
        ({"x-ratelimit-limit-requests": "60"}, {"requests_per_minute": 6000}, 0),
        ({"x-ratelimit-limit-requests": "many"}, {}, 0),
        ({"x-ratelimit-limit-requests": "9" * 5000}, {}, 0),
    ],
    ids=[
        "none",
        "requests",
        "tokens",
        "fewer are set",
        "the settings count more",
        "no number",
        "too long",
    ],
)
async def test_the_rate_that_a_server_states_is_obeyed(
    headers: dict[str, str], settings: dict[str, Any], longest: float
) -> None:
    told: list[Event] = []
    async with serving(headers=headers) as server, chatting(server, **settings) as chat:
        await chat.complete(request())
        calls = [Call(request(f"Ahab {n}", max_tokens=500)) for n in range(10)]
        for call in calls:
            call.budget.listener = told.append
        await asyncio.gather(*map(chat.send, calls))
        waits: list[float] = chat.waits  # type: ignore[attr-defined]
    if longest:
        assert max(waits) == pytest.approx(longest, rel=0.3)
        # A message is shown once for a long wait.
        says = [str(event.data["message"]) for event in told]
        assert len(says) == (longest > 10)
        assert all("000 tokens a minute" in said for said in says)
    else:
        assert not waits
