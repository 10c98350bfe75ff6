"""The resources that all systems of a run share: model, caps, embedder, reader, memories."""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from qrmem.agents.build_state import silent
from qrmem.config import Settings
from qrmem.errors import MissingError, UsageError, install, require_extra
from qrmem.eval.items import Build, Built, Context, Item
from qrmem.eval.memories import IDLE, Memories, OpenMemory, new_space
from qrmem.graph.segmenting import cut
from qrmem.graphstore import open_store
from qrmem.graphstore.protocol import GraphStore, NamespaceInfo
from qrmem.llm.budget import Budget, Caps, Price, prices_of
from qrmem.llm.chat_model import ServerChatModel
from qrmem.llm.embedders import (
    close_embedder,
    counted_embedder,
    default_embedder,
    open_embedder,
)
from qrmem.llm.prompting import Caller
from qrmem.llm.routing import ChatModels
from qrmem.llm.run import Run
from qrmem.llm.tokenizers import open_tokenizer
from qrmem.memory.runtime import Models
from qrmem.prompts import load_prompts
from qrmem.types import (
    AskContext,
    ChatModel,
    Document,
    Embedder,
    Event,
    Listener,
    Passage,
    Reasoner,
    StageUsage,
)
from qrmem.types.usage import Course

T = TypeVar("T")

REPLIES = "replies"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """Options of a run that do not affect its results.

    Attributes:
        concurrency: maximum number of items at the same time, in each process.
        workers: number of processes.
        chat: replaces the model of the settings, for example by a cassette.
        embedder: replaces the embedder of the settings, for example by one with a cache.
        rehearsed: shortest or longest case to rehearse for a plan: `chat` is a stand-in, and
            nothing is sent.
        within: budget of several runs (see `together`).
    """

    listener: Listener = silent
    concurrency: int = 1
    workers: int = 1
    caps: Caps = field(default_factory=Caps)
    chat: ChatModel | ChatModels | None = None
    embedder: Embedder | None = None
    rehearsed: Course | None = None
    within: Budget | None = None

    def together(self, settings: Settings) -> "RunOptions":
        """Return options for several runs, with caps that apply to all of them together."""
        wider = Budget(caps=self.caps, price_of=prices_of(settings).of)
        return replace(self, caps=Caps(), within=wider)

    def __post_init__(self) -> None:
        if self.concurrency < 1 or self.workers < 1:
            raise UsageError("--concurrency and --workers are at least 1")
        if self.workers > 1 and (self.caps != Caps() or self.chat or self.embedder):
            raise UsageError("caps and cassettes hold for one process; leave --workers out")


@dataclass(slots=True)
class CallCounter:
    """Sums the calls of one item; a reply from the cache counts as paid."""

    listener: Listener
    stages: dict[str, StageUsage] = field(default_factory=dict)

    def __call__(self, event: Event) -> None:
        """Take one event."""
        if event.kind == "call":
            data = event.data
            usage = self.stages.get(data["stage"], StageUsage())
            self.stages[data["stage"]] = StageUsage(
                calls=usage.calls + 1,
                tokens_in=usage.tokens_in + data["tokens_in"],
                tokens_out=usage.tokens_out + data["tokens_out"],
                seconds=usage.seconds + data["seconds"],
            )
        else:
            self.listener(event)


