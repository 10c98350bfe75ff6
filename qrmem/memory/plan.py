"""Estimate what a run would cost, before its first call.

For `add` and trees the real code runs dry: real prompts, counted as they would be sent,
and a stub whose replies have the mean length of real replies (`qrmem.llm.forecast`). The usage of
a question is estimated (`qrmem.memory.dry_run`). Nothing is written, and no server is called.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal, cast

from qrmem.agents.build_state import silent
from qrmem.config import Settings
from qrmem.errors import QrmemError
from qrmem.graphstore import scratch_store
from qrmem.graphstore.protocol import GraphStore, NamespaceInfo
from qrmem.graphstore.reads import copy_document
from qrmem.io.sources import PassedOver, Refused, Source, documents
from qrmem.llm.budget import prices_of
from qrmem.llm.forecast import Dry, stage_plans, wall_time
from qrmem.memory.add import Adder
from qrmem.memory.add_state import FileIds, IngestState
from qrmem.memory.ask import resolved
from qrmem.memory.dry_run import DIMENSION, DryModels, StubEmbedder, dry_store, plan_question
from qrmem.memory.inspect import read_otherwise
from qrmem.memory.runtime import new_namespace
from qrmem.memory.session import Session
from qrmem.memory.summary_trees import TreePreset, require_known, run_build
from qrmem.retrieval.trees.clustering import require_tree_extra
from qrmem.retrieval.trees.nodes import prefix_of
from qrmem.types import Document, Segment
from qrmem.types.documents import TreeKind
from qrmem.types.options import AddOptions, AskOptions, PlanOptions
from qrmem.types.usage import CostEstimate, Course, Plan, StagePlan
from qrmem.workers.crew import cores

SAMPLE = 48_000
"""Maximum number of tokens that are read dry; a larger text is sampled down to so many."""
LEAST = 1_200
"""Minimum number of tokens in the sample of a document, if it has so many."""
EXTRACTING = frozenset({"extract", "entities", "relations", "questions"})
"""Stages that are done for a segment that was extracted but not merged."""
MOST_PLANNED = 8
"""Number of documents, evenly chosen, that represent all that other settings read."""
CALLS_DRIVEN = 120
"""Chat calls in a second that one process can drive: one takes it 8 ms with many in flight."""
READ, HANDED, MERGED = 0.00105, 0.00014, 0.0047
"""Processor seconds for a short segment without a chat model, on SQLite: to read it, to pass it
to a worker and back, and for all the rest; see docs/scaling.md."""
STARTED = 0.5
"""Processor seconds that a worker takes to start."""
LEAST_GAIN = 1.05
"""Minimum factor by which workers must speed up `add` for a plan to recommend them."""
COURSES: tuple[Course | None, ...] = ("shortest", None, "longest")
"""Courses of dry tree building; `None`, the likely one, clusters the stub's summaries."""
Courses = tuple[Dry, Dry, Dry]
"""Usage of a run on each course."""
Cut = Callable[[str], list[Segment]]
"""Takes a document's id; returns its segments."""


async def plan(session: Session, options: PlanOptions) -> Plan:
    """Return what a run will use; see `Memory.plan`."""
    if options.add is not None:
        return await plan_add(session, options.source, options.add, tree=options.tree)
    if options.ask is not None:
        return await plan_ask(session, await resolved(session, options.ask))
    return await plan_tree(session, options.documents, kind=options.kind, preset=options.preset)


async def plan_add(
    session: Session,
    source: Source,
    options: AddOptions,
    *,
    tree: bool = False,
) -> Plan:
    """Return what reading a source will use.

    Args:
        tree: whether each document, even one that was read before, gets a tree of summaries.

    Raises:
        BadDocument: the one source given cannot be read.
        UsageError: a document exists with another text, and `update` is not set.
    """
    async with scratch_store() as shadow:
        return await _plan_add(session, shadow, source, options, tree=tree)


