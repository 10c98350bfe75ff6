"""A chat model on an OpenAI-compatible server."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Self

from qrmem.config import Settings
from qrmem.errors import UsageError
from qrmem.llm.budget import NOTHING, Amount, Budget
from qrmem.llm.client import (
    Client,
    Fields,
    ProviderClient,
    is_elsewhere,
    provider_endpoint,
    text_of,
    thoughts_of,
)
from qrmem.llm.negotiation import Dialect, Form, Negotiation
from qrmem.llm.retry import AdaptiveConcurrency, RateLimiter, Retries
from qrmem.llm.servers import MOST, PromptRefused, Rejected, count, endpoint, from_body
from qrmem.types import CallRecord, ChatReply, ChatRequest, Event, Listener

_PATH = "/chat/completions"
_LONG = 10.0
"""After this many seconds of waiting for the rate limit a message is shown, once."""
_CHARACTERS = 3
"""Conservative number of characters per token, for a server's limit per minute."""


@dataclass(slots=True)
class Call:
    """A call in progress: its request, its run and its state.

    Attributes:
        model: name of the model.
        budget: budget of the run; each request is reserved there before it is sent.
        most: the most that one request may use.
        used: the amount that a request used, by its reply.
        may_retry: called before a request is sent again.
        began: start time by the event loop's clock.
        dialect: dialect of the next request.
        sent: number of requests sent to the server.
        is_counted: whether the budget has counted the call.
        unwritten: its record, until it is in a store. The reply is stored with the record in one
            transaction, so that no reply is stored without its cost.
    """

    request: ChatRequest
    model: str = ""
    budget: Budget = field(default_factory=Budget)
    most: Amount = NOTHING
    used: Callable[[ChatReply], Amount] = lambda reply: NOTHING
    may_retry: Callable[[], bool] = lambda: True
    began: float = 0.0
    dialect: Dialect = field(default_factory=Dialect)
    sent: int = 0
    is_counted: bool = False
    unwritten: list[CallRecord] = field(default_factory=list)


