"""FragRel as a strategy: fragments are picked with their surroundings in mind, and read once (F14).

begin -> read -> (answered: end | conclude)
"""

from typing import TYPE_CHECKING

from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime

from qrmem.agents.nodes import AskRun, SearchState, after_answering, conclude, read
from qrmem.agents.start import asked
from qrmem.retrieval.fragments import FragmentScorer
from qrmem.retrieval.fragments.independent import within_words
from qrmem.retrieval.fragments.relating import name_of
from qrmem.text.longbench import words

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph

    from qrmem.retrieval.fragments.scorer import Assessed

SMALLEST = 16
"""Tokens that a fragment takes at least; so many more of them than fit are never looked at."""
FEWEST = 10


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
    """Assess all fragments and pick the best (Equations 4, 9, 10, 11)."""
    run = runtime.context
    scorer = run.deps.fragments or FragmentScorer(run.deps.searcher)
    assessed = await scorer.assess(
        asked(run), settings=run.options.fragments, documents=run.options.documents
    )
    if assessed is None:
        run.recorder.add("start", reason="there is nothing to read")
        return {"entities": [], "important": {}, "added": {}, "trials": 0, "reason": ""}
    run.order = assessed.settings.order
    picked = await _picked(run, assessed)
    start: SearchState = {
        "entities": [],
        "important": picked,
        "added": {},
        "trials": 0,
        "reason": "",
    }
    packed = await run.packed(start)
    run.recorder.add("start", reason=_said(assessed, len(packed.read)))
    return start


async def _picked(run: AskRun, assessed: "Assessed") -> dict[str, float]:
    """Return the best fragments: so many as are wanted, within the words that are wanted."""
    settings = assessed.settings
    found = assessed.best(settings.top or max(FEWEST, run.room // SMALLEST))
    if settings.words is None:
        return found
    segments = await run.graph.segments(found)
    kept = within_words([len(words(segment.text)) for segment in segments], settings.words)
    return {segment.id: found[segment.id] for segment in segments[:kept]}


def _said(assessed: "Assessed", picked: int) -> str:
    settings = assessed.settings
    named = [name_of(relation) for relation in settings.relations]
    if "structure" in named:
        named[named.index("structure")] = f"structure {settings.w_rel:g}"
    return (
        f"{picked} of {assessed.fragments.size} fragments by relation {' and '.join(named)}, "
        f"alpha {settings.alpha:g}; {assessed.surrounded(picked)} of them by their surroundings"
    )
