"""An open memory: every method with its documentation; how a memory is opened.

Heavy modules are imported at the first call that needs them.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import (
    AsyncGenerator,
    Callable,
    Coroutine,
    Generator,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import suppress
from copy import copy
from dataclasses import replace
from datetime import date, datetime
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Self, TypeVar, Unpack

from qrmem.config import Settings, revealed
from qrmem.errors import UsageError
from qrmem.graphstore.protocol import EntityCount, GraphStore
from qrmem.io.sources import Source
from qrmem.llm.totals import By
from qrmem.memory import ask, change, inspect, judging, observability, statements, summary_trees
from qrmem.memory.keywords import AskKeywords, OpenOptions, PlanKeywords
from qrmem.memory.runtime import check_embedder
from qrmem.memory.session import Session
from qrmem.text.dates import as_of_moment
from qrmem.types import (
    AddReport,
    Answer,
    Archived,
    Document,
    DocumentInfo,
    EntityView,
    Event,
    ExtractionReport,
    FactView,
    GraphPart,
    Hit,
    JudgeReport,
    Listener,
    MemoryStatus,
    Merge,
    MetaValue,
    Orientation,
    Page,
    Recalled,
    Repair,
    Segment,
    Step,
    Strategy,
    Trail,
    Turn,
    UsageRow,
    Where,
    Words,
)
from qrmem.types.documents import Tree, TreeKind, TreeNode, TreeReport, TreeTop
from qrmem.types.options import (
    AddOptions,
    AskOptions,
    CapOptions,
    FragmentSettings,
    RecallMethod,
    RecallOptions,
    options_of,
    plan_options,
)
from qrmem.types.shown import table

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver

    from qrmem.graphstore.neo4j import SavedQuery
    from qrmem.types.usage import Plan

__all__ = ["BlockingMemory", "EntityCount", "Memory", "Opening", "open"]

T = TypeVar("T")


class Memory:
    """One namespace of a store: add documents to it, search it, ask it, inspect it."""

    def __init__(
        self,
        store: GraphStore,
        settings: Settings,
        listener: Listener | None = None,
        *,
        made: Path | None = None,
    ) -> None:
        """Create a memory on an open store; use `open` instead.

        Args:
            made: the file that was created for it; it is deleted again if nothing was stored in it.
        """
        self._session = Session(store, settings, made)
        self._listener = listener
        self._is_watched = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        settings = self.settings
        state = ", closed" if self._session.is_closed else ""
        return f"<Memory {str(settings.memory)!r}, namespace {settings.namespace!r}{state}>"

    def _repr_html_(self) -> str:
        settings = self.settings
        model = settings.model or "none: built-in rules"
        rows = (("memory", settings.memory), ("namespace", settings.namespace), ("model", model))
        return table(rows)

    async def close(self) -> None:
        """Close the store and the model's connections; afterwards every call is refused."""
        await self._session.close()

    @property
    def settings(self) -> Settings:
        """The settings that it was opened with."""
        return self._session.settings

    @property
    def location(self) -> str:
        """Its file, or its server's address without a password."""
        return self._session.store.location

    def listening(self, listener: Listener, *, words: bool = False) -> "Memory":
        """Return this memory with an additional listener; both share store and models.

        Args:
            words: send it answers as they are written, as events of kind `words`.
        """

        def both(event: Event) -> None:
            if self._listener is not None:
                self._listener(event)
            listener(event)

        other = copy(self)
        other._listener = both
        other._is_watched = words or self._is_watched
        return other

    async def add(
        self,
        source: Source,
        *,
        update: bool = False,
        rebuild: bool = False,
        glob: str | None = None,
        follow_links: bool = False,
        question: str = "",
        user: str = "",
        session: str = "",
        extract: bool = False,
        **caps: Unpack[CapOptions],
    ) -> AddReport:
        """Read documents into the memory; complete documents cost nothing again.

        Args:
            source: a path, a folder, a `Document`, `{"id", "title", "text", "metadata"}`, or an
                iterable of them; or a list of messages (`{"role", "content"}`, or LangChain's),
                which are kept as turns: see `add_messages`. A file's id is its path below the given
                folder, with more parent folders if another file has that id.
            update: replace documents of the same id whose text, title or metadata differ; only
                segments that changed are read again. Threads of checkpointers used since the memory
                was opened that read an old segment are dropped.
            rebuild: read every segment again, and summarise again.
            glob: pattern that selects the files of a folder.
            follow_links: whether to follow symbolic links out of a folder; otherwise they are
                skipped and counted.
            question: shapes the graph (orientation `full`).
            user: for messages: the user whose conversation it is.
            session: for messages: name of the conversation.
            extract: for messages: extract facts from them, see `add_messages`.
            caps: `max_calls`, `max_tokens`, `max_cost`, `max_seconds`, for this run alone.

        Returns:
            A report. Failed segments are in `problems`, and the same call tries them again. A cap
            that was reached is in `stopped`, and the same call continues from there.

        Raises:
            BadDocument: the one source given cannot be read.
            UsageError: a document exists with another text, and `update` is not set.
            AccessRefused: the server rejects the key or the model's name.
            ModelUnavailable: the model does not answer; segments read so far are kept.
        """
        options = AddOptions(
            update=update,
            rebuild=rebuild,
            glob=glob,
            follow_links=follow_links,
            question=question,
            user=user,
            session=session,
            extract=extract,
            caps=caps,
        )
        return await change.add(self._session, source, options, self._emit)

    async def add_text(
        self,
        text: str,
        *,
        title: str = "",
        id: str | None = None,
        metadata: Mapping[str, MetaValue] | None = None,
        update: bool = False,
        **caps: Unpack[CapOptions],
    ) -> AddReport:
        """Read a text into the memory, as `add` reads a file.

        Args:
            id: id of the document; `None`: derived from the text.
            metadata: primitive values, and lists of texts, to narrow `search` and `ask` by.
            update: replace a document of the same id.
            caps: see `add`.

        Raises:
            BadDocument: the text is empty.
        """
        document = Document(text, title=title, id=id, metadata=metadata or {})
        return await self.add(document, update=update, **caps)

    async def search(
        self,
        question: str,
        *,
        k: int = 10,
        documents: Sequence[str] | None = None,
        where: Where | None = None,
        types: Sequence[str] | None = None,
        as_of: str | date = "",
        reranker: str | None = None,
    ) -> list[Hit]:
        """Rank segments for a question; no chat model is called.

        Each hit has an excerpt, with the spans of the question's words in it. Tables of contents,
        title pages, indexes and licences come last, and are marked.

        Args:
            k: maximum number of hits, at least 1.
            documents: only these documents.
            where: only documents with this metadata: `{"kind": "novel"}`, or with conditions,
                `{"year": {">=": 1851, "<": 1900}, "tag": {"has": "sea"}, "by": {"in": [...]}}`.
            types: only segments that name an entity of one of these types, or state a relation of
                one: `["Person", "WorksFor"]`.
            as_of: only what had been said by then, and undated documents: a date, `2026-05-03`,
                `2026-05` or `2026`, or a moment; "": all.
            reranker: reorders the first 50 hits; named as in the setting. `None`: the setting's;
                `none`: no reranker. If it does not answer, a warning says so.

        Raises:
            UsageError: the question is empty, `as_of` is not a date, k is below 1, or `where` or
                `types` is not valid.
            NotFound: a named document does not exist, none matches `where`, or none was read yet.
        """
        return await ask.search(
            self._session,
            question,
            self._emit,
            k=k,
            documents=documents,
            where=where,
            types=types,
            as_of=as_of,
            reranker=reranker or "",
        )

    async def ask(
        self,
        question: str,
        *,
        strategy: Strategy | None = None,
        window: int | None = None,
        choices: Sequence[str] | None = None,
        documents: Sequence[str] | None = None,
        where: Where | None = None,
        types: Sequence[str] | None = None,
        as_of: str | date = "",
        orientation: Orientation | None = None,
        share_orientation: bool = False,
        max_trials: int = 5,
        start: Literal["search", "entities"] = "search",
        on_exhausted: Literal["abstain", "force"] = "abstain",
        keep_trail: bool | None = None,
        fragments: FragmentSettings | None = None,
        reranker: str | None = None,
        checkpointer: "BaseCheckpointSaver[Any] | None" = None,
        **caps: Unpack[CapOptions],
    ) -> Answer:
        """Answer a question by walking the graph and reading only what fits the window.

        Args:
            strategy: `reflection` (Algorithm 1), `graph-expansion`, `entity-trial`, `fragment`
                (FragRel), `inner-loop` (ILM-TR), `raptor` or `raptor-layered` (RAPTOR), `temp-mem`
                (the whole text, its middle left out), `overview` (notes on every part of the text,
                then an answer) or `passages` (one search, read once). `None`, with a chat model:
                everything in order if it fits the window, else `overview` of at most 12 parts for
                a question about the whole text, else `reflection`; without a model `passages`.
                window: the paper's L: token limit of every call; `None` or 0: that of the settings.
            choices: options of a multiple-choice question; without a chat model only an option that
                the text clearly states is chosen.
            types: as for `search`; not for `fragment` and the strategies over trees.
            as_of: use the memory as of a time: what had been said and was true then. A date,
                `2026-05-03`, `2026-05` or `2026`, or a moment; "": now.
            orientation: `local` extracts the nearest segments again with the question, once.
            share_orientation: let this run use statements that other questions' orientation added.
            max_trials: maximum number of readings.
            start: begin from search hits, or from entities named in the question.
            on_exhausted: after the last trial, abstain or force an answer.
            keep_trail: write the trail to the store; default: the setting `keep_trails`.
            fragments: settings of `fragment`; `None`: those of FragRel for text, code or turns.
            reranker: reorders the first 50 hits of a search; named as in the setting. `None`: the
                setting's; `none`: no reranker.
            checkpointer: an async LangGraph checkpointer. It saves the run after each step, in a
                thread whose id is the trail's. After an interruption the same call continues from
                there. `delete` drops threads that read a deleted document.
            caps: `max_calls`, `max_tokens`, `max_cost`, `max_seconds`, for this run alone.

        Raises:
            CapReached: there is no answer yet; paid replies are kept, and the same call continues.
            UsageError: the question is empty, the strategy is unknown, or there is one choice.
            WindowTooSmall: the question, its options and the prompt alone exceed the window.
            NotFound: a named document does not exist, none matches `where`, or none was read yet.
        """
        options = AskOptions(
            question=question,
            strategy=strategy or "",
            window=window or 0,
            choices=choices or (),
            documents=documents,
            where=where,
            types=types,
            as_of=as_of,
            orientation=orientation or "",
            share_orientation=share_orientation,
            max_trials=max_trials,
            start=start,
            on_exhausted=on_exhausted,
            keep_trail=keep_trail,
            fragments=fragments,
            reranker=reranker or "",
            checkpointer=checkpointer,
            caps=caps,
        )
        items = ask.stream(self._session, options, self._emit, words=self._is_watched)
        return await ask.answer_of(items)

    async def plan(
        self,
        /,
        source: Source | None = None,
        *,
        ask: str | None = None,
        tree: bool | Sequence[str] = False,
        **options: Unpack[PlanKeywords],
    ) -> "Plan":
        """Estimate what `add(source, …)` or `ask(question, …)` would use, without any call.

        An `add` runs dry: with real prompts, and a stub for the chat model and for a server's
        embedder. An `ask` is estimated from its first reading and the calls that its strategy makes
        on average. Nothing is written.

        Args:
            source: source of an `add`.
            ask: the question of an `ask`.
            tree: with a source: its documents get trees, too. Alone: plan `build_tree` over the
                documents of these ids; `True`: over all.
            options: those of `add` or of `ask`.

        Raises:
            UsageError: both or neither are given, or the run itself would raise it.
        """
        from qrmem.memory.plan import plan

        return await plan(self._session, plan_options(source, ask, tree, options))

    def stream(
        self, question: str, *, words: bool = False, **options: Unpack[AskKeywords]
    ) -> AsyncGenerator[Step | Words | Answer, None]:
        """Answer like `ask`, yielding every step as it happens, then the answer.

        Args:
            words: also yield the chat model's words as it writes them.
            options: options of `ask`.
        """
        ask_options = options_of(AskOptions, options, question=question)
        items = ask.stream(self._session, ask_options, self._emit, words=words)
        return observability.in_one_context(items)

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
        from qrmem.memory.chat.message_log import require_role_first

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

    async def status(self) -> MemoryStatus:
        """Return figures, problems and costs of the namespace."""
        counts_now = await inspect.status(self._session)
        if not self._session.settings.model:
            return counts_now
        from qrmem.memory import plan  # loads all code for reading

        counts, price = await plan.cost_of_reading_again(self._session)
        if not counts:
            return counts_now
        warnings = (*counts_now.warnings, inspect.otherwise(counts, price))
        return replace(counts_now, warnings=warnings, read_otherwise=counts, reading_again=price)

    async def usage(self, by: By = "stage") -> Sequence[UsageRow]:
        """Return the usage of all runs together, construction and online separately.

        Args:
            by: the rows of the table: `stage`, `run` or `day` (UTC).
        """
        return await inspect.usage(self._session, by)

    async def namespaces(self) -> Sequence[str]:
        """Return the names of all namespaces in this store."""
        return await self._session.store.namespaces()

    async def documents(
        self,
        where: Where | None = None,
        *,
        turns: bool | None = None,
        offset: int = 0,
        limit: int | None = None,
    ) -> Page[DocumentInfo]:
        """Return documents by id, without their texts.

        Args:
            turns: `True`: only turns of conversations and facts of them, `False`: all others.
            offset: number of documents to skip.
            limit: maximum number of results; `None`: all.

        Returns:
            A list; its `total` is the number without `offset` and `limit`.
        """
        return await inspect.documents(self._session, where, turns, offset, limit)

    async def document(self, document_id: str) -> Document:
        """Return a document with its text.

        Raises:
            NotFound: no such document.
        """
        return await inspect.document(self._session, document_id)

    async def segments(self, document: str = "", *, ids: Iterable[str] = ()) -> Sequence[Segment]:
        """Return the segments of a document in order, or segments by their ids.

        Args:
            ids: ids of segments; unknown ones are left out.

        Raises:
            NotFound: no such document.
        """
        return await inspect.segments(self._session, document, ids)

    async def entities(self, limit: int = 100) -> Sequence[EntityCount]:
        """Return entities, those with most segments first."""
        return await inspect.entities(self._session, limit)

    async def entity(
        self,
        name: str,
        *,
        offset: int = 0,
        limit: int | None = None,
        as_of: str | date = "",
    ) -> EntityView:
        """Return an entity by any of its names, with relations, questions and segments.

        Args:
            offset: number of relations, and of segments, to skip.
            limit: maximum number of each, with the questions of these segments; `None`: all.
            as_of: names, relations and segments as of a time; relations that were not true then are
                marked. A date, `2026-05-03`, `2026-05` or `2026`, or a moment; "": now.

        Raises:
            NotFound: no entity has this name; the message lists similar names.
            UsageError: `as_of` is not a date.
        """
        return await inspect.entity(self._session, name, offset, limit, as_of)

    async def graph(self, name: str = "", *, limit: int = 40) -> GraphPart:
        """Return an entity with its nearest neighbours and all edges between them, for drawing.

        Args:
            name: name of the entity; "": the most frequent one.
            limit: maximum number of neighbours, those with most statements; at least 1.

        Raises:
            NotFound: no entity has this name; the message lists similar names.
            UsageError: `limit` is below 1.
        """
        return await inspect.graph(self._session, name, limit)

    async def facts(
        self,
        entity: str = "",
        *,
        user: str = "",
        as_of: str | date = "",
        superseded: bool = False,
        deleted: bool = False,
        offset: int = 0,
        limit: int | None = None,
    ) -> Page[FactView]:
        """Return statements with their times, replacements and the sentences that state them.

        Args:
            entity: only those about the entity of this name.
            user: only those of this user's turns and documents.
            as_of: what had been said by then, and was true then: a date, `2026-05-03`, `2026-05` or
                `2026`, or a moment; "": now.
            superseded: also return statements that are no longer true, or not yet.
            deleted: return the statements that were deleted by hand instead; `restore_fact` undoes
                a deletion.
            offset: number of statements to skip.
            limit: maximum number of statements; `None`: all.

        Returns:
            A list of statements in the order of document ids, then of the text; its `total` is the
            number without `offset` and `limit`.

        Raises:
            NotFound: no entity has this name; the message lists similar names.
            UsageError: `as_of` is not a date, or both `superseded` and `deleted` are set.
        """
        return await statements.facts(
            self._session,
            entity=entity,
            user=user,
            as_of=as_of,
            superseded=superseded,
            deleted=deleted,
            offset=offset,
            limit=limit,
        )

    async def merges(self) -> Sequence[Merge]:
        """Return merged names with the reasons; a name with two types is returned once."""
        return await inspect.merges(self._session)

    async def tree_tops(self) -> Sequence[TreeTop]:
        """Return all trees without their nodes; `tree_nodes` returns these."""
        return await summary_trees.tops(self._session)

    async def tree_nodes(self, keys: Iterable[str]) -> Sequence[TreeNode]:
        """Return nodes of trees by their keys, in this order; unknown keys are left out."""
        return await summary_trees.nodes(self._session, keys)

    async def trail(self, trail_id: str | None = None) -> Trail:
        """Return a recorded run, or the last.

        Raises:
            NotFound: no such trail, or none at all.
        """
        return await inspect.trail(self._session, trail_id)

    async def trails(self, limit: int = 20) -> Sequence[Trail]:
        """Return recorded runs, newest first."""
        return await inspect.trails(self._session, limit)

    async def neo4j_queries(self, name: str = "") -> "Sequence[SavedQuery]":
        """Return ready queries to look at this namespace in Neo4j Browser.

        Args:
            name: any name of the entity to look at; "": the most frequent entity.

        Raises:
            NotFound: no entity has this name; the message lists similar names.
            UsageError: this memory is not in Neo4j.
        """
        return await inspect.neo4j_queries(self._session, name)

    async def delete(
        self, *document_ids: str, checkpointer: "BaseCheckpointSaver[Any] | None" = None
    ) -> None:
        """Delete documents; afterwards the memory equals one that never held them.

        Args:
            checkpointer: a LangGraph checkpointer that was used for questions; threads that read
                one of the documents are deleted. Those used since the memory was opened need not be
                given.

        Raises:
            NotFound: one of them does not exist; nothing is deleted.
            StoreUnavailable: a checkpointer used before is closed, and none is given; nothing is
                deleted.
        """
        await change.delete(self._session, document_ids, checkpointer)

    async def delete_all(self, *, checkpointer: "BaseCheckpointSaver[Any] | None" = None) -> None:
        """Delete the whole namespace.

        Args:
            checkpointer: see `delete`.

        Raises:
            NotFound: the namespace does not exist.
        """
        await change.delete_all(self._session, checkpointer)

    async def merge(self, first: str, second: str) -> None:
        """Merge two names from now on; your decision overrides the rules and is kept."""
        await change.override_merge(self._session, first, second, same=True)

    async def separate(self, first: str, second: str) -> None:
        """Keep two names apart from now on; your decision overrides the rules and is kept.

        Names are told apart by their spelling. Two people who are both called Victor stay one
        entity; "Victor" and "Victor Hugo" can be kept apart.
        """
        await change.override_merge(self._session, first, second, same=False)

    async def judge_facts(self, *, plan: bool = False, **caps: Unpack[CapOptions]) -> JudgeReport:
        """Ask the chat model which statements later ones replace; each judgement is kept.

        It judges pairs of statements, from one user's turns and dated documents, that may clash:
        both about the same entity, in similar words, one said later. A call holds eight pairs, and
        ten turns or documents take at most one call. A judged pair is not asked again. Deleting a
        document deletes the judgements on its statements.

        Args:
            plan: only estimate the cost; nothing is sent.
            caps: `max_calls`, `max_tokens`, `max_cost`, `max_seconds`, for this run alone.

        Raises:
            UsageError: no chat model is set.
            ModelUnavailable: it does not answer; judgements so far are kept.
        """
        return await judging.judge(self._session, self._emit, caps, is_plan=plan)

    async def edit_fact(
        self,
        fact_id: str,
        text: str | None = None,
        *,
        valid_from: str | None = None,
        valid_until: str | None = None,
    ) -> FactView:
        """Change the description or the dates of a statement; the edit is kept.

        The edit is deleted with the segment that states it. `restore_fact` undoes it.

        Args:
            fact_id: as `facts` has it.
            text: its new description; `None`: unchanged.
            valid_from: `2026-05-03`, `2026-05` or `2026`, "" for none; `None`: unchanged.
            valid_until: the same.

        Raises:
            NotFound: there is no such statement.
            UsageError: a date is not valid, or the end is before the beginning.
        """
        return await statements.edit(self._session, fact_id, text, valid_from, valid_until)

    async def end_fact(self, fact_id: str, on: str | date = "") -> FactView:
        """Mark a statement as no longer true.

        Args:
            fact_id: as `facts` has it.
            on: its last day, month or year; "": today, in UTC.

        Raises:
            NotFound: there is no such statement.
            UsageError: the date is not valid, or is before the statement's beginning.
        """
        return await statements.end(self._session, fact_id, on)

    async def delete_fact(self, fact_id: str) -> None:
        """Delete a statement from the graph; the document's text stays as it is.

        Raises:
            NotFound: there is no such statement.
        """
        await statements.delete(self._session, fact_id)

    async def restore_fact(self, fact_id: str) -> FactView:
        """Undo an edit, an end or a deletion: the statement is as it was read.

        Raises:
            NotFound: there is no such statement.
        """
        return await statements.restore(self._session, fact_id)

    async def repair(self, *, compare_only: bool = False) -> Repair:
        """Compare the graph with the extractions, and rebuild it if they differ.

        Use it after edits in Neo4j Browser, or for a damaged memory. Names that were merged or
        moved by hand are kept, as if by `merge` and `separate`; other edits are not. An SQLite file
        is rewritten, without the space and the remains of deleted data.

        Args:
            compare_only: say what differs, and change nothing.

        Raises:
            NotFound: the namespace does not exist.
            StoreConflict: somebody else changed it meanwhile.
            StoreUnavailable: the file of the memory is damaged.
        """
        return await change.repair(self._session, compare_only=compare_only)

    async def prune(self) -> int:
        """Delete the cached replies of chat models; return how many.

        What was extracted from them stays, and so do merged descriptions. If you ask a question
        again, or read a failed segment again, you pay again.
        """
        return await change.prune(self._session)

    async def reembed(self, embedder: str, **caps: Unpack[CapOptions]) -> int:
        """Embed all segments with another model; return how many were embedded in this call.

        A run that was stopped continues where it stopped.

        Args:
            caps: `max_calls`, `max_tokens`, `max_cost`, `max_seconds`, for this run alone.

        Raises:
            CapReached: what was embedded is kept, and the same call continues from there.
        """
        return await change.reembed(self._session, embedder, self._emit, caps)

    async def build_tree(
        self,
        *document_ids: str,
        kind: TreeKind = "ilm",
        preset: Literal["default", "paper"] = "default",
        **caps: Unpack[CapOptions],
    ) -> TreeReport:
        """Build a tree of summaries over each document; needs the extra `tree`.

        With a chat model it writes the summaries; without one they are sentences of the text.
        Existing nodes are not made again.

        Args:
            document_ids: the documents; none means all.
            kind: `ilm` (ILM-TR): every segment has a summary and its surprises, and summaries are
                clustered; `raptor` (RAPTOR): segments are clustered, and nodes are plain summaries.
            preset: `default` clusters within chapters first, so that a changed chapter changes few
                nodes; `paper` clusters each level as a whole, and sends the sampling parameters of
                ILM-TR, appendix A.3, to servers that accept them.
            caps: `max_calls`, `max_tokens`, `max_cost`, `max_seconds`, for this run alone.

        Returns:
            A report. A cap that was reached is in `stopped`, and the same call continues.

        Raises:
            MissingError: the extra is not installed.
            NotFound: one of the documents does not exist.
            ModelUnavailable: the model does not answer; finished nodes are kept.
        """
        return await change.build_tree(
            self._session, document_ids, self._emit, caps, kind=kind, preset=preset
        )

    async def trees(self, *document_ids: str, kind: TreeKind = "ilm") -> Sequence[Tree]:
        """Return the trees of some documents, or all that were built.

        Raises:
            NotFound: one of the documents does not exist.
        """
        return await change.trees(self._session, document_ids, kind)

    async def load(self, path: str | PathLike[str]) -> Archived:
        """Fill an empty namespace with an archive from `export`: completely, or not at all.

        Raises:
            BadImport: the archive is cut, altered or malformed; nothing is written.
            MissingError: it was written by a newer qrmem, or embedded by another model than the
                chosen one.
            UsageError: the namespace is not empty.
        """
        return await change.load(self._session, path, self._emit)

    async def load_openie(self, path: str | PathLike[str]) -> ExtractionReport:
        """Import extractions of other programs: HippoRAG's OpenIE results, or plain triples.

        Passages with a text become documents; others are found by the id of a document or a
        segment. See docs/archive.md for the forms.

        Raises:
            BadImport: the file is malformed, or names an unknown passage; nothing is written.
        """
        return await change.load_openie(self._session, path, self._emit)

    async def export(
        self, path: str | PathLike[str], *, runs: bool = False, overwrite: bool = False
    ) -> Archived:
        """Write the namespace to one file: equal memories give equal bytes, from every store.

        Args:
            runs: also write trails, the ledger of calls and cached replies, which contain times.
            overwrite: replace an archive at `path`; any other file is never overwritten.

        Raises:
            NotFound: there is no such namespace.
            UsageError: there is a file already.
            StoreConflict: somebody changed it meanwhile, and it is not in SQLite; nothing is
            written.
        """
        return await change.export(self._session, path, runs=runs, overwrite=overwrite)

    async def graphml(self, path: str | PathLike[str], *, overwrite: bool = False) -> int:
        """Write the graph as GraphML (Gephi, Cytoscape); return the number of entities.

        Args:
            overwrite: replace an XML file at `path`; any other file is never overwritten.

        Raises:
            UsageError: there is a file already.
        """
        return await change.graphml(self._session, path, overwrite=overwrite)

    async def markdown(self, folder: str | PathLike[str]) -> int:
        """Write the memory as linked Markdown notes (Obsidian, git); return their number.

        Args:
            folder: new, empty, or that of an earlier export, whose notes are replaced; other files
                in it stay, also a note that you edited. A note whose name is taken gets another.

        Raises:
            UsageError: the folder contains other files.
        """
        return await change.markdown(self._session, folder)

    def _emit(self, event: Event) -> None:
        """Send an event to logging, spans and the listener."""
        observability.observe(event)
        if self._listener is not None:
            self._listener(event)