class ServerChatModel:
    """A chat model on a server; use it as an async context manager, or call `aclose`.

    Attributes:
        name: name of the model, as given.
        address: URL of the server, without credentials.
    """

    def __init__(
        self,
        settings: Settings,
        listener: Listener | None = None,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Take the settings; nothing is sent, and no heavy package imported yet.

        Args:
            listener: gets an event for each retry.
            sleep: waits between two tries.

        Raises:
            UsageError: no model is named, or the base URL is invalid.
            MissingError: the service needs a key and there is none.
        """
        if not settings.model:
            raise UsageError("no chat model is named: set QRMEM_MODEL or --model")
        self.name = settings.model
        self._client: Client | ProviderClient
        if is_elsewhere(settings):
            self._endpoint = provider_endpoint(self.name)
            self._client = ProviderClient(self._endpoint, self.name, settings.timeout)
        else:
            self._endpoint = endpoint(settings)
            self._client = Client(self._endpoint, _PATH, self.name, settings.timeout)
        self.address = self._endpoint.address
        self._listener = listener
        self._sleep = sleep
        self._negotiation = Negotiation()
        self._retries = Retries(settings.retries, sleep=sleep)
        self._rate = RateLimiter(
            requests=settings.requests_per_minute, tokens=settings.tokens_per_minute
        )
        self._has_told_wait = False
        self._places = AdaptiveConcurrency(settings.concurrency)

    @property
    def form(self) -> Form:
        """The strictest output form that the server is known to accept."""
        return self._negotiation.dialect.form

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Send one request.

        Raises:
            AccessRefused: the server rejects the key or the model's name.
            ContextExceeded: the prompt is longer than the model's context.
            ModelUnavailable: the server does not answer after all retries.
        """
        return await self.send(Call(request))

    async def send(self, call: Call) -> ChatReply:
        """Send a call in the strictest form that the server accepts; retry if that may help."""
        dialects_tried: set[Dialect] = set()
        refusal: Rejected | None = None
        is_structured = call.request.schema is not None
        call.dialect = self._negotiation.dialect
        while True:
            dialects_tried.add(call.dialect)
            tell = partial(self._tell_retry, call)
            try:
                async for attempt in self._retries.tries(may_retry=call.may_retry, tell=tell):
                    with attempt:
                        reply = await self._once(call)
                self._retries.answers += 1
                break
            except Rejected as exc:
                refusal = exc
                call.dialect = self._negotiation.after_refusal(
                    call.dialect, exc, dialects_tried, is_structured=is_structured
                )
        self._retries.was_answered = True
        forms = self._negotiation.learn(call.dialect, call.request, reply)
        if forms and refusal:
            form = call.dialect.form
            message = (
                f"the server no longer accepts the output form {forms}; using {form} from now on "
                f"({refusal})"
            )
            call.budget.warn(message, what="form", form=form)
        return reply

    async def _once(self, call: Call) -> ChatReply:
        """Wait for the rate limit, a free slot and the budget; send one request; read the reply."""
        request, listener = call.request, call.budget.listener
        if (wait := self._rate.reserve(_size(request))) > 0:
            if wait >= _LONG and not self._has_told_wait:
                self._has_told_wait = True
                text = (
                    f"a request waits {wait:.0f} s for the rate limit: {self._endpoint.host} is "
                    "sent"
                )
                call.budget.warn(f"{text} {self._rate.allowance} a minute", what="rate", wait=wait)
            await self._sleep(wait)
        async with self._places, call.budget.spending(call.most) as use:
            call.sent += 1
            began = time.monotonic()
            body = payload(request, call.dialect, self.name)
            take = None
            if request.is_watched and call.dialect.stream and listener is not None:
                take = _stream_to(body, call, listener)
            try:
                answer = await self._client.post(body, hear=self._rate.learn, take=take)
                reply = read_completion(
                    answer, self.name, began, is_structured=request.schema is not None
                )
            except PromptRefused as exc:  # this is about the text, not about the server
                reply = ChatReply(exc.said, finish_reason="refusal", model=self.name)
            if reply is None:
                raise from_body(answer, "reply", self._endpoint, self.name)
            use.amount = call.used(reply)
            return reply

    def _tell_retry(self, call: Call, reason: str, tried: int, wait: float) -> None:
        if listener := self._listener or call.budget.listener:
            data = {
                "what": "retry",
                "message": f"{reason}; trying again in {wait:.1f} s",
                "stage": call.request.stage,
                "segment": call.request.segment_id,
                "reason": reason,
                "attempt": tried,
                "wait": round(wait, 3),
            }
            listener(Event("warning", data))

    async def aclose(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()


# --- requests ------------------------------------------------------------------------------------


def payload(request: ChatRequest, dialect: Dialect, model: str) -> dict[str, Any]:
    """Return the body of a chat completion request in a dialect."""
    body: dict[str, Any] = {
        "model": model,
        "messages": _messages(request, dialect),
    }
    if dialect.limit:
        body[dialect.limit] = request.max_tokens
    if dialect.temperature and request.temperature is not None:
        body["temperature"] = request.temperature
    if dialect.top_p and request.top_p != 1.0:
        body["top_p"] = request.top_p
    if dialect.sampling:
        body |= dict(request.sampling)
    if dialect.effort and request.effort:
        body["reasoning_effort"] = request.effort
    if dialect.log_probs and request.log_probs:
        body["logprobs"] = True
    if request.schema is not None and dialect.form != "text":
        body["response_format"] = _response_format(request, dialect.form)
    return body


def _messages(request: ChatRequest, dialect: Dialect) -> list[dict[str, str]]:
    """Return the messages; without a system role, user and assistant alternate."""
    messages: list[dict[str, str]] = []
    for message in request.messages:
        role = message.role if dialect.system or message.role != "system" else "user"
        if not dialect.system and messages and messages[-1]["role"] == role:
            messages[-1]["content"] += f"\n\n{_sendable(message.content)}"
        else:
            messages.append({"role": role, "content": _sendable(message.content)})
    return messages


def _stream_to(body: dict[str, Any], call: Call, listener: Listener) -> Callable[[str], None]:
    """Request a stream; return the function that sends its pieces to the listener."""
    body["stream"] = True
    if call.dialect.stream == "usage":
        body["stream_options"] = {"include_usage": True}
    fields, about = Fields(), {"stage": call.request.stage}
    listener(Event("words", {**about, "field": "", "text": ""}))

    def take(piece: str) -> None:
        for name, text in fields.feed(piece):
            listener(Event("words", {**about, "field": name, "text": text}))

    return take


def _response_format(request: ChatRequest, form: Form) -> dict[str, Any]:
    if form == "json_object":
        return {"type": "json_object"}
    if form == "json_object+schema":
        return {"type": "json_object", "schema": request.schema}
    name = request.schema_name or "reply"
    schema = {"name": name, "strict": True, "schema": request.schema}
    return {"type": "json_schema", "json_schema": schema}


def _size(request: ChatRequest) -> int:
    characters = sum(len(message.content) for message in request.messages)
    return characters // _CHARACTERS + request.max_tokens


def _sendable(text: str) -> str:
    """Return a text without lone surrogates, which cannot be sent; a reply may have had some."""
    return text.encode("utf-8", "replace").decode("utf-8")


# --- replies -------------------------------------------------------------------------------------


def read_completion(
    body: str, model: str, began: float, *, is_structured: bool = False
) -> ChatReply | None:
    """Return the reply in a body, or `None` if it has none.

    Args:
        body: body of a chat completion.
        model: name of the model, used if the server gives none.
        began: time of the request by the monotonic clock.
        is_structured: whether JSON was requested. LM Studio and vLLM may put it into the reasoning
            of a reasoning model and leave the text empty.
    """
    try:
        completion = json.loads(body)
        choice = completion["choices"][0]
        message = choice["message"]
        refusal = message.get("refusal")
        text = text_of(refusal or message.get("content"))
        end = str(choice.get("finish_reason") or "stop")
        if is_structured and end != "length" and not text.strip():
            text = thoughts_of(message)
        if choice.get("error"):
            return None
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return None
    usage = _dict(completion.get("usage"))
    return ChatReply(
        text=_sendable(text),
        tokens_in=count(usage.get("prompt_tokens")),
        tokens_out=count(usage.get("completion_tokens")),
        cached_tokens=count(_dict(usage.get("prompt_tokens_details")).get("cached_tokens")),
        hidden_tokens=count(_dict(usage.get("completion_tokens_details")).get("reasoning_tokens")),
        finish_reason="refusal" if refusal else end,
        model=str(completion.get("model") or model),
        seconds=time.monotonic() - began,
        log_probs=_log_probs(choice.get("logprobs")),
    )


def _log_probs(given: Any) -> tuple[tuple[str, float], ...]:
    """Return tokens with their log-probabilities, in OpenAI's form or the older one of lists."""
    given = _dict(given)
    if tokens := _list(given.get("tokens")):
        pairs = list(zip(tokens, _list(given.get("token_logprobs")), strict=False))
    else:
        entries = [_dict(entry) for entry in _list(given.get("content"))]
        pairs = [(entry.get("token"), entry.get("logprob")) for entry in entries]
    return tuple(
        (_sendable(str(token)), float(value))
        for token, value in pairs
        if isinstance(value, int | float) and abs(value) < MOST
    )


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _dict(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
