"""A cache of paid replies, under a hash of everything that affects them."""

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from qrmem.types import CallRecord, ChatReply, ChatRequest

Get = Callable[[str], Awaitable[Mapping[str, Any] | None]]
Put = Callable[
    [str, Mapping[str, Any], Sequence[str], Sequence[CallRecord]], Coroutine[Any, Any, None]
]
"""Stores key, value, ids of the reply's segments, and the records of its calls."""
_ENCODER = json.JSONEncoder(sort_keys=True, ensure_ascii=True, separators=(",", ":"))
_NOT_KEPT = {"parsed"}


@dataclass(frozen=True, slots=True)
class ReplyCache:
    """A cache of replies, usually in a store."""

    get: Get
    put: Put

    async def find(self, key: str) -> ChatReply | None:
        """Return the cached reply of a key, or `None`."""
        value = await self.get(key)
        return None if value is None else _restored(value)

    async def keep(
        self, key: str, reply: ChatReply, request: ChatRequest, calls: Sequence[CallRecord]
    ) -> None:
        """Store a reply together with the records of its calls, or neither.

        A cancelled run completes it first, as the reply is paid for; the cancellation follows.
        """
        about = (request.segment_id, *request.shared_with) if request.segment_id else ()
        value = {f.name: getattr(reply, f.name) for f in fields(reply) if f.name not in _NOT_KEPT}
        task = asyncio.create_task(self.put(key, value, about, calls))
        cancelled: asyncio.CancelledError | None = None
        while not task.done():
            try:
                await asyncio.wait([task])
            except asyncio.CancelledError as exc:
                cancelled = exc
        task.result()
        if cancelled is not None:
            raise cancelled


def cache_key(request: ChatRequest, *, model: str, address: str) -> str:
    """Return the cache key of a request: a hash of all that affects its reply.

    Stage and segment do not affect a reply. Neither does the output form that a server accepts, as
    the schema is the same.
    """
    shaping: dict[str, Any] = {
        "model": model,
        "address": address,
        "messages": [[message.role, message.content] for message in request.messages],
        "schema": request.schema,
        "schema_name": request.schema_name,
        "temperature": request.temperature,
        "top_p": request.top_p,
        "max_tokens": request.max_tokens,
        "attempt": request.attempt,
    }
    if request.log_probs:
        shaping["log_probs"] = True
    if request.effort:
        shaping["effort"] = request.effort
    if request.sampling:
        shaping["sampling"] = request.sampling
    return hashlib.sha256(_ENCODER.encode(shaping).encode()).hexdigest()


def _restored(kept: Mapping[str, Any]) -> ChatReply:
    names = {f.name for f in fields(ChatReply)} - _NOT_KEPT
    reply = ChatReply(**{name: value for name, value in kept.items() if name in names})
    log_probs = tuple((str(token), float(value)) for token, value in reply.log_probs)
    return replace(reply, from_cache=True, seconds=0.0, log_probs=log_probs)
