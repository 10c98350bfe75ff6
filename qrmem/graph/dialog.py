"""Conversations: turns as documents, what of them is recent, and what later turns correct."""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from qrmem.errors import UsageError
from qrmem.retrieval.fragments.gathering import CHAT_KEY, TURN_KEY
from qrmem.text.normalise import normalise
from qrmem.text.words import terms
from qrmem.types import Document, DocumentInfo, Turn

RECENT_TOKENS = 1_000
"""Tokens of a history that goes to the model as it is (FragRel, B.3)."""
RECENT_ROUNDS = 10
"""Rounds of it: what the user said, with the replies."""

_ROLE_KEYS = ("role", "type", "from")
_TEXT_KEYS = ("content", "text", "value")
_MAY_BE_EMPTY = frozenset({*_TEXT_KEYS, "tool_calls", "function_call"})
"""Keys of a message that may have no content: `null`, or a tool's call in its place."""
_ROLES = {
    "human": "user",
    "ai": "assistant",
    "AIMessageChunk": "assistant",
    "bot": "assistant",
    "gpt": "assistant",
}
_MARK = re.compile(
    r"\b(?:actually|correction|no longer|not any ?more|any ?more|instead|changed|moved|rescheduled"
    r"|postponed|cancel+ed|i meant|sorry|wrong|mistaken|rather than|from now on|as of)\b",
    re.IGNORECASE,
)
_VALUE = re.compile(r"\d[\d.,:]*|(?<=[\w,;] )[^\W\d_a-z]\w+")
_SHARED = 2
MARKED, _ALIKE = 0.3, 0.6
"""Share of the shorter turn's words that both must have, if the later one says so and if not."""
_LIST = 2


def as_document(turn: Turn) -> Document:
    """Return the document that keeps a turn; its title says who spoke, and when."""
    named = turn.speaker or turn.role
    metadata: dict[str, str | int] = {
        CHAT_KEY: turn.session,
        TURN_KEY: turn.number,
        "role": turn.role,
        "at": turn.at,
    }
    if turn.speaker:
        metadata["speaker"] = turn.speaker
    title = f"{named}, {turn.at}" if turn.at else named
    return Document(turn.text, title, turn.id, metadata)


def as_turn(info: DocumentInfo, text: str) -> Turn:
    """Return the turn that a document keeps."""
    given: Mapping[str, Any] = info.metadata
    return Turn(
        id=info.id,
        number=int(given[TURN_KEY]),
        role=str(given.get("role", "")),
        text=text,
        at=str(given.get("at", "")),
        session=str(given[CHAT_KEY]),
        speaker=str(given.get("speaker", "")),
    )


TURN = "turn-"
"""What the ids of turns begin with."""


def turn_id(number: int) -> str:
    """Return the id of a turn; ids sort as turns do."""
    return f"{TURN}{number:08d}"


def turn_number(id: str) -> int:
    """Return the number of the turn of an id; 0 for what is no turn's."""
    number = id.removeprefix(TURN)
    return int(number) if number.isdecimal() and id.startswith(TURN) else 0


def moment(at: datetime | str | None) -> str:
    """Return a time in ISO form; now, in UTC, where none is given.

    Raises:
        UsageError: a text that is no time.
    """
    if isinstance(at, str):
        try:
            at = datetime.fromisoformat(at)
        except ValueError:
            raise UsageError(f"{at!r} is no time: give a datetime, or ISO form") from None
    return (at or datetime.now(UTC)).isoformat(timespec="seconds")


class Message(NamedTuple):
    """What somebody said, before it is a turn; `at` is "" where the message has no time."""

    role: str
    text: str
    speaker: str = ""
    at: str = ""


