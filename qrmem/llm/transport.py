"""The innermost layer: one HTTP request to an OpenAI-compatible server, failures translated."""

import json
import time
from collections.abc import Mapping
from functools import partial
from typing import Any

from qrmem.llm.client import Client
from qrmem.llm.endpoint import Endpoint
from qrmem.llm.exchange import Exchange, Form, Options
from qrmem.llm.failures import Transient
from qrmem.llm.streaming import Fields
from qrmem.types import ChatReply, ChatRequest, Event, Listener

_PATH = "/chat/completions"


class OpenAITransport:
    """Chat completions over the `openai` client, which is imported with the first request."""

    def __init__(self, endpoint: Endpoint, model: str, timeout: float) -> None:
        self._endpoint = endpoint
        self._model = model
        self._client = Client(endpoint, _PATH, model, timeout)

    async def send(self, exchange: Exchange) -> ChatReply:
        """Send one request and wait for the whole reply.

        Raises:
            AccessRefused: key or model name refused.
            ContextExceeded: the prompt is longer than the model's context.
            Transient: trying again may help.
            Rejected: the request's form is refused.
            ModelUnavailable: anything else.
        """
        began = time.monotonic()
        arguments = payload(exchange.request, exchange.options, self._model)
        is_streamed = exchange.request.is_watched and exchange.options.stream
        if is_streamed and exchange.listener is not None:
            body = await self._stream(arguments, exchange, exchange.listener)
        else:
            body = await self._post(arguments, exchange)
        return self._reply(body, time.monotonic() - began)

    async def aclose(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    async def _post(self, arguments: dict[str, Any], exchange: Exchange) -> str:
        return await self._client.post(arguments, hear=partial(_note_limits, exchange))

    async def _stream(
        self, arguments: dict[str, Any], exchange: Exchange, listener: Listener
    ) -> str:
        """Send a request and tell of the reply's text as it comes."""
        arguments |= {"stream": True}
        if exchange.options.stream == "usage":
            arguments |= {"stream_options": {"include_usage": True}}
        fields = Fields()
        about = {"stage": exchange.request.stage}
        listener(Event("words", {**about, "field": "", "text": ""}))

        def take(piece: str) -> None:
            for field, text in fields.feed(piece):
                listener(Event("words", {**about, "field": field, "text": text}))

        return await self._client.stream(arguments, take, hear=partial(_note_limits, exchange))

    def _reply(self, body: str, seconds: float) -> ChatReply:
        read = _read(body)
        if read is None:
            said = self._endpoint.clean(body)[:120] or "an empty body"
            text = f"{self._endpoint.host} sent something that is no reply: {said}"
            raise Transient(text, cause="body")
        found, choice, text, refusal = read
        usage = _dict(found.get("usage"))
        return ChatReply(
            text=text,
            tokens_in=_count(usage.get("prompt_tokens")),
            tokens_out=_count(usage.get("completion_tokens")),
            cached_tokens=_count(_dict(usage.get("prompt_tokens_details")).get("cached_tokens")),
            finish_reason="refusal" if refusal else str(choice.get("finish_reason") or "stop"),
            model=str(found.get("model") or self._model),
            seconds=seconds,
            log_probs=_log_probs(choice.get("logprobs")),
        )


def _read(body: str) -> tuple[dict[str, Any], dict[str, Any], str, bool] | None:
    """Return a body, its choice, the text of it, and whether that is a refusal; `None` if none."""
    try:
        found = json.loads(body)
        choice = found["choices"][0]
        message = choice["message"]
        refusal = message.get("refusal")
        return found, choice, _text(refusal or message.get("content")), bool(refusal)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return None


def _note_limits(exchange: Exchange, headers: Mapping[str, str]) -> None:
    """Note what a server says it allows in a minute, in the headers that most services send."""
    said = (headers.get(f"x-ratelimit-limit-{what}", "") for what in ("requests", "tokens"))
    requests, tokens = (int(text) if text.isdecimal() else 0 for text in said)
    exchange.allowed = requests, tokens


def payload(request: ChatRequest, options: Options, model: str) -> dict[str, Any]:
    """Return the arguments of a chat completion in the dialect that the server takes."""
    arguments: dict[str, Any] = {
        "model": model,
        "messages": [{"role": m.role, "content": _sendable(m.content)} for m in request.messages],
    }
    if options.limit:
        arguments[options.limit] = request.max_tokens
    if options.temperature:
        arguments["temperature"] = request.temperature
    if options.top_p and request.top_p != 1.0:
        arguments["top_p"] = request.top_p
    if options.log_probs and request.log_probs:
        arguments["logprobs"] = True
    if request.schema is not None and options.form != "text":
        arguments["response_format"] = _form(request, options.form)
    return arguments


def _form(request: ChatRequest, form: Form) -> dict[str, Any]:
    if form == "json_object":
        return {"type": "json_object"}
    if form == "json_object+schema":
        return {"type": "json_object", "schema": request.schema}
    name = request.schema_name or "reply"
    schema = {"name": name, "strict": True, "schema": request.schema}
    return {"type": "json_schema", "json_schema": schema}


def _sendable(text: str) -> str:
    """Return a text without lone surrogates, which cannot be sent; a reply may hold some."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _text(content: Any) -> str:
    """Return a message's text; some servers send it in parts, reasoning models may send none."""
    if isinstance(content, list):
        parts = [part for part in content if isinstance(part, dict)]
        return _sendable("".join(str(part.get("text") or "") for part in parts))
    return _sendable(str(content or ""))


def _log_probs(given: Any) -> tuple[tuple[str, float], ...]:
    """Return tokens with their log-probabilities, in OpenAI's form or the older one of lists."""
    given = _dict(given)
    if tokens := given.get("tokens"):
        pairs = list(zip(tokens, given.get("token_logprobs") or (), strict=False))
    else:
        entries = [_dict(entry) for entry in given.get("content") or ()]
        pairs = [(entry.get("token"), entry.get("logprob")) for entry in entries]
    return tuple(
        (_sendable(str(token)), float(value))
        for token, value in pairs
        if isinstance(value, int | float)
    )


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _count(value: Any) -> int:
    return value if isinstance(value, int) and value > 0 else 0


__all__ = ["OpenAITransport", "payload"]
