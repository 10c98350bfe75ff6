"""Replies that are streamed, and tokens' log-probabilities, over real HTTP."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from fakes import metered
from servers.faults import Faults
from servers.openai_server import OpenAIServer, log_probs, serving

import qrmem
from qrmem.config import Settings
from qrmem.errors import AccessRefused, ModelOutputError, ModelUnavailable
from qrmem.llm.budget import Budget
from qrmem.llm.chat_model import Call, ServerChatModel
from qrmem.llm.replies import strict_schema
from qrmem.llm.reply_cache import ReplyCache
from qrmem.llm.structured import ask
from qrmem.prompts.replies import JudgeReply
from qrmem.types import ChatReply, ChatRequest, Event, Message

SYSTEM = 'Reply with JSON only: {"reasoning": "…", "action": -2, "answer": "…", "quotes": ["…"]}'
USER = "Passages:\n<text S1>\nAhab lost a leg near Japan.\n</text>\n\nWho lost a leg near Japan?"


def request(**changes: Any) -> ChatRequest:
    given: dict[str, Any] = {"is_watched": True, "stage": "judge"} | changes
    messages = (Message("system", SYSTEM), Message("user", USER))
    return ChatRequest(messages, strict_schema(JudgeReply), "judge", **given)


@asynccontextmanager
async def chatting(server: OpenAIServer, **settings: Any) -> AsyncIterator[ServerChatModel]:
    async def sleep(seconds: float) -> None:
        await asyncio.sleep(0)

    given = Settings(model="test", base_url=server.url, timeout=5.0).with_(**settings)
    async with ServerChatModel(given, sleep=sleep) as chat:
        yield chat


async def asked(chat: ServerChatModel, **changes: Any) -> tuple[ChatReply, list[Event]]:
    events: list[Event] = []
    reply = await chat.send(Call(request(**changes), budget=Budget(listener=events.append)))
    return reply, [event for event in events if event.kind == "words"]


def said(events: list[Event], field: str) -> str:
    """The streamed text of a field since the last beginning."""
    starts = [n for n, event in enumerate(events) if not event.data["field"]]
    last = events[starts[-1] + 1 :] if starts else []
    return "".join(str(e.data["text"]) for e in last if e.data["field"] == field)


async def plain_reply() -> ChatReply:
    async with serving() as server, chatting(server) as chat:
        return (await asked(chat, is_watched=False))[0]


async def test_a_watched_reply_is_streamed_and_is_the_same_reply() -> None:
    expected = await plain_reply()
    async with serving() as server, chatting(server) as chat:
        reply, words = await asked(chat)
        assert server.stats.bodies[0]["stream"] is True
    assert (reply.text, reply.finish_reason) == (expected.text, "stop")
    assert (reply.tokens_in, reply.tokens_out) == (expected.tokens_in, expected.tokens_out)
    found = json.loads(reply.text)
    assert said(words, "answer") == found["answer"] != ""
    assert said(words, "reasoning") == found["reasoning"]
    assert len(words) > 5
    assert words[0].data == {"stage": "judge", "field": "", "text": ""}


async def test_a_reply_that_nobody_watches_is_not_streamed() -> None:
    async with serving() as server, chatting(server) as chat:
        _, words = await asked(chat, is_watched=False)
        assert not words
        await chat.complete(request())
        assert not any("stream" in body for body in server.stats.bodies)


@pytest.mark.parametrize(
    "behaviour",
    [
        {"parameters": ["stream_options"]},
        {"parameters": ["stream"]},
        {"streams": False},
        {"gives_usage": False},
        {"gives_ends": False},
        {"forms": ["text"]},
    ],
    ids=["no usage in streams", "no streams", "ignores streams", "no usage", "no end", "no forms"],
)
async def test_servers_that_stream_otherwise_or_not_at_all_are_understood(
    behaviour: Mapping[str, Any],
) -> None:
    expected = await plain_reply()
    async with serving(**behaviour) as server, chatting(server) as chat:
        for _ in range(2):
            reply, _ = await asked(chat)
            # Without a schema the server leaves out the fields that may be missing.
            said = json.loads(reply.text)
            assert said == {name: json.loads(expected.text)[name] for name in said}
            assert said["answer"]
        refused = server.stats.requests - server.stats.answered
    # What a server does not take is found out once.
    assert refused <= 3


@pytest.mark.parametrize("fault", ["reset", "cut-body", "429", "500"])
async def test_a_stream_that_breaks_off_starts_again(fault: str) -> None:
    async with serving(faults=Faults(script={1: fault})) as server, chatting(server) as chat:
        reply, words = await asked(chat)
        assert server.stats.requests == 2
    assert said(words, "answer") == json.loads(reply.text)["answer"]
    assert sum(not event.data["field"] for event in words) == 2


async def test_a_refusal_and_a_cut_reply_end_a_stream_as_they_end_any_reply() -> None:
    for fault, finish in (("refusal", "refusal"), ("length", "length")):
        async with serving(faults=Faults(always=fault)) as server, chatting(server) as chat:
            reply, _ = await asked(chat)
        assert reply.finish_reason == finish


async def test_errors_before_a_stream_are_those_of_any_request() -> None:
    async with serving(key="right") as server, chatting(server) as chat:
        with pytest.raises(AccessRefused):
            await asked(chat)
    async with (
        serving(faults=Faults(always="hang")) as server,
        chatting(server, timeout=0.5) as chat,
    ):
        with pytest.raises(ModelUnavailable, match=r"did not answer within 0\.5 s"):
            await asked(chat)


@pytest.mark.parametrize("is_watched", [True, False])
async def test_json_among_the_thoughts_is_the_reply_where_there_is_no_other(
    is_watched: bool,
) -> None:
    expected = await plain_reply()
    async with serving(thinks=True) as server, chatting(server) as chat:
        reply, _ = await asked(chat, is_watched=is_watched)
        assert reply.text == expected.text
        plain = await chat.complete(ChatRequest((Message("user", "hello"),)))
        assert plain.text == ""
    cut = Faults(always="length")
    async with serving(faults=cut, thinks=True) as server, chatting(server) as chat:
        assert (await asked(chat, is_watched=is_watched))[0].text == ""
        with pytest.raises(ModelOutputError, match="QRMEM_RESERVE and QRMEM_WINDOW allow"):
            await ask(chat, request(is_watched=is_watched), JudgeReply)


# --- log-probabilities ----------------------------------------------------------------------------


@pytest.mark.parametrize("is_watched", [True, False])
async def test_log_probabilities_are_on_the_reply_where_they_are_asked_for(
    is_watched: bool,
) -> None:
    async with serving() as server, chatting(server) as chat:
        reply, _ = await asked(chat, is_watched=is_watched, log_probs=True)
        without, _ = await asked(chat, is_watched=is_watched)
    expected = [(entry["token"], entry["logprob"]) for entry in log_probs(reply.text)]
    assert list(reply.log_probs) == expected != []
    assert without.log_probs == ()


@pytest.mark.parametrize("behaviour", [{"parameters": ["logprobs"]}, {"gives_log_probs": False}])
async def test_a_server_without_log_probabilities_answers_all_the_same(
    behaviour: Mapping[str, Any],
) -> None:
    async with serving(**behaviour) as server, chatting(server) as chat:
        reply, _ = await asked(chat, log_probs=True)
    assert reply.log_probs == ()
    assert reply.text == (await plain_reply()).text


async def test_log_probabilities_come_out_of_the_cache_as_they_went_in() -> None:
    kept: dict[str, Any] = {}

    async def get(key: str) -> Any:
        return kept.get(key)

    async def put(key: str, value: Mapping[str, Any], segments: Any, calls: Any) -> None:
        kept[key] = json.loads(json.dumps(value))

    async with serving() as server, chatting(server) as chat:
        cached = metered(chat, phase="online", cache=ReplyCache(get, put))
        first = await cached.complete(request(log_probs=True))
        again = await cached.complete(request(log_probs=True))
        # A reply that was kept without them is none to this request.
        other = await cached.complete(request())
    assert again.from_cache
    assert again.log_probs == first.log_probs != ()
    assert not other.from_cache


# --- watching an answer ---------------------------------------------------------------------------


@pytest.mark.parametrize("words", [True, False])
async def test_a_streamed_answer_sends_its_words_to_every_listener(words: bool) -> None:
    async with serving() as server:
        chosen = Settings(model="test", base_url=server.url, embedder="none")
        async with qrmem.open("memory://", settings=chosen) as memory:
            await memory.add(qrmem.Document("Ahab lost a leg near Japan. He hunts the whale.", "A"))
            asked = memory.stream("Who lost a leg near Japan?", words=words)
            items = [item async for item in asked]
        bodies = [body for body in server.stats.bodies if "Who lost a leg" in str(body)]
    *before, answer = items
    assert isinstance(answer, qrmem.Answer)
    assert answer.status == "answered"
    told = "".join(i.text for i in before if isinstance(i, qrmem.Words) and i.field == "answer")
    assert told == (answer.text if words else "")
    assert any(isinstance(item, qrmem.Step) for item in before)
    assert all(bool(body.get("stream")) is words for body in bodies)
