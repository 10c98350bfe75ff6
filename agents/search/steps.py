"""The state machine of all strategies, and their common steps: begin, read, conclude.

    begin -> [widen ... -> elaborate] -> read -> (answered: end | move | conclude)
    move -> (read | conclude)

A strategy defines how it begins, and its steps before the first reading and between readings.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime

from qrmem.agents.search import reading_on
from qrmem.agents.search.query_extraction import orient, recall
from qrmem.agents.search.run import Packed, Search, scored
from qrmem.agents.search.start import start
from qrmem.agents.search.state import Outcome, SearchState, config_of, steps_of, usage_of
from qrmem.answering import citations as quotes
from qrmem.errors import ModelOutputError
from qrmem.graphstore.codec import from_plain, to_plain
from qrmem.types import Citation, Event, Passage, Verdict
from qrmem.types.documents import TreeKind

# Superseded statements: the newer text is read together with the older.


async def with_newer(run: Search, passages: Sequence[Passage]) -> list[Passage]:
    """Add the segments whose statements supersede those of passages, and label all passages again.

    To make room, passages with the lowest scores are dropped that neither supersede another nor
    are superseded.
    """
    replaced = await run.graph.replaced({p.segment.id for p in passages})
    if not replaced:
        return list(passages)
    segment_ids = {p.segment.id for p in passages}
    later = dict.fromkeys(id for by in replaced.values() for id in by if id not in segment_ids)
    added = await run.store.segments(run.ns, list(later)) if later else ()
    scores = {p.segment.id: p.score for p in passages}
    segments = [*(p.segment for p in passages), *added]
    while True:
        segments.sort(key=lambda s: (s.document_id, s.index))
        passages_marked = _mark(await run.graph.passages(segments), replaced, scores)
        concerned = {*replaced, *(id for by in replaced.values() for id in by)}
        others = [p for p in passages_marked if p.segment.id not in concerned]
        if sum(map(run.reasoner.size, passages_marked)) <= run.room_for_passages or not others:
            break
        last = min(others, key=lambda p: p.score)
        segments = [s for s in segments if s.id != last.segment.id]
    return _within(run, passages_marked)


def _mark(
    passages: Sequence[Passage], replaced: dict[str, dict[str, str]], scores: dict[str, float]
) -> list[Passage]:
    labels = {p.segment.id: p.label for p in passages}
    passages_marked = []
    for p in passages:
        by = {labels[id]: s for id, s in replaced.get(p.segment.id, {}).items() if id in labels}
        passages_marked.append(
            replace(
                p,
                score=scores.get(p.segment.id, 0.0),
                superseded_by=tuple(by),
                superseded=tuple(f"{statement} ({label})" for label, statement in by.items()),
            )
        )
    return passages_marked


def _within(run: Search, passages: Sequence[Passage]) -> list[Passage]:
    """Return the passages that fit, in their order; the newest ones take precedence."""
    passages_kept: list[Passage] = []
    room_left = run.room_for_passages
    for passage in reversed(passages):
        size = run.reasoner.size(passage)
        if size <= room_left:
            passages_kept.append(passage)
            room_left -= size
    return passages_kept[::-1]


Step = Callable[[Search, SearchState], Awaitable[SearchState]]
Machine = CompiledStateGraph[SearchState, Search, SearchState, SearchState]

MOST_FAILURES = 2
"""After this many verdicts that cannot be read, no further one is asked for."""
NODES_PER_TRIAL = 4
"""Maximum number of nodes per trial of any strategy; it bounds a run."""


async def begin(run: Search, state: SearchState) -> SearchState:
    """Orient the segments near the question, if that is set, and find the start."""
    is_oriented = run.options.orientation == "local" or run.options.share_orientation
    oriented = await orient(run) if is_oriented else SearchState()
    beginning = await start(run)
    run.tell("start", entities=await run.graph.names(beginning.entities), reason=beginning.how)
    return {
        **began(beginning.important, entities=beginning.entities),
        **oriented,
        "hits": beginning.hits,
    }


def began(important: Mapping[str, float], *, entities: Sequence[str] = ()) -> SearchState:
    """Return the first state of a search."""
    return {
        "entities": list(entities),
        "important": {id: float(score) for id, score in important.items()},
        "added": {},
        "taken": [],
        "read": [],
        "reason": "",
        "hits": {},
    }


@dataclass(frozen=True, slots=True)
class Calls:
    """A strategy's calls of a chat model in one stage, for the plan of a question.

    The figures were measured with the questions of the sample and models that answer in English.

    Attributes:
        mean: mean number of calls per question.
        least: calls of a question that is answered at once.
        most: calls of a question that is never answered; `None` is one per trial.
        tokens: tokens of a prompt; 0 uses those of the first reading.
        growth: mean size of prompts relative to the first reading.
        reply: tokens of a reply.
    """

    stage: str = "judge"
    mean: float = 1
    least: float = 1
    most: float | None = 1
    tokens: int = 0
    growth: float = 1.0
    reply: int = 100


@dataclass(frozen=True, slots=True)
class Strategy:
    """The steps of a strategy.

    Attributes:
        begin: finds the start.
        read: its own reading and judging, which sets the final status.
        widen: adds neighbours before the first reading, repeatedly; needs `elaborate`.
        elaborate: chooses the passages after the last widening. If an answer is to be forced, the
            only reading is the forced answer.
        move: finds new passages after a reading without an answer; without it there is one reading.
        tree: kind of the tree of summaries that it needs for each document.
        calls: stage to its calls.
    """

    begin: Step = begin
    read: Step | None = None
    widen: Step | None = None
    elaborate: Step | None = None
    move: Step | None = None
    tree: TreeKind | None = None
    calls: tuple[Calls, ...] = (Calls(),)


async def read(run: Search, state: SearchState) -> SearchState:
    """Read S_mix and judge whether it answers the question: one call per trial."""
    reading_on.remember(run, state)
    packed, passages = await _packed(run, state)
    earlier = None if run.is_reading_on else _read_before(state, packed)
    if earlier is None:
        if run.is_reading_on:
            passages = await reading_on.with_statements(run, state, passages)
        verdict = await run.reasoner.judge(run.context, passages)
        verdict, update = await _settle(run, verdict, passages)
    else:
        verdict, update = Verdict(is_answerable=False, reason=earlier), SearchState()
    hits = dict(state["hits"])
    scores = {**state["important"], **state["added"]}
    run.tell(
        "read",
        entities=await run.graph.names(state["entities"]),
        read=scored(packed.read, scores, hits),
        dropped=scored(packed.dropped, scores, hits),
        verdict=verdict.told,
        reason=verdict.reason,
        tokens=verdict.tokens,
    )
    update |= {
        "read": [candidate.segment.id for candidate in packed.read],
        "trials": 1,
        "reason": verdict.reason,
        "hits": hits,
    }
    if run.is_reading_on:
        update |= reading_on.learned(run, state, verdict, passages)
    if verdict.problem:
        update["failures"] = [verdict.problem]
    if verdict.is_answerable:
        update["status"] = verdict.status
    return update


def _read_before(state: SearchState, packed: Packed) -> str | None:
    """Return the reason of an earlier reading of the same passages, if there was one; else `None`.

    They would get the same verdict, so no call is made. Only with `paper_exact` a search can read
    them again.
    """
    now = {candidate.segment.id for candidate in packed.read}
    for step in reversed(steps_of(state)):
        if step.action == "read" and {one.segment_id for one in step.read} == now:
            return step.reason
    return None


async def conclude(run: Search, state: SearchState) -> SearchState:
    """End a search without an answer: abstain, or force an answer from the passages.

    Without a chat model it returns the closest passages, or an option that the text states.

    Raises:
        ModelOutputError: a verdict could not be read, so nobody knows whether the text answers.
    """
    if run.options.on_exhausted == "abstain" and not run.reasoner.is_local:
        _require_verdicts(run, state)
        return {"status": "unanswerable", "reason": _of_all_readings(run, state)}
    if run.is_reading_on:
        state = {**state, "important": await reading_on.last_passages(run, state)}
        state |= {"added": {}, "seen": []}
    packed, passages = await _packed(run, state)
    verdict = await run.reasoner.judge(run.context, passages, force=True)
    if verdict.problem and not run.options.paper_exact:
        raise _unreadable(verdict.problem)
    verdict, update = await _settle(run, verdict, passages)
    scores = {**state["important"], **state["added"]}
    run.tell(
        "force",
        entities=await run.graph.names(state["entities"]),
        read=scored(packed.read, scores, dict(state["hits"])),
        verdict=verdict.told,
        reason=verdict.reason,
        tokens=verdict.tokens,
    )
    update["status"] = "unanswerable"
    if verdict.is_answerable:
        update["status"] = "passages" if verdict.status == "passages" else "forced"
    update["reason"] = verdict.reason
    if not verdict.is_answerable and run.reasoner.is_local:
        update["reason"] = await _missing_in_all(run, state) or verdict.reason
    return update


def _require_verdicts(run: Search, state: SearchState) -> None:
    """Check that each reading had a verdict that could be read.

    Raises:
        ModelOutputError: one had none.
    """
    unjudged, judged = set[str](), set[str]()
    for step in steps_of(state):
        which = unjudged if step.verdict == "unreadable" else judged
        which.update(one.segment_id for one in step.read)
    if unjudged - judged and not run.options.paper_exact:
        raise _unreadable(state["failures"][-1])


def _unreadable(problem: str) -> ModelOutputError:
    return ModelOutputError(
        "the model's verdict could not be read, so it is not known whether the text answers: "
        f"{problem}. Widen the window (--window), or try another model (`qrmem doctor --model`"
        " tests one)",
        raw="",
    )


def _read_in_all(state: SearchState) -> list[str]:
    """Return the ids of all segments of all readings."""
    steps = steps_of(state)
    return list(dict.fromkeys(one.segment_id for step in steps for one in step.read))


def _of_all_readings(run: Search, state: SearchState) -> str:
    """Return why a search with a chat model found no answer in all that it read.

    The model's own reason is only about the passages of one reading.
    """
    count, trials = len(_read_in_all(state)), state.get("trials", 0)
    if trials < 2 or not count:
        return state["reason"]
    last_reason = f" The last reading says: {state['reason']}" if state["reason"] else ""
    return f"None of the {count} passages that {trials} readings looked at answers it.{last_reason}"


async def _missing_in_all(run: Search, state: SearchState) -> str:
    """Return why no read segment answers, without a chat model; "" before a second reading."""
    if state.get("trials", 0) < 2:
        return ""
    segments = await run.graph.segments(_read_in_all(state))
    verdict = await run.reasoner.judge(run.context, await run.graph.passages(segments))
    return (
        "no single passage covers enough of the question"
        if verdict.is_answerable
        else verdict.reason
    )


async def _packed(run: Search, state: SearchState) -> tuple[Packed, list[Passage]]:
    """Return the segments that fit the window, and their passages."""
    packed = await run.packed(state)
    order = state.get("order", "position")
    if order != "position":
        best_last = sorted(packed.read, key=lambda weighed: weighed.score)
        packed = replace(packed, read=tuple(best_last[:: -1 if order == "score" else 1]))
    passages = await run.graph.passages([candidate.segment for candidate in packed.read])
    scores = state["important"]
    passages = [replace(p, score=scores.get(p.segment.id, 0.0)) for p in passages]
    return packed, await with_newer(run, passages)


async def _settle(
    run: Search, verdict: Verdict, passages: Sequence[Passage]
) -> tuple[Verdict, SearchState]:
    """Return a verdict after the checks on it, and the state's update."""
    if verdict.status == "passages" and (absent := await run.absent_names(passages)):
        reason = f"not found in what was searched: {', '.join(absent)}"
        verdict = Verdict(is_answerable=False, reason=reason, tokens=verdict.tokens)
    if verdict.problem:
        message = f"the model's verdict cannot be read: {verdict.problem}"
        run.listener(Event("warning", {"message": message}))
    if not verdict.is_answerable:
        return verdict, {}
    if run.is_reading_on:  # an answer may quote what any reading held
        here = {passage.segment.id for passage in passages}
        others = await run.graph.segments(id for id in run.graph.labels if id not in here)
        passages = [*passages, *await run.graph.passages(others)]
    citations = [to_plain(replace(citation, quote="")) for citation in cited(verdict, passages)]
    return verdict, {"answer": to_plain(replace(verdict, quotes=())), "citations": citations}


