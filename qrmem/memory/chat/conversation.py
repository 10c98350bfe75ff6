"""A memory of conversations: turns go in one by one, and what belongs to a prompt comes back."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from itertools import takewhile
from typing import Any

from qrmem.errors import UsageError, clean_name, require_ids
from qrmem.graph import dialog
from qrmem.graphstore import GraphStore
from qrmem.llm.parallel import in_batches
from qrmem.memory.add import Adder
from qrmem.memory.add_state import IngestState
from qrmem.memory.session import Session
from qrmem.retrieval import Searcher
from qrmem.retrieval.fragments import CHAT, FragmentScorer, FragmentSettings
from qrmem.text.normalise import normalise
from qrmem.text.times import periods
from qrmem.types import AddReport, DocumentInfo, Event, Listener, Recalled, Scalar, Turn
from qrmem.types.options import RecallOptions
from qrmem.types.turns import CHAT_KEY, TURN, USER_KEY, as_message, numbered, related_lines, turn_id

_BATCH = 64
"""Turns of the conversation's end that are looked at together."""
_FAR = 512
"""Turns back from the end that are looked through for the last ones."""
_CANDIDATES = 300
"""Segments that are nearest by their words, and as many by their vectors."""
_WIDENED = 150
"""The best of them, whose neighbours are looked at, too."""
_NEIGHBOURS = (0.25, 0.1)
"""What turns one and two places away count for; a turn's own score is at most 1 for its words and
1 for its vector."""
_SPEAKER, _TIME, _SESSION = 0.4, 1.0, 0.2
"""What is added where the prompt names who spoke, and when, and of the session's best turn."""
_RECENT_SHARE = 4
"""The last turns take at most one part of so many of the budget."""
_CHECKED = 4
"""Best turns that are looked up for corrections."""


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
) -> tuple[list[str], AddReport | None]:
    """Keep several turns; return their ids and what was done, if anything was.

    See `Memory.add_messages`.
    """
    if extract:
        from qrmem.memory.chat.facts import (
            drawing,  # with the prompts, which recalling does without
        )

        await drawing(memory, listener).require_model()
    if isinstance(messages, str):
        raise UsageError("messages are a list, not one text; add_turn takes a text")
    memory.require_writable()
    session, user = clean_name(session, "session"), clean_name(user, "user")
    when = dialog.moment(at)
    read = [dialog.read_message(message) for message in messages]
    # What is nothing but control characters could not be kept.
    said = [message for message in read if normalise(message.text).strip()]
    if len(read) == 1 and not said:
        raise UsageError("the turn is empty")
    if only_new:
        said = list(dialog.news(await turns(memory, session, user or None, len(said)), said))
    if not said and not only_new:
        return [], None
    kept, report = await _keep(memory, said, when, session, listener, user)
    if extract:
        drawing(memory, listener).take(kept)
    return [turn.id for turn in kept], report


async def _keep(
    memory: Session,
    said: Sequence[dialog.Message],
    when: str,
    session: str,
    listener: Listener,
    user: str,
) -> tuple[list[Turn], AddReport | None]:
    """Keep turns, and finish those before them whose keeping was interrupted."""
    kept: list[Turn] = []
    async with memory.turns:
        await memory.known()
        models = await memory.models(create=True)
        while True:
            last = await _last(memory)
            numbers = await dialog.free_numbers(memory.store, memory.ns, last, len(said))
            turns = [
                Turn(turn_id(n), n, role, text, at or when, session, speaker, user)
                for n, (role, text, speaker, at) in zip(numbers, said, strict=True)
            ]
            begun = await _begun(memory, last, is_embedded=models.embedder is not None)
            if not turns and not begun:
                return [], None
            new = {turn.id for turn in turns}
            adder = Adder(memory.store, memory.ns, models, listener, new=new, is_chat=True)
            with memory.adding():
                report = await adder.add([dialog.as_document(turn) for turn in [*begun, *turns]])
            kept += [turn for turn in turns if turn.id in report.added]
            refused = {id: why for id, index, why in report.problems if index < 0 and id in new}
            done = {*report.added, *refused}
            # Where another process took a number, this turn and those after it get new ones.
            said = [m for turn, m in zip(turns, said, strict=True) if turn.id not in done]
            if not said or refused or report.stopped:
                break
    if refused:
        raise UsageError(next(iter(refused.values())))
    if report.stopped:
        message = f"turns are kept, but not embedded: {report.stopped}; the next turn embeds them"
        listener(Event("warning", {"what": "turns", "message": message}))
    return kept, replace(report, added=tuple(turn.id for turn in kept))


