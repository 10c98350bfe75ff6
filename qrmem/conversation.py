"""A memory of conversations: turns go in one by one, and what belongs to a prompt comes back."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any

from qrmem.errors import UsageError
from qrmem.graph import dialog
from qrmem.ingest import Adder
from qrmem.retrieval.fragments import CHAT, FragmentSettings
from qrmem.retrieval.fragments.gathering import CHAT_KEY
from qrmem.retrieval.overlap import overlapping
from qrmem.session import Session
from qrmem.types import DocumentInfo, Listener, Recalled, Turn

_TAIL = 32
"""Turns of a session's end that are read first: ten rounds, and some that are longer."""


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
    if any(not message.role.strip() for message in read):
        raise UsageError("a turn needs a role")
    if len(read) == 1 and not read[0].text.strip():
        raise UsageError("the turn is empty")
    said = [message for message in read if message.text.strip()]
    if only_new:
        said = list(dialog.news(await turns(memory, session), said))
    return await _keep(memory, said, when, session, listener) if said else []


async def _keep(
    memory: Session, said: Sequence[dialog.Message], when: str, session: str, listener: Listener
) -> list[str]:
    last = dialog.turn_number(await memory.store.last_document(memory.ns, dialog.TURN) or "")
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
    return await _read(memory, [info for info in await _infos(memory) if _is_of(info, session)])


async def recall(
    memory: Session,
    prompt: str,
    *,
    session: str,
    tokens: int,
    fragments: FragmentSettings | None,
) -> Recalled:
    """Return what a model is to know before it answers a prompt; see `Memory.recall`."""
    if not prompt.strip():
        raise UsageError("the prompt is empty")
    if tokens < 1:
        raise UsageError(f"tokens must be at least 1, not {tokens}")
    infos = await _infos(memory)
    if not infos:
        return Recalled((), (), {}, 0)
    count = (await memory.models()).counter.count
    here = [info for info in infos if _is_of(info, session)]
    recent, last = await _recent(memory, here, min(tokens, dialog.RECENT_TOKENS), count)
    left = tokens - sum(count(turn.text) for turn in recent)
    known = {turn.id for turn in recent}
    earlier = [info for info in infos if info.id not in known]
    # The query is the last turn of the dialog and the prompt.
    query = f"{last}\n{prompt}" if here else prompt
    found = await _related(memory, query, earlier, fragments)
    corrected, by_id = await _corrected(memory, found, infos)
    kept = dialog.fitting(found, corrected, by_id, left, count)
    shown = {turn.id for turn in kept} | known
    told = {turn.id: tuple(id for id in corrected.get(turn.id, ()) if id in shown) for turn in kept}
    return Recalled(
        recent=tuple(recent),
        related=tuple(sorted((t for t in kept if t.id not in known), key=lambda t: t.number)),
        corrections={id: ids for id, ids in told.items() if ids},
        tokens=sum(count(turn.text) for turn in (*recent, *kept)),
    )


async def corrections(memory: Session, ids: Iterable[str]) -> dict[str, list[Turn]]:
    """Return which turns later turns seem to correct, and by which; see `Memory.corrections`."""
    wanted = set(ids)
    infos = await _infos(memory)
    asked = await _read(memory, [info for info in infos if info.id in wanted])
    found, by_id = await _corrected(memory, asked, infos)
    return {id: [by_id[later] for later in ids] for id, ids in found.items()}


async def _recent(
    memory: Session, here: Sequence[DocumentInfo], tokens: int, count: Callable[[str], int]
) -> tuple[list[Turn], str]:
    """Return the last turns that go to the model as they are, and the text of the very last.

    However long the conversation is, no more of it is read than twice what they are.
    """
    size = _TAIL
    while True:
        tail = await _read(memory, here[-size:])
        fit = dialog.recent(tail, tokens, count)
        if fit < len(tail) or size >= len(here):
            return tail[len(tail) - fit :], tail[-1].text if tail else ""
        size *= 2


async def _corrected(
    memory: Session, turns: Sequence[Turn], infos: Sequence[DocumentInfo]
) -> tuple[dict[str, tuple[str, ...]], dict[str, Turn]]:
    """Return which of some turns others seem to correct, and these and those by their ids.

    Of the others those are read that have words enough in common with one of the turns.
    """
    searcher = await memory.searcher()
    near = await overlapping(searcher, [turn.text for turn in turns], dialog.MARKED)
    later = await _read(memory, [info for info in infos if info.id in near])
    return dialog.corrections(turns, later), {turn.id: turn for turn in (*turns, *later)}


async def _related(
    memory: Session,
    query: str,
    among: Sequence[DocumentInfo],
    settings: FragmentSettings | None,
) -> list[Turn]:
    """Return the best turns, best first."""
    chosen = settings or CHAT
    by_id = {info.id: info for info in among}
    scorer = await memory.fragment_scorer()
    found = await scorer.assess(query, settings=chosen, documents=by_id) if by_id else None
    if found is None:
        return []
    return await _read(memory, [by_id[id] for id in found.documents(chosen.top or None)])


async def _infos(memory: Session) -> list[DocumentInfo]:
    """Return the documents that are turns, in order."""
    found = await memory.store.documents(memory.ns)
    return sorted((i for i in found if CHAT_KEY in i.metadata and _number(i)), key=_number)


async def _read(memory: Session, infos: Sequence[DocumentInfo]) -> list[Turn]:
    ids = [info.id for info in infos]
    texts: dict[str, list[str]] = {}
    for segment in await memory.store.segments_of(memory.ns, *ids) if ids else ():
        texts.setdefault(segment.document_id, []).append(segment.text)
    return [dialog.as_turn(i, "".join(texts[i.id])) for i in infos if i.id in texts]


def _number(info: DocumentInfo) -> int:
    number = info.metadata.get("turn")
    return number if isinstance(number, int) else 0


def _is_of(info: DocumentInfo, session: str | None) -> bool:
    return session is None or info.metadata.get("chat") == session