def cited(verdict: Verdict, passages: Sequence[Passage]) -> list[Citation]:
    """Return the places of a verdict's quotations; whole segments if none can be located."""
    citations = quotes.locate(verdict.quotes, passages)
    if citations:
        return citations
    words = f"{verdict.answer} {verdict.reason}"
    return [quotes.whole(p) for p in quotes.supporting(words, verdict.quotes, passages)]


# --- the machine ----------------------------------------------------------------------------------


def search_graph(
    strategy: Strategy, checkpointer: "BaseCheckpointSaver[Any] | None" = None
) -> Machine:
    """Return a new state machine of a strategy."""
    graph = StateGraph(SearchState, context_schema=Search)
    steps = {"begin": strategy.begin, "read": strategy.read or read, "conclude": conclude}
    steps |= {
        name: step
        for name in ("widen", "elaborate", "move")
        if (step := getattr(strategy, name)) is not None
    }
    for name, step in steps.items():
        graph.add_node(name, _node(step))
    graph.add_edge(START, "begin")
    if strategy.widen is None:
        graph.add_edge("begin", "read")
    else:
        for name in ("begin", "widen"):
            graph.add_conditional_edges(name, _after_widening, ["widen", "elaborate", "read"])
        graph.add_conditional_edges("elaborate", _after_elaborating, ["read", "conclude"])
    ends: dict[Hashable, str] = {"done": END, "conclude": "conclude"}
    if strategy.move is None:
        graph.add_conditional_edges("read", _after_the_reading, ends)
    else:
        graph.add_conditional_edges(
            "read", _after_a_reading, {**ends, "move": "move", "read": "read"}
        )
        graph.add_conditional_edges("move", _after_moving, ["read", "conclude"])
    graph.add_edge("conclude", END)
    # False: a surrounding graph's checkpointer may belong to another thread, or be synchronous.
    return graph.compile(checkpointer=False if checkpointer is None else checkpointer)


