"""Messages of chat logs: reading the usual forms of them, and which of a log are new."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from qrmem.errors import UsageError, clean_name
from qrmem.text.normalise import normalise
from qrmem.types import Turn

_A_TIME = "write it as 2026-05-03T09:00, or give a datetime"
_ROLE_KEYS = ("role", "type", "from")
_TEXT_KEYS = ("content", "text", "value")
_NAME_KEYS = ("name", "speaker")
TIME_KEYS = (
    "at",
    "timestamp",
    "created_at",
    "createdAt",
    "created",
    "create_time",
    "datetime",
    "sent_at",
    "ts",
    "date",
    "time",
)
SESSION_KEYS = (
    "session",
    "session_id",
    "sessionId",
    "conversation_id",
    "conversationId",
    "thread_id",
    "threadId",
    "chat_id",
)
_MAY_BE_EMPTY = frozenset({*_TEXT_KEYS, "tool_calls", "function_call"})
"""Keys of a message without content: `null`, or a tool call instead."""
_TAKEN = _MAY_BE_EMPTY.union(_ROLE_KEYS, _NAME_KEYS, TIME_KEYS, SESSION_KEYS, ("id",))
"""Keys that are read, or can be ignored."""
_EPOCH = re.compile(r"(\d{10})(?:\d{3})?(?:\.\d+)?")
"""A time in seconds or milliseconds since 1970."""
_ROLES = {
    "human": "user",
    "ai": "assistant",
    "AIMessageChunk": "assistant",
    "bot": "assistant",
    "gpt": "assistant",
}
_CHAT_ROLES = frozenset({"user", "assistant", "system", "tool", "human", "ai"})
_ROLE_WORDS, _ROLE_LENGTH, _SHOWN = 4, 64, 40
"""Maximum length of a role, and of a wrong role in a message, in characters."""


def moment(at: datetime | str | None) -> str:
    """Return a time in ISO form; without one the current time in UTC.

    Raises:
        UsageError: the text is not a time.
    """
    if isinstance(at, str):
        try:
            at = datetime.fromisoformat(at)
        except ValueError:
            raise UsageError(f"{at!r} is not a time: {_A_TIME}") from None
    if at is not None and not isinstance(at, datetime):
        raise UsageError(f"{at!r} is not a time: {_A_TIME}")
    return (at or datetime.now(UTC)).isoformat(timespec="seconds")


def are_messages(source: Any) -> bool:
    """Return whether a list has messages, not documents: each has a role, and none has an id."""
    if not isinstance(source, list | tuple) or not source:
        return False
    return all(
        (isinstance(one, Mapping) and "role" in one and "content" in one)
        or (hasattr(one, "content") and isinstance(getattr(one, "type", None), str))
        for one in source
    )


class LogMessage(NamedTuple):
    """A message before it becomes a turn.

    Attributes:
        at: its time, "" for none.
        session: its session, "" for none.
        left_out: keys that were not read.
        odd_time: what stood where its time should, if it is none.
    """

    role: str
    text: str
    speaker: str = ""
    at: str = ""
    session: str = ""
    left_out: tuple[str, ...] = ()
    odd_time: str = ""


def read_message(message: Any) -> LogMessage:
    """Parse a message; a role without content, as in a tool call, has the text "".

    Args:
        message: a message of LangChain or LangGraph, `{"role", "content"}` with optional name, time
            and session, `{"from", "value"}`, `(role, text)`, or a `LogMessage`.

    Raises:
        UsageError: it is none of these.
    """
    role: Any
    name: Any
    at, session, odd_time = "", "", ""
    left_out: tuple[str, ...] = ()
    if isinstance(message, LogMessage):
        return message
    if isinstance(message, tuple | list) and len(message) == 2:
        require_role_first(*message)
        role, content, name = message[0], message[1], ""
    elif isinstance(message, Mapping):
        role, content = _first(message, _ROLE_KEYS), _first(message, _TEXT_KEYS)
        if content is None and not _MAY_BE_EMPTY.isdisjoint(message):
            content = ""
        name = _first(message, _NAME_KEYS)
        at, odd_time = _time(message)
        session = _session(message)
        left_out = tuple(str(key) for key, value in message.items() if _is_lost(key, value))
    else:
        role, content = getattr(message, "type", None), getattr(message, "content", None)
        # A chat message of LangChain has the model's own role besides its type.
        role, name = getattr(message, "role", role), getattr(message, "name", None)
    if isinstance(role, str) and isinstance(content, bool | int | float | bytes):
        raise UsageError(f"what was said must be text, not {type(content).__name__}")
    if not isinstance(role, str) or not isinstance(content, str | list | tuple):
        found = ""
        if isinstance(message, Mapping):
            keys = ", ".join(repr(str(key)[:40]) for key in list(message)[:8]) or "no keys"
            found = f", not one with {keys}"
        raise UsageError(f"a message is LangChain's, {{'role', 'content'}} or (role, text){found}")
    if not role.strip():
        raise UsageError("a turn needs a role")
    return LogMessage(
        *(_ROLES.get(role, role), _plain(content), str(name or ""), at, session, left_out),
        odd_time=odd_time,
    )


def _time(message: Mapping[str, Any]) -> tuple[str, str]:
    """Return the time of a message, and what stood in its place if it is none; "" without one."""
    at = next((message[key] for key in TIME_KEYS if message.get(key)), None)
    day, clock = message.get("date"), message.get("time")
    if at is day and isinstance(day, str) and isinstance(clock, str) and "T" not in day:
        at = f"{day}T{clock}"
    if not at:
        return "", ""
    if not isinstance(at, datetime):
        epoch = _EPOCH.fullmatch(str(at))
        at = datetime.fromtimestamp(int(epoch[1]), UTC) if epoch else str(at)
    try:
        return moment(at), ""
    except UsageError:
        return "", str(at)[:_SHOWN]


def _session(message: Mapping[str, Any]) -> str:
    session = _first(message, SESSION_KEYS)
    if isinstance(session, bool) or not isinstance(session, str | int | None):
        raise UsageError(f"a session is a name, not {type(session).__name__}")
    return clean_name("" if session is None else str(session), "session")


def _is_lost(key: object, value: object) -> bool:
    return key not in _TAKEN and not _is_empty(value)


def _is_empty(value: object) -> bool:
    return value is None or (isinstance(value, str | list | tuple | dict) and not value)


def require_role_first(role: object, text: object) -> None:
    """Refuse a role and a text that were apparently swapped.

    Raises:
        UsageError: only the text is a role, or the role is a sentence.
    """
    text_folded = text.strip().lower() if isinstance(text, str) else ""
    role_given = role.strip() if isinstance(role, str) else ""
    is_swapped = text_folded in _CHAT_ROLES and role_given.lower() not in _CHAT_ROLES
    if is_swapped or len(role_given.split()) > _ROLE_WORDS or len(role_given) > _ROLE_LENGTH:
        short = role_given if len(role_given) <= _SHOWN else f"{role_given[:_SHOWN]}…"
        raise UsageError(
            f"the role comes first, then the text: {short!r} stands where a role should, such as"
            " user or assistant"
        )


def new_messages(known: Sequence[Turn], given: Sequence[LogMessage]) -> Sequence[LogMessage]:
    """Return the new messages of a log whose beginning a session already has.

    A log that has grown, or is given again, begins with the end of the session.
    """
    for overlap in range(min(len(known), len(given)), 0, -1):
        pairs = zip(known[-overlap:], given[:overlap], strict=True)
        if all(_is_same(turn, message) for turn, message in pairs):
            return given[overlap:]
    return given


def _is_same(turn: Turn, message: LogMessage) -> bool:
    is_same_text = (turn.role, normalise(turn.text)) == (message.role, normalise(message.text))
    return is_same_text and message.at in ("", turn.at)


def _first(message: Mapping[str, Any], keys: Sequence[str]) -> Any:
    return next((message[key] for key in keys if not _is_empty(message.get(key))), None)


def _plain(content: Any) -> str:
    """Return the text of a message's content; images and tool calls have none."""
    if isinstance(content, str):
        return content
    parts = [part.get("text") if isinstance(part, Mapping) else part for part in content]
    return "\n".join(part for part in parts if part and isinstance(part, str))
