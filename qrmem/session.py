"""From settings to live parts: the store, the models, and what one run works with."""

import asyncio
import uuid
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, Unpack

from qrmem.config import Settings
from qrmem.errors import EmbedderMismatch, NotFound, StoreUnavailable, UsageError
from qrmem.graphstore.aside import Aside
from qrmem.graphstore.protocol import GraphStore, NamespaceInfo
from qrmem.inspect import has_metadata
from qrmem.llm.budget import Budget, CapOptions, Caps, Phase, prices_of
from qrmem.llm.embedders import counted_embedder, default_embedder, open_embedder
from qrmem.llm.tokenizers import open_tokenizer
from qrmem.types import (
    CallRecord,
    Embedder,
    EntityTagger,
    Listener,
    Reasoner,
    Scalar,
    Tokenizer,
    Usage,
)

if TYPE_CHECKING:
    from qrmem.graph.merging import Similar
    from qrmem.llm.cache import ReplyCache
    from qrmem.llm.meter import Meter
    from qrmem.llm.routing import ChatModels
    from qrmem.retrieval.fragments import FragmentScorer
    from qrmem.retrieval.fragments.code_index import CodeIndex
    from qrmem.retrieval.searcher import Searcher

CLOSED = "the memory is closed; open it again"


class Session:
    """What all methods of a memory stand on; shared by those that listen to the same memory.

    Attributes:
        ns: the namespace's name.
        settings: what it was opened with.
        turns: held while turns are numbered and kept.
        checkpointers: LangGraph's, which questions were asked with.
        running: ids of trails of questions that are being answered.
    """

    def __init__(self, store: GraphStore, settings: Settings, made: Path | None = None) -> None:
        """Take an open store.

        Args:
            made: the file that was made for it, and goes again if nothing came into it.
        """
        self._made = made
        self.ns = settings.namespace
        self.settings = settings
        self._store: GraphStore | None = store
        self._making = asyncio.Lock()
        self.turns = asyncio.Lock()
        self._models: Models | None = None
        self._searcher: Searcher | None = None
        self._fragments: FragmentScorer | None = None
        self._index: CodeIndex | None = None
        self.checkpointers: set[Any] = set()
        self.running: set[str] = set()
        self._adding: set[asyncio.Future[None]] = set()
        self._ended = 0

    @property
    def store(self) -> GraphStore:
        """The store.

        Raises:
            UsageError: the memory is closed.
        """
        if self._store is None:
            raise UsageError(CLOSED)
        return self._store

    @property
    def where(self) -> str:
        """The namespace and its store, in words."""
        return f"namespace {self.ns!r} of {self.store.location}"

    async def close(self) -> None:
        """Close the store and the model's connections; a second time does nothing."""
        store, self._store = self._store, None
        await self.renew()
        if store is not None:
            await store.close()
            if self._made is not None:
                from qrmem.graphstore import withdraw

                await withdraw(self._made)

    # --- what is there --------------------------------------------------------------------------

    async def known(self) -> NamespaceInfo | None:
        """Return what the namespace was made with, if there is one.

        Raises:
            UsageError: it holds part of an archive.
        """
        info = await self.store.namespace(self.ns)
        if info is not None and info.importing:
            raise UsageError(
                f"{self.where} holds a part of an archive: its import is still running, or was"
                " stopped; run the same import again, or forget it (qrmem delete --all)"
            )
        return info

    async def info(self) -> NamespaceInfo:
        """Return what the namespace was made with.

        Raises:
            NotFound: there is none of that name.
            UsageError: it holds part of an archive.
        """
        info = await self.known()
        if info is None:
            names = await self.store.namespaces()
            hint = f"there are: {', '.join(names)}" if names else "it is empty; use `add` first"
            raise NotFound(f"no namespace {self.ns!r} in {self.store.location}; {hint}")
        return info

    def require_writable(self) -> None:
        """Refuse to change a store that is open for reading only."""
        if self.store.is_read_only:
            raise StoreUnavailable(f"{self.store.location} is read-only; nothing was changed")

    async def require_documents(self, document_ids: Sequence[str]) -> None:
        """Refuse ids that no document has."""
        await self.known()
        known = {info.id for info in await self.store.documents(self.ns, document_ids)}
        for document_id in document_ids:
            if document_id not in known:
                raise NotFound(f"no document {document_id!r} in {self.where}")

    async def readable(
        self, documents: Sequence[str] | None, where: Mapping[str, Scalar] | None
    ) -> frozenset[str] | None:
        """Return the ids of the documents to look at, `None` for all.

        What is being added at the same time through this memory is waited for, where without it
        there would be nothing to look at.

        Args:
            documents: only these.
            where: only those whose metadata has these values.

        Raises:
            NotFound: a document named is not there, none fits `where`, or none was read yet.
        """
        if isinstance(documents, str):
            raise UsageError("documents are a list of ids, not one text")
        while True:
            ended = self._ended
            try:
                narrowed = await self._narrowed(documents, where)
                await self._require_read(narrowed)
                return narrowed
            except NotFound:
                await asyncio.sleep(0)  # an `add` that was called together with this may begin
                if self._adding:
                    await asyncio.wait(set(self._adding), return_when=asyncio.FIRST_COMPLETED)
                elif ended == self._ended:
                    raise

    @contextmanager
    def adding(self) -> Iterator[None]:
        """Let readers that find nothing wait for this `add`."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._adding.add(done)
        try:
            yield
        finally:
            self._ended += 1
            self._adding.discard(done)
            done.set_result(None)

    async def _narrowed(
        self, documents: Sequence[str] | None, where: Mapping[str, Scalar] | None
    ) -> frozenset[str] | None:
        if documents is None and not where:
            return None
        if documents is not None:
            await self.require_documents(documents)
        infos = await self.store.documents(self.ns, documents)
        found = frozenset(info.id for info in infos if has_metadata(info, where))
        if not found:
            raise NotFound(f"no document of {self.where} has the metadata {dict(where or {})}")
        return found

    async def _require_read(self, documents: frozenset[str] | None) -> None:
        """Refuse to look for anything where nothing was read: that is no answer."""
        info = await self.info()
        if documents is None and info.revision:
            return  # something was merged; what has gone since is said by `require_any`
        merged = await self.store.merged_segments(self.ns, *sorted(documents or ()))
        if not merged:
            await self.require_any()
            where = self.where if documents is None else ", ".join(sorted(documents))
            raise NotFound(f"nothing has been read yet of {where}: run the same `add` again")

    async def require_any(self) -> None:
        """Refuse a namespace without a document."""
        if not await self.store.states(self.ns):
            raise NotFound(f"there is no document in {self.where}; use `add` first")

    async def unread(self, documents: frozenset[str] | None) -> str:
        """Return what an answer cannot rest on, in words; "" if everything was read."""
        if documents is None:
            states = Counter(await self.store.states(self.ns))
        else:
            states = Counter()
            for info in await self.store.documents(self.ns, sorted(documents)):
                states.update(info.states)
        missing = states.total() - states["ok"]
        if not missing:
            return ""
        return (
            f"{missing} of {states.total()} segments are not read, or not wholly: run `add` again"
        )

    # --- parts that are made when first needed --------------------------------------------------

    async def models(self, *, create: bool = False) -> "Models":
        """Return reasoner, embedder and tokenizers; made once, however many ask at once.

        Args:
            create: where the namespace is missing, those that it will be made with.
        """
        async with self._making:
            if self._models is None:
                info = await self.known() if create else await self.info()
                info = info or new_namespace(self.settings)
                self._models = await Models.open(self.store, info, self.settings)
            return self._models

    async def searcher(self) -> "Searcher":
        """Return what ranks segments; it loads no chat model."""
        async with self._making:
            if self._searcher is None:
                from qrmem.retrieval.searcher import Searcher

                embedder = recorded_embedder(await self.info(), self.settings)
                self._searcher = Searcher(self.store, self.ns, embedder)
            return self._searcher

    async def fragment_scorer(self) -> "FragmentScorer":
        """Return what assesses fragments; it keeps their relations while the memory is open."""
        searcher = await self.searcher()
        if self._fragments is None:
            from qrmem.retrieval.fragments import FragmentScorer

            self._fragments = FragmentScorer(searcher, self.code_index())
        return self._fragments

    def code_index(self) -> "CodeIndex":
        """Return what is known of the namespace's source files, for adding and for asking."""
        if self._index is None:
            from qrmem.retrieval.fragments.code_index import CodeIndex

            self._index = CodeIndex(self.store, self.ns)
        return self._index

    async def renew(self) -> None:
        """Make all parts anew when they are needed: the namespace is another now, or closed."""
        async with self._making:
            models, self._models, self._searcher = self._models, None, None
            self._fragments = self._index = None
            if models is not None:
                await models.close()

    async def similar(self) -> "Similar | None":
        """Return what finds names alike by their vectors, where the settings want it."""
        if not self.settings.similar_names:
            return None
        from qrmem.agents.likeness import alike_by

        embedder = (await self.models()).embedder
        return alike_by(self.store, self.ns, embedder, self.settings.similar_names)

    async def forget_threads(self, segment_ids: Collection[str] | None, also: Any) -> None:
        """Drop what LangGraph's checkpointers keep of runs that read some segments, or any."""
        checkpointers = self.checkpointers | ({also} if also is not None else set())
        if checkpointers:
            from qrmem.agents.search.checkpoints import forget

            for checkpointer in checkpointers:
                await forget(checkpointer, self.ns, segment_ids)

    async def follow_embedder(self) -> None:
        """Use the embedder that the namespace has now."""
        self.settings = self.settings.with_(embedder=(await self.info()).embedder)
        await self.renew()


