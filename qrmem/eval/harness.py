"""What all systems of a run share: the model, its caps, the embedder, the reader, the memories."""

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
from qrmem.llm.budget import Budget, Caps, Price, prices_of
from qrmem.llm.chat_model import Chat
from qrmem.llm.embedders import (
    close_embedder,
    counted_embedder,
    default_embedder,
    open_embedder,
)
from qrmem.llm.prompting import Caller
from qrmem.llm.routing import ChatModels
from qrmem.llm.tokenizers import open_tokenizer
from qrmem.memory.runtime import Models, Run
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
    """With what a run is made; none of it shapes a result.

    Attributes:
        concurrency: items at the same time, in each process.
        workers: processes.
        chat: instead of the model that the settings name, such as a cassette.
        embedder: the one that the settings name, such as one that keeps its vectors.
        rehearsed: the course that is rehearsed for a plan: `chat` stands in for the model, and
            nothing is sent.
        within: a budget of several runs (see `together`).
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
        """Return the same for several runs, with caps that hold for all of them together."""
        wider = Budget(caps=self.caps, price_of=prices_of(settings).of)
        return replace(self, caps=Caps(), within=wider)

    def __post_init__(self) -> None:
        if self.concurrency < 1 or self.workers < 1:
            raise UsageError("--concurrency and --workers are at least 1")
        if self.workers > 1 and (self.caps != Caps() or self.chat or self.embedder):
            raise UsageError("caps and cassettes hold for one process; leave --workers out")


@dataclass(slots=True)
class CallCounter:
    """Sums the calls of one item up; a reply from the cache counts as paid."""

    listener: Listener
    stages: dict[str, StageUsage] = field(default_factory=dict)

    def __call__(self, event: Event) -> None:
        """Take one event."""
        if event.kind == "call":
            data = event.data
            known = self.stages.get(data["stage"], StageUsage())
            self.stages[data["stage"]] = StageUsage(
                calls=known.calls + 1,
                tokens_in=known.tokens_in + data["tokens_in"],
                tokens_out=known.tokens_out + data["tokens_out"],
                seconds=known.seconds + data["seconds"],
            )
        else:
            self.listener(event)


@dataclass(slots=True, kw_only=True)
class Harness:
    """Everything that a system works with: for one item a view of it, else the same for all.

    Attributes:
        settings: window, model, embedder; the same for every system.
        model: the one chat model behind every system, in the budget of the run.
        budget: of everything that the run asks a server for.
        calls: counts what is asked for the item, of whatever hears it.
        run: the item's own.
        force: whether an answer is forced where none was found; choices always are.
        full_window: of what reads the whole text; 0: the model's own.
        retrieve: whether nothing is answered, only ranked.
        is_rehearsal: whether a plan is made: `model` is a stand-in, and nothing may be sent.
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

    def apart(self) -> "Harness":
        """Return the same, with a count of its own of what is asked."""
        calls = CallCounter(self.listener)
        return replace(self, calls=calls, run=self.tools.run("online", calls))

    @property
    def reasoner(self) -> Reasoner:
        """What all systems read with: it answers from passages."""
        return self.run.reasoner

    @property
    def caller(self) -> Caller:
        """What sends a system's own prompts; there is a chat model."""
        assert self.run.caller is not None
        return self.run.caller

    def memory(
        self, context: Context, build: Build | None = None
    ) -> AbstractAsyncContextManager[OpenMemory]:
        """Return the memory of a context (see `Memories.use`)."""
        return self.memories.use(context, build or Build())

    def texts(self, context: Context, tokens: int = 0) -> Sequence[Passage]:
        """Return a context's whole text in order, cut as a memory cuts it; there is no memory."""
        limit = tokens or self.settings.segment_tokens
        known = self._texts.get((context.id, limit))
        if known is None or known[0] is not context.documents:
            made = [
                Passage("S99", segment, document.title)
                for document in context.documents
                for segment in cut(document.id or "", document, self.tools.cutter, limit)
            ]
            known = self._texts[context.id, limit] = (context.documents, made)
            while len(self._texts) > IDLE:
                self._texts.popitem(last=False)
        return known[1]

    async def prepared(
        self, key: str, make: Callable[["Harness"], Awaitable[T]]
    ) -> tuple[T, dict[str, StageUsage]]:
        """Return what a context is read into before any question, made once in a run, and its cost.

        Args:
            make: it; what it asks the harness that it is given counts as construction.
        """

        async def made() -> tuple[T, dict[str, StageUsage]]:
            own = self.apart()
            return await make(own), own.calls.stages

        task = self._prepared.get(key)
        if task is None or (task.done() and (task.cancelled() or task.exception())):
            task = self._prepared[key] = asyncio.create_task(made())
        found: tuple[T, dict[str, StageUsage]] = await asyncio.shield(task)
        return found

    def tell_paid(self) -> None:
        """Tell the listener what the run has paid for so far."""
        if self.model is not None:
            used = self.budget.used
            money = used.cost if price_of(self.settings) is not None else None
            paid = {"calls": used.calls, "tokens": used.tokens, "money": money}
            self.listener(Event("paid", paid))

    def asked(self, item: Item, window: int = 0) -> AskContext:
        """Return an item as a reader is asked."""
        return AskContext(item.question, item.choices, window or self.settings.window)

    def is_forced(self, item: Item) -> bool:
        """Whether an answer to this item is forced."""
        return self.force or bool(item.choices)


def price_of(settings: Settings) -> Price | None:
    """Return what the model costs, `None` where that is not known."""
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
    """Open what a run works with.

    Args:
        settings: with the embedder's name resolved (see `resolved`).
        folder: of the run.
        record: takes what building a memory cost.
        force: see `Harness`, as `full_window` and `retrieve`.
    """
    chat, embedder, listener = options.chat, options.embedder, options.listener
    async with AsyncExitStack() as stack:
        model = None
        budget = Budget(caps=options.caps, price_of=prices_of(settings).of, within=options.within)
        if settings.model:
            if chat is None:
                chat = await stack.enter_async_context(Chat(settings))
            budget.require_prices([settings.model])
            models = chat if isinstance(chat, ChatModels) else ChatModels(chat)
            model = replace(models, budget=budget)
        if embedder is None:
            embedder = open_embedder(settings.embedder, settings)
            stack.push_async_callback(close_embedder, embedder)
        if embedder is not None:
            embedder = counted_embedder(embedder, budget, open_tokenizer(settings.tokenizer))
        # Where the replies to baselines are kept, so that a resumed run pays none twice.
        replies = str(folder / "replies.db") if settings.model else "memory://"
        store = await open_store(replies, settings)
        stack.push_async_callback(store.close)
        info = await store.namespace(REPLIES)
        if info is None:
            named = settings.with_(namespace=REPLIES, embedder="none")
            info = await new_space(store, named, None)
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
        calls = CallCounter(listener)
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


def resolved(settings: Settings) -> Settings:
    """Return settings as the parts of a run take them: the embedder named, no caps of their own.

    Raises:
        UsageError: they name other models for some stages, or a prompt template is wrong.
    """
    if settings.stage_models:
        raise UsageError("eval runs one model for all stages; leave stage_models out")
    load_prompts(settings.prompts)
    named = settings.with_(embedder=settings.embedder or default_embedder())
    # The caps of the settings are those of the run (see `RunOptions`), and not of each item again.
    return replace(named, max_calls=None, max_tokens=None, max_cost=None, max_seconds=None)


def require(needs: frozenset[str], settings: Settings, name: str) -> None:
    """Refuse a system that needs what is not there.

    Raises:
        MissingError: with what is missing.
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