def read_message(message: Any) -> Message:
    """Return what a message says; one with a role and no content, as of a tool call, says "".

    Args:
        message: of LangChain or LangGraph, `{"role", "content"}` with `name` and `at` if you like,
            `{"from", "value"}`, `(role, text)`, or one that was read already.

    Raises:
        UsageError: it is none of these, or its time is none.
    """
    role: Any
    name: Any
    at: Any
    if isinstance(message, Message):
        return message
    if isinstance(message, tuple | list) and len(message) == 2:
        role, content, name, at = message[0], message[1], "", None
    elif isinstance(message, Mapping):
        role, content = _first(message, _ROLE_KEYS), _first(message, _TEXT_KEYS)
        if content is None and not _MAY_BE_EMPTY.isdisjoint(message):
            content = ""
        name, at = _first(message, ("name", "speaker")), _first(message, ("at", "timestamp"))
    else:
        role, content = getattr(message, "type", None), getattr(message, "content", None)
        # A chat message of LangChain has the model's own role beside its type.
        role, name, at = getattr(message, "role", role), getattr(message, "name", None), None
    if not isinstance(role, str) or not isinstance(content, str | list | tuple):
        raise UsageError("a message is LangChain's, {'role', 'content'} or (role, text)")
    if not role.strip():
        raise UsageError("a turn needs a role")
    when = moment(at if isinstance(at, datetime) else str(at)) if at else ""
    return Message(_ROLES.get(role, role), _plain(content), str(name or ""), when)


def news(known: Sequence[Turn], given: Sequence[Message]) -> Sequence[Message]:
    """Return the messages that a session does not end with already.

    A log that has grown, or one that is given again, begins with what was the end when it was read.
    """
    for overlap in range(min(len(known), len(given)), 0, -1):
        pairs = zip(known[-overlap:], given[:overlap], strict=True)
        if all(_is_same(turn, message) for turn, message in pairs):
            return given[overlap:]
    return given


def _is_same(turn: Turn, message: Message) -> bool:
    said = (turn.role, normalise(turn.text)) == (message.role, normalise(message.text))
    return said and message.at in ("", turn.at)


def _first(message: Mapping[str, Any], keys: Sequence[str]) -> Any:
    return next((message[key] for key in keys if message.get(key) is not None), None)


def _plain(content: Any) -> str:
    """Return the text of a message's content; images and tool calls have none."""
    if isinstance(content, str):
        return content
    parts = [part.get("text") if isinstance(part, Mapping) else part for part in content]
    return "\n".join(part for part in parts if part and isinstance(part, str))


def recent(turns: Sequence[Turn], tokens: int, count: Callable[[str], int]) -> int:
    """Return how many of the last turns go to the model as they are."""
    total = rounds = found = 0
    for turn in reversed(turns):
        total += count(turn.text)
        rounds += turn.role == "user"
        if total > tokens or rounds > RECENT_ROUNDS:
            break
        found += 1
    return found


def fitting(
    found: Sequence[Turn],
    corrected: Mapping[str, Sequence[str]],
    by_id: Mapping[str, Turn],
    tokens: int,
    count: Callable[[str], int],
) -> list[Turn]:
    """Return the turns that fit, best first; what corrects a turn comes with it or it does not."""
    kept: dict[str, Turn] = {}
    for turn in found:
        group = [turn, *(by_id[id] for id in corrected.get(turn.id, ()))]
        new = {member.id: member for member in group if member.id not in kept}
        needed = sum(count(member.text) for member in new.values())
        if needed <= tokens:
            kept |= new
            tokens -= needed
    return list(kept.values())


def corrections(turns: Sequence[Turn], later: Sequence[Turn]) -> dict[str, tuple[str, ...]]:
    """Return, by id, which turns seem to be corrected by which later ones.

    A later turn corrects an earlier one about the same things: if it says so ("actually", "moved",
    "no longer"), or if it says nearly the same with another number or name; many of those are a
    list, and correct nothing. Only the user's word stands against the user's. It is a guess from
    the words (English ones): both turns are shown, with their times.
    """
    found = {}
    for turn in turns:
        after = [u for u in later if u.number > turn.number and u.role == turn.role]
        near = {u.id: kind for u in after if (kind := _corrects(u.text, turn.text))}
        is_list = sum(kind == "alike" for kind in near.values()) > _LIST
        ids = tuple(id for id, kind in near.items() if kind == "marked" or not is_list)
        if ids:
            found[turn.id] = ids
    return found


def _corrects(later: str, earlier: str) -> str:
    """Return `marked`, `alike`, or "" for a turn that corrects nothing of the other."""
    mine, theirs = terms(later), terms(earlier)
    shared = len(set(mine) & set(theirs))
    if shared < _SHARED or later.rstrip().endswith("?") or earlier.rstrip().endswith("?"):
        return ""
    share = shared / min(len(mine), len(theirs))
    if _MARK.search(later):
        return "marked" if share >= MARKED else ""
    new, old = set(_VALUE.findall(later)), set(_VALUE.findall(earlier))
    return "alike" if share >= _ALIKE and new - old and old - new else ""