def _node(step: Step) -> Callable[..., Awaitable[SearchState]]:
    """Return a node of LangGraph for a step; its events and usage go into the state."""

    async def node(state: SearchState, runtime: Runtime[Search]) -> SearchState:
        run = runtime.context
        run.enter(state, runtime.stream_writer)
        if not run.graph.labels:
            run.graph.labels = {id: f"S{n}" for n, id in enumerate(state.get("labels", ()), 1)}
        if state.get("oriented") and not run.is_oriented:
            await recall(run, state)
        return run.leave(await step(run, state))

    return node


def _after_widening(
    state: SearchState, runtime: Runtime[Search]
) -> Literal["widen", "elaborate", "read"]:
    """Widen until the depth is reached, or no edge is similar enough."""
    options = runtime.context.options
    if not options.navigation or not state["entities"]:
        return "read"
    if state.get("has_moved", True) and state["moves"] < options.depth:
        return "widen"
    return "elaborate"


def _after_elaborating(state: SearchState, runtime: Runtime[Search]) -> Literal["read", "conclude"]:
    """Answer at once if an answer will be forced anyway."""
    run = runtime.context
    is_forced = run.options.on_exhausted == "force" and not run.reasoner.is_local
    return "conclude" if is_forced else "read"


def _after_a_reading(
    state: SearchState, runtime: Runtime[Search]
) -> Literal["done", "read", "move", "conclude"]:
    """End at an answer; move on while trials are left and moving is allowed."""
    if "status" in state:
        return "done"
    run, options = runtime.context, runtime.context.options
    is_over = state["trials"] >= options.max_trials or not options.navigation
    failures = state.get("failures", [])
    if is_over or len(failures) >= MOST_FAILURES:
        return "conclude"
    is_unread = run.is_reading_on and steps_of(state)[-1].verdict == "unreadable"
    return "read" if is_unread else "move"


