"""The models of a memory, and the parts of one run."""

import asyncio
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Self, Unpack

from qrmem.config import Settings, revealed
from qrmem.errors import EmbedderMismatch, MissingError, QrmemError, UsageError
from qrmem.graphstore.protocol import GraphStore, NamespaceInfo
from qrmem.graphstore.reads import BestEffortWriter, cached_value
from qrmem.llm.budget import Budget, Caps, prices_of
from qrmem.llm.embedders import (
    close_embedder,
    counted_embedder,
    default_embedder,
    open_embedder,
)
from qrmem.llm.run import Run
from qrmem.llm.tokenizers import open_tokenizer
from qrmem.llm.totals import Phase
from qrmem.settings_files import PLAIN_EMBEDDERS
from qrmem.types import (
    CallRecord,
    Embedder,
    EntityTagger,
    Executor,
    Listener,
    Reasoner,
    Tokenizer,
)
from qrmem.types.options import CapOptions
from qrmem.workers import Crew, open_crew

if TYPE_CHECKING:
    from qrmem.llm.meter import Meter
    from qrmem.llm.prompting import Caller
    from qrmem.llm.reply_cache import ReplyCache
    from qrmem.llm.routing import ChatModels


def check_embedder(settings: Settings, info: NamespaceInfo | None) -> None:
    """Refuse an embedder other than that of the namespace.

    Raises:
        EmbedderMismatch: they differ; the message says what to do.
    """
    wanted = settings.embedder
    if info is not None and wanted and wanted != info.embedder:
        raise EmbedderMismatch(
            f"namespace {info.name!r} was embedded by {info.embedder!r}, not {wanted!r}; leave "
            f"--embedder out, or change it for good: qrmem reembed --embedder {wanted}"
        )


def namespace_embedder(info: NamespaceInfo, settings: Settings) -> Embedder | None:
    """Open the embedder of a namespace.

    A file from somebody else could name any embedder. One that loads files or a hub's model, or
    sends texts to a server, is opened only if the settings name it, too.

    Raises:
        MissingError: the settings do not name it.
    """
    if info.embedder not in (*PLAIN_EMBEDDERS, settings.embedder):
        raise MissingError(
            f"namespace {info.name!r} was embedded by {info.embedder!r}, which is used only if you "
            f"name it, too: --embedder {info.embedder}, or QRMEM_EMBEDDER"
        )
    return open_embedder(info.embedder, settings)


def new_namespace(settings: Settings) -> NamespaceInfo:
    """Return the properties of a new namespace, without the dimension; see `measured_info`."""
    return NamespaceInfo(
        name=settings.namespace,
        tokenizer=open_tokenizer(settings.tokenizer).name,
        segment_tokens=settings.segment_tokens,
        embedder=settings.embedder or default_embedder(),
        single=tuple(sorted(settings.schema.single)) if settings.schema else (),
    )


async def measure_dimension(embedder: Embedder | None) -> int:
    """Return the dimension of an embedder, 0 without one; this may call a server.

    Raises:
        CapReached: the call would exceed a cap.
        ModelUnavailable: the server does not answer.
    """
    if embedder is None:
        return 0
    if not embedder.name.startswith("openai:"):
        return embedder.dimension
    return int((await embedder.embed(["dimension"])).shape[1])


