"""Estimate what a question would cost: its first reading, times the mean calls of its strategy.

The strategy's own first step finds the first reading without a chat model. The likely number of
calls was measured for each strategy (`Strategy.calls`); the most is a call in every trial.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from qrmem.agents import Search, strategy_of
from qrmem.agents.build_state import silent
from qrmem.agents.search.start import sides
from qrmem.agents.search.steps import Calls, Step
from qrmem.agents.strategies import overview
from qrmem.graphstore.protocol import GraphStore, NamespaceInfo
from qrmem.llm.budget import Prices, prices_of
from qrmem.llm.embedders import BATCH, open_embedder
from qrmem.llm.embedders import STAGE as EMBED
from qrmem.llm.forecast import ASKED_AGAIN, COUNTER, SPREAD_IN, SPREAD_OUT, cost_of, rounded
from qrmem.llm.reranking import STAGE as RERANK
from qrmem.llm.reranking import Reranker
from qrmem.memory.ask import search_of
from qrmem.memory.dry_run import DryModels, dry_store
from qrmem.memory.session import Session
from qrmem.retrieval.searcher import Searcher
from qrmem.types import BuildMode
from qrmem.types.options import AskOptions
from qrmem.types.usage import Range, StagePlan, total

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
    queries = Range(1, 1 + texts.likely, 1 + EXPANSIONS + texts.high)
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
