"""What a memory reads and answers with: its models, and the parts of one run."""

import asyncio
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
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
    Usage,
)
from qrmem.types.options import CapOptions
from qrmem.workers import Crew, open_crew

if TYPE_CHECKING:
    from qrmem.llm.meter import Meter, ReplyCache
    from qrmem.llm.prompting import Caller
    from qrmem.llm.routing import ChatModels


def check_embedder(settings: Settings, info: NamespaceInfo | None) -> None:
    """Refuse another embedder than the one that the namespace was embedded by.

    Raises:
        EmbedderMismatch: with what to do.
    """
    wanted = settings.embedder
    if info is not None and wanted and wanted != info.embedder:
        raise EmbedderMismatch(
            f"namespace {info.name!r} was embedded by {info.embedder!r}, not {wanted!r}; leave "
            f"--embedder out, or change it for good: qrmem reembed --embedder {wanted}"
        )


def namespace_embedder(info: NamespaceInfo, settings: Settings) -> Embedder | None:
    """Open the embedder of a namespace.

    A file from somebody else could name any: one that loads files or a hub's model, or sends texts
    to a server, is opened only if the settings name it, too.

    Raises:
        MissingError: they do not.
    """
    if info.embedder not in (*PLAIN_EMBEDDERS, settings.embedder):
        raise MissingError(
            f"namespace {info.name!r} was embedded by {info.embedder!r}, which is used only if you "
            f"name it, too: --embedder {info.embedder}, or QRMEM_EMBEDDER"
        )
    return open_embedder(info.embedder, settings)


def new_namespace(settings: Settings) -> NamespaceInfo:
    """Return what a new namespace is made with, but for the dimension: see `measured`."""
    return NamespaceInfo(
        name=settings.namespace,
        tokenizer=open_tokenizer(settings.tokenizer).name,
        segment_tokens=settings.segment_tokens,
        embedder=settings.embedder or default_embedder(),
    )


async def measure_dimension(embedder: Embedder | None) -> int:
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


@dataclass(frozen=True, slots=True)
class Run:
    """One `add`, `ask` or `reembed`: its reasoner and embedder, and what they use.

    Attributes:
        meter: of the chat model; `None` for the local reasoner.
        caller: sends it prompts that are not the reasoner's own, counted as that counts.
        calls: those that are not yet in the store.
        budget: of everything that the run uses.
        embedder: of the namespace, in the same budget.
    """

    reasoner: Reasoner
    meter: "Meter | None"
    caller: "Caller | None"
    calls: list[CallRecord]
    budget: Budget
    embedder: Embedder | None

    def take(self, segment_id: str) -> list[CallRecord]:
        """Return the calls about a segment that were not taken yet, to be committed with it."""
        calls = [call for call in self.calls if call.segment_id == segment_id]
        self.calls[:] = [call for call in self.calls if call.segment_id != segment_id]
        return calls

    def take_all(self) -> list[CallRecord]:
        """Return all calls that were not taken yet."""
        calls, self.calls[:] = list(self.calls), []
        return calls

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
        caps: of this run; those of the settings where there are none.
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
            within: a wider run's budget, whose caps hold as well; the chat model's, if it has one.
            shared_tagger: returns a wider run's tagger, which is not closed with the others.
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
        """What cuts the namespace's documents; who only asks need not have its file."""
        return open_tokenizer(self.info.tokenizer)

    @classmethod
    async def open(
        cls,
        store: GraphStore,
        info: NamespaceInfo,
        settings: Settings,
        embedder: Embedder | None,
    ) -> Self:
        """Open what the settings name; a model is not called yet.

        Args:
            embedder: of the namespace; it is not closed with the others.
        """
        from qrmem.llm.routing import open_models
        from qrmem.prompts import stage_names

        # In a thread, as both read files: prompts, certificates, prices, a tokenizer.
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
        """Return the entity tagger that the settings name, or `None` where it adds nothing.

        Raises:
            UsageError: there is none of that name.
            MissingError: where to find it is not said.
        """
        if self.settings.tagger == "rules" and reasoner.is_local:
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
        """Return the workers that the settings name, `None` for this process alone.

        Raises:
            MissingError: the extra is not installed.
            WorkersUnavailable: the cluster does not answer.
        """
        if self._crew is None:
            self._crew = asyncio.create_task(open_crew(self.settings.executor))
        try:
            return await asyncio.shield(self._crew)
        except QrmemError:
            self._crew = None  # the next `add` tries again
            raise

    def by_workers(self, crew: Crew, run: Run, *, open_entity: bool) -> Executor | None:
        """Return what reads by rules elsewhere.

        `None` with a CoreNLP that is started here: each worker would start its own.
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
        """Return what the namespace is, or is to be, made with: the length of its vectors too.

        Raises:
            CapReached: a server would have to be asked, and that would exceed a cap.
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
        """Return what one run works with.

        Args:
            best_effort: takes the replies to keep, where losing one is no reason to stop.
            caps: of this run; those of the settings where there are none.
            is_watched: tell the listener of answers as they are written.

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
            return Run(self._local(budget), None, None, calls, budget, self._counted(budget))
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
        return Run(reasoner, meter, reasoner.caller, calls, budget, self._counted(budget))

    def _local(self, budget: Budget) -> Reasoner:
        from qrmem.answering.local import LocalReasoner

        return LocalReasoner(
            self.counter,
            reserve=self.settings.reserve,
            check=budget.check,
        )

    def _counted(self, budget: Budget) -> Embedder | None:
        """Return the embedder in the budget of a run."""
        if self.embedder is None:
            return None
        return counted_embedder(self.embedder, budget, self.counter)

    def _cache(self, best_effort: BestEffortWriter | None) -> "ReplyCache":
        """Return where the replies of a chat model are kept: in the store."""
        from qrmem.llm.meter import ReplyCache

        ns = self.info.name

        async def put(
            key: str,
            value: Mapping[str, Any],
            segments: Sequence[str],
            calls: Sequence[CallRecord],
        ) -> None:
            work = partial(
                self._store.put_cached, ns, "reply", key, value, segments=segments, calls=calls
            )
            await (best_effort.write(work) if best_effort is not None else work())

        return ReplyCache(partial(cached_value, self._store, ns, "reply"), put)


async def reembed(
    store: GraphStore, ns: str, settings: Settings, name: str, listener: Listener, caps: Caps
) -> int:
    """Change a namespace's embedder, embed what lacks vectors; returns how many segments.

    Raises:
        CapReached: what was embedded is kept, and the same call goes on from there.
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
