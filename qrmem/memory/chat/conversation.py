"""A memory of conversations: stores turns one by one, and finds turns for a prompt."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from itertools import takewhile
from typing import Any

from qrmem.errors import StoreUnavailable, UsageError, clean_name
from qrmem.graphstore import GraphStore
from qrmem.memory.add import Adder
from qrmem.memory.add_state import IngestState
from qrmem.memory.chat import message_log, stored_turns
from qrmem.memory.session import Session
from qrmem.retrieval import Searcher
from qrmem.retrieval.fragments import FragmentScorer
from qrmem.text.dates import is_said_by, said_at
from qrmem.text.normalise import normalise
from qrmem.text.numbers import counted
from qrmem.types import AddReport, DocumentInfo, Event, Listener, Scalar, Turn, Usage
from qrmem.types.turns import CHAT_KEY, TURN, USER_KEY, as_message, numbered, turn_id

_BATCH = 64
"""Number of turns that are read at once from the end of a conversation."""
_SHOWN_KEYS = 8


async def add_messages(
    memory: Session,
    messages: Iterable[Any],
    listener: Listener,
    *,
    at: datetime | str | None = None,
    session: str,
    only_new: bool = False,
    user: str,
    extract: bool,
    standing: bool = False,
) -> tuple[list[str], AddReport | None]:
    """Store several turns; return their ids, and a report if anything was done.

    See `Memory.add_messages`.
    """
    if extract:
        # Loads the prompts, which recall does not need.
        from qrmem.memory.chat.facts import drawing

        await drawing(memory, listener).require_model()
    if isinstance(messages, str):
        raise UsageError("messages are a list, not one text; add_turn takes a text")
    if not isinstance(messages, Iterable):
        raise UsageError(f"messages are a list, not {type(messages).__name__}")
    memory.require_writable()
    await memory.record_single_types()
    session, user = clean_name(session, "session"), clean_name(user, "user")
    when = message_log.moment(at)
    read = [message_log.read_message(message) for message in messages]
    warnings = [*_left_out(read), *_without_times(read)]
    # A text of only control characters cannot be stored.
    spoken = [message for message in read if normalise(message.text).strip()]
    if session:
        spoken = [message._replace(session=session) for message in spoken]
    if len(read) == 1 and not spoken:
        raise UsageError("the turn is empty")
    if only_new:
        spoken = await _news(memory, spoken, user)
    if not spoken and not only_new:
        return [], None
    if at is not None:
        spoken = [message._replace(at=message.at or when) for message in spoken]
    turns_kept, report = await _keep(memory, spoken, when, listener, user, standing=standing)
    for message in warnings:
        listener(Event("warning", {"what": "messages", "message": message}))
    if extract:
        drawing(memory, listener).take(turns_kept)
    if report:
        report = replace(report, warnings=(*report.warnings, *warnings))
    return [turn.id for turn in turns_kept], report


def _left_out(read: Sequence[message_log.LogMessage]) -> list[str]:
    """Report the keys of messages that are not stored."""
    keys = _counted([key for message in read for key in message.left_out])
    return [f"keys of messages that were not kept: {keys}"] if keys else []


def _without_times(read: Sequence[message_log.LogMessage]) -> list[str]:
    """Report what is no time."""
    times = _counted([repr(message.odd_time) for message in read if message.odd_time])
    return [f"times of messages that cannot be read, so they have none: {times}"] if times else []


def _counted(words: Sequence[str]) -> str:
    """Return the most frequent words, each with the number of its messages."""
    counts = Counter(words)
    most = counts.most_common(_SHOWN_KEYS)
    more = [f"{len(counts) - len(most)} more"] if len(counts) > len(most) else []
    return ", ".join([*(f"{word} ({counted(n, 'messages')})" for word, n in most), *more])


async def _news(
    memory: Session, said: Sequence[message_log.LogMessage], user: str
) -> list[message_log.LogMessage]:
    """Return the messages with which the session does not already end, in order."""
    known = Counter[str]()
    for session in dict.fromkeys(message.session for message in said):
        own = [message for message in said if message.session == session]
        last = await turns(memory, session, user or None, len(own))
        end = [turn for turn in last if turn.user == user]
        known[session] = len(own) - len(message_log.new_messages(end, own))
    new = []
    for message in said:
        if known[message.session] > 0:
            known[message.session] -= 1
        else:
            new.append(message)
    return new


async def _keep(
    memory: Session,
    said: Sequence[message_log.LogMessage],
    when: str,
    listener: Listener,
    user: str,
    *,
    standing: bool,
) -> tuple[list[Turn], AddReport | None]:
    """Store turns, and complete earlier turns after an interruption."""
    turns_kept: list[Turn] = []
    async with memory.turns:
        models = await memory.models(create=True)
        while True:
            last = await last_of(memory)
            info = await memory.known()
            most = max(last, info.turns if info else 0)  # an id is never used again
            numbers = await stored_turns.free_numbers(memory.store, memory.ns, most, len(said))
            turns = [
                Turn(
                    *(turn_id(n), n, m.role, m.text, m.at or ("" if m.odd_time else when)),
                    *(m.session, m.speaker, user),
                    standing=standing,
                )
                for n, m in zip(numbers, said, strict=True)
            ]
            unfinished = await _unfinished_turns(
                memory, last, is_embedded=models.embedder is not None
            )
            if not turns and not unfinished:
                return [], None
            new = {turn.id for turn in turns}
            adder = Adder(memory.store, memory.ns, models, listener, new=new, is_chat=True)
            try:
                with memory.adding():
                    # A long turn is read off the event loop.
                    every = [*unfinished, *turns]
                    documents = await asyncio.to_thread(list, map(stored_turns.as_document, every))
                    report = await adder.add(documents)
            except StoreUnavailable as exc:
                report = await _what_is_kept(memory, turns, exc)
            turns_kept += [turn for turn in turns if turn.id in report.added]
            refused = {id: why for id, index, why in report.problems if index < 0 and id in new}
            answered_for = {*report.added, *refused}
            # If another process took a number, this turn and those after it get new ones.
            said = [m for turn, m in zip(turns, said, strict=True) if turn.id not in answered_for]
            if not said or refused or report.stopped:
                break
    if refused:
        raise UsageError(next(iter(refused.values())))
    if report.stopped:
        message = (
            f"turns are kept, but not complete: {report.stopped}; the next turn completes them"
        )
        listener(Event("warning", {"what": "turns", "message": message}))
    return turns_kept, replace(report, added=tuple(turn.id for turn in turns_kept))


async def _what_is_kept(
    memory: Session, turns: Sequence[Turn], failure: StoreUnavailable
) -> AddReport:
    """Return the report of a failed run whose turns are all kept: kept again, they would be twice.

    Raises:
        StoreUnavailable: a turn is not kept; the message names those that are.
    """
    ids = [turn.id for turn in turns]
    infos = await stored_turns.turn_infos(memory.store, memory.ns, ids)
    texts = {turn.id: turn.text for turn in await read(memory, infos)}
    # Another process may have taken a number.
    kept = [turn.id for turn in turns if texts.get(turn.id) == normalise(turn.text)]
    if not kept:
        raise failure
    if len(kept) < len(ids):
        message = f"{', '.join(kept)}: kept, the {len(ids) - len(kept)} after are not: {failure}"
        raise StoreUnavailable(message) from failure
    return AddReport(tuple(kept), (), (), 0, 0, {}, (), Usage(), 0.0, stopped=str(failure))


async def _unfinished_turns(memory: Session, last: int, *, is_embedded: bool) -> list[Turn]:
    """Return the last turns that are stored, but not read, merged and embedded."""
    state = IngestState(memory.store, memory.ns, is_embedded=is_embedded)
    unfinished: list[DocumentInfo] = []
    end, size = last, 1
    while end > 0:
        ids = [turn_id(number) for number in range(end, max(0, end - size), -1)]
        await state.look(ids)
        infos = [info for id in ids if (info := state.info(id)) and stored_turns.number_of(info)]
        waiting = list(takewhile(lambda info: not state.is_done(info.id), infos))
        unfinished += waiting
        if len(waiting) < len(infos) or not infos:
            break
        end, size = end - size, _BATCH
    return await read(memory, unfinished[::-1])


async def turns(
    memory: Session, session: str | None, user: str | None = None, last: int = 0
) -> list[Turn]:
    """Return the turns of a session and a user, or of all, in order of arrival.

    Args:
        last: maximum number of turns, from the end; 0: all.
    """
    filters = ((CHAT_KEY, session, "session"), (USER_KEY, user, "user"))
    where = {key: clean_name(name, what) for key, name, what in filters if name is not None}
    await memory.known()
    return await read(memory, await stored_turns.last_turns(memory.store, memory.ns, last, where))


async def standing(memory: Session, user: str | None) -> list[Turn]:
    """Return the turns with standing wishes; see `Memory.standing`."""
    where: dict[str, Scalar] = {stored_turns.STANDING_KEY: True}
    if user is not None:
        where[USER_KEY] = clean_name(user, "user")
    await memory.known()
    ids = await memory.store.document_ids(memory.ns, where=where, prefix=TURN)
    standing_turns = await read(memory, await stored_turns.turn_infos(memory.store, memory.ns, ids))
    return [replace(turn, text=stored_turns.wish_of(turn)) for turn in standing_turns]


@dataclass(frozen=True, slots=True)
class Chat:
    """A namespace with turns, and the means to find them.

    Attributes:
        count: tokens of a text.
        user: only this user's turns; `None`: all users'.
        as_of: only turns said by then; "": all.
        among: the only documents of turns and facts to use, each with the number of its turn;
            `None`: all.
        is_printed: whether a budget counts all of `Recalled.text`; else only the turns' words.
    """

    store: GraphStore
    ns: str
    searcher: Searcher
    scorer: FragmentScorer
    count: Callable[[str], int]
    user: str | None = None
    is_printed: bool = False
    as_of: str = ""
    among: Mapping[str, int] | None = None

    def may_say(self, number: int) -> bool:
        """Return whether a turn may be used."""
        return self.among is None or number in self.among.values()

    def said(self, turn: Turn) -> int:
        """Return the number of tokens of a turn in a prompt."""
        return self.count(as_message(turn)["content"] if self.is_printed else turn.text)


# --- stored turns ---------------------------------------------------------------------------------


async def last_of(memory: "Session | Chat") -> int:
    """Return the number of the last turn; 0 if there is none."""
    last = await stored_turns.last_turns(memory.store, memory.ns, 1)
    return stored_turns.number_of(last[0]) if last else 0


async def ids_of(memory: "Session | Chat", user: str) -> frozenset[str]:
    """Return the ids of all documents of a user: turns, and others with that metadata."""
    return frozenset(await memory.store.document_ids(memory.ns, where={USER_KEY: user}))


async def infos_of(
    memory: "Session | Chat", numbers: Iterable[int], user: str | None = None
) -> list[DocumentInfo]:
    """Return the documents of turns by their numbers, in order; deleted ones are left out.

    Args:
        user: only this user's; `None`: all users'.
    """
    ids = [turn_id(number) for number in numbers]
    turns = await stored_turns.turn_infos(memory.store, memory.ns, ids)
    if user is not None:
        turns = [info for info in turns if info.metadata.get(USER_KEY) == user]
    at = memory.as_of if isinstance(memory, Chat) else ""
    return [info for info in turns if is_said_by(said_at(info.metadata), at)] if at else turns


async def read(memory: "Session | Chat", infos: Sequence[DocumentInfo]) -> list[Turn]:
    """Return the turns in some documents."""
    return await stored_turns.read_turns(memory.store, memory.ns, infos)


def is_of(info: DocumentInfo, session: str | None) -> bool:
    """Return whether a document is a turn of a session."""
    return session is None or info.metadata.get(CHAT_KEY) == session


def of_user(chat: Chat) -> dict[str, Scalar]:
    """Return the metadata that selects the user's turns."""
    return {} if chat.user is None else {USER_KEY: chat.user}