async def _plan_add(
    session: Session,
    shadow: GraphStore,
    source: Source,
    options: AddOptions,
    *,
    tree: bool,
) -> Plan:
    settings, store = session.settings, session.store
    info = await session.known() or new_namespace(settings)
    is_remote = info.embedder.startswith("openai:")
    models = DryModels(shadow, replace(info, dimension=DIMENSION) if is_remote else info, settings)
    items = [
        one async for one in documents(source, options.glob, follow_links=options.follow_links)
    ]
    items = await FileIds(store, info.name).named(items)
    documents_given = [one for one in items if isinstance(one, Document)]
    problems = [(one.name, str(one.error)) for one in items if isinstance(one, Refused)]
    adder = Adder(shadow, info.name, models, silent, options)
    of_id = {document.id or "": document for document in documents_given}
    cut = cache(lambda name: adder.cut(name, of_id[name]))  # read once, for both texts and trees
    dry_run = await _choose(store, shadow, models.info, documents_given, cut, options)
    documents_read_dry, weight = dry_run.shown, dry_run.weight
    # A refused document is an error if it is the only one, as in the run itself.
    is_alone = len(items) == len(documents_read_dry) == 1 and not isinstance(items[0], PassedOver)
    report = await adder.add(
        cast("Source", documents_read_dry[0] if is_alone else documents_read_dry)
    )

    def stands_for(stage: str) -> float:
        if stage == "summary" and settings.mode != "paper":
            return dry_run.waiting / len(documents_read_dry)
        return weight * (1 - dry_run.half_read) if stage in EXTRACTING else weight

    courses: Courses = models.used(stands_for), models.used(stands_for), models.used(stands_for)
    if tree:
        is_rebuild = options.rebuild  # which leaves no nodes
        await _trees(None if is_rebuild else store, info, settings, of_id, cut, courses)
    return await _plan(
        session,
        "add",
        stage_plans(*courses, prices_of(settings)),
        documents=sum(report.states.values()) and dry_run.waiting,
        segments=report.read if dry_run.segments is None else dry_run.segments,
        sampled=report.read,
        readers=dry_run.readers,
        **await _otherwise(session, dry_run.unread_again),
        problems=(*problems, *((name, reason) for name, _, reason in report.problems)),
    )


async def plan_tree(
    session: Session,
    document_ids: Sequence[str] = (),
    *,
    kind: TreeKind = "ilm",
    preset: TreePreset = "default",
) -> Plan:
    """Return what building trees of some documents, or of all, will use.

    Existing nodes are not made again. The clusters above the segments depend on the summaries: the
    range goes from the fewest possible to the most, and the likely number comes from the stub's
    summaries.

    Raises:
        MissingError: the extra `tree` is not installed.
        NotFound: one of the documents does not exist.
    """
    info, settings, store = await session.info(), session.settings, session.store
    require_known(kind, preset)
    tree_documents = await session.require_documents(document_ids)
    infos = await store.documents(info.name, tree_documents or None)
    courses: Courses = {}, {}, {}
    await _grow_dry(store, info, settings, [info_of.id for info_of in infos], courses, kind, preset)
    segments = sum(info_of.segments for info_of in infos)
    return await _plan(
        session,
        "tree",
        stage_plans(*courses, prices_of(settings)),
        documents=len(infos),
        segments=segments,
        sampled=segments,
    )


async def _grow_dry(
    stored: GraphStore,
    info: NamespaceInfo,
    settings: Settings,
    ids: Sequence[str],
    courses: Courses,
    kind: TreeKind = "ilm",
    preset: TreePreset = "default",
) -> None:
    """Build trees dry on each course, and add their usage to that of the course.

    The stub of the embedder has the real one's name, because keys of nodes contain it.
    """
    require_tree_extra()
    store = dry_store(stored)
    for course, usage in zip(COURSES, courses, strict=True):
        models = DryModels(stored, info, settings, course=course)
        run = models.run("construction", silent)
        if info.embedder != "none":
            budget = run.budget if info.embedder.startswith("openai:") else None
            size = info.dimension or DIMENSION
            run = replace(run, embedder=StubEmbedder(info.embedder, budget, models.counter, size))
        await run_build(store, info.name, models, run, ids, silent, kind, preset, course=course)
        models.used(lambda stage: 1.0, usage)


async def plan_ask(session: Session, options: AskOptions) -> Plan:
    """Return what a question will use: if answered at once, in the likely case, or never."""
    info = await session.info()
    question = await plan_question(session, info, options)
    counts = await session.store.counts(info.name)
    segments = counts.get("segments", 0)
    return await _plan(
        session,
        "ask",
        question.stages,
        documents=len(options.documents or ()) or counts.get("documents", 0),
        segments=segments,
        sampled=segments,
        strategy=question.strategy,
        window=options.window,
    )


async def _plan(
    session: Session, run: Literal["add", "ask", "tree"], stages: Sequence[StagePlan], **counts: Any
) -> Plan:
    settings = session.settings
    in_flight = 1 if run == "ask" else settings.concurrency
    past = await session.store.calls(session.ns)
    seconds, basis = wall_time(stages, settings, past, in_flight)
    if run == "add" and counts["segments"]:
        calls = sum(stage.calls.likely for stage in stages)
        rate = calls / seconds.likely if settings.model and seconds.likely else 0.0
        counts["workers"] = worth_of_workers(settings, counts["segments"], rate, cores())
    return Plan(
        run=run,
        stages=tuple(stages),
        seconds=seconds,
        basis=basis,
        concurrency=in_flight,
        prices_date=prices_of(settings).date,
        unpriced=tuple(dict.fromkeys(s.model for s in stages if s.cost is None)),
        **counts,
    )


