"""Replies that were paid for are kept, by a hash of everything that shapes them."""

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
"""Takes key, value, the ids of the segments that the reply goes with, and what it cost."""

_ENCODER = json.JSONEncoder(sort_keys=True, ensure_ascii=True, separators=(",", ":"))
_NOT_KEPT = {"parsed"}


@dataclass(frozen=True, slots=True)
class ReplyCache:
    """Where replies are kept; a store's, as a rule."""

    get: Get
    put: Put

    async def find(self, key: str) -> ChatReply | None:
        """Return the reply that is kept under a key, if there is one."""
        kept = await self.get(key)
        return None if kept is None else _restored(kept)

    async def keep(
        self, key: str, reply: ChatReply, request: ChatRequest, calls: Sequence[CallRecord]
    ) -> None:
        """Keep a reply together with the records of its calls, or neither.

        It is done to its end even where the run is given up meanwhile: the reply is paid for. A
        cancellation is delivered after that.
        """
        about = (request.segment_id, *request.shared_with) if request.segment_id else ()
        kept = {f.name: getattr(reply, f.name) for f in fields(reply) if f.name not in _NOT_KEPT}
        task = asyncio.create_task(self.put(key, kept, about, calls))
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
    """Return the hash under which a reply is kept.

    Stage and segment do not shape a reply, nor does the output form that a server takes: it is
    asked for the same schema.
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
    if request.sampling:
        shaping["sampling"] = request.sampling
    return hashlib.sha256(_ENCODER.encode(shaping).encode()).hexdigest()


def _restored(kept: Mapping[str, Any]) -> ChatReply:
    names = {f.name for f in fields(ChatReply)} - _NOT_KEPT
    reply = ChatReply(**{name: value for name, value in kept.items() if name in names})
    log_probs = tuple((str(token), float(value)) for token, value in reply.log_probs)
    return replace(reply, from_cache=True, seconds=0.0, log_probs=log_probs)
