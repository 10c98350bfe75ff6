"""The facade: open a memory, add documents, search, ask, look, forget."""

from collections.abc import AsyncIterator, Callable, Generator, Mapping, Sequence
from copy import copy
from inspect import signature
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack

from qrmem import tracing
from qrmem.config import Settings
from qrmem.conversation import Conversing
from qrmem.errors import UsageError
from qrmem.graphstore.protocol import EntityCount, GraphStore
from qrmem.llm.caps import CapOptions
from qrmem.logs import log
from qrmem.session import Opened
from qrmem.sources import Source
from qrmem.types import (
    AddReport,
    Answer,
    Archived,
    Event,
    ExtractionReport,
    Hit,
    Listener,
    MergeDecision,
    Orientation,
    Scalar,
    Step,
    Words,
)

if TYPE_CHECKING:
    from qrmem.asking import Asking
    from qrmem.planning.figures import Plan
    from qrmem.retrieval.fragments import FragmentSettings

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
        UsageError: a setting is wrong, or the file is no database.
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
        return self._open().__await__()

    async def __aenter__(self) -> "Memory":
        self._memory = await self._open()
        return self._memory

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._memory is not None:
            await self._memory.close()

    async def _open(self) -> "Memory":
        from qrmem.graphstore import missing_file, open_store
        from qrmem.wiring import check_embedder

        made = missing_file(self._settings.memory)
        store = await open_store(self._settings.memory, self._settings, create=self._create)
        memory = Memory(store, self._settings, self._listener, made=made)
        try:
            check_embedder(self._settings, await store.namespace(self._settings.namespace))
        except BaseException:
            await memory.close()
            raise
        return memory


