"""A memory of conversations: turns go in one by one, and what belongs to a prompt comes back."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from qrmem.errors import UsageError
from qrmem.looking import Looking
from qrmem.ports import Event
from qrmem.records import DocumentInfo, Recalled, Turn

if TYPE_CHECKING:
    from qrmem.memory import dialog
    from qrmem.retrieval.fragments import FragmentSettings


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
        from qrmem.memory import dialog

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
        from qrmem.adding import Adder
        from qrmem.memory import dialog

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
            UsageError: the prompt is empty.
        """
        from qrmem.memory import dialog

        if not prompt.strip():
            raise UsageError("the prompt is empty")
        infos = await self._turn_infos()
        if not infos:
            return Recalled((), (), {}, 0)
        count = (await self._opened.tools()).counter.count
        here = await self._turns([info for info in infos if _is_of(info, session)])
        recent = here[len(here) - dialog.recent(here, min(tokens, dialog.RECENT_TOKENS), count) :]
        left = tokens - sum(count(turn.text) for turn in recent)
        known = {turn.id for turn in recent}
        earlier = [info for info in infos if info.id not in known]
        # The query is the last turn of the dialog and the prompt.
        query = f"{here[-1].text}\n{prompt}" if here else prompt
        found = await self._related(query, earlier, fragments)
        later = await self._turns(infos)
        corrected = dialog.corrections(found, later)
        kept = dialog.fitting(found, corrected, {turn.id: turn for turn in later}, left, count)
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
        from qrmem.memory import dialog

        wanted = set(ids)
        infos = await self._turn_infos()
        if not any(info.id in wanted for info in infos):
            return {}
        by_id = {turn.id: turn for turn in await self._turns(infos)}
        asked = [turn for id, turn in by_id.items() if id in wanted]
        found = dialog.corrections(asked, list(by_id.values()))
        return {id: [by_id[later] for later in ids] for id, ids in found.items()}

    # --- inside ---------------------------------------------------------------------------------

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
        best = list(found.best(found.fragments.size))
        of = {s.id: s.document_id for s in await self._opened.store.segments(self._opened.ns, best)}
        turns = list(dict.fromkeys(of[id] for id in best if id in of))
        return await self._turns([by_id[id] for id in turns[: chosen.top or len(turns)]])

    async def _turn_infos(self) -> list[DocumentInfo]:
        """Return the documents that are turns, in order."""
        from qrmem.retrieval.fragments.gathering import CHAT_KEY

        found = await self._opened.store.documents(self._opened.ns)
        return sorted((i for i in found if CHAT_KEY in i.metadata and _number(i)), key=_number)

    async def _turns(self, infos: Sequence[DocumentInfo]) -> list[Turn]:
        from qrmem.memory import dialog

        found = []
        for info in infos:
            document = await self._opened.store.document(self._opened.ns, info.id)
            if document is not None:
                found.append(dialog.as_turn(info, document.text))
        return found


def _number(info: DocumentInfo) -> int:
    number = info.metadata.get("turn")
    return number if isinstance(number, int) else 0


def _is_of(info: DocumentInfo, session: str | None) -> bool:
    return session is None or info.metadata.get("chat") == session