@dataclass(slots=True, kw_only=True)
class Harness:
    """The resources of a system; each item gets a view with its own count of calls.

    Attributes:
        settings: window, model, embedder; the same for every system.
        model: the chat model of all systems, in the budget of the run.
        budget: budget of all requests of the run.
        calls: counts the calls of the item.
        run: the item's run.
        force: whether to force an answer if none was found; choices are always forced.
        full_window: window of systems that read the whole text; 0 uses the model's.
        retrieve: rank only, without answers.
        is_rehearsal: whether a plan is made; then `model` is a stand-in, and nothing may be sent.
    """

    settings: Settings
    tools: Models
    memories: Memories
    model: ChatModels | None
    budget: Budget
    listener: Listener
    calls: CallCounter
    run: Run
    force: bool
    retrieve: bool
    is_rehearsal: bool
    full_window: int
    _prepared: dict[str, "asyncio.Task[Any]"] = field(default_factory=dict)
    _texts: OrderedDict[tuple[str, int], tuple[Sequence[Document], Sequence[Passage]]] = field(
        default_factory=OrderedDict
    )

    def with_own_count(self) -> "Harness":
        """Return a view with its own count of calls."""
        calls = CallCounter(self.listener)
        return replace(self, calls=calls, run=self.tools.run("online", calls))

    @property
    def reasoner(self) -> Reasoner:
        """The reader of all systems: it answers from passages."""
        return self.run.reasoner

    @property
    def caller(self) -> Caller:
        """Sends a system's own prompts to the chat model, which must be set."""
        assert self.run.caller is not None
        return self.run.caller

    def memory(
        self, context: Context, build: Build | None = None
    ) -> AbstractAsyncContextManager[OpenMemory]:
        """Open the memory of a context (see `Memories.use`)."""
        return self.memories.use(context, build or Build())

    def texts(self, context: Context, tokens: int = 0) -> Sequence[Passage]:
        """Return a context's whole text in order, cut into segments as in a memory, without one."""
        limit = tokens or self.settings.segment_tokens
        cached = self._texts.get((context.id, limit))
        if cached is None or cached[0] is not context.documents:
            passages = [
                Passage("S99", segment, document.title)
                for document in context.documents
                for segment in cut(document.id or "", document, self.tools.cutter, limit)
            ]
            cached = self._texts[context.id, limit] = (context.documents, passages)
            while len(self._texts) > IDLE:
                self._texts.popitem(last=False)
        return cached[1]

    async def prepared(
        self, key: str, make: Callable[["Harness"], Awaitable[T]]
    ) -> tuple[T, dict[str, StageUsage]]:
        """Return a context's data that is prepared before any question, once per run, and its cost.

        Args:
            key: identifies the data.
            make: makes the data; calls through the harness that it gets count as construction.
        """

        async def made() -> tuple[T, dict[str, StageUsage]]:
            own_harness = self.with_own_count()
            return await make(own_harness), own_harness.calls.stages

        task = self._prepared.get(key)
        if task is None or (task.done() and (task.cancelled() or task.exception())):
            task = self._prepared[key] = asyncio.create_task(made())
        made_with_usage: tuple[T, dict[str, StageUsage]] = await asyncio.shield(task)
        return made_with_usage

    def tell_paid(self) -> None:
        """Send the usage of the run so far to the listener."""
        if self.model is not None:
            amount = self.budget.used
            money = amount.cost if price_of(self.settings) is not None else None
            amounts = {"calls": amount.calls, "tokens": amount.tokens, "money": money}
            self.listener(Event("paid", amounts))

    def asked(self, item: Item, window: int = 0) -> AskContext:
        """Return an item as a question for a reader."""
        return AskContext(item.question, item.choices, window or self.settings.window)

    def is_forced(self, item: Item) -> bool:
        """Return whether an answer to this item is forced."""
        return self.force or bool(item.choices)


def price_of(settings: Settings) -> Price | None:
    """Return the price of the model, `None` if it is unknown."""
    if not settings.model:
        return None
    return prices_of(settings).of(settings.model)


