"""All that a question may look at, read whole and in order: what is done where it fits the window.

    begin -> read -> (answered: end | conclude)

No search is as good as reading everything. It is no strategy that a user names: it is taken where
none is named, with a chat model, and nothing was chosen that only a walk can do.
"""

from collections.abc import Sequence

from qrmem.agents.search.run import Search
from qrmem.agents.search.state import SearchState
from qrmem.agents.search.steps import Strategy, began
from qrmem.types import Segment

NAME = "whole"
SMALLEST = 8
"""Tokens that a segment takes at least, label and all."""


async def fits(run: Search) -> bool:
    """Whether a run may read everything, and everything fits."""
    asking = run.asking
    walks = asking.start == "entities" or asking.orientation == "local" or asking.share_orientation
    if walks or not asking.navigation or run.reasoner.is_local:
        return False
    segments = await _segments(run)
    return 0 < sum(await run.sizes(segments)) <= run.room


async def begin(run: Search, state: SearchState) -> SearchState:
    """Take all segments."""
    segments = await _segments(run)
    run.tell("start", reason=f"all {len(segments)} segments fit the window: read whole, in order")
    return began({segment.id: 1.0 for segment in segments})


async def _segments(run: Search) -> Sequence[Segment]:
    """Return all segments that the question may look at, in order; none if they are too many."""
    most = run.room // SMALLEST
    documents = run.asking.documents
    if documents is None:
        if sum((await run.store.states(run.ns)).values()) > most:
            return ()
        documents = frozenset(info.id for info in await run.store.documents(run.ns))
    elif len(documents) > most:
        return ()
    found = await run.store.segments_of(run.ns, *sorted(documents))
    return found if len(found) <= most else ()


STRATEGY = Strategy(begin=begin)
