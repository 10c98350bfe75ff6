"""Searches that a LangGraph checkpointer keeps: which one goes on, and which are forgotten."""

import hashlib
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, cast

from qrmem.agents.search.state import SearchState, segments_of
from qrmem.types.options import AskOptions

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver

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
    seen = set(running)
    wanted = {NAMESPACE: ns, QUESTION: _digest(ns, options)}
    async for kept in options.checkpointer.alist(None, filter=wanted):
        thread = str(kept.config["configurable"]["thread_id"])
        if thread not in seen and "status" not in kept.checkpoint["channel_values"]:
            return thread, str(kept.checkpoint["channel_values"].get("strategy", ""))
        seen.add(thread)
    return "", ""


async def forget(
    checkpointer: "BaseCheckpointSaver[Any]", ns: str, segment_ids: Collection[str] | None
) -> None:
    """Delete the threads that speak of some segments of a namespace; all of it, without ids.

    What an edge says may be of any segment: a thread that weighed edges goes, too.
    """
    gone, threads = set(segment_ids or ()), set()
    async for kept in checkpointer.alist(None, filter={NAMESPACE: ns}):
        state = cast(SearchState, kept.checkpoint["channel_values"])
        weighed = any(step.get("edges") for step in state.get("steps", ()))
        if segment_ids is None or weighed or gone & segments_of(state):
            threads.add(str(kept.config["configurable"]["thread_id"]))
    for thread in threads:
        await checkpointer.adelete_thread(thread)


def _digest(ns: str, options: AskOptions) -> str:
    shape = repr((ns, options.shape))
    return hashlib.sha256(shape.encode("utf-8", "surrogatepass")).hexdigest()
