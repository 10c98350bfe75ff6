"""Workers for pure computation: processes of this machine, or actors of a Ray cluster.

The process that holds the store starts the workers and sends them plain data. A worker keeps no
state and sees no store, key or ledger, so a lost worker costs only its current work.
"""

from qrmem.workers.crew import Crew, WorkerLost, open_crew

__all__ = ["Crew", "WorkerLost", "open_crew"]
