"""A memory of conversations: turns go in one by one, and what belongs to a prompt comes back."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from qrmem.errors import UsageError
from qrmem.looking import Looking
from qrmem.types import DocumentInfo, Event, Recalled, Turn

if TYPE_CHECKING:
    from qrmem.graph import dialog
    from qrmem.retrieval.fragments import FragmentSettings


_TAIL = 32
"""Turns of a session's end that are read first: ten rounds, and some that are longer."""


class Conversing(Looking):
    """The methods of a memory that keep and recall conversations."""

    def _emit(self, event: Event) -> None:
        """Take an event of a run; a memory that is listened to passes it on."""

    async def add_turn(
        self,
        role: str,
        text: str,
        *,
        at: datetime | str | None = None,
        session: str = "",
        speaker: str = "",
    ) -> str:
        """Keep what somebody said; return the id of the document that it became.

        No chat model is called, whatever the settings: nobody has to wait, or pay, for a turn.

        Args:
            role: `user`, `assistant`, or what else the model's messages know.
            at: when; now, if it is not said. Turns are kept in the order in which they come.
            session: the conversation that it is part of.
            speaker: a name, where several people share a role.

        Raises:
            UsageError: the role or the text is empty, or `at` is no time.
        """
        (added,) = await self.add_messages(
            [{"role": role, "content": text, "name": speaker}], at=at, session=session
        )
        return added

    async def add_messages(
        self,
        messages: Iterable[Any],
        *,
        at: datetime | str | None = None,
        session: str = "",
        only_new: bool = False,
    ) -> list[str]:
        """Keep several turns; return their ids. Those without a text (tool calls) are passed over.

        Args:
            messages: of LangChain or LangGraph, `{"role", "content"}` (`name` and `at` if you
                like), or `(role, text)`.
            at: when those without a time of their own were said; now, if it is not said.
            only_new: leave out those with which the session ends already: for a log that grows.

        Raises:
            UsageError: one of them is no message, or `at` is no time.
        """
        from qrmem.graph import dialog

        if isinstance(messages, str):
            raise UsageError("messages are a list, not one text; add_turn takes a text")
        self._opened.require_writable()
        when = dialog.moment(at)
        read = [dialog.read_message(message) for message in messages]
        if any(not message.role.strip() for message in read):
            raise UsageError("a turn needs a role")
        if len(read) == 1 and not read[0].text.strip():
            raise UsageError("the turn is empty")
        said = [message for message in read if message.text.strip()]
        if only_new:
            said = list(dialog.news(await self.turns(session), said))
        return await self._keep_turns(said, when, session) if said else []

    async def _keep_turns(
        self, said: "Sequence[dialog.Message]", when: str, session: str
    ) -> list[str]:
        from qrmem.graph import dialog
        from qrmem.ingest import Adder

        last = max(map(_number, await self._turn_infos()), default=0)
        documents = [
            dialog.as_document(Turn(dialog.turn_id(n), n, role, text, at or when, session, speaker))
            for n, (role, text, speaker, at) in enumerate(said, last + 1)
        ]
        tools = await self._opened.tools(create=True)
        adder = Adder(self._opened.store, self._opened.ns, tools, listener=self._emit)
        await adder.add(documents)
        return [document.id or "" for document in documents]

    async def turns(self, session: str | None = None) -> list[Turn]:
        """Return the turns of a session, or of all, in the order in which they came."""
        return await self._turns([i for i in await self._turn_infos() if _is_of(i, session)])

    async def recall(
        self,
        prompt: str,
        *,
        session: str = "",
        tokens: int = 2000,
        fragments: "FragmentSettings | None" = None,
    ) -> Recalled:
        """Return what a model is to know before it answers a prompt (FragRel, B.3).

        The last turns of the session go to it as they are, up to 1,000 tokens and 10 rounds. Of all
        earlier turns, of any session, the eight best by FragRel are returned in order of time, and
        with each one what later turns seem to correct.

        Args:
            prompt: what the user says now; it need not be a turn yet.
            tokens: upper bound of everything that is returned.
            fragments: instead of the paper's settings for conversations.

        Raises:
            UsageError: the prompt is empty, or `tokens` is below 1.
        """
        from qrmem.graph import dialog

        if not prompt.strip():
            raise UsageError("the prompt is empty")
        if tokens < 1:
            raise UsageError(f"tokens must be at least 1, not {tokens}")
        infos = await self._turn_infos()
        if not infos:
            return Recalled((), (), {}, 0)
        count = (await self._opened.tools()).counter.count
        here = [info for info in infos if _is_of(info, session)]
        recent, last = await self._recent(here, min(tokens, dialog.RECENT_TOKENS), count)
        left = tokens - sum(count(turn.text) for turn in recent)
        known = {turn.id for turn in recent}
        earlier = [info for info in infos if info.id not in known]
        # The query is the last turn of the dialog and the prompt.
        query = f"{last}\n{prompt}" if here else prompt
        found = await self._related(query, earlier, fragments)
        corrected, by_id = await self._corrected(found, infos)
        kept = dialog.fitting(found, corrected, by_id, left, count)
        shown = {turn.id for turn in kept} | known
        told = {
            turn.id: tuple(id for id in corrected.get(turn.id, ()) if id in shown) for turn in kept
        }
        return Recalled(
            recent=tuple(recent),
            related=tuple(sorted((t for t in kept if t.id not in known), key=lambda t: t.number)),
            corrections={id: ids for id, ids in told.items() if ids},
            tokens=sum(count(turn.text) for turn in (*recent, *kept)),
        )

    async def corrections(self, ids: Iterable[str]) -> dict[str, list[Turn]]:
        """Return which turns, of some documents, later turns seem to correct, and by which.

        What an answer cites can be looked up here; documents that are no turns are passed over.
        """
        wanted = set(ids)
        infos = await self._turn_infos()
        asked = await self._turns([info for info in infos if info.id in wanted])
        found, by_id = await self._corrected(asked, infos)
        return {id: [by_id[later] for later in ids] for id, ids in found.items()}

    # --- inside ---------------------------------------------------------------------------------

    async def _recent(
        self, here: Sequence[DocumentInfo], tokens: int, count: Callable[[str], int]
    ) -> tuple[list[Turn], str]:
        """Return the last turns that go to the model as they are, and the text of the very last.

        However long the conversation is, no more of it is read than twice what they are.
        """
        from qrmem.graph import dialog

        size = _TAIL
        while True:
            tail = await self._turns(here[-size:])
            fit = dialog.recent(tail, tokens, count)
            if fit < len(tail) or size >= len(here):
                return tail[len(tail) - fit :], tail[-1].text if tail else ""
            size *= 2

    async def _corrected(
        self, turns: Sequence[Turn], infos: Sequence[DocumentInfo]
    ) -> tuple[dict[str, tuple[str, ...]], dict[str, Turn]]:
        """Return which of some turns others seem to correct, and these and those by their ids.

        Of the others those are read that have words enough in common with one of the turns.
        """
        from qrmem.graph import dialog
        from qrmem.retrieval.overlap import overlapping

        searcher = await self._opened.searcher()
        near = await overlapping(searcher, [turn.text for turn in turns], dialog.MARKED)
        later = await self._turns([info for info in infos if info.id in near])
        return dialog.corrections(turns, later), {turn.id: turn for turn in (*turns, *later)}

    async def _related(
        self,
        query: str,
        among: Sequence[DocumentInfo],
        settings: "FragmentSettings | None",
    ) -> list[Turn]:
        """Return the best turns, best first."""
        from qrmem.retrieval.fragments import CHAT

        chosen = settings or CHAT
        by_id = {info.id: info for info in among}
        scorer = await self._opened.fragment_scorer()
        found = await scorer.assess(query, settings=chosen, documents=by_id) if by_id else None
        if found is None:
            return []
        return await self._turns([by_id[id] for id in found.documents(chosen.top or None)])

    async def _turn_infos(self) -> list[DocumentInfo]:
        """Return the documents that are turns, in order."""
        from qrmem.retrieval.fragments.gathering import CHAT_KEY

        found = await self._opened.store.documents(self._opened.ns)
        return sorted((i for i in found if CHAT_KEY in i.metadata and _number(i)), key=_number)

    async def _turns(self, infos: Sequence[DocumentInfo]) -> list[Turn]:
        from qrmem.graph import dialog

        ids = [info.id for info in infos]
        texts: dict[str, list[str]] = {}
        for segment in await self._opened.store.segments_of(self._opened.ns, *ids) if ids else ():
            texts.setdefault(segment.document_id, []).append(segment.text)
        return [dialog.as_turn(i, "".join(texts[i.id])) for i in infos if i.id in texts]


def _number(info: DocumentInfo) -> int:
    number = info.metadata.get("turn")
    return number if isinstance(number, int) else 0


def _is_of(info: DocumentInfo, session: str | None) -> bool:
    return session is None or info.metadata.get("chat") == session
