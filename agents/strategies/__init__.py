"""Names of strategies, and how to run one."""

from collections.abc import AsyncGenerator, Mapping
from typing import Any

from qrmem.agents.search.run import Search
from qrmem.agents.search.steps import Strategy, followed
from qrmem.agents.strategies import (
    entity_trial,
    graph_expansion,
    inner_loop,
    one_reading,
    overview,
    raptor,
    reflection,
)

STRATEGIES: Mapping[str, Strategy] = {
    "reflection": reflection.STRATEGY,
    "graph-expansion": graph_expansion.STRATEGY,
    "entity-trial": entity_trial.STRATEGY,
    "fragment": one_reading.FRAGMENT,
    "inner-loop": inner_loop.STRATEGY,
    "overview": overview.STRATEGY,
    "raptor": raptor.STRATEGY,
    "raptor-layered": raptor.LAYERED,
    "temp-mem": one_reading.TEMP_MEM,
    "passages": one_reading.PASSAGES,
}
"""Names that a user may choose."""
DEFAULT, WITHOUT_MODEL = "reflection", "passages"
"""The default strategies: with a chat model, if the text does not fit the window; without one."""


async def run_strategy(run: Search) -> AsyncGenerator[Any, None]:
    """Yield the steps of an answer as they end, then the outcome.

    Every call of the run is within the window. The listener also gets each step, and the outcome
    has all of them.

    Raises:
        WindowTooSmall: question, options and prompt alone exceed the window; nothing was sent.
        AccessRefused: the server rejects the key or the model's name.
        ModelUnavailable: the model does not answer.
        CapReached: the run would exceed a cap.
    """
    name, strategy = await strategy_of(run)
    return followed(run, name, strategy)


async def strategy_of(run: Search) -> tuple[str, Strategy]:
    """Return the name of a run's strategy: of the interrupted run, chosen, or the default."""
    name = run.begun or run.options.strategy or await _default(run)
    is_whole = name == one_reading.WHOLE_NAME
    return name, one_reading.WHOLE if is_whole else STRATEGIES[name]


async def _default(run: Search) -> str:
    """Return the strategy if the user chose none; some options need a walk."""
    options = run.options
    if await one_reading.fits(run):
        return one_reading.WHOLE_NAME
    if run.caller is not None and not options.is_walk and overview.is_about_all(options.question):
        return overview.NAME
    return WITHOUT_MODEL if run.reasoner.is_local and not options.is_walk else DEFAULT