def check_embedder(settings: Settings, info: NamespaceInfo | None) -> None:
    """Refuse another embedder than the one that the namespace was embedded by.

    Raises:
        EmbedderMismatch: with what to do.
    """
    chosen = settings.embedder
    if info is not None and chosen and chosen != info.embedder:
        raise EmbedderMismatch(
            f"namespace {info.name!r} was embedded by {info.embedder!r}, not {chosen!r}; leave "
            f"--embedder out, or change it for good: qrmem reembed --embedder {chosen}"
        )


def new_namespace(settings: Settings) -> NamespaceInfo:
    """Return what a new namespace is made with; see `measured` for the dimension."""
    info = sketched(settings)
    embedder = open_embedder(info.embedder, settings)
    is_remote = info.embedder.startswith("openai:")
    return replace(info, dimension=embedder.dimension if embedder and not is_remote else 0)


def sketched(settings: Settings) -> NamespaceInfo:
    """Return what a new namespace would be made with, its embedder left alone."""
    return NamespaceInfo(
        name=settings.namespace,
        tokenizer=open_tokenizer(settings.tokenizer).name,
        segment_tokens=settings.segment_tokens,
        embedder=settings.embedder or default_embedder(),
    )


async def measured(embedder: Embedder | None) -> int:
    """Return the length of an embedder's vectors, 0 without one; a server has to be asked for it.

    Raises:
        CapReached: that would exceed a cap.
        ModelUnavailable: the server does not answer.
    """
    if embedder is None:
        return 0
    if not embedder.name.startswith("openai:"):
        return embedder.dimension
    return int((await embedder.embed(["dimension"])).shape[1])