@asynccontextmanager
async def open_harness(
    settings: Settings,
    folder: Path,
    options: RunOptions,
    *,
    record: Callable[[Built], None],
    force: bool = True,
    full_window: int = 0,
    retrieve: bool = False,
) -> AsyncIterator[Harness]:
    """Open the harness of a run.

    Args:
        settings: settings with the embedder's name resolved (see `resolved`).
        folder: folder of the run.
        options: options of the run.
        record: gets the cost of each memory that is built.
        force: see `Harness`, also for `full_window` and `retrieve`.
    """
    listener, calls = options.listener, CallCounter(options.listener)
    budget = Budget(caps=options.caps, price_of=prices_of(settings).of, within=options.within)
    async with AsyncExitStack() as stack:
        model = await _open_chat_models(settings, options, budget, stack)
        embedder = _open_embedder(settings, options, budget, stack)
        store, info = await _open_replies(settings, folder, stack)
        memories = Memories(
            folder=folder / "memories",
            settings=settings,
            chat=model,
            embedder=embedder,
            budget=budget,
            record=record,
            listener=listener,
            rehearsed=options.rehearsed,
        )
        stack.push_async_callback(memories.close)
        tools = Models(store, info, settings, model, embedder)
        yield Harness(
            settings=settings,
            tools=tools,
            memories=memories,
            model=model,
            budget=budget,
            listener=listener,
            calls=calls,
            run=tools.run("online", calls),
            force=force,
            retrieve=retrieve,
            is_rehearsal=options.rehearsed is not None,
            full_window=full_window,
        )


async def _open_chat_models(
    settings: Settings, options: RunOptions, budget: Budget, stack: AsyncExitStack
) -> ChatModels | None:
    """Return the run's chat models under its budget; none if the settings name none."""
    if not settings.model:
        return None
    chat = options.chat
    if chat is None:
        chat = await stack.enter_async_context(ServerChatModel(settings))
    budget.require_prices([settings.model])
    return replace(chat if isinstance(chat, ChatModels) else ChatModels(chat), budget=budget)


def _open_embedder(
    settings: Settings, options: RunOptions, budget: Budget, stack: AsyncExitStack
) -> Embedder | None:
    """Return the run's embedder, whose tokens the budget counts; none if the settings say so."""
    embedder = options.embedder
    if embedder is None:
        embedder = open_embedder(settings.embedder, settings)
        stack.push_async_callback(close_embedder, embedder)
    if embedder is None:
        return None
    return counted_embedder(embedder, budget, open_tokenizer(settings.tokenizer))


async def _open_replies(
    settings: Settings, folder: Path, stack: AsyncExitStack
) -> tuple[GraphStore, NamespaceInfo]:
    """Open the cache of replies to baselines, so that a resumed run pays for none twice."""
    store = await open_store(
        str(folder / "replies.db") if settings.model else "memory://", settings
    )
    stack.push_async_callback(store.close)
    info = await store.namespace(REPLIES)
    if info is None:
        reply_settings = settings.with_(namespace=REPLIES, embedder="none")
        info = await new_space(store, reply_settings, None)
    return store, info


def resolved(settings: Settings) -> Settings:
    """Return settings for the parts of a run: with the embedder's name, without caps.

    Raises:
        UsageError: the settings have models for single stages, or a prompt template is wrong.
    """
    if settings.stage_models:
        raise UsageError("eval runs one model for all stages; leave stage_models out")
    load_prompts(settings.prompts)
    embedder_settings = settings.with_(embedder=settings.embedder or default_embedder())
    # The caps of the settings apply to the whole run (see `RunOptions`), not to each item.
    return replace(
        embedder_settings, max_calls=None, max_tokens=None, max_cost=None, max_seconds=None
    )


def require(needs: frozenset[str], settings: Settings, name: str) -> None:
    """Check that a system has what it needs.

    Raises:
        MissingError: something is missing; the message says what.
    """
    if "model" in needs and not settings.model:
        raise MissingError(
            f"the system {name!r} needs a chat model: --model and --base-url (or OPENAI_API_KEY)"
        )
    if "llmlingua" in needs:
        require_extra("llmlingua", f"the system {name!r}", "llmlingua")
    if "embedder" in needs and settings.embedder == "none":
        raise MissingError(
            f"the system {name!r} needs an embedder: --embedder local ({install('local')}) "
            "or openai:NAME"
        )
