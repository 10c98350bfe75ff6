"""The facade: a memory is searched and asked here; its other methods stand with their kind."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from copy import copy
from inspect import signature
from typing import TYPE_CHECKING, Any, Literal, Unpack

from qrmem.errors import UsageError
from qrmem.graphstore.protocol import EntityCount
from qrmem.io.sources import Source
from qrmem.memory import observability
from qrmem.memory.change_methods import ChangeMethods
from qrmem.memory.chat_methods import ChatMethods
from qrmem.memory.look_methods import LookMethods
from qrmem.memory.models import caps_of
from qrmem.memory.options import AskOptions, PlanOptions
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
from qrmem.types.options import AddOptions, CapOptions, options_of

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver

    from qrmem.retrieval.fragments import FragmentSettings
    from qrmem.types.plans import Plan

__all__ = ["EntityCount", "Memory", "open"]


class Memory(ChangeMethods, ChatMethods, LookMethods):
    """One namespace of a store: add documents to it, search it, ask it, look at it."""

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
            given = options_of(AddOptions, options)
            if given.extract:
                raise UsageError("facts of turns are not planned; settings cap them (max_calls, …)")
            return await plan_add(self._session, source, given, tree=bool(tree))
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