async def _begun(memory: Session, last: int, *, is_embedded: bool) -> list[Turn]:
    """Return the turns from the last one back that are kept, but not read, merged and embedded."""
    state = IngestState(memory.store, memory.ns, is_embedded=is_embedded)
    found: list[DocumentInfo] = []
    end, size = last, 1
    while end > 0:
        ids = [turn_id(number) for number in range(end, max(0, end - size), -1)]
        await state.look(ids)
        infos = [info for id in ids if (info := state.info(id)) and dialog.number_of(info)]
        left = list(takewhile(lambda info: not state.is_done(info.id), infos))
        found += left
        if len(left) < len(infos) or not infos:
            break
        end, size = end - size, _BATCH
    return await _read(memory, found[::-1])


async def turns(
    memory: Session, session: str | None, user: str | None = None, last: int = 0
) -> list[Turn]:
    """Return the turns of a session and a user, or of all, in the order in which they came.

    Args:
        last: how many at most, from the end; 0: all.
    """
    given = ((CHAT_KEY, session, "session"), (USER_KEY, user, "user"))
    where = {key: clean_name(name, what) for key, name, what in given if name is not None}
    await memory.known()
    return await _read(memory, await dialog.last_turns(memory.store, memory.ns, last, where))


async def recall(memory: Session, options: RecallOptions) -> Recalled:
    """Return what a model is to know before it answers a prompt; see `Memory.recall`."""
    if not await memory.known():
        return Recalled((), (), {}, 0)
    chat = Chat(
        memory.store,
        memory.ns,
        await memory.searcher(),
        await memory.fragment_scorer(),
        (await memory.models()).counter.count,
        options.user,
        is_printed=True,
    )
    return await recalled(chat, options)


@dataclass(frozen=True, slots=True)
class Chat:
    """A namespace with turns, and what finds them.

    Attributes:
        count: tokens of a text.
        user: whose turns are looked at; `None`: all users'.
        is_printed: whether a budget counts what `Recalled.text` prints; else what turns say.
    """

    store: GraphStore
    ns: str
    searcher: Searcher
    scorer: FragmentScorer
    count: Callable[[str], int]
    user: str | None = None
    is_printed: bool = False


async def recalled(chat: Chat, options: RecallOptions) -> Recalled:
    """Return what a model is to know of a conversation; see `Memory.recall`."""
    tokens, given = options.tokens, options.fragments
    last = await _last(chat)
    if not last:
        return Recalled((), (), {}, 0)
    is_paper = options.how == "fragrel" or given is not None
    share = tokens if is_paper else tokens // _RECENT_SHARE
    count = chat.count

    def said(turn: Turn) -> int:
        return count(as_message(turn)["content"] if chat.is_printed else turn.text)

    shown, latest = await _recent(
        chat, last, options.session, min(share, dialog.RECENT_TOKENS), said
    )
    used = sum(map(said, shown))
    left = tokens - used
    known = {turn.id for turn in shown}
    if is_paper:
        # The query is the last turn of the dialog and the prompt.
        query = f"{latest}\n{options.prompt}" if latest else options.prompt
        found = await _by_fragments(chat, query, last, known, given or CHAT)
    else:
        found = await _best(chat, options.prompt, last, known, left)
    checked, by_id = await _corrected(chat.searcher, found[:_CHECKED])
    facts = await _facts(chat, found)

    def size(turn: Turn) -> int:
        own = facts.get(turn.id, ())
        if not chat.is_printed:
            return sum(map(count, (turn.text, *own)))
        if turn.id in known:  # it is a message, and no line
            return 0
        at = [by_id[id].at for id in checked.get(turn.id, ())]
        return count("\n".join(related_lines(turn, _times(turn), own, at))) + 1

    room = left
    while True:
        kept = {turn.id: turn for turn in dialog.fitting(found, checked, by_id, room, size)}
        related = sorted((t for t in kept.values() if t.id not in known), key=lambda t: t.number)
        corrections = {
            id: ids
            for id in kept
            if (ids := tuple(one for one in checked.get(id, ()) if one in kept or one in known))
        }
        made = Recalled(
            recent=tuple(shown),
            related=tuple(related),
            corrections=corrections,
            tokens=used,
            times={turn.id: times for turn in related if (times := _times(turn))},
            facts={turn.id: tuple(facts[turn.id]) for turn in related if turn.id in facts},
        )
        needed = count(made.text) if chat.is_printed else sum(map(size, kept.values()))
        if needed <= left:
            return replace(made, tokens=used + needed)
        room -= needed - left  # lines may take more together than one by one


