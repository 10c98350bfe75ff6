"""Dry runs: models that only count their calls, a store that ignores writes; plans of questions.

The plan of a question is its first reading, times the mean calls of its strategy. The strategy's
own first step finds the first reading without a chat model. The likely number of calls was measured
for each strategy (`Strategy.calls`); the most is a call in every trial.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import signature
from typing import TYPE_CHECKING, Any, Literal, cast

from qrmem.agents import Search, strategy_of
from qrmem.agents.build_state import silent
from qrmem.agents.search.start import sides
from qrmem.agents.search.steps import Calls, Step
from qrmem.agents.strategies import overview
from qrmem.config import Settings
from qrmem.graphstore.protocol import GraphStore, NamespaceInfo
from qrmem.llm.budget import Budget, Prices, prices_of
from qrmem.llm.embedders import BATCH, RemoteEmbedder, open_embedder
from qrmem.llm.embedders import STAGE as EMBED
from qrmem.llm.forecast import (
    ASKED_AGAIN,
    COUNTER,
    SPREAD_IN,
    SPREAD_OUT,
    Dry,
    StageUse,
    StubChat,
    cost_of,
    rounded,
)
from qrmem.llm.reranking import STAGE as RERANK
from qrmem.llm.reranking import Reranker
from qrmem.llm.routing import ChatModels, chosen_stages
from qrmem.llm.run import Run
from qrmem.llm.totals import Phase
from qrmem.memory.ask import search_of
from qrmem.memory.runtime import Models
from qrmem.memory.session import Session
from qrmem.prompts import stage_names
from qrmem.retrieval.searcher import Searcher
from qrmem.types import BuildMode, Embedder, Event, Listener, Tokenizer
from qrmem.types.options import AskOptions
from qrmem.types.usage import Course, Range, StagePlan, total

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


FOLDS = 0.25
"""Folds of a real run for each fold of a dry run, whose relations repeat few names."""
DIMENSION = 8
"""Dimension of a stub's vectors if the real one is not known."""


class DryModels(Models):
    """Models for dry runs: real prompts, and stubs for every paid call."""

    def __init__(
        self,
        store: GraphStore,
        info: NamespaceInfo,
        settings: Settings,
        embedder: Embedder | None = None,
        course: Course | None = None,
    ) -> None:
        """Take the parts; `embedder` runs on this machine, or is none; `course`: see `StubChat`."""
        self._longest: dict[str, int] = {}
        self._calls: list[Mapping[str, Any]] = []
        # A dry run starts no server, stores nothing and has no caps.
        settings = replace(
            settings,
            tagger=settings.tagger if settings.tagger in ("auto", "none") else "rules",
            executor="inline",
            cache=False,
            record="",
            replay="",
            max_calls=None,
            max_tokens=None,
            max_cost=None,
            max_seconds=None,
        )

        def stub(model: str) -> StubChat:
            return StubChat(model, self._longest, course)

        stages = chosen_stages(settings, stage_names())
        others = {stage: stub(model) for stage, model in stages.items()}
        chat = ChatModels(stub(settings.model), others) if settings.model else None
        super().__init__(store, info, settings, chat, embedder)

    def run(self, phase: Phase, listener: Listener, *args: Any, **options: Any) -> Run:
        """Return the parts of one dry run; its calls are counted here as they are reported."""

        def heard(event: Event) -> None:
            if event.kind == "call":
                self._calls.append(event.data)
            listener(event)

        run = super().run(phase, heard, *args, **options)
        if phase == "construction" and self.info.embedder.startswith("openai:"):
            return replace(run, embedder=StubEmbedder(self.info.embedder, run.budget, self.counter))
        return run

    def model_of(self, stage: str) -> str:
        """Return the name of the model that a stage uses."""
        return "" if self._chat is None else self._chat.name_of(stage)

    def used(self, weight: Callable[[str], float], stages: Dry | None = None) -> Dry:
        """Return the usage of all dry runs by stage and model.

        Args:
            weight: number of real calls for one counted call, by stage.
            stages: the usage to add it to.
        """
        stages = {} if stages is None else stages
        for call in self._calls:
            stage = call["stage"]
            stage_use = stages.setdefault((stage, call["model"]), StageUse())
            share = FOLDS if stage == "fold" else 1.0
            most = self._longest.get(stage, 0)
            stage_use.add(call["tokens_in"], call["tokens_out"], share * weight(stage), most)
        return stages