class Memory(Conversing):
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
        super().__init__(Opened(store, settings, made))
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
        await self._opened.close()

    @property
    def settings(self) -> Settings:
        """What it was opened with."""
        return self._opened.settings

    # --- reading documents in -------------------------------------------------------------------

    async def add(
        self,
        source: Source,
        *,
        update: bool = False,
        rebuild: bool = False,
        glob: str | None = None,
        question: str = "",
        **caps: Unpack[CapOptions],
    ) -> AddReport:
        """Read documents into the memory; what is there already, complete, costs nothing.

        Args:
            source: a path, a folder, a `Document`, `{"id", "title", "text", "metadata"}`, or an
                iterable of them.
            update: replace documents of the same id whose text, title or metadata differ; only
                segments that changed are read again.
            rebuild: read every segment again, and summarise again.
            glob: which files of a folder.
            question: shapes the graph (orientation `full`).
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
        from qrmem.ingest import Adder
        from qrmem.wiring import caps_of

        self._opened.require_writable()
        adder = Adder(
            self._opened.store,
            self._opened.ns,
            await self._opened.tools(create=True),
            listener=self._emit,
            update=update,
            rebuild=rebuild,
            question=question,
            index=self._opened.code_index(),
            caps=caps_of(self.settings, **caps),
        )
        with tracing.run("add", namespace=self._opened.ns):
            return await adder.add(source, glob)

    async def load(self, path: str | PathLike[str]) -> Archived:
        """Fill the namespace with an archive that `export` wrote: all of it, or nothing.

        Raises:
            BadImport: the archive is cut, altered or not in its form; nothing is written.
            MissingError: it was written by a newer qrmem, or embedded by another model than the
                one that is chosen.
            UsageError: the namespace holds something already.
        """
        from qrmem.io.moving import load_archive

        self._opened.require_writable()
        return await load_archive(self._opened, path, self._emit)

    async def load_openie(self, path: str | PathLike[str]) -> ExtractionReport:
        """Bring in what was extracted elsewhere: HippoRAG's OpenIE results, or plain triples.

        Passages whose text the file has become documents; others are found by the id of a document
        or a segment. See docs/archive.md for the forms.

        Raises:
            BadImport: the file is not in its form, or speaks of a passage that is not there;
                nothing is written.
        """
        from qrmem.io.moving import load_extraction

        self._opened.require_writable()
        return await load_extraction(self._opened, path, self._emit)

    async def delete(self, *document_ids: str) -> None:
        """Forget documents: afterwards the memory equals one that never held them.

        Raises:
            NotFound: one of them is not there; nothing is deleted.
        """
        self._opened.require_writable()
        await self._opened.require_documents(document_ids)
        for document_id in document_ids:
            await self._opened.store.delete_document(self._opened.ns, document_id)
        await self._refresh_names()

    async def delete_all(self) -> None:
        """Forget the whole namespace.

        Raises:
            NotFound: there is none of that name.
        """
        self._opened.require_writable()
        if await self._opened.store.namespace(self._opened.ns) is None:
            await self._opened.info()
        await self._opened.store.delete_namespace(self._opened.ns)

    async def merge(self, first: str, second: str) -> None:
        """Count two names as one from now on; beats every rule, and stays."""
        await self._decide(first, second, same=True)

    async def separate(self, first: str, second: str) -> None:
        """Keep two names apart from now on; beats every rule, and stays."""
        await self._decide(first, second, same=False)

    async def prune(self) -> int:
        """Forget the replies that are kept so as not to be paid for again; returns how many.

        What was made of them stays, and so do descriptions that a model folded. A question that is
        asked again and a failed segment are then paid for again.
        """
        from qrmem.llm.caching import is_reply_key

        opened = self._opened
        opened.require_writable()
        await opened.info()
        replies = [key for key in await opened.store.kept_keys(opened.ns) if is_reply_key(key)]
        await opened.store.drop_kept(opened.ns, replies)
        return len(replies)

    async def reembed(self, embedder: str, **caps: Unpack[CapOptions]) -> int:
        """Embed all segments by another model; resumable. Returns how many were embedded now.

        Args:
            caps: `max_calls`, `max_tokens`, `max_cost`, `max_seconds`, for this run alone.

        Raises:
            CapReached: what was embedded is kept, and the same call goes on from there.
        """
        from qrmem.wiring import caps_of, reembed

        opened = self._opened
        opened.require_writable()
        await opened.info()
        try:
            bounds = caps_of(self.settings, **caps)
            with tracing.run("reembed", namespace=opened.ns):
                return await reembed(
                    opened.store, opened.ns, self.settings, embedder, self._emit, bounds
                )
        finally:
            await opened.follow_embedder()

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

        Args:
            k: how many at most, at least 1.
            documents: only these documents.
            where: only documents whose metadata has these values.

        Raises:
            UsageError: the question is empty, or k is below 1.
            NotFound: a document named is not there, none fits `where`, or none was read yet.
        """
        searcher = await self._opened.searcher()
        narrowed = await self._opened.narrowed(documents, where)
        await self._opened.require_read(narrowed)
        return await searcher.search(question, k=k, documents=narrowed)

    async def ask(
        self,
        question: str,
        *,
        strategy: str = "reflection",
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
        **caps: Unpack[CapOptions],
    ) -> Answer:
        """Answer a question by walking the graph and reading only what fits the window.

        Args:
            strategy: `reflection` (Algorithm 1), `graph-expansion`, `entity-trial`, `fragment`
                (FragRel) or `temp-mem` (the whole text, its middle left out).
            window: L in tokens, a hard bound on every call (Q21).
            choices: options of a multiple-choice question.
            orientation: `local` extracts the nearest segments again with the question, once.
            share_orientation: let this run see what other questions' orientation added.
            max_trials: how often segments are read at most (Q22).
            start: begin from search hits, or from entities named in the question (Q14).
            on_exhausted: when the trials are used up, abstain or force an answer.
            keep_trail: write the trail to the store; default: the setting `keep_trails`.
            fragments: how `fragment` assesses; `None`: as FragRel does for text, code or turns.
            caps: `max_calls`, `max_tokens`, `max_cost`, `max_seconds`, for this run alone.

        Raises:
            CapReached: there is no answer yet; what was paid for is kept: the same call goes on.
            UsageError: empty question, unknown strategy, or fewer than two choices.
            WindowTooSmall: question, options and skeleton alone exceed the window.
            NotFound: a document named is not there, none fits `where`, or none was read yet.
        """
        from qrmem.asking import Asker
        from qrmem.wiring import caps_of

        opened = self._opened
        asking = await self._asking(
            question,
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
            fragments=fragments,
        )
        await opened.require_read(asking.documents)
        if unread := await opened.unread(asking.documents):
            self._emit(Event("warning", {"message": unread}))
        tools, searcher = await opened.tools(), await opened.searcher()
        scorer = await opened.fragment_scorer()
        asker = Asker(
            opened.store,
            opened.ns,
            tools,
            searcher,
            self._emit,
            scorer,
            caps_of(self.settings, **caps),
            is_watched=self._is_watched,
        )
        with tracing.run("ask", namespace=opened.ns, strategy=strategy):
            answer = await asker.ask(asking)
        if self.settings.keep_trails if keep_trail is None else keep_trail:
            answer = await asker.kept(answer)
        return answer

    async def plan(
        self, source: Source | None = None, *, ask: str | None = None, **options: Any
    ) -> "Plan":
        """Return what `add(source, …)` or `ask(question, …)` would use, before any call is made.

        The run is rehearsed: real prompts, with local rules in the place of the chat model and of a
        server's embedder. Nothing is written.

        Args:
            source: of an `add`.
            ask: the question of an `ask`.
            options: of the one or the other.

        Raises:
            UsageError: both or neither are given, or what the run itself would refuse.
        """
        from qrmem.planning.runs import plan_question, plan_source

        if (source is None) == (ask is None):
            raise UsageError("plan a source to add, or a question: plan(source), plan(ask=…)")
        if source is not None:
            chosen = _arguments(Memory.add, self, source, options)
            return await plan_source(self._opened, **chosen)
        chosen = _arguments(Memory.ask, self, ask, options)
        chosen.pop("keep_trail")
        return await plan_question(self._opened, await self._asking(**chosen))

    async def stream(
        self, question: str, *, words: bool = False, **options: Any
    ) -> AsyncIterator[Step | Words | Answer]:
        """Answer like `ask`, yielding every step as it happens, then the answer.

        Args:
            words: yield what a chat model writes, too, while it writes it.
            options: of `ask`.
        """
        from qrmem.asking import streamed

        async for item in streamed(self, question, options, words=words):
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

    # --- inside ---------------------------------------------------------------------------------

    async def _asking(
        self,
        question: str,
        *,
        window: int | None,
        choices: Sequence[str] | None,
        documents: Sequence[str] | None,
        where: Mapping[str, Scalar] | None,
        orientation: Orientation | None,
        **chosen: Any,
    ) -> "Asking":
        """Return a question with all that was chosen for it, or left to the settings."""
        from qrmem.asking import Asking

        if isinstance(choices, str):
            raise UsageError("choices are a list of texts, not one text")
        return Asking(
            question=question,
            window=self.settings.window if window is None else window,
            choices=tuple(choices or ()),
            documents=await self._opened.narrowed(documents, where),
            orientation=orientation or self.settings.orientation,
            **chosen,
        )

    def _emit(self, event: Event) -> None:
        """Tell everybody who reads what happens: logging, spans, and whoever listens."""
        log(event)
        tracing.record(event)
        if self._listener is not None:
            self._listener(event)

    async def _decide(self, first: str, second: str, *, same: bool) -> None:
        self._opened.require_writable()
        if not first.strip() or not second.strip() or first == second:
            raise UsageError("give two different names")
        await self._opened.info()
        one, other = sorted((first, second))
        await self._opened.store.decide(self._opened.ns, MergeDecision(one, other, same=same))
        await self._refresh_names()

    async def _refresh_names(self) -> None:
        from qrmem.graph.merging import refresh_names

        opened = self._opened
        await refresh_names(opened.store, opened.ns, similar=await opened.similar())


def _arguments(
    method: Callable[..., Any], memory: Memory, first: Any, options: Mapping[str, Any]
) -> dict[str, Any]:
    """Return all arguments of a run but its caps, which a plan does not need."""
    from qrmem.wiring import caps_of

    try:
        bound = signature(method).bind(memory, first, **options)
    except TypeError as exc:
        raise UsageError(f"plan takes the options of the run itself: {exc}") from exc
    bound.apply_defaults()
    _, *named = bound.arguments.items()
    chosen = dict(named)
    caps_of(memory.settings, **chosen.pop("caps"))
    return chosen
