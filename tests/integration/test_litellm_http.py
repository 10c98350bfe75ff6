"""A model of another provider, through LiteLLM, against a real server that speaks its form."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
from servers.loopback import served

import qrmem
from qrmem.config import Settings
from qrmem.errors import AccessRefused, CapReached, MissingError
from qrmem.llm.budget import prices_of
from qrmem.llm.chat_model import ServerChatModel
from qrmem.llm.client import is_elsewhere
from qrmem.types import Answer, ChatRequest, Message, Words

MODEL, KEY = "anthropic/claude-haiku-4-5", "sk-ant-of-the-test"
TEXT = "Ada Lovelace met Charles Babbage in London in 1833."
VERDICT = {
    "reasoning": "S1 says so.",
    "action": -2,
    "answer": "Charles Babbage",
    "quotes": ["met Charles Babbage"],
}


@contextmanager
def anthropic(key: str = KEY) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Serve Anthropic's form of a message on this machine; what was asked is in the list."""
    asked: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            asked.append({"path": self.path, **body})
            if self.headers["x-api-key"] != key:
                error = {"type": "authentication_error", "message": "invalid x-api-key"}
                return self.send(401, {"type": "error", "error": error})
            said: dict[str, Any] = {"type": "text", "text": json.dumps(VERDICT)}
            if tools := [tool for tool in body.get("tools", ()) if "input_schema" in tool]:
                said = {"type": "tool_use", "id": "t1", "name": tools[0]["name"], "input": VERDICT}
            if body.get("stream"):
                return self.stream(said)
            return self.send(
                200,
                {
                    "id": "msg_1",
                    "type": "message",
                    "role": "assistant",
                    "model": body["model"],
                    "content": [said],
                    "stop_reason": "end_turn",
                    "usage": {"input_tokens": 1000, "output_tokens": 200},
                },
            )

        def stream(self, said: dict[str, Any]) -> None:
            """Say it as events, a few letters each."""
            text, key, kind = json.dumps(VERDICT), "text", "text_delta"
            if said["type"] == "tool_use":
                key, kind = "partial_json", "input_json_delta"
            usage = {"input_tokens": 1000, "output_tokens": 200}
            start = {**said, "input": {}} if "input" in said else {**said, "text": ""}
            events: list[dict[str, Any]] = [
                {
                    "type": "message_start",
                    "message": {"id": "msg_1", "role": "assistant", "content": [], "usage": usage},
                },
                {"type": "content_block_start", "index": 0, "content_block": start},
                *(
                    {
                        "type": "content_block_delta",
                        "index": 0,
                        "delta": {"type": kind, key: text[at : at + 5]},
                    }
                    for at in range(0, len(text), 5)
                ),
                {"type": "content_block_stop", "index": 0},
                {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage},
                {"type": "message_stop"},
            ]
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.end_headers()
            for event in events:
                self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())

        def send(self, status: int, body: object) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *args: object) -> None: ...

    with served(Handler) as address:
        yield address, asked


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[dict[str, Any]]]:
    pytest.importorskip("litellm", reason="the extra `litellm`")
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    with anthropic() as (url, asked):
        monkeypatch.setenv("ANTHROPIC_API_BASE", url)
        yield asked


async def filled(path: str) -> str:
    async with qrmem.open(path, embedder="none", base_url="", model="") as memory:
        await memory.add({"id": "note", "text": TEXT})
    return path


@pytest.mark.filterwarnings("default")
async def test_a_question_is_answered_by_another_provider_and_priced(
    provider: list[dict[str, Any]], tmp_path: Any
) -> None:
    path = await filled(str(tmp_path / "m.db"))
    async with qrmem.open(path, model=MODEL) as memory:
        answer = await memory.ask("Whom did Ada Lovelace meet?")
        assert (answer.text, answer.status) == ("Charles Babbage", "answered")
        assert answer.citations[0].quote == "met Charles Babbage"
        assert provider[0]["path"] == "/v1/messages"
        assert provider[0]["model"] == "claude-haiku-4-5"
        (stage,) = answer.usage.online.values()
        assert (stage.tokens_in, stage.tokens_out) == (1000, 200)
        price = prices_of(Settings()).of(MODEL)
        assert price is not None
        assert stage.cost == pytest.approx(price.of(1000, 200))
        assert 0 < price.input < price.output
        plan = await memory.plan(ask="Whom did she meet?")
        assert plan.cost is not None
        with pytest.raises(CapReached):
            await memory.ask("Where did they meet?", max_cost=1e-9)


@pytest.mark.filterwarnings("default")
async def test_the_words_of_another_provider_are_streamed(
    provider: list[dict[str, Any]], tmp_path: Any
) -> None:
    path = await filled(str(tmp_path / "m.db"))
    async with qrmem.open(path, model=MODEL) as memory:
        asked = memory.stream("Whom did Ada Lovelace meet?", words=True)
        items = [item async for item in asked]
        words = [item for item in items if isinstance(item, Words) and item.field == "answer"]
        assert "".join(item.text for item in words) == "Charles Babbage"
        assert len(words) > 2
        assert isinstance(items[-1], Answer)
        assert (items[-1].text, items[-1].status) == ("Charles Babbage", "answered")
        (stage,) = items[-1].usage.online.values()
        assert (stage.tokens_in, stage.tokens_out) == (1000, 200)
        assert [body.get("stream") for body in provider] == [True]


@pytest.mark.filterwarnings("default")
async def test_a_refused_key_is_our_error_and_is_not_shown(
    provider: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-wrong-one")
    request = ChatRequest(messages=(Message("user", "Hello"),), stage="answer", max_tokens=16)
    async with ServerChatModel(Settings(model=MODEL)) as chat:
        with pytest.raises(AccessRefused, match="anthropic refuses the key") as refused:
            await chat.complete(request)
    assert "sk-ant-wrong-one" not in str(refused.value)
    assert len(provider) == 1


def test_without_the_extra_the_message_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "litellm", None)
    with pytest.raises(MissingError, match=r'-m pip install "qrmem\[litellm\]"'):
        ServerChatModel(Settings(model=MODEL))


def test_a_model_name_with_a_slash_goes_to_the_users_own_server() -> None:
    chosen = Settings(model=MODEL, base_url="http://127.0.0.1:9/v1")
    assert ServerChatModel(chosen).address == "http://127.0.0.1:9/v1"
    assert not is_elsewhere(chosen)
    assert is_elsewhere(Settings(model=MODEL))