def _after_moving(state: SearchState) -> Literal["read", "conclude"]:
    """Read again if there is a new passage; the same ones would get the same verdict."""
    return "read" if state["has_moved"] else "conclude"


def _after_the_reading(state: SearchState) -> Literal["done", "conclude"]:
    """End after one reading, for strategies that read once."""
    return "done" if "status" in state else "conclude"


def reads_on(run: Search, strategy: Strategy) -> bool:
    """Return whether a run's later readings hold only passages that were not read.

    With `paper_exact` a run reads as in the paper. Without a chat model nobody would use the notes.
    """
    is_walk = strategy.read is None and bool(strategy.move or strategy.widen)
    return is_walk and not run.options.paper_exact and not run.reasoner.is_local


# --- a run ----------------------------------------------------------------------------------------


async def followed(run: Search, name: str, strategy: Strategy) -> AsyncGenerator[Any, None]:
    """Run a strategy: yield its steps as they end, then the outcome."""
    checkpointer = run.options.checkpointer
    config = {} if checkpointer is None else config_of(run.ns, run.options, run.thread)
    machine = search_graph(strategy, checkpointer)
    run.is_reading_on = reads_on(run, strategy)
    limit = (run.options.max_trials + run.options.depth + 2) * NODES_PER_TRIAL
    run_config: Any = {**config, "recursion_limit": limit}
    is_begun = checkpointer is not None and (await machine.aget_state(run_config)).next
    state: Any = {}
    first_state: Any = None if is_begun else {"strategy": name}
    durability: dict[str, Any] = {"durability": "sync"} if checkpointer is not None else {}
    async for mode, item in machine.astream(
        first_state, run_config, context=run, stream_mode=["custom", "values"], **durability
    ):
        if mode == "values":
            state = item
        else:
            yield item
    yield await _outcome(run, name, state)


async def _outcome(run: Search, name: str, state: SearchState) -> Outcome:
    """Return the outcome of a search; quoted texts come from the store."""
    answer = from_plain(state.get("answer", {"is_answerable": False}), Verdict)
    spans = [from_plain(one, Citation) for one in state.get("citations", ())]
    texts = {s.id: s for s in await run.graph.segments([span.segment_id for span in spans])}
    citations = tuple(
        replace(span, quote=s.text[span.start - s.start : span.end - s.start])
        for span in spans
        if (s := texts.get(span.segment_id)) is not None
    )
    return Outcome(
        text=answer.answer,
        status=state.get("status", "unanswerable"),
        choice=answer.choice,
        reason=answer.reason or state.get("reason", ""),
        citations=citations,
        steps=tuple(steps_of(state)),
        usage=usage_of(state.get("used", {})),
        strategy=name,
    )