class BlockingMemory(ABC):
    """A memory on its own event loop: what the integrations need of `qrmem.sync.Memory`."""

    @abstractmethod
    def call(self, function: Callable[[Memory], Coroutine[Any, Any, T]]) -> T:
        """Run an async function of the memory, and wait until it is done."""

    @abstractmethod
    async def acall(self, function: Callable[[Memory], Coroutine[Any, Any, T]]) -> T:
        """Like `call`, for use in an event loop, which it does not block."""


def open(
    memory: str | None = None,
    *,
    namespace: str | None = None,
    settings: Settings | None = None,
    create: bool = True,
    listener: Listener | None = None,
    **chosen: Unpack[OpenOptions],
) -> "Opening":
    """Open a memory; `await` it or use it in `async with` (that of `qrmem.sync` in `with`).

    Args:
        memory: a path, `sqlite://…`, `neo4j://…`, `bolt://…`, or `:memory:` (also `memory://`).
        settings: used instead of those of the environment and the settings file.
        create: whether to create a database that does not exist.
        listener: gets the events of all runs (progress, steps, calls, warnings).
        chosen: any field of `Settings`, such as `model=`, `base_url=`, `embedder=`.

    Raises (when awaited):
        UsageError: a setting or a prompt template is wrong, or the file is not a database.
        NotFound: the database does not exist, with `create=False`.
        EmbedderMismatch: the namespace was embedded by another model.
        OutOfReach: the store does not answer.
    """

    def load() -> Settings:
        base = settings or Settings.from_env()
        return base.with_(memory=memory, namespace=namespace, **chosen)

    return Opening(load, create=create, listener=listener)


