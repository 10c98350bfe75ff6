"""From a setting to workers."""

from qrmem.config import EXECUTOR
from qrmem.workers.crew import Crew


async def open_crew(executor: str) -> Crew | None:
    """Return the workers of an executor, `None` for `inline`; no process is started yet.

    Raises:
        MissingError: the extra is not installed.
        WorkersUnavailable: the cluster does not answer.
    """
    found = EXECUTOR.fullmatch(executor)
    assert found is not None, executor
    kind, count = found[1], int(found[2] or 0)
    if kind == "processes":
        from qrmem.workers.processes import cores, hired

        return Crew(count or cores(), hired)
    if kind == "ray":
        from qrmem.workers.ray_cluster import open_cluster

        return await open_cluster(count)
    return None