async def only_of(chat: Chat) -> frozenset[str] | None:
    """Return the ids of the only documents to search; `None`: all."""
    only = None if chat.user is None else await ids_of(chat, chat.user)
    if chat.among is not None:
        only = frozenset(chat.among if only is None else only.intersection(chat.among))
    if not chat.as_of:
        return only
    infos = await chat.store.documents(chat.ns, only)
    return frozenset(i.id for i in infos if is_said_by(said_at(i.metadata), chat.as_of))


async def said_in(chat: Chat, times: Sequence[tuple[date, date]]) -> frozenset[str]:
    """Return the ids of all turns in some periods."""
    ids: set[str] = set()
    for first, last in times:
        # A tilde sorts after everything that may follow a day.
        days = ("at", str(first), f"{last}~")
        ids |= {
            *await chat.store.document_ids(chat.ns, where=of_user(chat), between=days, prefix=TURN)
        }
    return frozenset(ids)


async def marked(chat: Chat, key: str, last: int | None = None) -> set[int]:
    """Return the numbers of the last turns whose metadata have a mark; limit `None`: of all."""
    where = {**of_user(chat), key: True}
    marked_ids = await chat.store.document_ids(chat.ns, where=where, prefix=TURN, last=last)
    return set(map(numbered, marked_ids))