async def corrections(memory: Session, ids: Iterable[str]) -> dict[str, list[Turn]]:
    """Return which turns later turns seem to correct, and by which; see `Memory.corrections`."""
    store = memory.store
    require_ids(ids)
    asked = await _read(memory, await dialog.turn_infos(store, memory.ns, ids))
    found, by_id = await _corrected(await memory.searcher(), asked) if asked else ({}, {})
    return {id: [by_id[later] for later in ids] for id, ids in found.items()}


# --- what belongs to a prompt -------------------------------------------------------------------


async def _best(chat: Chat, prompt: str, last: int, known: set[str], tokens: int) -> list[Turn]:
    """Return turns for a prompt, best first, somewhat more than fit.

    A turn counts by its words and its vector, by its neighbours, by whether the prompt names who
    spoke and when, and by the best turn of its session. Of a time that the prompt names, all turns
    are looked at; those without any of its words come after the others.
    """
    only = None if chat.user is None else await ids_of(chat, chat.user)
    numbers = await _scored(chat, prompt, only)
    now = [_day(info.metadata.get("at")) for info in await _infos(chat, [last])]
    times = [(one.first, one.last) for one in periods(prompt, now[0])] if now and now[0] else []
    then = await _said_in(chat, times)
    if then:
        numbers = {**await _scored(chat, prompt, then), **numbers}
    reach = range(-len(_NEIGHBOURS), len(_NEIGHBOURS) + 1)
    first = sorted(numbers, key=lambda n: (-numbers[n], n))[:_WIDENED]
    around = numbers.keys() | {n + step for n in first for step in reach if n + step > 0}
    infos = {
        dialog.number_of(info): info for info in await _infos(chat, around | {last}, chat.user)
    }
    scores = _in_context(infos, numbers, prompt, times)
    ranked = [n for n in sorted(infos, key=lambda n: (-scores[n], n)) if scores[n] > 0]
    # What little matches leaves room for the newest.
    newest = range(last, max(0, last - _FAR), -1)
    wanted = dict.fromkeys([*ranked, *map(numbered, sorted(then)), *newest])
    return await _up_to(chat, [n for n in wanted if turn_id(n) not in known], tokens)


async def _up_to(chat: Chat, numbers: Sequence[int], tokens: int) -> list[Turn]:
    """Return turns in the order of their numbers' list, until they say somewhat more than fits."""
    found: list[Turn] = []
    for some in in_batches(numbers, _BATCH):
        infos = {dialog.number_of(info): info for info in await _infos(chat, some, chat.user)}
        batch = await _read(chat, [infos[n] for n in some if n in infos])
        found += batch
        tokens -= sum(chat.count(turn.text) for turn in batch)
        if tokens < 0:
            break
    return found


async def _said_in(chat: Chat, times: Sequence[tuple[date, date]]) -> frozenset[str]:
    """Return the ids of all turns of some days."""
    where = _of_user(chat)
    found: set[str] = set()
    for first, last in times:
        days = ("at", str(first), f"{last}~")  # a tilde comes after all that may follow a day
        found |= {*await chat.store.document_ids(chat.ns, where=where, between=days, prefix=TURN)}
    return frozenset(found)


async def _scored(chat: Chat, prompt: str, only: Collection[str] | None) -> dict[int, float]:
    """Return turns by number with what their words and vectors say: up to 1 each.

    Args:
        only: ids of the only documents to look at; `None`: all.
    """
    near = await chat.searcher.near(prompt, _CANDIDATES, only)
    # What may be a turn is looked at with its neighbours; a fact counts for its turn.
    ids = [entry.document_id for entry in near.entries]
    facts = await dialog.turn_infos(chat.store, chat.ns, [id for id in ids if not numbered(id)])
    number = {info.id: dialog.number_of(info) for info in facts}
    turns = [number.get(id) or numbered(id) for id in ids]
    total: dict[int, float] = {}
    for scores in (near.lexical, near.dense):
        best: dict[int, float] = {}
        for turn, score in zip(turns, scores.tolist(), strict=True):
            if turn and score > 0:
                best[turn] = max(best.get(turn, 0.0), score)
        for turn, score in best.items():
            total[turn] = total.get(turn, 0.0) + score
    return total


def _in_context(
    infos: Mapping[int, DocumentInfo],
    own: Mapping[int, float],
    prompt: str,
    times: Sequence[tuple[date, date]],
) -> dict[int, float]:
    """Return turns by number with their scores, those of what stands around them included.

    Args:
        times: first and last days of what the prompt names.
    """
    session = {number: info.metadata.get(CHAT_KEY) for number, info in infos.items()}
    best: dict[object, float] = {}
    for number, score in own.items():
        best[session.get(number)] = max(best.get(session.get(number), 0.0), score)
    speakers = {number: str(info.metadata.get("speaker", "")) for number, info in infos.items()}
    asked = prompt.casefold()
    named = {speaker for speaker in set(speakers.values()) if speaker.casefold() in asked} - {""}
    scores = {}
    for number, info in infos.items():
        score = own.get(number, 0.0) + _SESSION * best.get(session[number], 0.0)
        for away, worth in enumerate(_NEIGHBOURS, 1):
            for n in (number - away, number + away):
                if n in own and session.get(n) == session[number]:
                    score += worth * own[n]
        if speakers[number] in named:
            score += _SPEAKER
        if _is_within(info, times):
            score += _TIME
        scores[number] = score
    return scores


