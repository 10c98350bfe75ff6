"""The whole text that a question may use, read in order, if it fits the window.

    begin -> read -> (answered: end | conclude)

No search is as good as reading everything. A user cannot choose this strategy. It is used with a
chat model if the user chose no strategy, and no option that needs a walk over the graph.
"""

from qrmem.agents.search.run import Search
from qrmem.agents.search.state import SearchState
from qrmem.agents.search.steps import Strategy, began

NAME = "whole"
SMALLEST = 8
"""Least number of tokens of a segment, with its label."""


async def fits(run: Search) -> bool:
    """Return whether a run may read everything, and everything fits."""
    options = run.options
    if options.is_walk or not options.navigation or run.reasoner.is_local:
        return False
    segments = await run.all_segments(run.room // SMALLEST)
    return 0 < sum(await run.sizes(segments)) <= run.room


async def begin(run: Search, state: SearchState) -> SearchState:
    """Take all segments."""
    segments = await run.all_segments(run.room // SMALLEST)
    which = "the one segment fits" if len(segments) == 1 else f"all {len(segments)} segments fit"
    run.tell("start", reason=f"{which} the window: read whole, in order")
    return began({segment.id: 1.0 for segment in segments})


STRATEGY = Strategy(begin=begin)
