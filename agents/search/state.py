"""What is asked, where a search stands, what it found: plain data that a checkpointer can keep."""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from operator import add
from typing import TYPE_CHECKING, Annotated, Any, TypedDict, cast

from qrmem.graphstore.codec import from_plain, to_plain
from qrmem.types import (
    Citation,
    StageUsage,
    Status,
    Step,
    Usage,
)
from qrmem.types.options import AskOptions

if TYPE_CHECKING:
    pass
    from langgraph.checkpoint.base import BaseCheckpointSaver


def summed(before: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Add usage by stage, as plain data, to what was used before."""
    total = dict(before)
    for stage, usage in new.items():
        previous = total.get(stage)
        total[stage] = usage if previous is None else _sum(previous, usage)
    return total


def _sum(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Add two stages' figures; money is known where both know it."""
    figures = {
        name: one.get(name, 0) + other.get(name, 0)
        for name in (one.keys() | other.keys()) - {"cost"}
    }
    costs = [usage.get("cost") for usage in (one, other)]
    if None not in costs:
        figures["cost"] = sum(costs)
    return figures


class SearchState(TypedDict, total=False):
    """Where a search stands: ids, spans, scores, verdicts and counters; texts are in the store.

    Attributes:
        strategy: what is followed.
        entities: E, keys in the order in which they came in.
        taken: keys of the relations that led here.
        important: S_imp, segment id to score.
        added: S_add, segment id to score.
        read: S_mix as it was last read.
        order: in which order passages are read: by place, best first, or best last.
        hits: what the search said of segments that no step has told yet: `[via, over]` by id.
        oriented: segments near the question, where it was to be read into them.
        unkept: what came of that and could not be kept in the store.
        trials: how often passages were read and judged.
        moves: expansions so far.
        reason: the reasoner's words for the last verdict, R.
        has_moved: whether the last move brought anything new to read.
        memory: what the rounds before noted (`inner-loop`).
        parts: ids of the segments of each part that is still to be read (`overview`).
        notes: what was noted of the parts: `text` and `citations`.
        answer: text, choice and reason of the verdict that answered.
        citations: where it stands, without the quoted texts.
        steps: what was done, as the trail has it.
        used: what the calls used, by stage.
        status: set once the search is over.
    """

    strategy: str
    entities: list[str]
    taken: list[str]
    important: dict[str, float]
    added: dict[str, float]
    read: list[str]
    order: str
    hits: dict[str, list[Any]]
    oriented: list[str]
    unkept: list[dict[str, Any]]
    trials: Annotated[int, add]
    moves: Annotated[int, add]
    reason: str
    has_moved: bool
    memory: str
    parts: list[list[str]]
    notes: list[dict[str, Any]]
    answer: dict[str, Any]
    citations: list[dict[str, Any]]
    steps: Annotated[list[dict[str, Any]], add]
    used: dict[str, Any]
    status: Status


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a strategy found.

    Attributes:
        text: the answer; the option's text where options were given; "" when unanswerable.
        choice: index of the chosen option, or `None`.
        reason: the reasoner's words for the last verdict.
        usage: what all its steps used, those before an interruption included.
        strategy: the one that was followed.
    """

    text: str
    status: Status
    choice: int | None
    reason: str
    citations: tuple[Citation, ...]
    steps: tuple[Step, ...]
    usage: Usage
    strategy: str


def segments_of(state: SearchState) -> set[str]:
    """Return the ids of all segments that a state speaks of, but for the edges that it weighed."""
    segment_ids = {*state.get("important", ()), *state.get("added", ()), *state.get("oriented", ())}
    segment_ids.update(
        *state.get("parts", ()), *(over for _, over in state.get("hits", {}).values())
    )
    for step in steps_of(state):
        for one in (*step.read, *step.dropped):
            segment_ids.update((one.segment_id, *one.over))
        segment_ids.update(*(node.segments for node in step.nodes))
    return segment_ids


def plain_usage(usage: Usage) -> dict[str, Any]:
    """Return what answering used, as a state keeps it."""
    return {stage: to_plain(stage_usage) for stage, stage_usage in usage.online.items()}


def usage_of(used: Mapping[str, Any]) -> Usage:
    """Return what a state keeps of usage."""
    return Usage(online={stage: from_plain(value, StageUsage) for stage, value in used.items()})


def steps_of(state: SearchState) -> Sequence[Step]:
    """Return a state's steps."""
    return [from_plain(step, Step) for step in state.get("steps", ())]


# Searches that a LangGraph checkpointer keeps: which one goes on, and which are forgotten.

NAMESPACE, QUESTION = "qrmem_namespace", "qrmem_question"
"""Names in a checkpoint's metadata."""


def config_of(ns: str, options: AskOptions, thread: str) -> dict[str, Any]:
    """Return the configuration of a run in a thread."""
    return {
        "configurable": {"thread_id": thread},
        "metadata": {NAMESPACE: ns, QUESTION: _digest(ns, options)},
    }


async def interrupted(ns: str, options: AskOptions, running: Collection[str]) -> tuple[str, str]:
    """Return the thread in which the same question was begun and not ended, and its strategy.

    The checkpointer is that of the options.

    Args:
        running: threads that are followed at present.

    Returns:
        "" for both where there is none.
    """
    if options.checkpointer is None:
        return "", ""
    threads_seen = set(running)
    metadata = {NAMESPACE: ns, QUESTION: _digest(ns, options)}
    async for checkpoint in options.checkpointer.alist(None, filter=metadata):
        thread = str(checkpoint.config["configurable"]["thread_id"])
        if thread not in threads_seen and "status" not in checkpoint.checkpoint["channel_values"]:
            return thread, str(checkpoint.checkpoint["channel_values"].get("strategy", ""))
        threads_seen.add(thread)
    return "", ""


async def forget(
    checkpointer: "BaseCheckpointSaver[Any]", ns: str, segment_ids: Collection[str] | None
) -> None:
    """Delete the threads that speak of some segments of a namespace; all of it, without ids.

    What an edge says may be of any segment: a thread that weighed edges goes, too.
    """
    forgotten_segments, threads = set(segment_ids or ()), set()
    async for checkpoint in checkpointer.alist(None, filter={NAMESPACE: ns}):
        state = cast(SearchState, checkpoint.checkpoint["channel_values"])
        has_edges = any(step.get("edges") for step in state.get("steps", ()))
        if segment_ids is None or has_edges or forgotten_segments & segments_of(state):
            threads.add(str(checkpoint.config["configurable"]["thread_id"]))
    for thread in threads:
        await checkpointer.adelete_thread(thread)


def _digest(ns: str, options: AskOptions) -> str:
    shape = repr((ns, options.shape))
    return hashlib.sha256(shape.encode("utf-8", "surrogatepass")).hexdigest()
