"""Names of strategies, and how one is run."""

from collections.abc import AsyncGenerator, Mapping
from typing import Any

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


async def run_strategy(run: Search) -> AsyncGenerator[Any, None]:
    """Return an answer's steps, each as it is done, then the outcome.

    Every call of the run, whatever it is for, is within the window. Each step is told to the
    listener as well, and is in the outcome.

    Raises:
        WindowTooSmall: question, options and prompt alone exceed the window; nothing was asked.
        AccessRefused: the model refuses key or name.
        ModelUnavailable: the model does not answer.
        CapReached: the run would cost more than it may.
    """
    name, strategy = await strategy_of(run)
    return followed(run, name, strategy)


async def strategy_of(run: Search) -> tuple[str, Strategy]:
    """Return the strategy that a run follows, by name: begun, chosen, or the default."""
    name = run.begun or run.options.strategy or await _default(run)
    return name, whole.STRATEGY if name == whole.NAME else STRATEGIES[name]


async def _default(run: Search) -> str:
    """Return what is followed where no strategy is named; some options need a walk."""
    options = run.options
    if await whole.fits(run):
        return whole.NAME
    if run.caller is not None and not options.is_walk and overview.is_about_all(options.question):
        return overview.NAME
    return WITHOUT_MODEL if run.reasoner.is_local and not options.is_walk else DEFAULT
