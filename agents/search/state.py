"""The state and the outcome of a search: plain data that a checkpointer can store."""

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
    from langgraph.checkpoint.base import BaseCheckpointSaver


def summed(before: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Add usage by stage, both as plain data."""
    total = dict(before)
    for stage, usage in new.items():
        previous = total.get(stage)
        total[stage] = usage if previous is None else _sum(previous, usage)
    return total


def _sum(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Add the figures of two stages; the cost is known if both are."""
    figures = {
        name: one.get(name, 0) + other.get(name, 0)
        for name in (one.keys() | other.keys()) - {"cost"}
    }
    costs = [usage.get("cost") for usage in (one, other)]
    if None not in costs:
        figures["cost"] = sum(costs)
    return figures


class SearchState(TypedDict, total=False):
    """The state of a search: ids, spans, scores, verdicts and counters; texts are in the store.

    Attributes:
        strategy: the strategy.
        entities: E, entity keys in order of arrival.
        taken: keys of the relations that were followed.
        important: S_imp, segment id to score.
        added: S_add, segment id to score.
        read: ids of the last S_mix.
        order: order of passages in the prompt: by place, best first, or best last.
        hits: segment id to `[via, over]` of the search, until a step has recorded it.
        oriented: ids of segments to read with the question.
        unkept: contributions of these that could not be stored.
        trials: number of readings with a verdict.
        moves: number of expansions.
        reason: the reasoner's reason for the last verdict, R.
        seen: ids of the segments of all readings with a verdict, if the search reads on.
        labels: ids of the segments with a label for the whole run, in the order of the labels.
        findings: label and text of what the readings found.
        sought: what the last verdict looks for.
        failures: why verdicts could not be read.
        has_moved: whether the last move found a new passage to read.
        memory: notes of the earlier rounds (`inner-loop`).
        parts: segment ids of each part still to read (`overview`).
        notes: notes on the parts: `text` and `citations`.
        answer: text, choice and reason of the verdict that answered.
        citations: places of the quotations, without their texts.
        steps: steps of the trail.
        used: usage of the calls, by stage.
        status: set when the search is over.
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
    seen: list[str]
    labels: list[str]
    findings: list[dict[str, str]]
    sought: list[str]
    failures: Annotated[list[str], add]
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
    """The outcome of a search.

    Attributes:
        text: the answer; with options the option's text; "" if unanswerable.
        choice: index of the chosen option, or `None`.
        reason: the reasoner's reason for the last verdict.
        usage: usage of all steps, with those before an interruption.
        strategy: the strategy.
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
    """Return the ids of all segments in a state, except those only in its edges."""
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
    """Return usage in the form of a state."""
    return {stage: to_plain(stage_usage) for stage, stage_usage in usage.online.items()}


def usage_of(used: Mapping[str, Any]) -> Usage:
    """Return the usage in a state."""
    return Usage(online={stage: from_plain(value, StageUsage) for stage, value in used.items()})


def steps_of(state: SearchState) -> Sequence[Step]:
    """Return the steps in a state."""
    return [from_plain(step, Step) for step in state.get("steps", ())]


# Searches in a LangGraph checkpointer: which one to resume, and which to delete.

NAMESPACE, QUESTION = "qrmem_namespace", "qrmem_question"
"""Keys in the metadata of a checkpoint."""


def config_of(ns: str, options: AskOptions, thread: str) -> dict[str, Any]:
    """Return LangGraph's configuration of a run in a thread."""
    return {
        "configurable": {"thread_id": thread},
        "metadata": {NAMESPACE: ns, QUESTION: _digest(ns, options)},
    }


async def interrupted(ns: str, options: AskOptions, running: Collection[str]) -> tuple[str, str]:
    """Return the thread and the strategy of an interrupted run of the same question.

    It uses the checkpointer of the options.

    Args:
        ns: the namespace.
        options: the question's options.
        running: threads that are running now.

    Returns:
        "" for both if there is none.
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
    """Delete the threads with some segments of a namespace; without ids, all its threads.

    The text of an edge may come from any segment, so threads with edges are deleted, too.
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
