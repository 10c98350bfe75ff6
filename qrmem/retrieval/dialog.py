"""Conversations: turns as documents, and recent turns."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from qrmem.errors import UsageError, clean_name
from qrmem.graphstore.protocol import GraphStore
from qrmem.retrieval.standing import wish_spans, wishes
from qrmem.text.normalise import normalise
from qrmem.types import Document, DocumentInfo, Turn, Where
from qrmem.types.shown import one_line
from qrmem.types.turns import (
    CHAT_KEY,
    FACT,
    MOST_FACTS,
    MOST_TURNS,
    ROLE_KEY,
    TURN,
    TURN_KEY,
    USER_KEY,
    fact_id,
    turn_id,
    turn_number,
)

STANDING_KEY = "standing"
"""Metadata key of a turn that may state a lasting wish of its user."""
REMEMBERED_KEY = "remembered"
"""Metadata key of a turn that was kept as a lasting wish by hand."""
RECENT_TOKENS = 1_000
"""Maximum tokens of the recent history in the prompt (FragRel, B.3)."""
RECENT_ROUNDS = 10
"""Maximum number of its rounds: a user's turn with its replies."""

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
_FURTHER = 64
"""Growth of the number of ids to read while the last ones are not of turns."""


def as_document(turn: Turn) -> Document:
    """Return the document of a turn; its title has speaker and time."""
    speaker_name = turn.speaker or turn.role
    metadata: dict[str, str | int] = {
        CHAT_KEY: turn.session,
        TURN_KEY: turn.number,
        ROLE_KEY: turn.role,
        "at": turn.at,
    }
    if turn.speaker:
        metadata["speaker"] = turn.speaker
    if turn.user:
        metadata[USER_KEY] = turn.user
    if turn.standing:
        metadata[REMEMBERED_KEY] = True
    if turn.standing or (turn.role == "user" and wish_spans(turn.text)):
        metadata[STANDING_KEY] = True
    title = f"{speaker_name}, {turn.at}" if turn.at else speaker_name
    return Document(turn.text, title, turn.id, metadata)


def as_turn(id: str, given: Mapping[str, Any], text: str) -> Turn:
    """Return the turn of a document; in an archive speaker and time may be any text.

    Args:
        id: id of the document.
        given: metadata of the document.
        text: text of the document.
    """
    role, user = _who(given)
    return Turn(
        id=id,
        number=turn_number(id, given),
        role=role,
        text=text,
        at=one_line(str(given.get("at", ""))),
        session=str(given[CHAT_KEY]),
        speaker=one_line(str(given.get("speaker", ""))),
        user=user,
        standing=is_kept_as_wish(given),
    )


def is_kept_as_wish(given: Mapping[str, Any]) -> bool:
    """Return whether a turn was kept as a lasting wish by hand, by its document's metadata."""
    return given.get(REMEMBERED_KEY) is True


def wish_of(turn: Turn) -> str:
    """Return what a turn with a lasting wish says of it: all of it, if it was kept as one."""
    return turn.text if turn.standing else wishes(turn.text)


