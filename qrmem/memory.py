"""The facade: open a memory, add documents, search, ask, look, forget."""

from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Mapping, Sequence
from contextlib import aclosing
from copy import copy
from datetime import datetime
from inspect import signature
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack, cast

from qrmem import inspect, observability
from qrmem.config import Settings, revealed
from qrmem.errors import UsageError
from qrmem.graphstore.protocol import EntityCount, GraphStore
from qrmem.llm.budget import CapOptions
from qrmem.llm.usage import By
from qrmem.models import caps_of, check_embedder, reembed
from qrmem.session import Session
from qrmem.sources import Source
from qrmem.types import (
    AddReport,
    Answer,
    Archived,
    Document,
    DocumentInfo,
    EntityView,
    Event,
    ExtractionReport,
    Hit,
    Listener,
    MemoryStatus,
    Merge,
    MergeDecision,
    Orientation,
    Recalled,
    Repair,
    Scalar,
    Segment,
    Step,
    Trail,
    Turn,
    UsageRow,
    Words,
)
from qrmem.types.trees import Tree, TreeKind, TreeReport

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver

    from qrmem.graphstore.neo4j import SavedQuery
    from qrmem.retrieval.fragments import FragmentSettings
    from qrmem.types.plans import Plan

__all__ = ["EntityCount", "Memory", "open"]


def open(
    memory: str | None = None,
    *,
    namespace: str | None = None,
    settings: Settings | None = None,
    create: bool = True,
    listener: Listener | None = None,
    **chosen: Any,
) -> "Opening":
    """Open a memory; `await` it or use it in `async with`.

    Args:
        memory: a path, `sqlite://…`, `neo4j://…`, `bolt://…` or `memory://`.
        settings: instead of those of the environment and the settings file.
        create: whether a database that is not there is made.
        listener: takes the events of all runs (progress, steps, calls, warnings).
        chosen: any field of `Settings`, such as `model=`, `base_url=`, `embedder=`.

    Raises (when awaited):
        UsageError: a setting or a prompt template is wrong, or the file is no database.
        NotFound: no such database, with `create=False`.
        EmbedderMismatch: the namespace was embedded by another model.
        OutOfReach: the store does not answer.
    """
    base = settings or Settings.from_env()
    chosen = {"memory": memory, "namespace": namespace, **chosen}
    return Opening(base.with_(**chosen), create=create, listener=listener)


class Opening:
    """A memory that is about to be opened."""

    def __init__(self, settings: Settings, *, create: bool, listener: Listener | None) -> None:
        self._settings = settings
        self._create = create
        self._listener = listener
        self._memory: Memory | None = None

    def __await__(self) -> Generator[Any, None, "Memory"]:
        return self.open().__await__()

    async def __aenter__(self) -> "Memory":
        self._memory = await self.open()
        return self._memory

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._memory is not None:
            await self._memory.close()

    async def open(self) -> "Memory":
        """Open it; see `open`."""
        from qrmem.graphstore import missing_file, open_store

        settings = self._settings
        if settings.replay:
            from qrmem.llm.routing import as_recorded

            settings = as_recorded(settings)
        if settings.prompts:
            from qrmem.prompts import load_prompts

            load_prompts(settings.prompts)
        address = revealed(settings.memory)
        made = missing_file(address)
        store = await open_store(address, settings, create=self._create)
        memory = Memory(store, settings, self._listener, made=made)
        try:
            check_embedder(settings, await store.namespace(settings.namespace))
        except BaseException:
            await memory.close()
            raise
        return memory


