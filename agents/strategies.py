"""Names of strategies, and how one is run."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, cast

from qrmem.agents import entity_trial, fragment, graph_expansion, reflection, temp_mem
from qrmem.agents.memory_graph import MemoryGraph
from qrmem.agents.nodes import AskRun, SearchState
from qrmem.agents.state import AskDeps, AskOptions, Outcome
from qrmem.agents.trail import Recorder
from qrmem.errors import UsageError
from qrmem.types import AskContext

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph

    Machine = CompiledStateGraph[SearchState, AskRun, SearchState, SearchState]

STRATEGIES: Mapping[str, "Callable[[], Machine]"] = {
    "reflection": reflection.build_graph,
    "graph-expansion": graph_expansion.build_graph,
    "entity-trial": entity_trial.build_graph,
    "fragment": fragment.build_graph,
    "temp-mem": temp_mem.build_graph,
}
"""Name to the function that wires its machine."""

STEPS_PER_TRIAL = 4
"""Nodes that one trial of any strategy passes at most; bounds a run that would not end."""


async def run_strategy(
    deps: AskDeps, context: AskContext, strategy: str, options: AskOptions
) -> Outcome:
    """Answer a question by a strategy.

    Every call of the run, whatever it is for, is within `context.window`. Each step is told to the
    listener as it happens, and is in the outcome.

    Args:
        context: the question, its options and the window.
        strategy: one of `STRATEGIES`.

    Raises:
        UsageError: no such strategy.
        WindowTooSmall: question, options and prompt alone exceed the window; nothing was asked.
        AccessRefused: the model refuses key or name.
        ModelUnavailable: the model does not answer.
        CapReached: the run would cost more than it may.
    """
    if strategy not in STRATEGIES:
        known = ", ".join(STRATEGIES)
        raise UsageError(f"no strategy is called {strategy!r}; choose one of {known}")
    run = AskRun(
        deps=deps,
        context=context,
        options=options,
        graph=MemoryGraph(deps, options.documents),
        recorder=Recorder(deps.listener),
        room=deps.reasoner.room(context),
    )
    limit = (options.max_trials + options.depth + 2) * STEPS_PER_TRIAL
    machine = STRATEGIES[strategy]()
    ended = await machine.ainvoke({}, context=run, config={"recursion_limit": limit})
    return run.outcome(cast("SearchState", ended))
