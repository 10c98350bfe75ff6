"""qrmem without a chat model."""

from benchmarks.peers.runners.job import Job, run
from benchmarks.peers.runners.qrmem import Qrmem


async def opened(job: Job) -> Qrmem:
    """Return a memory that is read by rules."""
    return Qrmem(job, "")


if __name__ == "__main__":
    run(opened)