def worth_of_workers(settings: Settings, segments: int, rate: float, cores: int) -> str:
    """Return in words whether more workers would make `add` faster, and by how much.

    Args:
        rate: chat calls in a second, with the concurrency of the settings.
        cores: number of cores that a pool of processes would use.
    """
    if settings.model:
        so_many = (
            f"; {settings.concurrency} at a time are some {rate:,.1f} a second" if rate else ""
        )
        return (
            "more would not help: this process makes all calls of the chat model, up to"
            f" {CALLS_DRIVEN} a second{so_many}"
        )
    if settings.tagger == "corenlp":
        return "more would not help: the tagger runs as one server"
    if cores < 2:
        return "more would not help: this machine has one core"
    if settings.tagger not in ("auto", "none", "rules"):
        return f"{cores} (--executor processes) would run the tagger; this was not measured"
    alone = segments * (READ + MERGED)
    together = STARTED + segments * max(HANDED + MERGED, READ / cores)
    if alone / together < LEAST_GAIN:
        return "more would not help: there is too little to read"
    return (
        f"{cores} (--executor processes) would make it about {alone / together:.1f} times as fast:"
        f" they read, and this process still merges (some {alone:,.0f} s of the processor alone)"
    )


@dataclass(frozen=True, slots=True)
class _DryReading:
    """The part of a source that is read dry.

    Attributes:
        shown: documents to read; of a large text, a sample.
        weight: number of real calls for one call of the dry run.
        waiting: number of documents with unread segments.
        segments: number of unread segments of a large text; `None`: the dry run counts them.
        half_read: share of a large text's segments that are extracted but not merged.
        readers: readers of the complete documents.
        unread_again: ids of the complete documents.
    """

    shown: list[Document]
    weight: float
    waiting: int
    segments: int | None = None
    half_read: float = 0.0
    readers: tuple[str, ...] = ()
    unread_again: tuple[str, ...] = ()


async def _choose(
    stored: GraphStore,
    shadow: GraphStore,
    info: NamespaceInfo,
    given: Sequence[Document],
    cut: Cut,
    options: AddOptions,
) -> _DryReading:
    """Choose what to read dry, and copy its stored state to `shadow`."""
    waiting, documents_known, by = await _waiting(stored, info, given, is_rebuild=options.rebuild)
    # Documents that the run will refuse go to it unsampled, with their stored state.
    unchanged = tuple(sorted({one.id or "" for one in given} - {one.id or "" for one in waiting}))
    refused = {name for name, is_same in documents_known.items() if not (is_same or options.update)}
    unread, half = [], 0
    for document in waiting:
        if document.id not in refused:
            segments_left, was_begun = await _unread(
                stored, info.name, document.id or "", cut, is_rebuild=options.rebuild
            )
            unread += [(document, segments_left)] if segments_left else []
            half += was_begun
    segments = [segment for _, segments_left in unread for segment in segments_left]
    is_large = sum(segment.tokens for segment in segments) > SAMPLE
    for name in refused if is_large else documents_known:
        await shadow.create_namespace(info.name, info)
        await copy_document(stored, shadow, info.name, name)
        await _mark_embedded(stored, shadow, info, name)
    if not is_large:
        return _DryReading(waiting, 1.0, len(waiting), readers=by, unread_again=unchanged)
    sample, weight = _sampled(unread)
    sample += [document for document in waiting if document.id in refused]
    return _DryReading(
        sample, weight, len(waiting), len(segments) - half, half / len(segments), by, unchanged
    )


async def _otherwise(session: Session, ids: Sequence[str]) -> dict[str, Any]:
    """Return the fields of a plan about documents that are not read again."""
    if not ids:
        return {}
    cost, price = await cost_of_reading_again(session, ids)
    return {"read_otherwise": cost, "reading_again": price}


