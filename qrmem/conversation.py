"""A memory of conversations: turns go in one by one, and what belongs to a prompt comes back."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from qrmem.errors import UsageError
from qrmem.graph import dialog
from qrmem.ingest import Adder
from qrmem.retrieval.fragments import CHAT, FragmentSettings
from qrmem.retrieval.fragments.gathering import CHAT_KEY
from qrmem.session import Session
from qrmem.types import DocumentInfo, Listener, Recalled, Turn

How = Literal["turns", "fragrel"]

_BATCH = 64
"""Turns of the conversation's end that are looked at together."""
_FAR = 512
"""Turns back from the end that are looked through for the last ones of a session."""
_CANDIDATES = 100
"""Turns that each of the two rankings gives."""
_NEIGHBOUR, _SPEAKER, _SESSION = 0.5, 0.25, 0.2
"""What the mean of both neighbours, a name in the prompt, and the session's best turn count for.

A turn's own score is at most 1 for its words and 1 for its vector.
"""
_CHECKED = 4
"""Best turns that are looked up for corrections."""


async def add_messages(
    memory: Session,
    messages: Iterable[Any],
    listener: Listener,
    *,
    at: datetime | str | None,
    session: str,
    only_new: bool,
) -> list[str]:
    """Keep several turns; return their ids. See `Memory.add_messages`."""
    if isinstance(messages, str):
        raise UsageError("messages are a list, not one text; add_turn takes a text")
    memory.require_writable()
    when = dialog.moment(at)
    read = [dialog.read_message(message) for message in messages]
    if len(read) == 1 and not read[0].text.strip():
        raise UsageError("the turn is empty")
    said = [message for message in read if message.text.strip()]
    if only_new:
        said = list(dialog.news(await turns(memory, session), said))
    return await _keep(memory, said, when, session, listener) if said else []


async def _keep(
    memory: Session, said: Sequence[dialog.Message], when: str, session: str, listener: Listener
) -> list[str]:
    async with memory.turns:
        last = await _last(memory)
        documents = [
            dialog.as_document(Turn(dialog.turn_id(n), n, role, text, at or when, session, speaker))
            for n, (role, text, speaker, at) in enumerate(said, last + 1)
        ]
        models = await memory.models(create=True)
        with memory.adding():
            await Adder(memory.store, memory.ns, models, listener=listener).add(documents)
    return [document.id or "" for document in documents]


async def turns(memory: Session, session: str | None) -> list[Turn]:
    """Return the turns of a session, or of all, in the order in which they came."""
    infos = await _infos(memory, range(1, await _last(memory) + 1))
    return await _read(memory, [info for info in infos if _is_of(info, session)])


async def recall(
    memory: Session,
    prompt: str,
    *,
    session: str,
    tokens: int,
    how: How,
    fragments: FragmentSettings | None,
) -> Recalled:
    """Return what a model is to know before it answers a prompt; see `Memory.recall`."""
    if not prompt.strip():
        raise UsageError("the prompt is empty")
    if tokens < 1:
        raise UsageError(f"tokens must be at least 1, not {tokens}")
    if how not in ("turns", "fragrel"):
        raise UsageError(f"how is {how!r}; choose turns or fragrel")
    last = await _last(memory)
    if not last:
        return Recalled((), (), {}, 0)
    count = (await memory.models()).counter.count
    recent = await _recent(memory, last, session, min(tokens, dialog.RECENT_TOKENS), count)
    shown, latest = recent
    left = tokens - sum(count(turn.text) for turn in shown)
    known = {turn.id for turn in shown}
    if how == "fragrel" or fragments is not None:
        # The query is the last turn of the dialog and the prompt.
        query = f"{latest}\n{prompt}" if latest else prompt
        found = await _by_fragments(memory, query, last, known, fragments or CHAT)
    else:
        found = await _best(memory, prompt, known, left, count)
    checked, by_id = await _corrected(memory, found[:_CHECKED])
    kept = dialog.fitting(found, checked, by_id, left, count)
    told = {turn.id for turn in kept} | known
    corrections = {
        turn.id: tuple(id for id in checked.get(turn.id, ()) if id in told) for turn in kept
    }
    return Recalled(
        recent=tuple(shown),
        related=tuple(sorted((t for t in kept if t.id not in known), key=lambda t: t.number)),
        corrections={id: ids for id, ids in corrections.items() if ids},
        tokens=sum(count(turn.text) for turn in (*shown, *kept)),
    )


async def corrections(memory: Session, ids: Iterable[str]) -> dict[str, list[Turn]]:
    """Return which turns later turns seem to correct, and by which; see `Memory.corrections`."""
    infos = await memory.store.documents(memory.ns, list(ids))
    asked = await _read(memory, [info for info in infos if _number(info)])
    found, by_id = await _corrected(memory, asked) if asked else ({}, {})
    return {id: [by_id[later] for later in ids] for id, ids in found.items()}


# --- what belongs to a prompt -------------------------------------------------------------------


