"""Entity Trial: the reasoner itself replaces the entities whose segments are read (Q16).

begin -> read -> (answered: end | trials used up: conclude | revise) ; revise -> (read | conclude)
"""

from collections import Counter
from collections.abc import Hashable, Sequence
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
from qrmem.agents.start import important

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph

MOST_CANDIDATES = 2000
"""Names that are put to the reasoner at most, most frequent first; the window may allow fewer."""


def build_graph() -> "CompiledStateGraph[SearchState, AskRun, SearchState, SearchState]":
    """Return the machine, freshly wired."""
    graph = StateGraph(SearchState, context_schema=AskRun)
    graph.add_node("begin", begin)
    graph.add_node("read", read)
    graph.add_node("revise", revise)
    graph.add_node("conclude", conclude)
    graph.add_edge(START, "begin")
    graph.add_edge("begin", "read")
    moves: dict[Hashable, str] = {"done": END, "move": "revise", "conclude": "conclude"}
    graph.add_conditional_edges("read", after_reading, moves)
    graph.add_conditional_edges("revise", after_moving, ["read", "conclude"])
    graph.add_edge("conclude", END)
    return graph.compile()


async def revise(state: SearchState, runtime: Runtime[AskRun]) -> SearchState:
    """Let the reasoner choose entities, E <- LLM(E, R, S_imp, Q), and take their segments.

    S_imp is replaced, not added to (SPEC 1.3, item 13). The search ends if E stays as it was, or if
    the new E leads to the segments that were read.
    """
    run = runtime.context
    candidates = await _candidates(run)
    current = await run.graph.names(state["entities"])
    segments = await run.graph.segments(state["read"])
    names = await run.deps.reasoner.revise(
        run.context,
        current=current,
        candidates=[(name, count) for name, _, count in candidates],
        reason=state["reason"],
        passages=await run.graph.passages(segments),
    )
    chosen = set(names)
    entities = [key for name, key, _ in candidates if name in chosen]
    run.recorder.add("revise", entities=names, reason=state["reason"])
    if not entities or set(entities) == set(state["entities"]):
        return {"has_moved": False}
    moved: SearchState = {"entities": entities, "important": await important(run, entities)}
    packed = await run.packed({**state, **moved})
    has_moved = {w.segment.id for w in packed.read} != set(state["read"])
    return {**moved, "moves": state["moves"] + 1, "has_moved": has_moved}


async def _candidates(run: AskRun) -> list[tuple[str, str, int]]:
    """Return name, key and number of segments of all entities, most frequent first."""
    documents = run.options.documents
    if documents is None:
        listed = await run.deps.store.list_entities(run.deps.ns, MOST_CANDIDATES)
        return [(entity.name, entity.key, entity.segments) for entity in listed]
    counts = Counter(await _occurrences(run, sorted(documents)))
    best = sorted(counts, key=lambda key: (-counts[key], key))[:MOST_CANDIDATES]
    names = await run.graph.names(best)
    return [(name, key, counts[key]) for name, key in zip(names, best, strict=True)]


async def _occurrences(run: AskRun, documents: Sequence[str]) -> list[str]:
    found: list[str] = []
    for document_id in documents:
        segments = await run.deps.store.segments_of(run.deps.ns, document_id)
        inside = await run.graph.entities_in([segment.id for segment in segments])
        found += [key for keys in inside.values() for key in keys]
    return found