_UNOPENED = "`async with qrmem.open(…) as memory` or `await`; `qrmem.sync.open` needs neither"


class Opening:
    """A memory that is not open yet."""

    def __init__(
        self, load: Callable[[], Settings], *, create: bool, listener: Listener | None
    ) -> None:
        self._load = load
        self._create = create
        self._listener = listener
        self._memory: Memory | None = None

    def __repr__(self) -> str:
        return f"<a memory that is not open yet: {_UNOPENED}>"

    def __getattr__(self, name: str) -> Any:
        """Raise an error that says how to open the memory."""
        advice = f": {_UNOPENED}" if hasattr(Memory, name) else ""
        raise AttributeError(f"the memory is not open, so it has no {name!r}{advice}")

    def __enter__(self) -> NoReturn:
        raise UsageError(f"write {_UNOPENED}")

    def __exit__(self, *exc: object) -> None:
        pass  # never entered

    def __await__(self) -> Generator[Any, None, "Memory"]:
        return self.open().__await__()

    async def __aenter__(self) -> "Memory":
        self._memory = await self.open()
        return self._memory

    async def __aexit__(self, *exc: object) -> None:
        if self._memory is not None:
            await self._memory.close()

    async def open(self) -> "Memory":
        """Open it; see `open`."""
        from qrmem.graph.superseding import Shown
        from qrmem.graphstore import missing_file, open_store, withdraw

        # Files are read in a thread, so that a server's event loop can do other work.
        settings = await asyncio.to_thread(self._settings)
        address = revealed(settings.memory)
        path = await asyncio.to_thread(missing_file, address)
        opening = asyncio.ensure_future(
            open_store(address, settings, create=self._create, superseding=Shown())
        )
        try:
            store = await (opening if path is None else asyncio.shield(opening))
        except BaseException:
            if path is not None:  # for example on a full disk, or after a cancellation
                await _ended(opening)
                await withdraw(path)
            raise
        memory = Memory(store, settings, self._listener, made=path)
        try:
            check_embedder(settings, await store.namespace(settings.namespace))
            await memory._session.finish()
        except BaseException:
            await memory.close()
            raise
        return memory

    def _settings(self) -> Settings:
        settings = self._load()
        if settings.replay:
            from qrmem.llm.routing import as_recorded

            settings = as_recorded(settings)
        if settings.prompts:
            from qrmem.prompts import load_prompts

            load_prompts(settings.prompts)
        if settings.schema:
            from qrmem.schema import load_schema

            settings = settings.with_(schema=load_schema(settings.schema))
        return settings


async def _ended(opening: asyncio.Future[GraphStore]) -> None:
    """Wait for an opening that creates a file, since a cancellation does not end it; close it."""
    while not opening.done():
        with suppress(asyncio.CancelledError):
            await asyncio.wait([opening])
    if not opening.cancelled() and opening.exception() is None:
        await opening.result().close()