class StubEmbedder:
    """Counts what an embedding server would receive; its vectors have no meaning.

    Without a budget nothing is counted: an embedder on this machine costs only time.
    """

    def __init__(
        self, name: str, budget: Budget | None, counter: Tokenizer, dimension: int = DIMENSION
    ) -> None:
        self.name = name
        self.dimension = dimension
        self._budget = budget
        self._counter = counter

    def windows(self, text: str) -> Sequence[str]:
        """Cut a text as the embedder would."""
        return RemoteEmbedder.windows(text)

    async def embed(
        self, texts: Sequence[str], *, kind: Literal["passage", "query"] = "passage"
    ) -> "NDArray[np.float32]":
        """Count the requests; returns equal rows."""
        import numpy as np

        if self._budget is not None:
            model = self.name.partition(":")[2]
            for start in range(0, len(texts), BATCH):
                tokens = sum(self._counter.count(text) for text in texts[start : start + BATCH])
                self._budget.count(
                    stage=EMBED, prompt="", model=model, tokens_in=tokens, cost=None, seconds=0.0
                )
        return np.full((len(texts), self.dimension), self.dimension**-0.5, dtype=np.float32)


# --- stores ---------------------------------------------------------------------------------------


class DryStore:
    """A store that reads another one and ignores writes.

    In the protocol, methods that return nothing are writes. The two writes that return something
    raise an error, and so does every method that the protocol does not have.
    """

    def __init__(self, store: GraphStore) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        method = getattr(GraphStore, name, None)
        is_known = method is not None or name in GraphStore.__annotations__
        if not is_known or name in ("apply", "create_namespace"):
            raise AttributeError(f"a plan may not use {name!r} of a store")
        if method is not None and signature(method).return_annotation is None:
            return _forget
        return getattr(self._store, name)


async def _forget(*args: Any, **options: Any) -> None:
    """Do nothing."""


def dry_store(store: GraphStore) -> GraphStore:
    """Return a store that reads the given one and ignores writes."""
    return cast("GraphStore", DryStore(store))


QUERY_TOKENS, RELATION_TOKENS, EXPANSIONS = 60, 30, 40
"""Tokens of an embedded query and relation; maximum number of queries of a search."""
ENTITIES = Calls("query", tokens=70, reply=10)
"""The call that extracts the question's entities (`start="entities"`)."""
FORCED = Calls("answer", mean=0.5, least=0, growth=1.25)
"""The call that forces an answer if no reading gives one."""
EXTRACT_TOKENS, EXTRACT_REPLY = 950, 420
"""Tokens of the prompt that reads a segment again, and of its reply."""
EMPTY, LABEL = 40, 20
"""Tokens of a prompt with only the question, and of a passage's label."""
SMALLER, LARGER = 0.5, 3.0
"""Range of a prompt's size, as factors of the planned first reading."""


@dataclass(frozen=True, slots=True)
class QuestionPlan:
    """The strategy that answers a question, and what its stages will use."""

    strategy: str
    stages: list[StagePlan]


async def plan_question(session: Session, info: NamespaceInfo, options: AskOptions) -> QuestionPlan:
    """Return what a question will use, without calling a chat model or an embedding server.

    Args:
        options: resolved ones; see `qrmem.memory.ask.resolved`.
    """
    is_remote = info.embedder.startswith("openai:")
    store, settings = dry_store(session.store), session.settings
    embedder = None if is_remote else open_embedder(info.embedder, settings)
    models = DryModels(store, info, settings, embedder)
    searcher = Searcher(store, info.name, embedder)
    options = replace(options, keep_trail=False, checkpointer=None, caps={})
    name, strategy = await strategy_of(search_of(models, searcher, options, silent))
    # Local orientation is counted, not done.
    plain = replace(options, orientation="none", share_orientation=False)
    search = search_of(models, searcher, plain, silent)
    stages: list[StagePlan] = []
    if search.caller is not None:
        reading = await _first_reading(search, strategy.begin, info, settings.reserve)
        for calls in _all_calls(options, strategy.calls, settings.mode, reading):
            model = models.model_of(calls.stage)
            stages.append(_stage(calls, reading, options.max_trials, model, prices_of(settings)))
    if is_remote:
        stages.append(await _embedding(session.store, info, stages, prices_of(settings)))
    scorer = await session.reranker(options.reranker)
    if scorer is not None and scorer.priced:
        stages.append(_reranking(info, scorer.priced, search, prices_of(settings)))
    return QuestionPlan(name, stages)


@dataclass(frozen=True, slots=True)
class _FirstReading:
    """The first reading of a question.

    Attributes:
        frame: tokens of a prompt without its passages.
        passages: tokens of all passages in it, and of the notes on them.
        most: maximum tokens of a prompt, limited by the window and the memory's size.
        parts: number of prompts for the passages; 0 if there is nothing to read.
        joins: number of calls that join notes on the parts.
    """

    frame: int
    passages: int
    most: int
    parts: int
    joins: int = 0


