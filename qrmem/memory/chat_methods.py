"""Methods of a memory for conversations: keep turns, recall what a prompt needs."""

from collections.abc import Iterable, Sequence
from datetime import date, datetime
from typing import Any

from qrmem.memory import change
from qrmem.memory.handle import Handle
from qrmem.text.dates import as_of_moment
from qrmem.types import AddReport, Recalled, Turn
from qrmem.types.options import FragmentSettings, RecallMethod, RecallOptions


class ChatMethods(Handle):
    """Methods that keep and recall conversations. Heavy modules are imported at the first call."""

    async def add_turn(
        self,
        role: str,
        text: str,
        *,
        at: datetime | str | None = None,
        session: str = "",
        speaker: str = "",
        user: str = "",
        extract: bool = False,
        standing: bool = False,
    ) -> str:
        """Keep a turn; return the id of its document.

        No chat model is called unless `extract` is set, so a turn costs no waiting and no money.

        Args:
            role: `user`, `assistant`, or another role of chat messages.
            at: when it was said; `None`: now. Turns are kept in the order in which they arrive.
            session: name of the conversation.
            speaker: name of the speaker, if several people share a role.
            user: the user whose conversation it is; see `recall` and `forget_user`.
            extract: extract facts from it in the background, see `add_messages`.
            standing: keep it as a standing wish, whatever its words; see `standing`.

        Raises:
            UsageError: the role or the text is empty, or they are swapped, or `at` is not a time.
        """
        from qrmem.memory.chat import conversation
        from qrmem.retrieval.dialog import require_role_first

        require_role_first(role, text)
        (added,), _ = await conversation.add_messages(
            self._session,
            [{"role": role, "content": text, "name": speaker}],
            self._emit,
            at=at,
            session=session,
            user=user,
            extract=extract,
            standing=standing,
        )
        return added

    async def add_messages(
        self,
        messages: Iterable[Any],
        *,
        at: datetime | str | None = None,
        session: str = "",
        only_new: bool = False,
        user: str = "",
        extract: bool = False,
    ) -> list[str]:
        """Keep several turns; return their ids. Messages without a text (tool calls) are skipped.

        Args:
            messages: LangChain's or LangGraph's, `{"role", "content"}` (optionally with `name`, a
                time as `at`, `created_at`, `timestamp` or `date`, and a `session` or
                `session_id`), or `(role, text)`. An event tells the listener which other keys
                were left out.
            at: time of messages that have none; `None`: now.
            only_new: leave out messages with which the session already ends: for a log that grows.
            user: the user whose conversation it is.
            extract: let a chat model extract facts in the background: up to eight sentences a turn,
                each a document (`fact-…`) with its turn's metadata and id (`noted_of`), which is
                deleted with the turn. `wait` returns what was extracted.

        Raises:
            UsageError: one of them is not a message, `at` is not a time, or `extract` is set and
                no chat model is.
        """
        from qrmem.memory.chat import conversation

        ids, _ = await conversation.add_messages(
            self._session,
            messages,
            self._emit,
            at=at,
            session=session,
            only_new=only_new,
            user=user,
            extract=extract,
        )
        return ids

    async def wait(self) -> AddReport:
        """Wait until all facts are extracted; return those extracted since the last `wait`.

        Turns that failed or reached a cap are in `problems`; the listener gets a warning for each.
        `extract_facts` tries them again. `close` waits, too.
        """
        from qrmem.memory.chat import facts

        return await facts.drawing(self._session, self._emit).wait()

    async def extract_facts(
        self, session: str | None = None, *, user: str | None = None
    ) -> AddReport:
        """Extract facts from turns of a session and a user, or of all, that have none yet.

        Raises:
            UsageError: no chat model is set.
        """
        from qrmem.memory.chat import facts

        return await facts.extract_facts(
            self._session, self._emit, await self.turns(session, user=user)
        )

    async def turns(self, session: str | None = None, *, user: str | None = None) -> list[Turn]:
        """Return the turns of a session and a user, or of all, in order of arrival."""
        from qrmem.memory.chat import conversation

        return await conversation.turns(self._session, session, user)

    async def standing(self, user: str | None = None) -> list[Turn]:
        """Return standing wishes of users, such as: always answer in metric units.

        They are the turns kept with `standing=True`, and those that some fifteen English cues
        ("always", "from now on", "I prefer") in the user's own words make out when a turn is kept.
        `recall` returns them even for prompts that share no word with them, within a quarter of its
        budget. They are deleted with their turn (`delete`).

        Args:
            user: only this user's; `None`: all users'.

        Returns:
            Turns in the order in which they arrived; one that was not kept with `standing=True`
            has only the sentences that state a wish.
        """
        from qrmem.memory.chat import conversation

        return await conversation.standing(self._session, user)

    async def recall(
        self,
        prompt: str,
        *,
        session: str = "",
        tokens: int = 2000,
        how: RecallMethod = "turns",
        fragments: FragmentSettings | None = None,
        user: str | None = None,
        min_score: float = 0.0,
        as_of: str | date = "",
        types: Sequence[str] | None = None,
        reranker: str | None = None,
    ) -> Recalled:
        """Return the earlier turns that a model needs to answer a prompt.

        The last turns of the session are returned unabridged, up to 1,000 tokens and 10 rounds. The
        rest of the budget goes to the best parts of all other turns, from any session, in order of
        time; up to a quarter of it is reserved for
        standing wishes.

        Args:
            prompt: what the user says now; it need not be a turn yet.
            tokens: token limit of `text` and the contents of `messages` together.
            how: `turns`: by words, vectors, neighbours and speakers; `fragrel`: the eight best
                turns by FragRel (its appendix B.3).
            fragments: settings of `fragrel`; `None`: the paper's for conversations.
            user: recall only this user's turns; `None`: all users'. `search` and `ask` take
                `where={"user": …}` for the same.
            min_score: turns with a lower score are left out; see `Recalled.scores`.
            types: only turns that name an entity of one of these types, or state a relation of
                one, after the last turns; see `search`.
            as_of: only turns said by then: a date, `2026-05-03`, `2026-05` or `2026`, or
                a moment; "": all.
            reranker: reorders the first 50 parts of turns; named as in the setting. `None`: the
                setting's; `none`: no reranker. Only with `turns`.

        Raises:
            UsageError: the prompt is empty, `tokens` is below 1, or a type is unknown.
            NotFound: no entity or relation has these types.
        """
        from qrmem.memory.ask import note_length, searching
        from qrmem.memory.chat import recall as recalling

        options = RecallOptions(
            prompt=prompt,
            session=session,
            tokens=tokens,
            how=how,
            fragments=fragments,
            user=user,
            min_score=min_score,
            as_of=as_of_moment(as_of),
            types=types,
            reranker=reranker or "",
        )
        note_length(prompt, self._emit)
        await self._session.reranker(options.reranker)  # an empty memory refuses a wrong one, too
        if not await self._session.known():
            return Recalled((), (), 0)
        async with searching(self._session, options.reranker, self._emit) as searcher:
            return await recalling.recall(self._session, options, searcher)

    async def forget_user(self, user: str) -> int:
        """Delete all turns of a user, and all documents with `user` in their metadata.

        Afterwards the memory equals one that never held them. Trails of questions to this user's
        documents alone (`where={"user": …}`) keep no text.

        Returns:
            The number of deleted documents.
        """
        return await change.forget_user(self._session, user)
