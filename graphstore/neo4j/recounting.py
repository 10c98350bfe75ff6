"""Names counted again after a change that was left half-way.

A change in several parts counts each name once, for all of its parts. While it is under way the
namespace is marked `ahead`; whoever finds the mark and comes in between, or after a writer that
died, counts by the mentions that are there before anything else.
"""

from qrmem.errors import StoreConflict
from qrmem.graphstore.neo4j.connection import Work
from qrmem.graphstore.neo4j.tallies import Tallies, Tally


class LeftHalfWay(StoreConflict):
    """Names are counted ahead of their mentions: what was worked out from them is wrong."""


async def recount(work: Work) -> None:
    """Count all names by their mentions if a change left them ahead."""
    _, is_ahead = await work.lock()
    if not is_ahead:
        return
    rows = []
    for name, entity, mentions in await work.rows("changes.miscounted"):
        tallies, tally = Tallies(), Tally()
        for forms in mentions:
            tallies.recount(name, forms)
        tally.settle(tallies.of(name))
        rows.append(([name, *tally.row], entity))
    await work.each("changes.put_counts", (row for row, _ in rows))
    await work.each("changes.recount", sorted({entity for _, entity in rows}))
    await work.run("namespaces.advance", ahead=None)