async def _facts(chat: Chat, turns: Sequence[Turn]) -> dict[str, list[str]]:
    """Return the facts that were drawn from turns, by the turn's id."""
    infos = await dialog.facts_of(chat.store, chat.ns, [turn.number for turn in turns])
    found: dict[str, list[str]] = {}
    for fact in await _read(chat, infos):
        found.setdefault(turn_id(fact.number), []).append(fact.text)
    return found


def _times(turn: Turn) -> tuple[tuple[str, str, str], ...]:
    """Return the time words of a turn that depend on its day, with their first and last days."""
    day = _day(turn.at)
    found = periods(turn.text, day) if day else ()
    return tuple((p.text, str(p.first), str(p.last)) for p in found if p.is_relative)


def _is_within(info: DocumentInfo, times: Sequence[tuple[date, date]]) -> bool:
    day = _day(info.metadata.get("at")) if times else None
    return day is not None and any(first <= day <= last for first, last in times)


def _day(at: object) -> date | None:
    """Return the day of a time in ISO form."""
    try:
        return date.fromisoformat(str(at)[:10])
    except ValueError:
        return None


async def _by_fragments(
    chat: Chat, query: str, last: int, known: set[str], settings: FragmentSettings
) -> list[Turn]:
    """Return the best turns by FragRel (B.3), best first; it looks at all of them."""
    turns = await dialog.last_turns(chat.store, chat.ns, 0, _of_user(chat))
    infos = {info.id: info for info in turns if info.id not in known}
    found = await chat.scorer.assess(query, settings=settings, documents=infos) if infos else None
    if found is None:
        return []
    return await _read(chat, [infos[id] for id in found.documents(settings.top or None)])


async def _recent(
    chat: Chat, last: int, session: str, tokens: int, size: Callable[[Turn], int]
) -> tuple[list[Turn], str]:
    """Return the last turns that go to the model as they are, and the text of the very last."""
    tail: list[Turn] = []
    for end in range(last, max(0, last - _FAR), -_BATCH):
        infos = await _infos(chat, range(max(1, end - _BATCH + 1), end + 1), chat.user)
        tail = [*await _read(chat, [i for i in infos if _is_of(i, session)]), *tail]
        fit = dialog.recent(tail, tokens, size)
        if fit < len(tail):
            return tail[len(tail) - fit :], tail[-1].text
    return tail, tail[-1].text if tail else ""


async def _corrected(
    searcher: Searcher, turns: Sequence[Turn]
) -> tuple[dict[str, tuple[str, ...]], dict[str, Turn]]:
    """Return which of some turns others seem to correct, and these and those by their ids."""
    return await dialog.corrected(searcher, turns) if turns else ({}, {})


# --- what is kept -------------------------------------------------------------------------------


async def _last(memory: "Session | Chat") -> int:
    """Return the number of the last turn; 0 where there is none."""
    found = await dialog.last_turns(memory.store, memory.ns, 1)
    return dialog.number_of(found[0]) if found else 0


async def ids_of(memory: "Session | Chat", user: str) -> frozenset[str]:
    """Return the ids of all documents of a user: turns, and others with that metadata."""
    return frozenset(await memory.store.document_ids(memory.ns, where={USER_KEY: user}))


async def _infos(
    memory: "Session | Chat", numbers: Iterable[int], user: str | None = None
) -> list[DocumentInfo]:
    """Return the documents of turns by their numbers, in order; deleted ones are left out.

    Args:
        user: whose; `None`: all users'.
    """
    ids = [turn_id(number) for number in numbers]
    turns = await dialog.turn_infos(memory.store, memory.ns, ids)
    if user is not None:
        turns = [info for info in turns if info.metadata.get(USER_KEY) == user]
    return turns


async def _read(memory: "Session | Chat", infos: Sequence[DocumentInfo]) -> list[Turn]:
    return await dialog.read_turns(memory.store, memory.ns, infos)


def _is_of(info: DocumentInfo, session: str | None) -> bool:
    return session is None or info.metadata.get(CHAT_KEY) == session


def _of_user(chat: Chat) -> dict[str, Scalar]:
    return {} if chat.user is None else {USER_KEY: chat.user}