def recorded_embedder(info: NamespaceInfo, settings: Settings) -> Embedder | None:
    """Return the embedder that the namespace was made with."""
    return open_embedder(info.embedder, settings)


@dataclass(frozen=True, slots=True)
class Run:
    """One `add`, `ask` or `reembed`: its reasoner and embedder, and what they use.

    Attributes:
        meter: of the chat model; `None` for the local reasoner.
        calls: those that are not yet in the store.
        budget: of everything that the run uses.
        embedder: of the namespace, in the same budget.
    """

    reasoner: Reasoner
    meter: "Meter | None"
    calls: list[CallRecord]
    budget: Budget
    embedder: Embedder | None

    def take(self, segment_id: str) -> list[CallRecord]:
        """Return the calls about a segment that were not taken yet, to be committed with it."""
        taken = [call for call in self.calls if call.segment_id == segment_id]
        self.calls[:] = [call for call in self.calls if call.segment_id != segment_id]
        return taken

    @property
    def usage(self) -> Usage:
        """What the run has used so far."""
        return self.budget.usage()


def caps_of(settings: Settings, **chosen: Unpack[CapOptions]) -> Caps:
    """Return the caps of a run: those of the settings, with those chosen for it.

    Raises:
        UsageError: a cap is no number, or there is none of that name.
    """
    if unknown := chosen.keys() - CapOptions.__annotations__.keys():
        raise UsageError(f"there is no option {sorted(unknown)[0]!r}")
    settings = settings.with_(**chosen)
    return Caps(
        calls=settings.max_calls,
        tokens=settings.max_tokens,
        cost=settings.max_cost,
        seconds=settings.max_seconds,
    )


