"""Where pure work of the processor is done: by processes of this machine, or on a Ray cluster.

Whoever holds the store also holds the workers, and gives them plain data. A worker keeps nothing
and sees no store, no key and no ledger, so losing one costs the work that it had in hand.
"""

from qrmem.workers.crew import Crew, WorkerLost, open_crew

__all__ = ["Crew", "WorkerLost", "open_crew"]
