"""The facade: open a memory, add documents, search, ask, look, forget.

Searching and asking stand here. The other methods are functions that take the memory first; they
stand where their subject does, and the class names them.
"""

from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from contextlib import aclosing
from copy import copy
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Self, Unpack

from qrmem.config import Settings, revealed
from qrmem.errors import UsageError
from qrmem.graphstore.protocol import EntityCount, GraphStore
from qrmem.io.sources import Source
from qrmem.llm.budget import CapOptions
from qrmem.memory import change, chat_methods, export_import, inspect, observability
from qrmem.memory.models import caps_of, check_embedder
from qrmem.memory.options import AskOptions, OpenOptions, PlanOptions
from qrmem.memory.session import Session
from qrmem.types import (
    Answer,
    Event,
    Hit,
    Listener,
    Orientation,
    Scalar,
    Step,
    Strategy,
    Words,
)
from qrmem.types.shown import table

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver

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
    **chosen: Unpack[OpenOptions],
) -> "Opening":
    """Open a memory; `await` it or use it in `async with` (that of `qrmem.sync` in `with`).

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
    given = base.with_(memory=memory, namespace=namespace, **chosen)
    return Opening(given, create=create, listener=listener)


_UNOPENED = "`async with qrmem.open(…) as memory` or `await`; `qrmem.sync.open` needs neither"


class Opening:
    """A memory that is about to be opened."""

    def __init__(self, settings: Settings, *, create: bool, listener: Listener | None) -> None:
        self._settings = settings
        self._create = create
        self._listener = listener
        self._memory: Memory | None = None

    def __repr__(self) -> str:
        return f"<memory {str(self._settings.memory)!r}, not open yet: {_UNOPENED}>"

    def __getattr__(self, name: str) -> Any:
        """Say what is missing where a memory is used before it is open."""
        told = f": {_UNOPENED}" if hasattr(Memory, name) else ""
        raise AttributeError(f"the memory is not open, so it has no {name!r}{told}")

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
        from qrmem.graphstore import missing_file, open_store, withdraw

        settings = self._settings
        if settings.replay:
            from qrmem.llm.routing import as_recorded

            settings = as_recorded(settings)
        if settings.prompts:
            from qrmem.prompts import load_prompts

            load_prompts(settings.prompts)
        address = revealed(settings.memory)
        made = missing_file(address)
        try:
            store = await open_store(address, settings, create=self._create)
        except BaseException:
            if made is not None and made.exists():  # on a full disk, for example
                await withdraw(made)
            raise
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
        """What it was opened with."""
        return self._session.settings

    @property
    def location(self) -> str:
        """Where it is kept: its file, or its server without a password."""
        return self._session.store.location

    # --- documents and names: change.py ---------------------------------------------------------

    add = change.add
    add_text = change.add_text
    delete = change.delete
    delete_all = change.delete_all
    merge = change.merge
    separate = change.separate
    repair = change.repair
    prune = change.prune
    reembed = change.reembed
    build_tree = change.build_tree
    trees = change.trees

    # --- conversations: chat_methods.py ---------------------------------------------------------

    add_turn = chat_methods.add_turn
    add_messages = chat_methods.add_messages
    wait = chat_methods.wait
    extract_facts = chat_methods.extract_facts
    turns = chat_methods.turns
    recall = chat_methods.recall
    corrections = chat_methods.corrections
    forget_user = chat_methods.forget_user

    # --- looking: inspect.py --------------------------------------------------------------------

    status = inspect.status
    usage = inspect.usage
    namespaces = inspect.namespaces
    documents = inspect.documents
    document = inspect.document
    segments = inspect.segments
    entities = inspect.entities
    entity = inspect.entity
    merges = inspect.merges
    tree_tops = inspect.tree_tops
    tree_nodes = inspect.tree_nodes
    trail = inspect.trail
    trails = inspect.trails
    neo4j_queries = inspect.neo4j_queries

    # --- files in and out: export_import.py ------------------------------------------------------

    load = export_import.load
    load_openie = export_import.load_openie
    export = export_import.export
    graphml = export_import.graphml

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
            if unread := await self._session.unread(narrowed):
                self._emit(Event("warning", {"message": unread}))
            return []
        from qrmem.answering.passages import with_excerpts

        return with_excerpts(question, hits)

    async def ask(
        self,
        question: str,
        *,
        strategy: Strategy | None = None,
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
            window: L in tokens, a hard bound on every call; `None` or 0: that of the settings.
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
        from qrmem.memory.ask import answer_of

        items = self._streamed(
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
        return await answer_of(items)

    async def plan(
        self,
        /,
        source: Source | None = None,
        *,
        ask: str | None = None,
        tree: bool | Sequence[str] = False,
        **options: Unpack[PlanOptions],
    ) -> "Plan":
        """Return what `add(source, …)` or `ask(question, …)` would use, before any call is made.

        The run is made dry: real prompts, with a stub in the place of the chat model and of a
        server's embedder. Nothing is written.

        Args:
            source: of an `add`.
            ask: the question of an `ask`.
            tree: with a source: its documents get trees, too. Alone: plan `build_tree` over the
                documents of these ids; `True`: over all.
            options: of the one or the other.

        Raises:
            UsageError: both or neither are given, or what the run itself would refuse.
        """
        from qrmem.memory.ask import asked
        from qrmem.memory.plan import plan_add, plan_ask, plan_tree

        if tree is not False and source is None and ask is None:
            ids = () if tree is True else tuple(tree)
            how: dict[str, Any] = dict(options)
            if unknown := sorted(how.keys() - {"kind", "preset"}):
                raise UsageError(f"a plan of trees has no option {unknown[0]!r}: kind, preset")
            return await plan_tree(self._session, ids, **how)
        if (source is None) == (ask is None):
            raise UsageError("plan one thing: plan(source), plan(ask=…) or plan(tree=True)")
        if source is not None:
            chosen = _arguments(Memory.add, self, source, options)
            if chosen["extract"]:
                raise UsageError("facts of turns are not planned; settings cap them (max_calls, …)")
            for name in ("caps", "user", "session", "extract"):  # which cost nothing
                del chosen[name]
            return await plan_add(self._session, tree=bool(tree), **chosen)
        chosen = _arguments(Memory.ask, self, ask, options)
        for name in ("keep_trail", "checkpointer", "caps"):
            del chosen[name]
        return await plan_ask(self._session, await asked(self._session, **chosen))

    def stream(
        self, question: str, *, words: bool = False, **options: Unpack[AskOptions]
    ) -> AsyncGenerator[Step | Words | Answer, None]:
        """Answer like `ask`, yielding every step as it happens, then the answer.

        Args:
            words: yield what a chat model writes, too, while it writes it.
            options: of `ask`.
        """
        return observability.in_one_context(self._streamed(question, words=words, **options))

    async def _streamed(
        self, question: str, *, words: bool, **options: Unpack[AskOptions]
    ) -> AsyncGenerator[Step | Words | Answer, None]:
        from qrmem.memory.ask import asked, streamed

        chosen = _arguments(Memory.ask, self, question, options)
        keep_trail, checkpointer = chosen.pop("keep_trail"), chosen.pop("checkpointer")
        caps = chosen.pop("caps")
        session, asking = self._session, await asked(self._session, **chosen)
        answer: Answer | None = None
        with observability.run("ask", namespace=session.ns, strategy=asking.strategy):
            items = await streamed(
                session,
                asking,
                self._emit,
                caps,
                keep_trail=self.settings.keep_trails if keep_trail is None else keep_trail,
                is_watched=words,
                checkpointer=checkpointer,
            )
            async with aclosing(items) as told:
                async for item in told:
                    if isinstance(item, Answer):
                        answer = item
                    else:
                        yield item
        # Last, and outside of the span: whoever has the answer may leave the stream where it is.
        if answer is not None:
            yield answer

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

    # --- inside ---------------------------------------------------------------------------------

    def _emit(self, event: Event) -> None:
        """Tell everybody who reads what happens: logging, spans, and whoever listens."""
        observability.observe(event)
        if self._listener is not None:
            self._listener(event)


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