async def _first_reading(
    search: Search, begin: Step, info: NamespaceInfo, reserve: int
) -> _FirstReading:
    """Return the first reading that a strategy's first step finds."""
    state = await begin(search, {})
    window, room = search.context.window, search.room
    frame = max(1, window - room - min(reserve, window // 4))
    segments = (await search.store.counts(info.name)).get("segments", 0)
    most = min(window, frame + segments * (info.segment_tokens + LABEL))
    if "parts" in state:
        ids = [id for part in state["parts"] for id in part]
        sizes = await search.sizes(await search.graph.segments(ids))
        count = len(state["parts"])
        notes = count * overview.NOTE // 2
        joins = overview.joins(search, count)
        return _FirstReading(frame, sum(sizes) + notes, most, count, joins)
    packed = await search.packed(state)
    sizes = await search.sizes([candidate.segment for candidate in packed.read])
    return _FirstReading(frame, sum(sizes), most, min(1, len(sizes)))


def _all_calls(
    options: AskOptions, own: Sequence[Calls], mode: BuildMode, reading: _FirstReading
) -> Iterator[Calls]:
    """Yield all calls: before the first reading, by the strategy, and at the end."""
    if options.orientation == "local":
        stages = ("extract",) if mode == "compact" else ("entities", "relations")
        count = options.nearest
        for stage in stages:
            yield Calls(stage, count, 0, count, tokens=EXTRACT_TOKENS, reply=EXTRACT_REPLY)
    if options.start == "entities":
        yield ENTITIES
    judges = any(calls.stage == "judge" for calls in own)
    for calls in own:
        if calls.stage == overview.NAME:
            count = reading.parts + reading.joins
            yield replace(calls, mean=count, least=count, most=count)
        elif calls.stage == "judge" and options.on_exhausted == "force":
            yield replace(calls, least=0)  # an answer may be forced at once
        else:
            yield calls
    if judges and options.on_exhausted == "force":
        yield FORCED


def _stage(
    calls: Calls, reading: _FirstReading, trials: int, model: str, prices: Prices
) -> StagePlan:
    """Return the ranges of a stage: answered at once, in the likely case, and never."""
    most = trials if calls.most is None else calls.most
    prompt, smallest = float(calls.tokens), float(EMPTY)
    if not calls.tokens:
        prompt = reading.frame + reading.passages / max(1, reading.parts + reading.joins)
        smallest = prompt * SMALLER * min(1.0, calls.growth)
    is_made = reading.parts or calls.tokens  # without a passage there is no call
    least, mean = (calls.least, calls.mean) if is_made else (0, 0)
    largest = min(reading.most, prompt * calls.growth * LARGER) if reading.parts else reading.most
    tokens_in = Range(
        least * smallest * SPREAD_IN.low,
        mean * prompt * calls.growth * COUNTER,
        most * largest * ASKED_AGAIN * SPREAD_IN.high,
    )
    tokens_out = Range(
        least * calls.reply * SPREAD_OUT.low,
        mean * calls.reply,
        most * calls.reply * ASKED_AGAIN * SPREAD_OUT.high,
    )
    number = Range(least, mean, most * ASKED_AGAIN)
    cost = cost_of(tokens_in, tokens_out, prices.of(model))
    return StagePlan(
        calls.stage, model, rounded(number), rounded(tokens_in), rounded(tokens_out), cost
    )


async def _embedding(
    stored: GraphStore, info: NamespaceInfo, stages: Sequence[StagePlan], prices: Prices
) -> StagePlan:
    """Return the usage of an embedding server: queries, and relations without vectors."""
    model = info.embedder.partition(":")[2]
    facts = (await stored.counts(info.name)).get("facts", 0)
    missing = max(0, facts - len(await stored.owners(info.name, "relation")))
    texts = total(stage.calls for stage in stages)
    # A search sends the question, then its follow-up queries in one request.
    queries = Range(1, 2 + texts.likely, 2 + EXPANSIONS + texts.high)
    calls = queries + Range(0, -(-missing // BATCH) // 2, -(-missing // BATCH))
    tokens = Range(
        queries.low * QUERY_TOKENS / 2,
        queries.likely * QUERY_TOKENS + missing * RELATION_TOKENS / 2,
        queries.high * 2 * QUERY_TOKENS + missing * 2 * RELATION_TOKENS,
    )
    return StagePlan(
        EMBED, model, calls, tokens, Range(), cost_of(tokens, Range(), prices.of(model))
    )


def _reranking(info: NamespaceInfo, model: str, run: Search, prices: Prices) -> StagePlan:
    """Return the usage of a rerank server: the first hits of each search."""
    compared = len(sides(run.context.question))
    calls = Range(1, 1 + compared, 2 + compared)
    size = Reranker.depth * info.segment_tokens
    tokens = Range(QUERY_TOKENS, calls.likely * size, 2 * calls.high * size)
    return StagePlan(
        RERANK, model, calls, tokens, Range(), cost_of(tokens, Range(), prices.of(model))
    )
