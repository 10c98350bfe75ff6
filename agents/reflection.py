"""QRMeM's own strategy, navigation by reflection: Algorithm 1, corrected (Q18-Q20, SPEC 1.3).

    begin -> read -> (answered: end | trials used up: conclude | expand)
    expand -> (read | conclude)

After a reading that does not answer, the edge most similar to question, reason and entities,
[Q;R;E], leads to one new node, whose segments join S_add with the edge's score.
"""

from collections.abc import Hashable
from typing import TYPE_CHECKING

from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime

from qrmem.agents.nodes import (
    AskRun,
    SearchState,
    after_moving,
    after_reading,
    begin,
    conclude,
    read,
)
from qrmem.graph import expansion
from qrmem.graph.expansion import Walk
from qrmem.text.tokens import BuiltinTokenizer
from qrmem.types import Relation

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph

STATED = 0.05
"""What a new node's segment gains by stating the edge that led there, and at most by its likeness
to the query. Deviation: the paper gives all segments of a node one score, which leaves it to
chance which ones of a frequent entity fit the window."""


def build_graph() -> "CompiledStateGraph[SearchState, AskRun, SearchState, SearchState]":
    """Return the machine, freshly wired."""
    graph = StateGraph(SearchState, context_schema=AskRun)
    graph.add_node("begin", begin)
    graph.add_node("read", read)
    graph.add_node("expand", expand)
    graph.add_node("conclude", conclude)
    graph.add_edge(START, "begin")
    graph.add_edge("begin", "read")
    moves: dict[Hashable, str] = {"done": END, "move": "expand", "conclude": "conclude"}
    graph.add_conditional_edges("read", after_reading, moves)
    graph.add_conditional_edges("expand", after_moving, ["read", "conclude"])
    graph.add_edge("conclude", END)
    return graph.compile()


async def expand(state: SearchState, runtime: Runtime[AskRun]) -> SearchState:
    """Take in nodes until there is something new to read, or no edge is left.

    A node whose segments were all read, or do not fit, is kept but costs no call: the same passages
    would get the same verdict (SPEC 1.3, item 11).
    """
    run = runtime.context
    walk = Walk(tuple(state["entities"]), frozenset(state["taken"]))
    added, moves, has_moved = dict(state["added"]), state["moves"], False
    query = await _query(run, state)
    while moves < run.options.expansions and not has_moved:
        edges = expansion.frontier((await run.graph.relations(walk.entities)).values(), walk)
        scores = await run.edge_scores(query, edges)
        edge = expansion.best_edge(edges, scores)
        if edge is None:
            break
        moves += 1
        node = expansion.outer_end(edge, walk)
        walk = walk.along(edge)
        new = await _reached(run, query, edge, node, scores[edge.key])
        for segment_id, score in new.items():
            added = expansion.led_to(added, [segment_id], score, set(state["read"]))
        packed = await run.packed({**state, "added": added})
        has_moved = {w.segment.id for w in packed.read} != set(state["read"])
        await run.record_expansion(walk, edges, scores, {edge.key})
    return {
        "entities": list(walk.entities),
        "taken": sorted(walk.taken),
        "added": added,
        "moves": moves,
        "has_moved": has_moved,
    }


async def _query(run: AskRun, state: SearchState) -> str:
    """Return [Q;R;E]; without reflection, R is left out (Q24)."""
    reason = state["reason"] if run.options.reflection else ""
    names = await run.graph.names(state["entities"])
    return expansion.query_text(run.context.question, reason, names, BuiltinTokenizer())


async def _reached(
    run: AskRun, query: str, edge: Relation, node: str, score: float
) -> dict[str, float]:
    """Return the new node's segments with the edge's score, told apart by what they say."""
    await run.graph.look([node], texts=True)
    ids = (await run.graph.places([node]))[node]
    near = await run.deps.scorer.score_segments(query, ids)
    stating = set(edge.segments)
    return {
        id: score + STATED * (id in stating) + STATED * max(near.get(id, 0.0), 0.0) for id in ids
    }
