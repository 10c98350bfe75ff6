"""Workers as actors of a Ray cluster.

The driver decides on retries: Ray restarts no actor and retries no task. Actors end with the
driver.
"""

import asyncio
import inspect
import os
from collections.abc import Callable
from threading import Lock
from typing import Any

from qrmem.errors import UsageError, WorkersUnavailable, missing_extra
from qrmem.workers.crew import AT_ONCE, Crew, WorkerLost, versions

ADDRESS = "RAY_ADDRESS"


class Actor:
    """The class that runs on a node; it has no state and gets nothing but its tasks."""

    async def versions(self) -> dict[str, str]:
        """Return the versions that must equal the driver's."""
        return versions()

    async def run(self, work: Callable[..., Any], *given: Any) -> tuple[bool, Any]:
        """Run a task; return true and its result, or false and its exception."""
        try:
            result = work(*given)
            return True, await result if inspect.isawaitable(result) else result
        except Exception as exc:
            return False, exc


class RayWorker:
    """An actor; see `qrmem.workers.crew.Worker`."""

    def __init__(self, ray: Any, actor: Any) -> None:
        """Wrap a Ray actor of the class `Actor`."""
        self._ray = ray
        self._actor = actor
        self.is_lost = False
        self._is_gone = False

    async def submit(self, work: Callable[..., Any], given: tuple[Any, ...]) -> Any:
        """Run a task in the actor."""
        is_good, result = await self.reply(self._actor.run.remote(work, *given))
        if not is_good:
            raise result
        return result

    async def reply(self, waiting: Any) -> Any:
        """Wait for a reply of the actor.

        Raises:
            WorkerLost: the actor or its node has died.
        """
        try:
            return await asyncio.wrap_future(waiting.future())
        except (self._ray.exceptions.RayActorError, self._ray.exceptions.ObjectLostError) as exc:
            is_cause, self._is_gone = not self._is_gone, True
            raise WorkerLost(is_cause=is_cause) from exc

    async def check(self) -> None:
        """Check that the actor has the driver's versions.

        Raises:
            UsageError: its node has another qrmem, or none.
            WorkerLost: the actor has died.
            WorkersUnavailable: the cluster has no room for it.
        """
        ours = versions()
        try:
            theirs = await self.reply(self._actor.versions.remote())
        except WorkerLost as exc:
            if isinstance(exc.__cause__, self._ray.exceptions.ActorUnschedulableError):
                raise WorkersUnavailable("the Ray cluster has no room for a worker") from None
            raise
        except self._ray.exceptions.RayError as exc:
            raise UsageError(
                f"a node of the Ray cluster cannot load qrmem {ours['qrmem']}; install the same "
                f"qrmem on each: {str(exc).strip().splitlines()[-1][:200]}"
            ) from None
        if theirs != ours:
            differ = ", ".join(
                f"{name} {theirs.get(name, 'none')} instead of {ours[name]}"
                for name in ours
                if theirs.get(name) != ours[name]
            )
            raise UsageError(
                f"a node of the Ray cluster has {differ}; install the same qrmem on each"
            )

    def kill(self) -> None:
        """Kill the actor."""
        self._ray.kill(self._actor, no_restart=True)


async def open_cluster(count: int) -> Crew:
    """Connect to the cluster at RAY_ADDRESS, or start one on this machine.

    Args:
        count: maximum number of workers; 0 uses the cluster's current number of cores.

    Raises:
        MissingError: the extra `ray` is not installed.
        UsageError: the address begins with `ray://`, where a broken connection loses the work.
        WorkersUnavailable: the cluster does not answer.
    """
    address = os.environ.get(ADDRESS, "")
    if address.startswith("ray://"):
        raise UsageError(
            f"{ADDRESS} begins with ray://, where a broken connection loses the work; "
            "run qrmem on a node of the cluster, or by: ray job submit -- qrmem add …"
        )
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nobody is told that Ray is used
    try:
        import ray
    except ImportError:
        raise missing_extra("ray", "the executor ray") from None
    is_ours = await asyncio.to_thread(_CONNECTION.join, ray, address)

    async def end() -> None:
        if is_ours:
            await asyncio.to_thread(_CONNECTION.leave, ray)

    # By default Ray retries lost tasks without limit and runs 1,000 at the same time.
    actor_class = ray.remote(
        num_cpus=1,
        max_restarts=0,
        max_task_retries=0,
        max_concurrency=AT_ONCE,
        scheduling_strategy="SPREAD",
    )(Actor)

    async def hired() -> RayWorker:
        worker = RayWorker(ray, actor_class.remote())
        try:
            await worker.check()
        except BaseException:
            worker.kill()
            raise
        return worker

    return Crew(count or max(1, int(ray.cluster_resources().get("CPU", 1))), hired, end)


class _Connection:
    """This process's connection to Ray; the memories of the process share it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._crews = 0

    def join(self, ray: Any, address: str) -> bool:
        """Connect if nobody has; return false if the program did, and so ends it itself."""
        with self._lock:
            if not ray.is_initialized():
                _connect(ray, address)
            elif not self._crews:
                return False
            self._crews += 1
            return True

    def leave(self, ray: Any) -> None:
        """Disconnect after the last crew."""
        with self._lock:
            self._crews -= 1
            if not self._crews:
                ray.shutdown()


_CONNECTION = _Connection()


def _connect(ray: Any, address: str) -> None:
    try:
        ray.init(
            address=address or "local",
            include_dashboard=None if address else False,
            log_to_driver=False,
            logging_level="error",
        )
    except (ConnectionError, RuntimeError, ValueError) as exc:
        reason = " ".join(str(exc).split())[:300]
        where = f"cluster at {address}" if address else "cluster of this machine"
        raise WorkersUnavailable(f"the Ray {where} does not start: {reason}") from None
