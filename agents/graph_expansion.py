"""Graph Expansion Search: relations near the question widen the entities, then one answer (Q17).

    begin -> expand -> (expand | elaborate) ; elaborate -> read -> (answered: end | conclude)

The reasoner is asked twice: to elaborate the question, and to answer it.
"""

from typing import TYPE_CHECKING, Literal

from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime

from qrmem.agents.nodes import AskRun, SearchState, after_answering, begin, conclude, read
from qrmem.graph import expansion
from qrmem.graph.expansion import Walk
from qrmem.types import Relation

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph

WHOLE_GRAPH = 2000
"""Entities up to which the elaborated query is compared with all relations, as in the paper; in a
larger memory with those around E."""
SHOWN = 30
"""Relations that the reasoner sees when it elaborates, the window allowing."""
TIE = 0.01
"""What a segment's own likeness to the query may add to its relation's score."""


def build_graph() -> "CompiledStateGraph[SearchState, AskRun, SearchState, SearchState]":
    """Return the machine, freshly wired."""
    graph = StateGraph(SearchState, context_schema=AskRun)
    graph.add_node("begin", begin)
    graph.add_node("expand", expand)
    graph.add_node("elaborate", elaborate)
    graph.add_node("read", read)
    graph.add_node("conclude", conclude)
    graph.add_edge(START, "begin")
    graph.add_conditional_edges("begin", after_expanding, ["expand", "elaborate", "read"])
    graph.add_conditional_edges("expand", after_expanding, ["expand", "elaborate", "read"])
    graph.add_edge("elaborate", "read")
    graph.add_conditional_edges("read", after_answering, {"done": END, "conclude": "conclude"})
    graph.add_edge("conclude", END)
    return graph.compile()


async def expand(state: SearchState, runtime: Runtime[AskRun]) -> SearchState:
    """Take in the neighbours over the edges most similar to the question."""
    run = runtime.context
    walk = Walk(tuple(state["entities"]), frozenset(state["taken"]))
    edges = expansion.frontier((await run.graph.relations(walk.entities)).values(), walk)
    scores = await run.edge_scores(run.context.question, edges)
    # Cosine thresholds say nothing about BM25: there the frontier's own scores decide.
    threshold = run.options.threshold if run.deps.scorer.is_dense else None
    worthy = expansion.worthy_edges(edges, scores, threshold=threshold, width=run.options.width)
    for edge in worthy:
        walk = walk.along(edge)
    await run.record_expansion(walk, edges, scores, {edge.key for edge in worthy})
    return {
        "entities": list(walk.entities),
        "taken": sorted(walk.taken),
        "moves": state["moves"] + 1,
        "has_moved": bool(worthy),
    }


def after_expanding(
    state: SearchState, runtime: Runtime[AskRun]
) -> Literal["expand", "elaborate", "read"]:
    """Expand until the depth is reached or no edge is near enough."""
    options = runtime.context.options
    if not options.navigation or not state["entities"]:
        return "read"
    if state.get("has_moved", True) and state["moves"] < options.depth:
        return "expand"
    return "elaborate"


async def elaborate(state: SearchState, runtime: Runtime[AskRun]) -> SearchState:
    """Rank relations by the question and its elaboration, and take the segments that state them.

    Starting from entities these replace S_imp, as in the paper; after a search they join its hits.
    """
    run = runtime.context
    around = await run.graph.relations(state["entities"])
    taken = set(state["taken"])
    scores = await run.edge_scores(run.context.question, list(around.values()))
    ranked = expansion.ranked(around.values(), scores)
    ranked.sort(key=lambda edge: edge.key not in taken)
    names = run.graph.known_names(ranked)
    query = await run.deps.reasoner.elaborate(
        run.context,
        await run.graph.names(state["entities"]),
        [expansion.edge_text(edge, names) for edge in ranked[:SHOWN]],
    )
    whole = " ".join((run.context.question, query)).strip()
    run.recorder.add("elaborate", entities=await run.graph.names(state["entities"]), reason=query)
    stating = await _stating(run, whole, await _candidates(run, around))
    if run.options.start == "entities" and stating:
        return {"important": stating}
    return {"added": stating}


async def _candidates(run: AskRun, around: dict[str, Relation]) -> list[Relation]:
    counts = await run.deps.store.counts(run.deps.ns)
    if counts.get("entities", 0) > WHOLE_GRAPH:
        return list(around.values())
    listed = await run.deps.store.list_entities(run.deps.ns, WHOLE_GRAPH)
    return list((await run.graph.relations([entity.key for entity in listed])).values())


async def _stating(run: AskRun, query: str, edges: list[Relation]) -> dict[str, float]:
    """Return the segments that state relations near the query, by the best of these."""
    scores = await run.edge_scores(query, edges)
    best: dict[str, float] = {}
    for edge in edges:
        for segment_id in edge.segments:
            best[segment_id] = max(scores[edge.key], best.get(segment_id, 0.0))
    stating = {id: score for id, score in best.items() if score > 0}
    near = await run.deps.scorer.score_segments(query, list(stating))
    return {id: score + TIE * max(near.get(id, 0.0), 0.0) for id, score in stating.items()}
