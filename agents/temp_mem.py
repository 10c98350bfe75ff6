"""TempMem: the whole text in the window, its middle left out where it does not fit (F01).

    begin -> read -> (answered: end | conclude)

The yardstick of FragRel's paper: no retrieval at all.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime

from qrmem.agents.nodes import AskRun, SearchState, after_answering, conclude, read

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph

SMALLEST = 8
"""Tokens that a segment takes at least, label and all."""


def build_graph() -> "CompiledStateGraph[SearchState, AskRun, SearchState, SearchState]":
    """Return the machine, freshly wired."""
    graph = StateGraph(SearchState, context_schema=AskRun)
    graph.add_node("begin", begin)
    graph.add_node("read", read)
    graph.add_node("conclude", conclude)
    graph.add_edge(START, "begin")
    graph.add_edge("begin", "read")
    graph.add_conditional_edges("read", after_answering, {"done": END, "conclude": "conclude"})
    graph.add_edge("conclude", END)
    return graph.compile()


async def begin(state: SearchState, runtime: Runtime[AskRun]) -> SearchState:
    """Take segments from both ends of the text until the window is full."""
    run = runtime.context
    columns = await run.deps.searcher.columns()
    if columns is None:
        run.recorder.add("start", reason="there is nothing to read")
        return {"entities": [], "important": {}, "added": {}, "trials": 0, "reason": ""}
    allowed = columns.allowed(run.options.documents, None)
    rows = [int(row) for row in columns.ranks.argsort() if allowed[row]]
    ids = [columns.catalog.segment_ids[row] for row in rows]
    most = run.room // SMALLEST + 1
    ends = ids if len(ids) <= 2 * most else [*ids[:most], *ids[-most:]]
    segments = await run.graph.segments(ends)
    kept = middle_left_out(await run.sizes(segments), run.room)
    run.recorder.add("start", reason=f"{len(kept)} of {len(ids)} segments, from both ends")
    return {
        "entities": [],
        "important": {segments[at].id: 1.0 for at in kept},
        "added": {},
        "trials": 0,
        "reason": "",
    }


def middle_left_out(sizes: Sequence[int], room: int) -> list[int]:
    """Return which of a text's segments stay: the first that fill half the room, the last the rest.

    Deviation: LongBench cuts at a token; here whole segments stay, so that they can be cited.
    """
    front, total = 0, 0
    while front < len(sizes) and total + sizes[front] <= room // 2:
        total += sizes[front]
        front += 1
    back = len(sizes)
    while back > front and total + sizes[back - 1] <= room:
        back -= 1
        total += sizes[back]
    return [*range(front), *range(back, len(sizes))]
