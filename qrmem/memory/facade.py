"""The facade of a memory: how to open it, and `search`, `ask`, `plan`, `stream`.

Base classes have the other methods.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Sequence
from contextlib import suppress
from copy import copy
from datetime import date
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeVar, Unpack

from qrmem.config import Settings, revealed
from qrmem.errors import UsageError
from qrmem.graphstore.protocol import EntityCount
from qrmem.io.sources import Source
from qrmem.memory import ask, observability
from qrmem.memory.change_methods import ChangeMethods
from qrmem.memory.chat_methods import ChatMethods
from qrmem.memory.keywords import AskKeywords, OpenOptions, PlanKeywords
from qrmem.memory.look_methods import LookMethods
from qrmem.memory.runtime import check_embedder
from qrmem.types import (
    Answer,
    Event,
    Hit,
    Listener,
    Orientation,
    Step,
    Strategy,
    Where,
    Words,
)
from qrmem.types.options import AskOptions, CapOptions, options_of, plan_options

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver

    from qrmem.graphstore import GraphStore
    from qrmem.retrieval.fragments import FragmentSettings
    from qrmem.types.usage import Plan

__all__ = ["BlockingMemory", "EntityCount", "Memory", "Opening", "open"]

T = TypeVar("T")


class Memory(ChangeMethods, ChatMethods, LookMethods):
    """One namespace of a store: add documents to it, search it, ask it, inspect it."""

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
        fragments: "FragmentSettings | None" = None,
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


async def _ended(opening: "asyncio.Future[GraphStore]") -> None:
    """Wait for an opening that creates a file, since a cancellation does not end it; close it."""
    while not opening.done():
        with suppress(asyncio.CancelledError):
            await asyncio.wait([opening])
    if not opening.cancelled() and opening.exception() is None:
        await opening.result().close()
