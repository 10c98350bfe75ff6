"""TempMem: the whole text in the window; if it does not fit, its middle is left out.

    begin -> read -> (answered: end | conclude)

The baseline of FragRel's paper, without retrieval.
"""

from collections.abc import Sequence

from qrmem.agents.search.run import Search
from qrmem.agents.search.state import SearchState
from qrmem.agents.search.steps import Strategy, began

SMALLEST = 8
"""Least number of tokens of a segment, with its label."""


async def begin(run: Search, state: SearchState) -> SearchState:
    """Take segments from both ends of the text until the window is full."""
    store, ns, documents = run.searcher.store, run.searcher.ns, run.options.documents
    rows = () if documents == frozenset() else await store.ledger(ns, *sorted(documents or ()))
    only = run.options.segments
    there = [row.segment_id for row in rows if only is None or row.segment_id in only]
    ids = [entry.id for entry in await store.entries(ns, there)]
    if not ids:
        run.tell("start", reason="there is nothing to read")
        return began({})
    most = run.room // SMALLEST + 1
    ends = ids if len(ids) <= 2 * most else [*ids[:most], *ids[-most:]]
    segments = await run.graph.segments(ends)
    indexes = middle_left_out(await run.sizes(segments), run.room)
    run.tell("start", reason=f"{len(indexes)} of {len(ids)} segments, from both ends")
    return began({segments[at].id: 1.0 for at in indexes})


def middle_left_out(sizes: Sequence[int], room: int) -> list[int]:
    """Return the segments to keep: the first ones fill half of the room, the last ones the rest.

    Deviation: LongBench cuts at a token; here whole segments are kept, so that they can be cited.
    """
    front, total = 0, 0
    while front < len(sizes) and total + sizes[front] <= room // 2:
        total += sizes[front]
        front += 1
    back = len(sizes)
    while back > front and total + sizes[back - 1] <= room:
        back -= 1
        total += sizes[back]
    return [*range(front), *range(back, len(sizes))]


STRATEGY = Strategy(begin=begin)
