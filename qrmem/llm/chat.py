"""Opens a chat model behind an OpenAI-compatible server, with its layers in order."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Self

from qrmem.config import Settings
from qrmem.errors import UsageError
from qrmem.llm.endpoint import Endpoint, endpoint
from qrmem.llm.exchange import Exchange, Form, Gauge, Sender
from qrmem.llm.limiter import Limiter
from qrmem.llm.negotiation import Abilities, Negotiation, abilities
from qrmem.llm.pace import Pace
from qrmem.llm.retrying import Retries, Retrying
from qrmem.llm.transport import OpenAITransport
from qrmem.types import ChatReply, ChatRequest, Listener


class Chat:
    """A chat model on a server; use it as an async context manager, or call `aclose`."""

    def __init__(
        self,
        name: str,
        where: Endpoint,
        layers: Sender,
        known: Abilities,
        transport: OpenAITransport,
    ) -> None:
        self._name = name
        self._endpoint = where
        self._layers = layers
        self._known = known
        self._transport = transport

    @property
    def name(self) -> str:
        """The model's name, as given."""
        return self._name

    @property
    def address(self) -> str:
        """URL of the server, without credentials."""
        return self._endpoint.address

    @property
    def form(self) -> Form:
        """The strictest output form that is known to be taken."""
        return self._known.options.form

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Send one request.

        Raises:
            AccessRefused: key or model name refused.
            ContextExceeded: the prompt is longer than the model's context.
            ModelUnavailable: no answer after all retries.
        """
        return await self.send(Exchange(request))

    async def send(self, exchange: Exchange) -> ChatReply:
        """Send one exchange through the layers."""
        return await self._layers.send(exchange)

    async def aclose(self) -> None:
        """Close all connections."""
        await self._transport.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()


def open_chat(
    settings: Settings,
    listener: Listener | None = None,
    *,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> Chat:
    """Return the chat model that the settings name; nothing is sent and nothing heavy imported yet.

    Args:
        listener: hears of retries.
        sleep: how to wait between two tries.

    Raises:
        UsageError: no model is named, or the base URL is none.
        MissingError: the service needs a key and there is none.
    """
    if not settings.model:
        raise UsageError("no chat model is named: set QRMEM_MODEL or --model")
    where = endpoint(settings)
    known = abilities(where.address, settings.model)
    transport = OpenAITransport(where, settings.model, settings.timeout)
    paced = Pace(
        Limiter(Gauge(transport), most=settings.concurrency),
        requests=settings.requests_per_minute,
        tokens=settings.tokens_per_minute,
        sleep=sleep,
    )
    retrying = Retrying(paced, Retries(settings.retries, sleep=sleep), listener)
    layers = Negotiation(retrying, known)
    return Chat(settings.model, where, layers, known, transport)


__all__ = ["Chat", "open_chat"]