async def _best(
    memory: Session, prompt: str, known: set[str], tokens: int, count: Callable[[str], int]
) -> list[Turn]:
    """Return turns for a prompt, best first, somewhat more than fit.

    A turn counts by its words and its vector, by its neighbours, by whether the prompt names who
    spoke, and by the best turn of its session.
    """
    own = await _scored(memory, prompt)
    numbers = {int(id.rpartition("-")[2]): score for id, score in own.items()}
    around = {m for n in numbers for m in (n - 1, n, n + 1) if m > 0}
    infos = {_number(info): info for info in await _infos(memory, around)}
    scores = _in_context(infos, numbers, f" {prompt.casefold()} ")
    ranked = sorted(infos, key=lambda n: (-scores[n], n))
    wanted = [infos[n] for n in ranked if infos[n].id not in known]
    found: list[Turn] = []
    for at in range(0, len(wanted), _BATCH):
        batch = await _read(memory, wanted[at : at + _BATCH])
        found += batch
        tokens -= sum(count(turn.text) for turn in batch)
        if tokens < 0:
            break
    return found


async def _scored(memory: Session, prompt: str) -> dict[str, float]:
    """Return turns by id with what their words and vectors say: up to 1 each."""
    searcher = await memory.searcher()
    rankings = [await searcher.ranking(prompt, by, _CANDIDATES) for by in ("bm25", "cosine")]
    ids = list(dict.fromkeys(id for ranking in rankings for id in ranking))
    of = {entry.id: entry.document_id for entry in await memory.store.entries(memory.ns, ids)}
    total: dict[str, float] = {}
    for ranking in rankings:
        top = max(ranking.values(), default=0.0)
        best: dict[str, float] = {}
        for id, score in ranking.items():
            if top > 0 and (turn := of.get(id, "")).startswith(dialog.TURN):
                best[turn] = max(best.get(turn, 0.0), score / top)
        for turn, score in best.items():
            total[turn] = total.get(turn, 0.0) + score
    return total


def _in_context(
    infos: Mapping[int, DocumentInfo], own: Mapping[int, float], prompt: str
) -> dict[int, float]:
    """Return turns by number with their scores, those of what stands around them included."""

    def session(number: int) -> object:
        return infos[number].metadata.get(CHAT_KEY) if number in infos else None

    best: dict[object, float] = {}
    for number, score in own.items():
        best[session(number)] = max(best.get(session(number), 0.0), score)
    scores = {}
    for number, info in infos.items():
        near = [n for n in (number - 1, number + 1) if session(n) == session(number)]
        speaker = str(info.metadata.get("speaker", "")).casefold()
        scores[number] = (
            own.get(number, 0.0)
            + _NEIGHBOUR * sum(own.get(n, 0.0) for n in near) / 2
            + _SPEAKER * (speaker != "" and speaker in prompt)
            + _SESSION * best.get(session(number), 0.0)
        )
    return scores


async def _by_fragments(
    memory: Session, query: str, last: int, known: set[str], settings: FragmentSettings
) -> list[Turn]:
    """Return the best turns by FragRel (B.3), best first; it looks at all of them."""
    infos = {i.id: i for i in await _infos(memory, range(1, last + 1)) if i.id not in known}
    scorer = await memory.fragment_scorer()
    found = await scorer.assess(query, settings=settings, documents=infos) if infos else None
    if found is None:
        return []
    return await _read(memory, [infos[id] for id in found.documents(settings.top or None)])


async def _recent(
    memory: Session, last: int, session: str, tokens: int, count: Callable[[str], int]
) -> tuple[list[Turn], str]:
    """Return the last turns that go to the model as they are, and the text of the very last."""
    tail: list[Turn] = []
    for end in range(last, max(0, last - _FAR), -_BATCH):
        infos = await _infos(memory, range(max(1, end - _BATCH + 1), end + 1))
        tail = [*await _read(memory, [i for i in infos if _is_of(i, session)]), *tail]
        fit = dialog.recent(tail, tokens, count)
        if fit < len(tail):
            return tail[len(tail) - fit :], tail[-1].text
    return tail, tail[-1].text if tail else ""


async def _corrected(
    memory: Session, turns: Sequence[Turn]
) -> tuple[dict[str, tuple[str, ...]], dict[str, Turn]]:
    """Return which of some turns others seem to correct, and these and those by their ids."""
    return await dialog.corrected(await memory.searcher(), turns) if turns else ({}, {})


# --- what is kept -------------------------------------------------------------------------------


async def _last(memory: Session) -> int:
    """Return the number of the last turn; 0 where there is none."""
    await memory.known()
    id = await memory.store.last_document(memory.ns, dialog.TURN)
    return int(id.removeprefix(dialog.TURN)) if id else 0


async def _infos(memory: Session, numbers: Iterable[int]) -> list[DocumentInfo]:
    """Return the documents of turns by their numbers, in order; deleted ones are left out."""
    ids = [dialog.turn_id(number) for number in numbers]
    found = await memory.store.documents(memory.ns, ids) if ids else ()
    return sorted((i for i in found if CHAT_KEY in i.metadata and _number(i)), key=_number)


async def _read(memory: Session, infos: Sequence[DocumentInfo]) -> list[Turn]:
    return await dialog.read_turns(memory.store, memory.ns, infos)


def _number(info: DocumentInfo) -> int:
    number = info.metadata.get("turn")
    return number if isinstance(number, int) else 0


def _is_of(info: DocumentInfo, session: str | None) -> bool:
    return session is None or info.metadata.get("chat") == session