def _who(given: Mapping[str, Any]) -> tuple[str, str]:
    """Return the role and the user of a turn by its document's metadata."""
    return one_line(str(given[ROLE_KEY])), str(given.get(USER_KEY, ""))


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
    """

    role: str
    text: str
    speaker: str = ""
    at: str = ""
    session: str = ""
    left_out: tuple[str, ...] = ()


def read_message(message: Any) -> LogMessage:
    """Parse a message; a role without content, as in a tool call, has the text "".

    Args:
        message: a message of LangChain or LangGraph, `{"role", "content"}` with optional name, time
            and session, `{"from", "value"}`, `(role, text)`, or a `LogMessage`.

    Raises:
        UsageError: it is none of these, or its time is wrong.
    """
    role: Any
    name: Any
    at, session = "", ""
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
        name, at = _first(message, _NAME_KEYS), _time(message)
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
        _ROLES.get(role, role), _plain(content), str(name or ""), at, session, left_out
    )


def _time(message: Mapping[str, Any]) -> str:
    """Return the time of a message; "" if it has none."""
    at = next((message[key] for key in TIME_KEYS if message.get(key)), None)
    day, clock = message.get("date"), message.get("time")
    if at is day and isinstance(day, str) and isinstance(clock, str) and "T" not in day:
        at = f"{day}T{clock}"
    if not at or isinstance(at, datetime):
        return moment(at) if at else ""
    if epoch := _EPOCH.fullmatch(str(at)):
        return moment(datetime.fromtimestamp(int(epoch[1]), UTC))
    return moment(str(at))


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


def news(known: Sequence[Turn], given: Sequence[LogMessage]) -> Sequence[LogMessage]:
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


def recent(turns: Sequence[Turn], tokens: int, size: Callable[[Turn], int]) -> int:
    """Return how many of the last turns belong to the recent history."""
    total = rounds = count_found = 0
    for turn in reversed(turns):
        total += size(turn)
        rounds += turn.role == "user"
        if total > tokens or rounds > RECENT_ROUNDS:
            break
        count_found += 1
    return count_found


def in_order_of_time(turns: Iterable[Turn]) -> list[Turn]:
    """Sort turns by time, then by number.

    A turn without a time has the time of the previous turn.
    """
    times: dict[str, datetime] = {}
    now = datetime.min.replace(tzinfo=UTC)
    ordered = sorted(turns, key=lambda turn: (turn.number, turn.id))
    for turn in ordered:
        times[turn.id] = now = _instant(turn.at) or now
    return sorted(ordered, key=lambda turn: times[turn.id])


def _instant(at: str) -> datetime | None:
    """Parse a time in ISO form; without a zone it is in UTC."""
    try:
        when = datetime.fromisoformat(at)
    except ValueError:
        return None
    return when if when.tzinfo else when.replace(tzinfo=UTC)


def fitting(found: Sequence[Turn], tokens: int, size: Callable[[Turn], int]) -> list[Turn]:
    """Return the turns that fit, best first."""
    turns_kept = []
    for turn in found:
        needed = size(turn)
        if needed <= tokens:
            turns_kept.append(turn)
            tokens -= needed
    return turns_kept


async def read_turns(store: GraphStore, ns: str, infos: Sequence[DocumentInfo]) -> list[Turn]:
    """Return the turns of some documents, with their texts, in the order of the documents."""
    ids = [info.id for info in infos]
    texts: dict[str, list[str]] = {}
    for segment in await store.segments(ns, documents=ids) if ids else ():
        texts.setdefault(segment.document_id, []).append(segment.text)
    infos_kept = (info for info in infos if info.id in texts)
    return [as_turn(info.id, info.metadata, "".join(texts[info.id])) for info in infos_kept]


async def facts_of(store: GraphStore, ns: str, numbers: Iterable[int]) -> list[DocumentInfo]:
    """Return the facts of some turns, by turn number, in order."""
    if not numbers or not await store.document_ids(ns, prefix=FACT, last=1):
        return []
    ids = [fact_id(number, n) for number in numbers for n in range(1, MOST_FACTS + 1)]
    return await turn_infos(store, ns, ids)


async def turn_infos(store: GraphStore, ns: str, ids: Iterable[str]) -> list[DocumentInfo]:
    """Return the turns and the facts of turns among some documents, by id."""
    likely = sorted({id for id in ids if id.startswith((TURN, FACT))})
    infos = await store.documents(ns, likely) if likely else ()
    return [info for info in infos if number_of(info)]


async def last_turns(
    store: GraphStore, ns: str, last: int, where: Where | None = None
) -> list[DocumentInfo]:
    """Return the last turns, in order; 0 returns all.

    Other documents may have ids with the same prefix.

    Args:
        store: the store.
        ns: the namespace.
        last: number of turns.
        where: condition on the metadata.
    """
    most = last
    while True:
        ids = await store.document_ids(ns, where=where, prefix=TURN, last=most or None)
        infos = await turn_infos(store, ns, ids)
        if not last or len(infos) >= last or len(ids) < most:
            return infos[-last:]
        most *= _FURTHER


async def free_numbers(store: GraphStore, ns: str, last: int, count: int) -> list[int]:
    """Return numbers for new turns after the last one, without those whose ids are taken.

    Raises:
        UsageError: there are not enough numbers.
    """
    numbers_free: list[int] = []
    start, size = last + 1, count
    while len(numbers_free) < count:
        numbers = range(start, min(start + size, MOST_TURNS + 1))
        if not numbers:
            raise UsageError(
                f"namespace {ns!r} has reached the highest turn number, {MOST_TURNS:,}: keep"
                " further turns in another namespace"
            )
        ids_taken = {info.id for info in await store.documents(ns, [*map(turn_id, numbers)])}
        numbers_free += [n for n in numbers if turn_id(n) not in ids_taken]
        start, size = start + size, size * 2
    return numbers_free[:count]


def number_of(info: DocumentInfo) -> int:
    """Return the number of a document's turn, or of its fact's turn; 0 for any other document."""
    return turn_number(info.id, info.metadata)
