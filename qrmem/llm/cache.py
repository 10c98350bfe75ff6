"""Replies that were paid for are kept, by a hash of everything that shapes them."""

import asyncio
import hashlib
import json
import re
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from qrmem.errors import QrmemError
from qrmem.llm.chat import Call, send
from qrmem.llm.negotiation import FORMS
from qrmem.llm.structured import outcome_of, with_reading
from qrmem.types import CallRecord, ChatModel, ChatReply, ChatRequest

Get = Callable[[str], Awaitable[Mapping[str, Any] | None]]
Put = Callable[
    [str, Mapping[str, Any], Sequence[str], Sequence[CallRecord]], Coroutine[Any, Any, None]
]
"""Takes key, value, the ids of the segments that the reply goes with, and what it cost."""

_ENCODER = json.JSONEncoder(sort_keys=True, ensure_ascii=True, separators=(",", ":"))
_NOT_KEPT = {"parsed"}


class CachedChat:
    """A chat model that never pays twice for one reply.

    Replies that cannot be read are not kept, so that a failed segment is asked about again.
    """

    def __init__(self, chat: ChatModel, get: Get, put: Put) -> None:
        self._chat = chat
        self._get = get
        self._put = put

    @property
    def name(self) -> str:
        """Name of the model behind it."""
        return self._chat.name

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Return the kept reply, else ask and keep it."""
        return await self.send(Call(request))

    async def send(self, call: Call) -> ChatReply:
        """Return the kept reply, else send onward and keep what comes back."""
        forms = self._forms(call.request)
        keys = dict(zip(forms, self._keys(call.request, forms), strict=True))
        for key in keys.values():
            if (kept := await self._get(key)) is not None:
                return _restored(kept)
        reply = with_reading(await send(self._chat, call), call.request)
        if call.meter:
            call.meter.book(call, reply)
        if outcome_of(reply) != "unparsable":
            await self._keep(keys.get(call.dialect.form) or keys[forms[0]], reply, call)
        return reply

    async def _keep(self, key: str, reply: ChatReply, call: Call) -> None:
        """Keep a reply together with its record, or neither."""
        request = call.request
        about = (request.segment_id, *request.shared_with) if request.segment_id else ()
        calls, call.unwritten = call.unwritten, []
        try:
            # Even where the run is given up meanwhile: the reply is paid for.
            await _to_its_end(self._put(key, _kept(reply), about, calls))
        except QrmemError:
            call.unwritten = calls
            raise

    def _forms(self, request: ChatRequest) -> tuple[str, ...]:
        """Return the forms that a kept reply may have been asked for in, the present one first."""
        now = getattr(self._chat, "form", "")
        if request.schema is None or not now:
            return ("",)
        return (now, *(form for form in FORMS if form != now))

    def _keys(self, request: ChatRequest, forms: Sequence[str]) -> list[str]:
        where = str(getattr(self._chat, "address", ""))
        return cache_keys(request, model=self._chat.name, address=where, forms=forms)


def cache_keys(
    request: ChatRequest, *, model: str, address: str, forms: Sequence[str]
) -> list[str]:
    """Return the hashes under which a reply is kept, by the form that it was asked for in.

    Stage and segment do not shape a reply.
    """
    shaping = {
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
    common = hashlib.sha256(_ENCODER.encode(shaping).encode())
    found = []
    for form in forms:
        one = common.copy()
        one.update(form.encode())
        found.append(one.hexdigest())
    return found


async def _to_its_end(work: Coroutine[Any, Any, None]) -> None:
    """Do work to its end; a cancellation meanwhile is delivered after it completes."""
    task = asyncio.create_task(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as exc:
            cancelled = exc
        except Exception:
            break  # of the work itself: raised below
    task.result()
    if cancelled is not None:
        raise cancelled


def is_reply_key(key: str) -> bool:
    """Whether a reply is kept under a key of a store, and no derived thing."""
    return re.fullmatch(r"[0-9a-f]{64}", key) is not None


def _kept(reply: ChatReply) -> dict[str, Any]:
    return {f.name: getattr(reply, f.name) for f in fields(reply) if f.name not in _NOT_KEPT}


def _restored(kept: Mapping[str, Any]) -> ChatReply:
    names = {f.name for f in fields(ChatReply)} - _NOT_KEPT
    reply = ChatReply(**{name: value for name, value in kept.items() if name in names})
    log_probs = tuple((str(token), float(value)) for token, value in reply.log_probs)
    return replace(reply, from_cache=True, seconds=0.0, log_probs=log_probs)


__all__ = ["CachedChat", "Get", "Put", "cache_keys", "is_reply_key"]