async def cost_of_reading_again(
    session: Session, ids: Sequence[str] | None = None
) -> tuple[Mapping[str, int], CostEstimate | None]:
    """Return how many segments other settings read, and what reading them again costs.

    Args:
        ids: ids of documents; `None`: all.
    """
    infos = await session.store.documents(session.ns, ids)
    causes, affected = await read_otherwise(session.store, session.ns, session.settings, infos)
    if not affected:
        return {}, None
    sampled = affected[:: -(-len(affected) // MOST_PLANNED)]
    sample_documents = [await session.store.document(session.ns, info.id) for info in sampled]
    price = None
    with suppress(QrmemError):  # a window may be too small for the prompts
        plan = await plan_add(
            session, [one for one in sample_documents if one], AddOptions(rebuild=True)
        )
        share = sum(causes.values()) / max(1, plan.segments)
        calls, tokens = (math.ceil(n.likely * share) for n in (plan.calls, plan.tokens))
        cost = None if plan.cost is None or plan.unpriced else plan.cost.likely * share
        price = CostEstimate(calls, tokens, cost)
    return causes, price


async def _mark_embedded(
    stored: GraphStore, shadow: GraphStore, info: NamespaceInfo, document_id: str
) -> None:
    """Give embedded segments stub vectors, so that the plan does not embed them again."""
    import numpy as np

    ids = [s.id for s in await stored.segments(info.name, documents=[document_id])]
    if owners := await stored.owners(info.name, "segment", ids):
        matrix = np.ones((len(owners), info.dimension), dtype=np.float32)
        await shadow.put_vectors(info.name, "segment", owners, matrix)


async def _waiting(
    stored: GraphStore, info: NamespaceInfo, given: Sequence[Document], *, is_rebuild: bool
) -> tuple[list[Document], dict[str, bool], tuple[str, ...]]:
    """Return the documents with unread segments.

    Returns:
        These documents; by id, whether the stored ones among them have the same text; and the
        readers of the other documents.
    """
    state = IngestState(stored, info.name, is_embedded=False)
    await state.look([document.id or "" for document in given])
    waiting, documents_known = [], {}
    readers: set[str] = set()
    for document in given:
        name = document.id or ""
        digest = document.digest
        if state.digest(name) == digest and state.is_done(name) and not is_rebuild:
            readers |= state.readers(name)
            continue
        waiting.append(document)
        if state.digest(name) is not None:
            documents_known[name] = state.digest(name) == digest
    return waiting, documents_known, tuple(sorted(readers))


async def _unread(
    stored: GraphStore, ns: str, name: str, cut: Cut, *, is_rebuild: bool
) -> tuple[list[Segment], int]:
    """Return a document's incomplete segments, and how many are extracted but not merged."""
    rows = () if is_rebuild else await stored.ledger(ns, name)
    states = {row.segment_id: row.state for row in rows}
    segments_left = [segment for segment in cut(name) if states.get(segment.id) != "ok"]
    return segments_left, sum(states.get(segment.id) == "extracted" for segment in segments_left)


async def _trees(
    stored: GraphStore | None,
    info: NamespaceInfo,
    settings: Settings,
    given: Mapping[str, Document],
    cut: Cut,
    courses: Courses,
) -> None:
    """Build the trees of documents dry, as if all were read; existing nodes are not made again.

    Args:
        stored: the store with existing nodes; `None` if all are made again.
        courses: the usage so far; see `_grow_dry`.
    """
    ns = info.name
    whole = {id: (document, cut(id)) for id, document in given.items() if cut(id)}
    async with scratch_store() as shadow:
        await shadow.create_namespace(ns, info)
        await shadow.put_documents(ns, list(whole.values()))
        for id, (_, tree_segments) in whole.items():
            if stored is not None:
                await _copy_nodes(stored, shadow, ns, id, {segment.id for segment in tree_segments})
        await _grow_dry(shadow, info, settings, list(whole), courses)


async def _copy_nodes(
    stored: GraphStore, shadow: GraphStore, ns: str, id: str, there: set[str]
) -> None:
    """Copy the nodes of a document's tree whose segments all exist."""
    keys = await stored.cache_keys(ns, "tree")
    nodes = [key for key in keys if key.startswith(prefix_of("ilm", id))]
    for node_row in await stored.cache_entries(ns, "tree", nodes):
        if there.issuperset(node_row.segments):
            await shadow.put_cache_entry(
                ns, "tree", node_row.key, node_row.value, segments=node_row.segments
            )


def _sampled(
    given: Sequence[tuple[Document, Sequence[Segment]]],
) -> tuple[list[Document], float]:
    """Return a sample of documents, and the number of real calls for one call of the sample.

    Of many documents every n-th is taken, and of long ones evenly chosen segments.

    Args:
        given: documents with their unread segments, at least one each.
    """
    sizes = [sum(segment.tokens for segment in segments) for _, segments in given]
    share = max(LEAST, SAMPLE // len(given))
    step = max(1, math.ceil(sum(min(size, share) for size in sizes) / SAMPLE))
    sample, read = [], 0
    for (document, segments), size in list(zip(given, sizes, strict=True))[::step]:
        few = min(len(segments), max(1, round(len(segments) * share / max(1, size))))
        spread_segments = [segments[n * len(segments) // few] for n in range(few)]
        read += sum(segment.tokens for segment in spread_segments)
        sample.append(
            replace(document, text="\n\n".join(segment.text for segment in spread_segments))
        )
    return sample, sum(sizes) / max(1, read)
