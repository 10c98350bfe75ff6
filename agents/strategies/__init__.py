"""Names of strategies, and how one is run."""

from collections.abc import AsyncGenerator, Mapping
from typing import TYPE_CHECKING, Any

from qrmem.agents.search.run import Search
from qrmem.agents.search.steps import Strategy, followed
from qrmem.agents.strategies import (
    entity_trial,
    fragment,
    graph_expansion,
    inner_loop,
    overview,
    passages,
    raptor,
    reflection,
    temp_mem,
    whole,
)
from qrmem.errors import UsageError

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver

STRATEGIES: Mapping[str, Strategy] = {
    "reflection": reflection.STRATEGY,
    "graph-expansion": graph_expansion.STRATEGY,
    "entity-trial": entity_trial.STRATEGY,
    "fragment": fragment.STRATEGY,
    "inner-loop": inner_loop.STRATEGY,
    "overview": overview.STRATEGY,
    "raptor": raptor.STRATEGY,
    "raptor-layered": raptor.LAYERED,
    "temp-mem": temp_mem.STRATEGY,
    "passages": passages.STRATEGY,
}
"""What a user may name."""
DEFAULT, WITHOUT_MODEL = "reflection", "passages"
"""What is followed where none is named, and not everything is read."""


def require_strategy(name: str) -> None:
    """Refuse a name that no strategy has.

    Raises:
        UsageError: with the names that there are.
    """
    if name and name not in STRATEGIES:
        known = ", ".join(STRATEGIES)
        raise UsageError(f"no strategy is called {name!r}; choose one of {known}")


async def run_strategy(
    run: Search,
    *,
    checkpointer: "BaseCheckpointSaver[Any] | None" = None,
    config: Mapping[str, Any] | None = None,
) -> AsyncGenerator[Any, None]:
    """Return an answer's steps, each as it is done, then the outcome.

    Every call of the run, whatever it is for, is within the window. Each step is told to the
    listener as well, and is in the outcome.

    Args:
        checkpointer: keeps the state after each step; a run that was interrupted goes on.
        config: LangGraph's, with the thread's id.

    Raises:
        UsageError: no such strategy.
        WindowTooSmall: question, options and prompt alone exceed the window; nothing was asked.
        AccessRefused: the model refuses key or name.
        ModelUnavailable: the model does not answer.
        CapReached: the run would cost more than it may.
    """
    name = run.asking.strategy or await _default(run)
    if name == whole.NAME:
        strategy = whole.STRATEGY
    else:
        require_strategy(name)
        strategy = STRATEGIES[name]
    return followed(run, name, strategy, checkpointer=checkpointer, config=config)


async def _default(run: Search) -> str:
    """Return what is followed where no strategy is named; some options need a walk."""
    asking = run.asking
    if await whole.fits(run):
        return whole.NAME
    walks = asking.start == "entities" or asking.orientation == "local" or asking.share_orientation
    if run.caller is not None and not walks and overview.is_about_all(asking.question):
        return overview.NAME
    return WITHOUT_MODEL if run.reasoner.is_local and not walks else DEFAULT