class Memory:
    """One namespace of a store: add documents to it, search it, ask it, look at it."""

    def __init__(
        self,
        store: GraphStore,
        settings: Settings,
        listener: Listener | None = None,
        *,
        made: Path | None = None,
    ) -> None:
        """Make a memory of an open store; use `open`.

        Args:
            made: the file that was made for it, and goes again if nothing came into it.
        """
        self._session = Session(store, settings, made)
        self._listener = listener
        self._is_watched = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the store and the model's connections; afterwards every call is refused."""
        await self._session.close()

    @property
    def settings(self) -> Settings:
        """What it was opened with."""
        return self._session.settings

    # --- reading documents in -------------------------------------------------------------------

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
        **caps: Unpack[CapOptions],
    ) -> AddReport:
        """Read documents into the memory; what is there already, complete, costs nothing.

        Args:
            source: a path, a folder, a `Document`, `{"id", "title", "text", "metadata"}`, or an
                iterable of them; or a list of messages (`{"role", "content"}`, or LangChain's),
                which are kept as turns: see `add_messages`.
            update: replace documents of the same id whose text, title or metadata differ; only
                segments that changed are read again. Threads of checkpointers used since the memory
                was opened that read an old segment are dropped.
            rebuild: read every segment again, and summarise again.
            glob: which files of a folder.
            follow_links: whether links in a folder are followed wherever they lead; else those that
                lead out of it are passed over and counted.
            question: shapes the graph (orientation `full`).
            user: of messages: whose conversation it is.
            session: of messages: the conversation that they are part of.
            caps: `max_calls`, `max_tokens`, `max_cost`, `max_seconds`, for this run alone.

        Returns:
            What was done; failed segments are in `problems`, and the same call tries them again. A
            cap that was reached is in `stopped`, and the same call goes on from there.

        Raises:
            BadDocument: the one source given cannot be read.
            UsageError: a document is there with another text, and `update` is not set.
            AccessRefused: key or model name refused.
            ModelUnavailable: the model does not answer; what was read is kept.
        """
        from qrmem.graph.dialog import are_messages
        from qrmem.ingest import Adder

        if are_messages(source):
            return await self._keep(cast(Iterable[Any], source), session=session, user=user)
        if user or session:
            raise UsageError("user and session are for messages; a document takes metadata")
        own = self._session
        own.require_writable()
        with own.adding(), observability.run("add", namespace=own.ns):
            adder = Adder(
                own.store,
                own.ns,
                await own.models(create=True),
                listener=self._emit,
                update=update,
                rebuild=rebuild,
                question=question,
                caps=caps_of(self.settings, **caps),
            )
            try:
                return await adder.add(source, glob, follow_links=follow_links)
            finally:
                if adder.replaced:
                    await own.forget_threads(adder.replaced, None)

    async def add_text(
        self,
        text: str,
        *,
        title: str = "",
        id: str | None = None,
        metadata: Mapping[str, Scalar] | None = None,
        update: bool = False,
        **caps: Unpack[CapOptions],
    ) -> AddReport:
        """Read a text into the memory, as `add` reads a file.

        Args:
            id: of the document; `None`: made of the text.
            metadata: primitive values to narrow `search` and `ask` by.
            update: replace a document of the same id.
            caps: see `add`.

        Raises:
            BadDocument: the text is empty.
        """
        document = Document(text, title=title, id=id, metadata=metadata or {})
        return await self.add(document, update=update, **caps)

    async def load(self, path: str | PathLike[str]) -> Archived:
        """Fill the namespace with an archive that `export` wrote: all of it, or nothing.

        Raises:
            BadImport: the archive is cut, altered or not in its form; nothing is written.
            MissingError: it was written by a newer qrmem, or embedded by another model than the
                one that is chosen.
            UsageError: the namespace holds something already.
        """
        from qrmem.io.moving import load_archive

        self._session.require_writable()
        return await load_archive(self._session, path, self._emit)

    async def load_openie(self, path: str | PathLike[str]) -> ExtractionReport:
        """Bring in what was extracted elsewhere: HippoRAG's OpenIE results, or plain triples.

        Passages whose text the file has become documents; others are found by the id of a document
        or a segment. See docs/archive.md for the forms.

        Raises:
            BadImport: the file is not in its form, or speaks of a passage that is not there;
                nothing is written.
        """
        from qrmem.io.moving import load_extraction

        self._session.require_writable()
        return await load_extraction(self._session, path, self._emit)

    async def delete(
        self, *document_ids: str, checkpointer: "BaseCheckpointSaver[Any] | None" = None
    ) -> None:
        """Forget documents: afterwards the memory equals one that never held them.

        Args:
            checkpointer: LangGraph's, that questions were asked with; threads that read one of the
                documents are dropped. Those used since the memory was opened need not be named.

        Raises:
            NotFound: one of them is not there; nothing is deleted.
        """
        session = self._session
        session.require_writable()
        await session.require_documents(document_ids)
        segments = [s.id for s in await session.store.segments_of(session.ns, *document_ids)]
        for document_id in document_ids:
            await session.store.delete_document(session.ns, document_id)
        await session.forget_threads(segments, checkpointer)
        await self._refresh_names()

    async def forget_user(self, user: str) -> int:
        """Delete all turns of a user, and all documents with `user` in their metadata.

        Afterwards the memory equals one that never held them.

        Returns:
            How many documents were deleted.
        """
        from qrmem import conversation

        if not user:
            raise UsageError("no user is named")
        await self._session.known()
        ids = sorted(await conversation.ids_of(self._session, user))
        if ids:
            await self.delete(*ids)
        return len(ids)

    async def delete_all(self, *, checkpointer: "BaseCheckpointSaver[Any] | None" = None) -> None:
        """Forget the whole namespace.

        Args:
            checkpointer: see `delete`.

        Raises:
            NotFound: there is none of that name.
        """
        session = self._session
        session.require_writable()
        if await session.store.namespace(session.ns) is None:
            await session.info()
        await session.store.delete_namespace(session.ns)
        await session.forget_threads(None, checkpointer)

    async def merge(self, first: str, second: str) -> None:
        """Count two names as one from now on; beats every rule, and stays."""
        await self._decide(first, second, same=True)

    async def separate(self, first: str, second: str) -> None:
        """Keep two names apart from now on; beats every rule, and stays."""
        await self._decide(first, second, same=False)

    async def repair(self) -> Repair:
        """Compare the graph with what was read, and build it again where they differ.

        For a memory that somebody edited in Neo4j Browser, or that was damaged. Names that were
        merged or moved by hand are kept, as if by `merge` and `separate`; other edits are not.

        Raises:
            NotFound: there is no such namespace.
            StoreConflict: somebody else changed it meanwhile.
        """
        from qrmem.graph.repair import repair

        session = self._session
        session.require_writable()
        await session.info()
        done = await repair(session.store, session.ns, similar=await session.similar())
        await session.renew()
        return done

    async def prune(self) -> int:
        """Forget the replies that are kept so as not to be paid for again; returns how many.

        What was made of them stays, and so do descriptions that a model folded. A question that is
        asked again and a failed segment are then paid for again.
        """
        from qrmem.llm.cache import is_reply_key

        session = self._session
        session.require_writable()
        await session.info()
        replies = [key for key in await session.store.kept_keys(session.ns) if is_reply_key(key)]
        await session.store.drop_kept(session.ns, replies)
        return len(replies)

    async def reembed(self, embedder: str, **caps: Unpack[CapOptions]) -> int:
        """Embed all segments by another model; resumable. Returns how many were embedded now.

        Args:
            caps: `max_calls`, `max_tokens`, `max_cost`, `max_seconds`, for this run alone.

        Raises:
            CapReached: what was embedded is kept, and the same call goes on from there.
        """
        session = self._session
        session.require_writable()
        await session.info()
        try:
            bounds = caps_of(self.settings, **caps)
            with observability.run("reembed", namespace=session.ns):
                return await reembed(
                    session.store, session.ns, self.settings, embedder, self._emit, bounds
                )
        finally:
            await session.follow_embedder()

    # --- trees of summaries -----------------------------------------------------------------------

    async def build_tree(
        self,
        *document_ids: str,
        kind: TreeKind = "ilm",
        preset: Literal["default", "paper"] = "default",
        **caps: Unpack[CapOptions],
    ) -> TreeReport:
        """Build a tree of summaries over each document; needs the extra `tree`.

        With a chat model it writes the summaries; without one they are sentences of the text.
        Nodes that are there already are not made again.

        Args:
            document_ids: the documents; none means all.
            kind: `ilm` (ILM-TR): every segment has a summary and its surprises, and summaries are
                clustered; `raptor` (RAPTOR): segments are clustered, and nodes are plain summaries.
            preset: `default` clusters within chapters first, so that a changed chapter changes few
                nodes; `paper` clusters each level as a whole.
            caps: `max_calls`, `max_tokens`, `max_cost`, `max_seconds`, for this run alone.

        Returns:
            What was made. A cap that was reached is in `stopped`, and the same call goes on.

        Raises:
            MissingError: the extra is not installed.
            NotFound: one of the documents is not there.
            ModelUnavailable: the model does not answer; what was made is kept.
        """
        from qrmem import trees

        self._session.require_writable()
        bounds = caps_of(self.settings, **caps)
        with observability.run("tree", namespace=self._session.ns):
            return await trees.build(
                self._session, document_ids, self._emit, bounds, kind=kind, preset=preset
            )

    async def trees(self, *document_ids: str, kind: TreeKind = "ilm") -> Sequence[Tree]:
        """Return the trees of some documents, or all that were built.

        Raises:
            NotFound: one of the documents is not there.
        """
        from qrmem import trees

        return await trees.trees(self._session, document_ids, kind=kind)

    # --- finding and answering --------------------------------------------------------------------

    async def search(
        self,
        question: str,
        *,
        k: int = 10,
        documents: Sequence[str] | None = None,
        where: Mapping[str, Scalar] | None = None,
    ) -> list[Hit]:
        """Rank segments for a question; no chat model is called.

        Each hit has an excerpt, with the spans of the question's words in it. Tables of contents,
        title pages, indexes and licences come last, and are marked.

        Args:
            k: how many at most, at least 1.
            documents: only these documents.
            where: only documents whose metadata has these values.

        Raises:
            UsageError: the question is empty, or k is below 1.
            NotFound: a document named is not there, none fits `where`, or none was read yet.
        """
        narrowed = await self._session.readable(documents, where)
        searcher = await self._session.searcher()
        hits = await searcher.search(question, k=k, documents=narrowed)
        if not hits:
            await self._session.require_any()
            return []
        from qrmem.answering.passages import with_excerpts

        return with_excerpts(question, hits)

    async def ask(
        self,
        question: str,
        *,
        strategy: str | None = None,
        window: int | None = None,
        choices: Sequence[str] | None = None,
        documents: Sequence[str] | None = None,
        where: Mapping[str, Scalar] | None = None,
        orientation: Orientation | None = None,
        share_orientation: bool = False,
        max_trials: int = 5,
        start: Literal["search", "entities"] = "search",
        on_exhausted: Literal["abstain", "force"] = "abstain",
        keep_trail: bool | None = None,
        fragments: "FragmentSettings | None" = None,
        checkpointer: "BaseCheckpointSaver[Any] | None" = None,
        **caps: Unpack[CapOptions],
    ) -> Answer:
        """Answer a question by walking the graph and reading only what fits the window.

        Args:
            strategy: `reflection` (Algorithm 1), `graph-expansion`, `entity-trial`, `fragment`
                (FragRel), `inner-loop` (ILM-TR), `raptor` or `raptor-layered` (RAPTOR), `temp-mem`
                (the whole text, its middle left out), `overview` (notes on every part of the text,
                then an answer) or `passages` (one search, read once). `None`: with a chat model,
                all that may be read is read in order where it fits the window, else `overview` of
                at most 12 parts for a question about the whole text, else `reflection`; without
                one `passages`.
            window: L in tokens, a hard bound on every call.
            choices: options of a multiple-choice question.
            orientation: `local` extracts the nearest segments again with the question, once.
            share_orientation: let this run see what other questions' orientation added.
            max_trials: how often segments are read at most.
            start: begin from search hits, or from entities named in the question.
            on_exhausted: when the trials are used up, abstain or force an answer.
            keep_trail: write the trail to the store; default: the setting `keep_trails`.
            fragments: how `fragment` assesses; `None`: as FragRel does for text, code or turns.
            checkpointer: LangGraph's, one that can be awaited. It keeps the run after each step,
                in a thread whose id is the trail's; after an interruption the same call goes on
                from there. `delete` drops threads that read what is deleted.
            caps: `max_calls`, `max_tokens`, `max_cost`, `max_seconds`, for this run alone.

        Raises:
            CapReached: there is no answer yet; what was paid for is kept: the same call goes on.
            UsageError: empty question, unknown strategy, or fewer than two choices.
            WindowTooSmall: question, options and skeleton alone exceed the window.
            NotFound: a document named is not there, none fits `where`, or none was read yet.
        """
        answer: Answer | None = None
        items = self.stream(
            question,
            words=self._is_watched,
            strategy=strategy,
            window=window,
            choices=choices,
            documents=documents,
            where=where,
            orientation=orientation,
            share_orientation=share_orientation,
            max_trials=max_trials,
            start=start,
            on_exhausted=on_exhausted,
            keep_trail=keep_trail,
            fragments=fragments,
            checkpointer=checkpointer,
            **caps,
        )
        async with aclosing(items) as told:
            async for item in told:
                answer = item if isinstance(item, Answer) else answer
        assert answer is not None
        return answer

    async def plan(
        self, /, source: Source | None = None, *, ask: str | None = None, **options: Any
    ) -> "Plan":
        """Return what `add(source, …)` or `ask(question, …)` would use, before any call is made.

        The run is made dry: real prompts, with a stub in the place of the chat model and of a
        server's embedder. Nothing is written.

        Args:
            source: of an `add`.
            ask: the question of an `ask`.
            options: of the one or the other.

        Raises:
            UsageError: both or neither are given, or what the run itself would refuse.
        """
        from qrmem.asking import asked
        from qrmem.planning import plan_add, plan_ask

        if (source is None) == (ask is None):
            raise UsageError("plan a source to add, or a question: plan(source), plan(ask=…)")
        if source is not None:
            chosen = _arguments(Memory.add, self, source, options)
            for name in ("caps", "user", "session"):  # which cost nothing
                del chosen[name]
            return await plan_add(self._session, **chosen)
        chosen = _arguments(Memory.ask, self, ask, options)
        for name in ("keep_trail", "checkpointer", "caps"):
            del chosen[name]
        return await plan_ask(self._session, await asked(self._session, **chosen))

    async def stream(
        self, question: str, *, words: bool = False, **options: Any
    ) -> AsyncGenerator[Step | Words | Answer, None]:
        """Answer like `ask`, yielding every step as it happens, then the answer.

        Args:
            words: yield what a chat model writes, too, while it writes it.
            options: of `ask`.
        """
        from qrmem.asking import asked, streamed

        chosen = _arguments(Memory.ask, self, question, options)
        keep_trail, checkpointer = chosen.pop("keep_trail"), chosen.pop("checkpointer")
        caps = chosen.pop("caps")
        session, asking = self._session, await asked(self._session, **chosen)
        items = streamed(
            session,
            asking,
            self._emit,
            caps,
            keep_trail=self.settings.keep_trails if keep_trail is None else keep_trail,
            is_watched=words,
            checkpointer=checkpointer,
        )
        with observability.run("ask", namespace=session.ns, strategy=asking.strategy):
            async with aclosing(items) as told:
                async for item in told:
                    yield item

    def listening(self, listener: Listener, *, words: bool = False) -> "Memory":
        """Return this memory with one more listener; both share store and model.

        Args:
            words: tell it of answers while they are written, as events of kind `words`.
        """

        def both(event: Event) -> None:
            if self._listener is not None:
                self._listener(event)
            listener(event)

        other = copy(self)
        other._listener = both
        other._is_watched = words or self._is_watched
        return other

    # --- conversations ----------------------------------------------------------------------------

    async def add_turn(
        self,
        role: str,
        text: str,
        *,
        at: datetime | str | None = None,
        session: str = "",
        speaker: str = "",
        user: str = "",
    ) -> str:
        """Keep what somebody said; return the id of the document that it became.

        No chat model is called, whatever the settings: nobody has to wait, or pay, for a turn.

        Args:
            role: `user`, `assistant`, or what else the model's messages know.
            at: when; now, if it is not said. Turns are kept in the order in which they come.
            session: the conversation that it is part of.
            speaker: a name, where several people share a role.
            user: whose conversation it is; see `recall` and `forget_user`.

        Raises:
            UsageError: the role or the text is empty, or `at` is no time.
        """
        (added,) = await self.add_messages(
            [{"role": role, "content": text, "name": speaker}],
            at=at,
            session=session,
            user=user,
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
    ) -> list[str]:
        """Keep several turns; return their ids. Those without a text (tool calls) are passed over.

        Args:
            messages: of LangChain or LangGraph, `{"role", "content"}` (`name` and `at` if you
                like), or `(role, text)`.
            at: when those without a time of their own were said; now, if it is not said.
            only_new: leave out those with which the session ends already: for a log that grows.
            user: whose conversation it is.

        Raises:
            UsageError: one of them is no message, or `at` is no time.
        """
        from qrmem import conversation

        ids, _ = await conversation.add_messages(
            self._session,
            messages,
            self._emit,
            at=at,
            session=session,
            only_new=only_new,
            user=user,
        )
        return ids

    async def _keep(self, messages: Iterable[Any], *, session: str, user: str) -> AddReport:
        from qrmem import conversation

        _, report = await conversation.add_messages(
            self._session, messages, self._emit, at=None, session=session, only_new=False, user=user
        )
        if report is None:
            raise UsageError("none of the messages has a text")
        return report

    async def turns(self, session: str | None = None, *, user: str | None = None) -> list[Turn]:
        """Return the turns of a session and a user, or of all, in the order in which they came."""
        from qrmem import conversation

        return await conversation.turns(self._session, session, user)

    async def recall(
        self,
        prompt: str,
        *,
        session: str = "",
        tokens: int = 2000,
        how: Literal["turns", "fragrel"] = "turns",
        fragments: "FragmentSettings | None" = None,
        user: str | None = None,
    ) -> Recalled:
        """Return what a model is to know before it answers a prompt.

        The last turns of the session go to it as they are, up to 1,000 tokens and 10 rounds. The
        rest of the budget is filled with the best of all other turns, of any session, in order of
        time, and with what later turns seem to correct of them.

        Args:
            prompt: what the user says now; it need not be a turn yet.
            tokens: upper bound of everything that is returned.
            how: `turns`: by words, vectors, neighbours and speakers; `fragrel`: the eight best as
                FragRel finds them (its appendix B.3).
            fragments: settings of `fragrel` instead of the paper's for conversations.
            user: whose turns alone are recalled; `None`: all users'. `search` and `ask` take
                `where={"user": …}` for the same.

        Raises:
            UsageError: the prompt is empty, or `tokens` is below 1.
        """
        from qrmem import conversation

        return await conversation.recall(
            self._session,
            prompt,
            session=session,
            tokens=tokens,
            how=how,
            fragments=fragments,
            user=user,
        )

    async def corrections(self, ids: Iterable[str]) -> dict[str, list[Turn]]:
        """Return which turns, of some documents, later turns seem to correct, and by which.

        What an answer cites can be looked up here; documents that are no turns are passed over.
        """
        from qrmem import conversation

        return await conversation.corrections(self._session, ids)

    # --- looking ----------------------------------------------------------------------------------

    async def status(self) -> MemoryStatus:
        """Return the namespace in figures, with problems and what it cost."""
        return await inspect.status(self._session)

    async def usage(self, by: By = "stage") -> Sequence[UsageRow]:
        """Return what all runs used together, construction and online apart.

        Args:
            by: `stage`, `run` or `day` (UTC).
        """
        return await inspect.usage_rows(self._session, by)

    async def namespaces(self) -> Sequence[str]:
        """Return the names of all namespaces in this store."""
        return await self._session.store.namespaces()

    async def documents(self, where: Mapping[str, Scalar] | None = None) -> Sequence[DocumentInfo]:
        """Return all documents by id, without their texts."""
        return await inspect.documents(self._session, where)

    async def document(self, document_id: str) -> Document:
        """Return a document with its text.

        Raises:
            NotFound: no such document.
        """
        return await inspect.document(self._session, document_id)

    async def segments(self, *, document: str = "", ids: Iterable[str] = ()) -> Sequence[Segment]:
        """Return the segments of a document in order, or segments by their ids.

        Args:
            ids: unknown ones are left out.

        Raises:
            NotFound: no such document.
        """
        return await inspect.segments(self._session, document, list(ids))

    async def entities(self, limit: int = 100) -> Sequence[EntityCount]:
        """Return entities by falling number of segments."""
        await self._session.info()
        return await self._session.store.list_entities(self._session.ns, limit)

    async def entity(self, name: str) -> EntityView:
        """Return an entity by any of its names, with relations, questions and segments.

        Raises:
            NotFound: nothing is called so; the message names what comes near.
        """
        return await inspect.entity(self._session, name)

    async def merges(self) -> Sequence[Merge]:
        """Return which names count as one entity, and why."""
        return await inspect.merges(self._session)

    async def trail(self, trail_id: str | None = None) -> Trail:
        """Return a recorded run, or the last.

        Raises:
            NotFound: no such trail, or none at all.
        """
        return await inspect.trail(self._session, trail_id)

    async def trails(self, limit: int = 20) -> Sequence[Trail]:
        """Return recorded runs, newest first."""
        await self._session.known()
        return await self._session.store.trails(self._session.ns, limit)

    async def neo4j_queries(self, name: str = "") -> "Sequence[SavedQuery]":
        """Return ready queries to look at this namespace in Neo4j Browser.

        Args:
            name: of an entity to look at; "": the one that occurs most.

        Raises:
            UsageError: this memory is not in Neo4j.
        """
        return await inspect.neo4j_queries(self._session, name)

    async def graphml(self, path: str) -> int:
        """Write the graph as GraphML (Gephi, Cytoscape); returns how many entities."""
        from qrmem.io.graphml import write_graphml

        await self._session.info()
        return await write_graphml(self._session.store, self._session.ns, path)

    async def export(self, path: str | PathLike[str], *, runs: bool = False) -> Archived:
        """Write the namespace to one file: equal memories give equal bytes, from every store.

        Args:
            path: replaced if an archive stands there; anything else is not written over.
            runs: write trails, the ledger of calls and cached replies too; they have a clock in
                them.

        Raises:
            NotFound: there is no such namespace.
            StoreConflict: somebody changed it meanwhile; nothing is written.
        """
        from qrmem.io.archive import export_archive

        await self._session.info()
        return await export_archive(self._session.store, self._session.ns, path, runs=runs)

    # --- inside ---------------------------------------------------------------------------------

    def _emit(self, event: Event) -> None:
        """Tell everybody who reads what happens: logging, spans, and whoever listens."""
        observability.observe(event)
        if self._listener is not None:
            self._listener(event)

    async def _decide(self, first: str, second: str, *, same: bool) -> None:
        self._session.require_writable()
        if not first.strip() or not second.strip() or first == second:
            raise UsageError("give two different names")
        await self._session.info()
        one, other = sorted((first, second))
        await self._session.store.decide(self._session.ns, MergeDecision(one, other, same=same))
        await self._refresh_names()

    async def _refresh_names(self) -> None:
        from qrmem.graph.merging import refresh_names

        session = self._session
        await refresh_names(session.store, session.ns, similar=await session.similar())


def _arguments(
    method: Callable[..., Any], memory: Memory, first: Any, options: Mapping[str, Any]
) -> dict[str, Any]:
    """Return all arguments of a run, its caps as one."""
    try:
        bound = signature(method).bind(memory, first, **options)
    except TypeError as exc:
        raise UsageError(f"there is no such option: {exc}") from exc
    bound.apply_defaults()
    _, *named = bound.arguments.items()
    chosen = dict(named)
    return {**chosen, "caps": caps_of(memory.settings, **chosen["caps"])}