class Models:
    """The parts that stay the same while a memory is open."""

    keeps_records = False
    """Whether a run keeps its records beside those that it commits; a long one has many."""

    def __init__(
        self,
        store: GraphStore,
        info: NamespaceInfo,
        settings: Settings,
        chat: "ChatModels | None",
        embedder: Embedder | None,
    ) -> None:
        self.settings = settings
        self.info = info
        self.embedder = embedder
        self.cutter: Tokenizer = open_tokenizer(info.tokenizer)
        self.counter: Tokenizer = open_tokenizer(settings.tokenizer)
        self._store = store
        self._chat = chat
        self._prices = prices_of(settings)
        self._tagger: EntityTagger | None = None

    @classmethod
    async def open(cls, store: GraphStore, info: NamespaceInfo, settings: Settings) -> Self:
        """Open what the settings name; a model is not called yet."""
        from qrmem.llm.routing import open_models
        from qrmem.prompts import stage_names

        chat = open_models(settings, stage_names())
        if chat is None and settings.base_url and not info.embedder.startswith("openai:"):
            raise UsageError(
                "OPENAI_BASE_URL (base_url) names a server, but no chat model is named: name one "
                "with --model or QRMEM_MODEL, or unset OPENAI_BASE_URL to work without a chat model"
            )
        embedder = recorded_embedder(info, settings)
        if settings.replay and info.embedder.startswith("openai:"):
            raise UsageError("a cassette holds no vectors: a replay needs another embedder")
        return cls(store, info, settings, chat, embedder)

    async def close(self) -> None:
        """Close the model's connections, and end the tagger."""
        if self._chat is not None:
            await self._chat.aclose()
        if self._tagger is not None:
            await self._tagger.close()

    def tagger(self, reasoner: Reasoner) -> EntityTagger | None:
        """Return the entity tagger that the settings name, or `None` where it adds nothing.

        Raises:
            UsageError: there is none of that name.
            MissingError: where to find it is not said.
        """
        if self.settings.tagger == "rules" and reasoner.is_local:
            return None
        if self._tagger is None:
            from qrmem.extraction.taggers import open_tagger

            self._tagger = open_tagger(self.settings)
        return self._tagger

    def run(
        self,
        phase: Phase,
        listener: Listener,
        aside: Aside | None = None,
        caps: Caps | None = None,
        *,
        is_watched: bool = False,
    ) -> Run:
        """Return what one run works with.

        Args:
            aside: takes the replies to keep, where losing one is no reason to stop.
            caps: of this run; those of the settings where there are none.
            is_watched: tell the listener of answers as they are written.

        Raises:
            UsageError: money is capped, and a price is not known.
        """
        calls: list[CallRecord] = []
        account: dict[str, Any] = {
            "run": uuid.uuid4().hex[:12],
            "phase": phase,
            "caps": caps or caps_of(self.settings),
            "sink": calls.append,
            "listener": listener,
            "keeps_records": self.keeps_records,
        }
        if self._chat is None:
            budget = Budget(price_of=self._prices.of, **account)
            return Run(self._local(budget), None, calls, budget, self._counted(budget))
        from qrmem.answering.prompted import PromptedReasoner
        from qrmem.llm.meter import Meter

        cache = self._cache(aside) if self.settings.cache else None
        meter = Meter(
            self._chat, tokenizer=self.counter, price=self._prices.of, cache=cache, **account
        )
        reasoner = PromptedReasoner(
            meter,
            self.counter,
            mode=self.settings.mode,
            settings=self.settings,
            listener=listener,
            is_watched=is_watched,
        )
        return Run(reasoner, meter, calls, meter.budget, self._counted(meter.budget))

    def _local(self, budget: Budget) -> Reasoner:
        from qrmem.answering.local import LocalReasoner

        return LocalReasoner(
            self.counter,
            questions_per_600=self.settings.questions,
            reserve=self.settings.reserve,
            check=budget.check,
        )

    def _counted(self, budget: Budget) -> Embedder | None:
        """Return the embedder in the budget of a run."""
        if self.embedder is None:
            return None
        return counted_embedder(self.embedder, budget, self.counter)

    def _cache(self, aside: Aside | None) -> "ReplyCache":
        """Return where the replies of a chat model are kept: in the store."""
        from qrmem.llm.cache import ReplyCache

        ns = self.info.name

        async def put(
            key: str,
            value: Mapping[str, Any],
            segments: Sequence[str],
            calls: Sequence[CallRecord],
        ) -> None:
            work = partial(self._store.put_cached, ns, key, value, segments=segments, calls=calls)
            await (aside.write(work) if aside is not None else work())

        return ReplyCache(partial(self._store.cached, ns), put)


async def reembed(
    store: GraphStore, ns: str, settings: Settings, name: str, listener: Listener, caps: Caps
) -> int:
    """Change a namespace's embedder, embed what lacks vectors; returns how many segments.

    Raises:
        CapReached: what was embedded is kept, and the same call goes on from there.
    """
    from qrmem.agents.embedding import embed_segments

    calls: list[CallRecord] = []
    budget = Budget(
        run=uuid.uuid4().hex[:12],
        phase="construction",
        caps=caps,
        price_of=prices_of(settings).of,
        sink=calls.append,
        listener=listener,
    )
    embedder = open_embedder(name, settings)
    if embedder is not None:
        embedder = counted_embedder(embedder, budget, open_tokenizer(settings.tokenizer))
    try:
        info = await store.namespace(ns)
        if info is not None and info.embedder != name:
            await store.set_embedder(ns, name, await measured(embedder))
        if embedder is None:
            return 0
        ids = [
            segment.id
            for document in await store.documents(ns)
            for segment in await store.segments_of(ns, document.id)
        ]
        return await embed_segments(store, ns, embedder, ids, listener=listener)
    finally:
        if calls:
            await store.put_calls(ns, calls)
