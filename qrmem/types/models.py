"""Ports to models: tokenizer, embedder, chat model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Tokenizer(Protocol):
    """Counts tokens; never counts fewer than the model itself."""

    @property
    def name(self) -> str:
        """The name that a namespace records, e.g. `builtin-v1`, `tiktoken:cl100k_base`."""
        ...

    def count(self, text: str) -> int:
        """Return the number of tokens; 0 for an empty text."""
        ...

    def cut(self, text: str, limit: int) -> str:
        """Return the longest prefix of at most `limit` tokens that this counter can find."""
        ...


class Embedder(Protocol):
    """Turns texts into vectors."""

    @property
    def name(self) -> str:
        """The name that a namespace records, e.g. `local`, `openai:text-embedding-3-small`."""
        ...

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        ...

    def windows(self, text: str) -> Sequence[str]:
        """Cut a text into pieces that the encoder reads whole; at least one."""
        ...

    async def embed(
        self, texts: Sequence[str], *, kind: Literal["passage", "query"] = "passage"
    ) -> "NDArray[np.float32]":
        """Return `(len(texts), dimension)`, rows of unit length.

        Raises:
            ModelUnavailable: the server does not answer.
        """
        ...


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a chat request."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One request to a chat model.

    Attributes:
        schema: JSON schema the reply must match, or `None` for free text.
        schema_name: short name of the schema.
        temperature: `None` leaves it to the model's server.
        max_tokens: reply limit; reserved before the call is sent.
        stage: the stage that it is counted in, e.g. `extract`, `judge`.
        prompt: name and version of the prompt, e.g. `judge.v1`.
        segment_id: the segment it is about, or "".
        shared_with: ids of further segments that it is about.
        attempt: 0 for the first try; shapes the cache key.
        reply_model: pydantic model that the reply is read as, or `None`; the schema is made of it.
        prompt_tokens: tokens of messages and schema if they were counted already, else 0.
        is_watched: whether to stream the reply, if the server can, and send its pieces as events of
            kind `words`.
        log_probs: request the log-probabilities of the tokens, which not every server returns.
        effort: how much a reasoning model should reason, such as `low`; "": the server's default. A
            server that refuses it gets the request without.
        sampling: further parameters of sampling, such as `min_p`; a server that refuses them gets
            the request without.
    """

    messages: tuple[Message, ...]
    schema: Mapping[str, Any] | None = None
    schema_name: str = ""
    temperature: float | None = 0.0
    top_p: float = 1.0
    max_tokens: int = 512
    stage: str = ""
    prompt: str = ""
    segment_id: str = ""
    shared_with: tuple[str, ...] = ()
    attempt: int = 0
    reply_model: Any = field(default=None, compare=False)
    prompt_tokens: int = field(default=0, compare=False)
    is_watched: bool = False
    log_probs: bool = False
    effort: str = ""
    sampling: tuple[tuple[str, float], ...] = ()


COUNTS = ("tokens_in", "tokens_out", "cached_tokens")
"""Usage fields of a reply; its record has the same fields, and totals sum them."""


@dataclass(frozen=True, slots=True)
class ChatReply:
    """A reply, with the server's counts (0 if it did not report them).

    Attributes:
        hidden_tokens: tokens of `tokens_out` for reasoning that is not shown, if reported.
        log_probs: each token of the reply with the logarithm of its probability; empty if they were
            not requested, or the server gives none.
        parsed: the parsed value, or the error that explains why parsing failed; `None` until it is
            parsed. It is parsed once only.
    """

    text: str
    tokens_in: int = 0
    tokens_out: int = 0
    cached_tokens: int = 0
    hidden_tokens: int = 0
    finish_reason: str = "stop"
    model: str = ""
    seconds: float = 0.0
    from_cache: bool = False
    log_probs: tuple[tuple[str, float], ...] = ()
    parsed: Any = field(default=None, compare=False, repr=False)


class ChatModel(Protocol):
    """Any chat model."""

    @property
    def name(self) -> str:
        """The model's name, as given."""
        ...

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Send one request.

        Raises:
            AccessRefused: the server rejects the key or the model's name.
            ModelUnavailable: the server does not answer after all retries.
        """
        ...


@dataclass(frozen=True, slots=True)
class CallRecord:
    """One chat call in the ledger.

    Attributes:
        run: id of the run that paid for it.
        segment_id: the segment that it was about, the first one if several shared it, or "".
        outcome: `ok`, `repaired`, `unparsable`, `cached` or the error's class name.
    """

    run: str
    stage: str
    phase: Literal["construction", "online"]
    prompt: str
    model: str
    segment_id: str = ""
    tokens_in: int = 0
    tokens_out: int = 0
    cached_tokens: int = 0
    cost: float | None = None
    seconds: float = 0.0
    attempts: int = 1
    outcome: str = "ok"
    created: str = ""
