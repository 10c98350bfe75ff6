"""What all systems of a run share: the model, its caps, the embedder, the reader, the memories."""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from qrmem.config import Settings
from qrmem.errors import MissingError, UsageError, install
from qrmem.eval.memories import IDLE, Build, Memories, OpenMemory, new_space
from qrmem.eval.records import Context, Item
from qrmem.graph.segmenting import cut
from qrmem.graphstore import open_store
from qrmem.llm.budget import Amount, Budget, Caps, Price, prices_of
from qrmem.llm.chat import Chat
from qrmem.llm.embedders import (
    close_embedder,
    counted_embedder,
    default_embedder,
    open_embedder,
)
from qrmem.llm.prompting import Caller
from qrmem.llm.routing import ChatModels
from qrmem.llm.tokenizers import open_tokenizer
from qrmem.models import Models, Run
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
    Usage,
)

T = TypeVar("T")

REPLIES = "replies"


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

    @property
    def usage(self) -> Usage:
        """What the item used."""
        return Usage(online=dict(self.stages))


@dataclass(frozen=True, slots=True)
class Reader:
    """What all systems read with: the reasoner, and the chat model behind it, for one item.

    Attributes:
        calls: sums up what is asked by it.
    """

    run: Run
    calls: CallCounter

    @property
    def reasoner(self) -> Reasoner:
        """Answers from passages."""
        return self.run.reasoner

    @property
    def caller(self) -> Caller:
        """What sends a system's own prompts; there is a chat model."""
        assert self.run.caller is not None
        return self.run.caller

    @property
    def usage(self) -> Usage:
        """What the item used so far."""
        return self.calls.usage


@dataclass(slots=True, kw_only=True)
class Harness:
    """Everything that a system works with, the same for all.

    Attributes:
        settings: window, model, embedder; the same for every system.
        model: the one chat model behind every system, in the budget of the run.
        budget: of everything that the run asks a server for.
        force: whether an answer is forced where none was found; choices always are.
        retrieve: whether nothing is answered, only ranked.
        is_rehearsal: whether a plan is made: `model` is a stand-in, and nothing may be sent.
    """

    settings: Settings
    tools: Models
    memories: Memories
    model: ChatModels | None
    budget: Budget
    listener: Listener
    force: bool = True
    retrieve: bool = False
    is_rehearsal: bool = False
    _prepared: dict[str, "asyncio.Task[Any]"] = field(default_factory=dict)
    _texts: OrderedDict[tuple[str, int], tuple[Sequence[Document], Sequence[Passage]]] = field(
        default_factory=OrderedDict
    )

    def reader(self, calls: CallCounter | None = None) -> Reader:
        """Return the reader that all systems share.

        Args:
            calls: of the item before; none: a count of its own.
        """
        calls = calls or CallCounter(self.listener)
        return Reader(self.tools.run("online", calls), calls)

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
        self, key: str, make: Callable[[Reader], Awaitable[T]]
    ) -> tuple[T, dict[str, StageUsage]]:
        """Return what a context is read into before any question, made once in a run, and its cost.

        Args:
            make: it, by a reader of its own; these calls count as construction.
        """

        async def made() -> tuple[T, dict[str, StageUsage]]:
            reader = self.reader()
            return await make(reader), dict(reader.calls.stages)

        task = self._prepared.get(key)
        if task is None or (task.done() and (task.cancelled() or task.exception())):
            task = self._prepared[key] = asyncio.create_task(made())
        found: tuple[T, dict[str, StageUsage]] = await asyncio.shield(task)
        return found

    @property
    def used(self) -> Amount:
        """What the run has paid for so far."""
        return self.budget.used

    def tell_paid(self) -> None:
        """Tell the listener what the run has paid for so far."""
        if self.model is not None:
            used = self.used
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
    *,
    chat: ChatModel | ChatModels | None = None,
    embedder: Embedder | None = None,
    caps: Caps | None = None,
    listener: Listener,
    record: Any,
    **options: Any,
) -> AsyncIterator[Harness]:
    """Open what a run works with.

    Args:
        settings: with the embedder's name resolved (see `resolved`).
        folder: of the run.
        chat: instead of the model that the settings name, such as a cassette.
        embedder: the one that the settings name, where it is open already.
        record: takes what building a memory cost.
        options: fields of `Harness`.
    """
    async with AsyncExitStack() as stack:
        model = None
        budget = Budget(caps=caps, price_of=prices_of(settings).of)
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
            folder / "memories", settings, model, embedder, budget, record=record, listener=listener
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
            **options,
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
    if "llmlingua" in needs and find_spec("llmlingua") is None:
        raise MissingError(f"the system {name!r} needs an extra: {install('llmlingua')}")
    if "embedder" in needs and settings.embedder == "none":
        raise MissingError(
            f"the system {name!r} needs an embedder: --embedder local ({install('local')}) "
            "or openai:NAME"
        )
