"""What an `ask` will cost."""

from typing import get_args

from qrmem.asking import Asker, Asking
from qrmem.config import Settings
from qrmem.graphstore.protocol import GraphStore, NamespaceInfo
from qrmem.llm.counted_embedder import STAGE as EMBED
from qrmem.llm.prices import Prices, prices_of
from qrmem.llm.remote_embedder import BATCH
from qrmem.planning.figures import Plan, Range, StagePlan
from qrmem.planning.forecast import Rehearsed, cost_of, stage_plans, wall_time
from qrmem.planning.rehearsal import Course
from qrmem.planning.stage import RehearsalTools, forgetful, on_stage, silent, stand_ins
from qrmem.retrieval.fragments import FragmentScorer
from qrmem.retrieval.searcher import Searcher
from qrmem.types import Embedder

QUERY_TOKENS = 60
"""Tokens of a query as it is embedded: the question, a reason, names."""
RELATION_TOKENS = 30
"""Tokens of a relation as it is embedded."""
EXPANSIONS = 40
"""Queries that a walk makes at most."""
_COURSES: tuple[Course, ...] = get_args(Course)


async def plan_ask(
    stored: GraphStore,
    info: NamespaceInfo,
    settings: Settings,
    embedder: Embedder | None,
    asking: Asking,
) -> Plan:
    """Return what a question will use: if it is answered at once, as is likely, or never.

    Nothing is written, and no server is asked.
    """
    is_remote = info.embedder.startswith("openai:")
    store = forgetful(stored)
    searcher = Searcher(store, info.name, None if is_remote else embedder)
    courses = {
        course: await _course(store, info, settings, searcher, asking, course)
        for course in _COURSES
    }
    prices = prices_of(settings)
    likely = courses["likely"]
    low = min(courses["shortest"], likely, key=lambda course: course.tokens)
    high = max(courses["longest"], likely, key=lambda course: course.tokens)
    stages = stage_plans(low, likely, high, prices.of)
    if is_remote:
        stages.append(await _embedding(stored, info, likely, high, prices))
    past = await stored.calls(info.name)
    seconds, basis = wall_time(stages, settings, past, 1)
    counts = await stored.counts(info.name)
    return Plan(
        run="ask",
        documents=len(asking.documents or ()) or counts.get("documents", 0),
        segments=counts.get("segments", 0),
        rehearsed=counts.get("segments", 0),
        stages=tuple(stages),
        seconds=seconds,
        basis=basis,
        concurrency=1,
        prices_date=prices.date,
        unpriced=tuple(dict.fromkeys(s.model for s in stages if s.cost is None)),
    )


async def _course(
    store: GraphStore,
    info: NamespaceInfo,
    settings: Settings,
    searcher: Searcher,
    asking: Asking,
    course: Course,
) -> Rehearsed:
    """Rehearse one course that the question may take."""
    chat, longest = stand_ins(settings)
    tools = RehearsalTools(store, info, on_stage(settings), chat, searcher.embedder, course)
    scorer = FragmentScorer(searcher)
    await Asker(store, info.name, tools, searcher, silent, scorer).ask(asking)
    rehearsed = Rehearsed()
    rehearsed.add(tools.records, lambda stage: 1.0, longest)
    return rehearsed


async def _embedding(
    stored: GraphStore, info: NamespaceInfo, likely: Rehearsed, high: Rehearsed, prices: Prices
) -> StagePlan:
    """Return what a server's embedder will be sent: queries, and relations that lack vectors."""
    model = info.embedder.partition(":")[2]
    facts = (await stored.counts(info.name)).get("facts", 0)
    missing = max(0, facts - len(await stored.owners(info.name, "relation")))
    queries = Range(1, 1 + likely.calls, 1 + EXPANSIONS + high.calls)
    calls = queries + Range(0, -(-missing // BATCH) // 2, -(-missing // BATCH))
    tokens = Range(
        queries.low * QUERY_TOKENS / 2,
        queries.likely * QUERY_TOKENS + missing * RELATION_TOKENS / 2,
        queries.high * 2 * QUERY_TOKENS + missing * 2 * RELATION_TOKENS,
    )
    cost = cost_of(tokens, Range(), prices.of(model))
    return StagePlan(EMBED, model, calls, tokens, Range(), cost)


__all__ = ["plan_ask"]
