"""Records chat exchanges to a plain file, and replays them with no network.

A cassette is a text file of JSON lines, one exchange each, sorted, so that two recordings of a run
are equal and a change shows as changed lines. Keys, URLs and headers are never in it.
"""

import difflib
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self

from qrmem.errors import UsageError
from qrmem.models.exchange import Exchange, send
from qrmem.ports import ChatModel, ChatReply, ChatRequest, Message

FORMAT = 1
_REPLY = ("text", "tokens_in", "tokens_out", "cached_tokens", "finish_reason", "model")


class Recorder:
    """A chat model that writes down every exchange; the file is written as it goes on."""

    def __init__(self, chat: ChatModel, path: Path) -> None:
        self._chat = chat
        self._path = path
        self._lines: dict[str, str] = {}
        try:
            path.write_text(_heading(chat.name), encoding="utf-8")
        except OSError as exc:
            raise UsageError(f"the cassette {path} cannot be written: {exc.strerror}") from exc

    @property
    def name(self) -> str:
        """Name of the model behind it."""
        return self._chat.name

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Ask and write the exchange down."""
        return await self.send(Exchange(request))

    async def send(self, exchange: Exchange) -> ChatReply:
        """Send onward and write the exchange down."""
        reply = await send(self._chat, exchange)
        key = _key(exchange.request)
        if key not in self._lines:
            self._lines[key] = line = _line(exchange.request, reply)
            with self._path.open("a", encoding="utf-8") as file:
                file.write(line)
        return reply

    def close(self) -> None:
        """Bring the lines into an order that does not depend on which reply came first."""
        text = _heading(self.name) + "".join(sorted(self._lines.values()))
        self._path.write_text(text, encoding="utf-8")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class Player:
    """A chat model that answers out of a cassette, and from nowhere else."""

    def __init__(self, path: Path) -> None:
        """Read a cassette.

        Raises:
            UsageError: there is none, or it is not one.
        """
        self._path = path
        self._name, entries = _read(path)
        self._replies = {_key(request): reply for request, reply in entries}
        self._requests = [request for request, _ in entries]
        self._unused = set(self._replies)

    @property
    def name(self) -> str:
        """Name of the model that was recorded."""
        return self._name

    @property
    def unused(self) -> int:
        """Exchanges of the cassette that nothing has asked for."""
        return len(self._unused)

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Return the recorded reply.

        Raises:
            UsageError: nothing was recorded for this request; names the first difference.
        """
        key = _key(request)
        if key not in self._replies:
            raise UsageError(self._difference(request))
        self._unused.discard(key)
        return self._replies[key]

    def _difference(self, request: ChatRequest) -> str:
        head = f"{self._path} holds no reply to this {request.stage or 'chat'} request"
        wanted = _shown(request)
        alike = [r for r in self._requests if r.stage == request.stage] or self._requests
        if not alike:
            return f"{head}: it is empty"
        nearest = max(alike, key=lambda known: _likeness(wanted, _shown(known)))
        for ours, theirs in zip(wanted, [*_shown(nearest), *[""] * len(wanted)], strict=False):
            if ours != theirs:
                return f"{head}; nearest one: {theirs[:120]!r} where now {ours[:120]!r} is asked"
        return f"{head}; the nearest one is longer"


def _shown(request: ChatRequest) -> list[str]:
    """Return what shapes a reply, line by line, plain settings first."""
    settings = {
        "temperature": request.temperature,
        "top_p": request.top_p,
        "max_tokens": request.max_tokens,
        "attempt": request.attempt,
        "schema_name": request.schema_name,
    }
    lines = [f"{name}: {value}" for name, value in settings.items()]
    lines += [f"{m.role}: {line}" for m in request.messages for line in m.content.splitlines()]
    return [*lines, f"schema: {json.dumps(request.schema, sort_keys=True)}"]


def _likeness(first: list[str], second: list[str]) -> float:
    return difflib.SequenceMatcher(None, first, second, autojunk=False).quick_ratio()


def _heading(model: str) -> str:
    return json.dumps({"cassette": FORMAT, "model": model}) + "\n"


def _key(request: ChatRequest) -> str:
    return hashlib.sha256("\n".join(_shown(request)).encode("utf-8", "replace")).hexdigest()


def _line(request: ChatRequest, reply: ChatReply) -> str:
    asked = {
        "stage": request.stage,
        "segment_id": request.segment_id,
        "attempt": request.attempt,
        "prompt": request.prompt,
        "temperature": request.temperature,
        "top_p": request.top_p,
        "max_tokens": request.max_tokens,
        "schema_name": request.schema_name,
        "schema": request.schema,
        "messages": [[message.role, message.content] for message in request.messages],
    }
    said = {name: value for name, value in asdict(reply).items() if name in _REPLY}
    return json.dumps({"request": asked, "reply": said}, ensure_ascii=True) + "\n"


def _read(path: Path) -> tuple[str, list[tuple[ChatRequest, ChatReply]]]:
    try:
        heading, *lines = path.read_text(encoding="utf-8").splitlines()
        start = json.loads(heading)
        if start["cassette"] != FORMAT:
            raise ValueError(f"format {start['cassette']}, this version reads {FORMAT}")
        return str(start["model"]), [_entry(json.loads(line)) for line in _filled(lines)]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as exc:
        raise UsageError(f"{path} is no cassette: {exc}") from exc


def _filled(lines: Iterable[str]) -> Iterable[str]:
    return (line for line in lines if line.strip())


def _entry(line: Mapping[str, Any]) -> tuple[ChatRequest, ChatReply]:
    asked = dict(line["request"])
    asked["messages"] = tuple(Message(role, content) for role, content in asked["messages"])
    return ChatRequest(**asked), ChatReply(**line["reply"])


__all__ = ["Player", "Recorder"]
