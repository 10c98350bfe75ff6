"""Turns as documents of a store: made, read back, and chosen by time and length."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from qrmem.errors import UsageError
from qrmem.graphstore.protocol import GraphStore
from qrmem.retrieval.standing import wish_spans, wishes
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