def caps_of(settings: Settings, **chosen: Unpack[CapOptions]) -> Caps:
    """Return the caps of a run: chosen ones override those of the settings.

    Raises:
        UsageError: a cap is no number, or has an unknown name.
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


def open_budget(
    settings: Settings,
    calls: list[CallRecord],
    listener: Listener,
    *,
    phase: Phase = "online",
    caps: Caps | None = None,
) -> Budget:
    """Return the budget of one run.

    Args:
        calls: takes the records of its calls.
        caps: caps of this run; `None`: those of the settings.
    """
    return Budget(
        run=uuid.uuid4().hex[:12],
        phase=phase,
        caps=caps or caps_of(settings),
        price_of=prices_of(settings).of,
        sink=calls.append,
        listener=listener,
    )


class Models:
    """The parts that stay the same while a memory is open."""

    def __init__(
        self,
        store: GraphStore,
        info: NamespaceInfo,
        settings: Settings,
        chat: "ChatModels | None",
        embedder: Embedder | None,
        within: Budget | None = None,
        shared_tagger: Callable[[Settings], EntityTagger] | None = None,
    ) -> None:
        """Take the parts.

        Args:
            within: budget of an outer run, whose caps apply too; `None`: the chat model's, if any.
            shared_tagger: returns the tagger of an outer run, which this object does not close.
        """
        self.settings = settings
        self.info = info
        self.embedder = embedder
        self.counter: Tokenizer = open_tokenizer(settings.tokenizer)
        self._store = store
        self._chat = chat
        self._within = within if chat is None else chat.budget
        self._prices = prices_of(settings)
        self._shared_tagger = shared_tagger
        self._tagger: EntityTagger | None = None
        self._crew: asyncio.Task[Crew | None] | None = None

    @cached_property
    def cutter(self) -> Tokenizer:
        """The cutter of the namespace's documents; questions do not need its tokenizer file."""
        return open_tokenizer(self.info.tokenizer)

    @classmethod
    async def open(
        cls,
        store: GraphStore,
        info: NamespaceInfo,
        settings: Settings,
        embedder: Embedder | None,
    ) -> Self:
        """Open the parts that the settings name, without calling a model.

        Args:
            embedder: the namespace's embedder; this object does not close it.
        """
        from qrmem.llm.routing import open_models
        from qrmem.prompts import stage_names

        # In a thread, since both read files: prompts, certificates, prices, a tokenizer.
        chat = await asyncio.to_thread(lambda: open_models(settings, stage_names()))
        if chat is None and settings.base_url and not info.embedder.startswith("openai:"):
            raise UsageError(
                "OPENAI_BASE_URL (base_url) names a server, but no chat model is named: name one "
                "with --model or QRMEM_MODEL, or unset OPENAI_BASE_URL to work without a chat model"
            )
        if settings.replay and info.embedder.startswith("openai:"):
            raise UsageError("a cassette contains no vectors: a replay needs another embedder")
        return await asyncio.to_thread(cls, store, info, settings, chat, embedder)

    async def close(self) -> None:
        """Close the model's connections, end the tagger and the workers."""
        if self._crew is not None:
            opening, self._crew = self._crew, None
            with suppress(QrmemError):
                if (crew := await opening) is not None:
                    await crew.close()
        if self._chat is not None:
            await self._chat.aclose()
        if self._tagger is not None:
            await self._tagger.close()

    def tagger(self, reasoner: Reasoner) -> EntityTagger | None:
        """Return the entity tagger of the settings; `None` if there is none, or it adds nothing.

        Raises:
            UsageError: there is no tagger of that name.
            MissingError: the settings do not say where it is.
        """
        kind = str(self.settings.tagger)
        if kind == "auto":
            kind = "rules" if self.settings.mode == "paper" or reasoner.is_local else "none"
        if kind == "none" or (kind == "rules" and reasoner.is_local):
            return None
        if self._shared_tagger is not None:
            return self._shared_tagger(self.settings)
        if self._tagger is None:
            from qrmem.extraction.own_types import ClosedTagger
            from qrmem.extraction.taggers import open_tagger
            from qrmem.schema import load_schema

            self._tagger = open_tagger(self.settings)
            schema = load_schema(self.settings.schema) if self.settings.schema else None
            if schema is not None and not (schema.is_open or reasoner.is_local):
                self._tagger = ClosedTagger(self._tagger, schema)
        return self._tagger

    async def crew(self) -> Crew | None:
        """Return the workers of the settings; `None` if this process works alone.

        Raises:
            MissingError: the extra is not installed.
            WorkersUnavailable: the cluster does not answer.
        """
        if self._crew is None:
            self._crew = asyncio.create_task(open_crew(self.settings.executor))
        try:
            return await asyncio.shield(self._crew)
        except QrmemError:
            self._crew = None  # the next `add` opens them again
            raise

    def by_workers(self, crew: Crew, run: Run, *, open_entity: bool) -> Executor | None:
        """Return a reasoner that reads by rules in workers, or `None`.

        It is `None` if qrmem starts CoreNLP itself, because each worker would start its own.
        """
        settings = self.settings
        if settings.tagger == "corenlp":
            return None
        from qrmem.agents.executor import ByWorkers, HowRead

        tagger = (
            ()
            if self.tagger(run.reasoner) is None
            else (
                ("tagger", revealed(settings.tagger)),
                ("tagger_timeout", settings.tagger_timeout),
                ("stanza_models", settings.stanza_models),
            )
        )
        how = HowRead(settings.tokenizer, open_entity, tagger)
        return ByWorkers(crew, how, run.budget.check)

    async def measured_info(self, embedder: Embedder | None) -> NamespaceInfo:
        """Return the properties of the namespace, or of a new one, with its dimension.

        Raises:
            CapReached: a call for the dimension would exceed a cap.
            ModelUnavailable: the server does not answer.
        """
        if not self.info.dimension and embedder is not None:
            self.info = replace(self.info, dimension=await measure_dimension(embedder))
        return self.info

    def run(
        self,
        phase: Phase,
        listener: Listener,
        best_effort: BestEffortWriter | None = None,
        caps: Caps | None = None,
        *,
        is_watched: bool = False,
    ) -> Run:
        """Return the parts of one run.

        Args:
            best_effort: stores replies if losing one is no reason to stop.
            caps: caps of this run; `None`: those of the settings.
            is_watched: send answers to the listener while they are written.

        Raises:
            UsageError: money is capped, and a price is not known.
        """
        calls: list[CallRecord] = []
        budget = Budget(
            run=uuid.uuid4().hex[:12],
            phase=phase,
            caps=caps or caps_of(self.settings),
            price_of=self._prices.of,
            sink=calls.append,
            listener=listener,
            within=self._within,
        )
        if self._chat is None:
            return self._run_of(self._local(budget), budget, calls)
        from qrmem.answering.with_model import PromptedReasoner
        from qrmem.llm.meter import Meter

        cache = self._cache(best_effort) if self.settings.cache else None
        meter = Meter(self._chat, budget, self.counter, cache)
        reasoner = PromptedReasoner(
            meter,
            self.counter,
            mode=self.settings.mode,
            settings=self.settings,
            listener=listener,
            is_watched=is_watched,
        )
        return self._run_of(reasoner, budget, calls, meter, reasoner.caller)

    def _run_of(
        self,
        reasoner: Reasoner,
        budget: Budget,
        calls: list[CallRecord],
        meter: "Meter | None" = None,
        caller: "Caller | None" = None,
    ) -> Run:
        return Run(
            reasoner=reasoner,
            meter=meter,
            caller=caller,
            calls=calls,
            budget=budget,
            embedder=self._counted(budget),
            settings=self.settings,
            counter=self.counter,
        )

    def _local(self, budget: Budget) -> Reasoner:
        from qrmem.answering.local import LocalReasoner

        return LocalReasoner(
            self.counter,
            reserve=self.settings.reserve,
            check=budget.check,
        )

    def _counted(self, budget: Budget) -> Embedder | None:
        """Return the embedder with the budget of a run."""
        if self.embedder is None:
            return None
        return counted_embedder(self.embedder, budget, self.counter)

    def _cache(self, best_effort: BestEffortWriter | None) -> "ReplyCache":
        """Return the cache of chat replies, which is in the store."""
        from qrmem.llm.reply_cache import ReplyCache

        ns = self.info.name

        async def put(
            key: str,
            value: Mapping[str, Any],
            segments: Sequence[str],
            calls: Sequence[CallRecord],
        ) -> None:
            work = partial(
                self._store.put_cache_entry, ns, "reply", key, value, segments=segments, calls=calls
            )
            await (best_effort.write(work) if best_effort is not None else work())

        return ReplyCache(partial(cached_value, self._store, ns, "reply"), put)


async def reembed(
    store: GraphStore, ns: str, settings: Settings, name: str, listener: Listener, caps: Caps
) -> int:
    """Change a namespace's embedder and embed again; return the number of embedded segments.

    Raises:
        CapReached: what was embedded is kept, and the same call continues from there.
    """
    from qrmem.agents.embedding import embed_segments

    calls: list[CallRecord] = []
    budget = open_budget(settings, calls, listener, phase="construction", caps=caps)
    opened = embedder = open_embedder(name, settings)
    if opened is not None:
        embedder = counted_embedder(opened, budget, open_tokenizer(settings.tokenizer))
    try:
        info = await store.namespace(ns)
        if info is not None and info.embedder != name:
            await store.set_embedder(ns, name, await measure_dimension(embedder))
        if embedder is None:
            return 0
        ids = [
            segment.id
            for document in await store.documents(ns)
            for segment in await store.segments(ns, documents=[document.id])
        ]
        return await embed_segments(store, ns, embedder, ids, listener=listener)
    finally:
        await close_embedder(opened)
        if calls:
            await store.record(ns, (), calls)
