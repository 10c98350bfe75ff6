"""Records chat exchanges to a text file, and replays them without a network.

A cassette is a text file of sorted JSON lines, one per exchange. Two recordings of a run are equal,
and a change shows as changed lines. It never contains keys, URLs or headers.
"""

import difflib
import hashlib
import json
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, NonNegativeInt, ValidationError

from qrmem.errors import OutputFailed, UsageError
from qrmem.text.decoding import open_file
from qrmem.types import ChatReply, ChatRequest, Message

FORMAT = 1


class _Form(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")


class _Request(_Form):
    stage: str
    segment_id: str
    attempt: NonNegativeInt
    prompt: str
    temperature: FiniteFloat | None
    top_p: FiniteFloat
    max_tokens: NonNegativeInt
    schema_name: str
    form: dict[str, Any] | None = Field(alias="schema")
    messages: list[tuple[Literal["system", "user", "assistant"], str]]
    sampling: list[tuple[str, FiniteFloat]] = []


class _Reply(_Form):
    text: str
    tokens_in: NonNegativeInt
    tokens_out: NonNegativeInt
    cached_tokens: NonNegativeInt
    finish_reason: str
    model: str


class _Exchange(_Form):
    """The content of a line. Numbers keep their form: 0 and 0.0 give different keys."""

    model: str
    request: _Request
    reply: _Reply


class _Heading(_Form):
    cassette: int
    model: str


@dataclass(frozen=True, slots=True)
class Recording:
    """One exchange with a model."""

    model: str
    request: ChatRequest
    reply: ChatReply


class Recorder:
    """Records a cassette; an existing cassette is extended.

    Exchanges are written as they come. On close they are sorted, so that the order does not depend
    on which reply came first.
    """

    def __init__(self, path: Path, name: str) -> None:
        """Open a cassette for the exchanges with a chat model.

        Args:
            name: name of the model.

        Raises:
            UsageError: the file is no cassette, or the path cannot be written.
        """
        self._path = path
        self._name = name
        self._lines: dict[str, str] = {}
        self._is_whole = True
        self._write()

    def add(self, entry: Recording) -> None:
        """Record an exchange; the last reply to a request counts."""
        key, line = _key(entry.request), _line(entry)
        if self._lines.get(key) == line:
            return
        self._lines[key] = line
        # Else an earlier line could not be written: `close` writes all lines again.
        if self._is_whole:
            try:
                with self._path.open("a", encoding="utf-8") as file:
                    file.write(line)
            except OSError:
                self._is_whole = False

    def close(self) -> None:
        """Sort the lines.

        Raises:
            OutputFailed: the file cannot be written; the recorded run itself is complete.
        """
        try:
            self._write()
        except UsageError as exc:
            raise OutputFailed(str(exc)) from exc

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _write(self) -> None:
        """Write a new file beside the old one, so that a full disk does not damage it.

        Lines in the old file are kept: another process may have recorded to it meanwhile.
        """
        if self._path.is_file() and self._path.stat().st_size:
            there = {_key(entry.request): _line(entry) for entry in _read(self._path)[1]}
            self._lines = {**there, **self._lines}
        text = _heading(self._name) + "".join(sorted(self._lines.values()))
        target = self._path.resolve()
        # A random name, at which nobody can have put a link or a file.
        new = target.with_name(f".{target.name}.{uuid.uuid4().hex[:8]}.part")
        try:
            with new.open("x", encoding="utf-8") as file:
                file.write(text)
            new.replace(target)
        except OSError as exc:
            new.unlink(missing_ok=True)
            message = f"the cassette {self._path} cannot be written: {exc.strerror}"
            raise UsageError(message) from exc


class Replayer:
    """A chat model that replies only from a cassette.

    Attributes:
        name: name of the recorded model.
        models: names of all recorded models.
    """

    def __init__(self, path: Path) -> None:
        """Read a cassette.

        Raises:
            UsageError: the file does not exist, or is no cassette.
        """
        self._path = path
        self.name, entries = _read(path)
        self._replies = {_key(entry.request): entry.reply for entry in entries}
        self._requests = [entry.request for entry in entries]
        self._models = {entry.request.stage: entry.model for entry in entries}
        self.models = tuple(dict.fromkeys(self._models.values())) or (self.name,)

    def model_for(self, stage: str) -> str:
        """Return the name of a stage's recorded model."""
        return self._models.get(stage, self.name)

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Return the recorded reply.

        Raises:
            UsageError: no reply is recorded for this request; the message names the first
                difference.
        """
        key = _key(request)
        if key not in self._replies:
            raise UsageError(
                f"{self._difference(request)} (a replay needs the texts, the window and the other "
                "settings of the recording)"
            )
        return self._replies[key]

    def _difference(self, request: ChatRequest) -> str:
        head = f"{self._path} has no reply to this {request.stage or 'chat'} request"
        request_lines = _request_lines(request)
        alike = [r for r in self._requests if r.stage == request.stage]
        if not alike:
            what = "such request" if self._requests else "request at all"
            return f"{head}: no {what} was recorded"
        nearest = max(alike, key=lambda known: _similarity(request_lines, _request_lines(known)))
        for ours, theirs in zip(
            request_lines, [*_request_lines(nearest), *[""] * len(request_lines)], strict=False
        ):
            if ours != theirs:
                their_lines, our_lines = _around(theirs, ours), _around(ours, theirs)
                return f"{head}; nearest one: {their_lines!r} where now {our_lines!r} is asked"
        return f"{head}; the nearest one is longer"


def _request_lines(request: ChatRequest) -> list[str]:
    """Return the parts of a request that affect its reply, as lines, plain settings first."""
    settings = {
        "temperature": request.temperature,
        "top_p": request.top_p,
        "max_tokens": request.max_tokens,
        "attempt": request.attempt,
        "schema_name": request.schema_name,
    }
    settings |= dict(request.sampling)
    lines = [f"{name}: {value}" for name, value in settings.items()]
    lines += [f"{m.role}: {line}" for m in request.messages for line in m.content.splitlines()]
    return [*lines, f"schema: {json.dumps(request.schema, sort_keys=True)}"]


def _similarity(first: list[str], second: list[str]) -> float:
    return difflib.SequenceMatcher(None, first, second, autojunk=False).quick_ratio()


def _around(text: str, other: str) -> str:
    """Return at most 120 characters around the first difference between two texts."""
    pairs = enumerate(zip(text, other, strict=False))
    start = max(0, next((at for at, (a, b) in pairs if a != b), 0) - 40)
    return f"{'…' if start else ''}{text[start : start + 120]}"


def _heading(model: str) -> str:
    return json.dumps({"cassette": FORMAT, "model": model}) + "\n"


def _key(request: ChatRequest) -> str:
    return hashlib.sha256("\n".join(_request_lines(request)).encode("utf-8", "replace")).hexdigest()


def _line(entry: Recording) -> str:
    request = entry.request
    request_data = {
        "stage": request.stage,
        "segment_id": request.segment_id,
        "attempt": request.attempt,
        "prompt": request.prompt,
        "temperature": request.temperature,
        "top_p": request.top_p,
        "max_tokens": request.max_tokens,
        "schema_name": request.schema_name,
        "schema": request.schema,
        "messages": [[message.role, _readable(message.content)] for message in request.messages],
    }
    if request.sampling:
        request_data["sampling"] = request.sampling
    reply_data = {name: getattr(entry.reply, name) for name in _Reply.model_fields}
    reply_data["text"] = _readable(entry.reply.text)
    line = {"model": entry.model, "request": request_data, "reply": reply_data}
    return json.dumps(line, ensure_ascii=True) + "\n"


def _readable(text: str) -> str:
    """Return a text without unpaired surrogates, which JSON readers refuse."""
    return text.encode("utf-8", "replace").decode()


def _read(path: Path) -> tuple[str, list[Recording]]:
    try:
        with open_file(path) as file:
            text = file.read().decode("utf-8-sig")
        heading, *lines = _whole_lines(text) or [""]
        return _model(heading), [_entry(n, line) for n, line in enumerate(lines, 2) if line.strip()]
    except (OSError, ValueError) as exc:
        why = exc.strerror if isinstance(exc, OSError) else exc
        raise UsageError(f"{path} is not a cassette: {why}") from exc


def _whole_lines(text: str) -> list[str]:
    """Return the lines, without an incomplete last one of a recording that was killed."""
    lines = text.splitlines()
    if len(lines) > 1 and not text.endswith("\n"):
        try:
            json.loads(lines[-1])
        except (ValueError, RecursionError):
            lines.pop()
    return lines


def _model(heading: str) -> str:
    try:
        start = _Heading.model_validate_json(heading)
    except ValidationError as exc:
        raise ValueError("it does not begin like a cassette") from exc
    if start.cassette != FORMAT:
        raise ValueError(f"format {start.cassette}, this version reads {FORMAT}")
    return start.model


def _entry(number: int, line: str) -> Recording:
    try:
        _Exchange.model_validate_json(line)
    except ValidationError as exc:
        first = exc.errors()[0]
        place = "".join(f"{part}: " for part in first["loc"])
        raise ValueError(f"line {number} is not an exchange: {place}{first['msg']}") from exc
    data = json.loads(line)
    request_data, reply_data = data["request"], data["reply"]
    messages = tuple(Message(role, content) for role, content in request_data.pop("messages"))
    sampling = tuple((name, float(value)) for name, value in request_data.pop("sampling", ()))
    request = ChatRequest(**request_data, messages=messages, sampling=sampling)
    return Recording(data["model"], request, ChatReply(**reply_data))
