"""What travels through the layers of a chat call."""

from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeGuard, get_args, runtime_checkable

from qrmem.errors import QrmemError
from qrmem.llm.failures import Transient
from qrmem.types import CallRecord, ChatModel, ChatReply, ChatRequest, Listener

Form = Literal["json_schema", "json_object+schema", "json_object", "text"]
"""How a structured reply is asked for; the second one is the dialect of llama.cpp and its kin."""

FORMS: tuple[Form, ...] = get_args(Form)
"""Strictest first."""


@dataclass(frozen=True, slots=True)
class Options:
    """The dialect that a server and a model speak.

    Attributes:
        form: the strictest output form that is known to be taken.
        limit: the parameter that bounds the reply.
        temperature: whether a temperature may be sent.
        top_p: whether `top_p` may be sent.
        log_probs: whether they may be asked for.
        stream: how a reply is streamed: with its usage told at the end, without, or not at all.
    """

    form: Form = "json_schema"
    limit: Literal["max_tokens", "max_completion_tokens", ""] = "max_tokens"
    temperature: bool = True
    top_p: bool = True
    log_probs: bool = True
    stream: Literal["usage", "plain", ""] = "usage"


class Gate(Protocol):
    """Lets single requests through to the server, or stops them, and hears what they cost."""

    async def admit(self, request: ChatRequest) -> int:
        """Reserve what the request may cost and return the reserved tokens.

        Raises:
            CapReached: it might exceed a cap.
        """
        ...

    def settle(
        self, request: ChatRequest, reserved: int, reply: ChatReply | None, *, is_certain: bool
    ) -> None:
        """Replace a reservation by what was used.

        Args:
            reserved: what `admit` returned.
            reply: the reply, or `None` where none came.
            is_certain: whether a missing reply is known to have cost no tokens.
        """
        ...

    def may_retry(self) -> bool:
        """Whether the run's budget of retries allows one more."""
        ...

    def book(self, exchange: "Exchange", reply: ChatReply, outcome: str) -> None:
        """Count a call to which a reply came; its record is in `exchange.unwritten` then."""
        ...


@dataclass(slots=True)
class Exchange:
    """One call on its way down: what to send, and what has become of it so far.

    Attributes:
        options: the dialect of the next request; `Negotiation` sets it.
        sent: requests that went to the server.
        allowed: requests and tokens a minute that the server says it allows; 0 where it does not.
        gate: who counts them, or `None`.
        listener: of the run that it belongs to, or `None`.
        began: when, by the event loop's clock.
        is_booked: whether the gate has counted it.
        unwritten: its record, once it is booked, until it is in a store: whoever keeps the reply
            there writes it in the same transaction, so that nothing is kept that was not paid for.
    """

    request: ChatRequest
    options: Options = field(default_factory=Options)
    sent: int = 0
    allowed: tuple[int, int] = (0, 0)
    gate: Gate | None = None
    listener: Listener | None = None
    began: float = 0.0
    is_booked: bool = False
    unwritten: list[CallRecord] = field(default_factory=list)


@runtime_checkable
class Sender(Protocol):
    """A layer: takes an exchange, gives a reply."""

    async def send(self, exchange: Exchange) -> ChatReply:
        """Send one exchange onward."""
        ...


@runtime_checkable
class Dialect(Protocol):
    """A chat model whose replies depend on where it stands and on the form that it takes."""

    @property
    def address(self) -> str:
        """URL of the server, without credentials."""
        ...

    @property
    def form(self) -> Form:
        """The strictest output form that is known to be taken."""
        ...


class Gauge:
    """Counts each request that really goes out, and asks the gate before."""

    def __init__(self, inner: Sender) -> None:
        self._inner = inner

    async def send(self, exchange: Exchange) -> ChatReply:
        """Reserve, send, settle."""
        gate = exchange.gate
        reserved = await gate.admit(exchange.request) if gate else 0
        exchange.sent += 1
        reply: ChatReply | None = None
        is_certain = False
        try:
            reply = await self._inner.send(exchange)
        except QrmemError as exc:
            is_certain = not isinstance(exc, Transient) or exc.is_free
            raise
        finally:
            if gate:
                gate.settle(exchange.request, reserved, reply, is_certain=is_certain)
        return reply


class Direct:
    """Any chat model as the innermost layer."""

    def __init__(self, chat: ChatModel) -> None:
        self._chat = chat

    async def send(self, exchange: Exchange) -> ChatReply:
        """Hand the request over."""
        return await self._chat.complete(exchange.request)


async def send(chat: ChatModel, exchange: Exchange) -> ChatReply:
    """Send an exchange through a chat model, whether it has layers of ours or not."""
    if _sends(chat):
        return await chat.send(exchange)
    return await Gauge(Direct(chat)).send(exchange)


def _sends(chat: ChatModel) -> TypeGuard[Sender]:
    """Whether a chat model has layers of ours; `isinstance` would look this up on every call."""
    return hasattr(chat, "send")
