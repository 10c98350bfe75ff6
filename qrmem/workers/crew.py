"""A pool of workers, processes of this machine: started on demand, replaced when lost."""

import asyncio
import inspect
import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from functools import cache
from multiprocessing import parent_process
from typing import Any, Protocol, TypeVar

from qrmem.config import EXECUTOR
from qrmem.errors import WorkersUnavailable

T = TypeVar("T")

AT_ONCE = 2
"""Number of tasks that a worker holds: a current task, and the next one."""
PATIENCE = 300.0
"""Time limit in seconds for a worker's next result, and for the start of the first worker."""


class WorkerLost(Exception):
    """A worker died, or was killed because it hung.

    Attributes:
        is_cause: whether this task was running; if not, it was waiting.
    """

    def __init__(self, *, is_cause: bool) -> None:
        super().__init__("a worker was lost")
        self.is_cause = is_cause


class Worker(Protocol):
    """A process that runs tasks one after another."""

    is_lost: bool

    def submit(self, work: Callable[..., Any], given: tuple[Any, ...]) -> Awaitable[Any]:
        """Run a function that the worker can import, with plain data as arguments.

        Raises:
            WorkerLost: the worker ended before the task was done.
        """
        ...

    def kill(self) -> None:
        """Kill the worker; its tasks are lost. A second call does nothing."""
        ...


class Crew:
    """A pool of workers; each holds at most `AT_ONCE` tasks.

    Attributes:
        size: maximum number of workers.
        lost: number of workers that were lost during a task.
    """

    def __init__(
        self,
        size: int,
        hire: Callable[[], Awaitable[Worker]],
        end: Callable[[], Awaitable[None]] | None = None,
        *,
        patience: float = PATIENCE,
    ) -> None:
        """Prepare; no worker is started yet.

        Args:
            size: maximum number of workers.
            hire: starts a worker and returns it when it answers.
            end: called when the pool is closed.
            patience: time limit in seconds; see `PATIENCE`.
        """
        self.size = size
        self.lost = 0
        self._hire = hire
        self._end = end
        self._patience = patience
        self._workers: dict[Worker, float] = {}
        self._free: deque[Worker] = deque()
        self._hiring: set[asyncio.Task[None]] = set()
        self._refusals = 0
        self._failure: Exception | None = None
        self._changed = asyncio.Condition()

    @property
    def at_once(self) -> int:
        """Number of tasks to submit at the same time; more would only wait."""
        return AT_ONCE * self.size

    async def do(self, work: Callable[..., Any], *given: Any) -> Any:
        """Run a task in a worker and return its result.

        Args:
            work: a function or coroutine function of a module; it must keep no state.
            given: its arguments, plain data.

        Raises:
            WorkerLost: the worker was lost during the task.
            WorkersUnavailable: no worker starts.
        """
        while True:
            worker = await self._next()
            try:
                return await self._watched(worker, work, given)
            except WorkerLost as exc:
                self._drop(worker, is_counted=exc.is_cause)
                if exc.is_cause:
                    raise
            finally:
                async with self._changed:
                    if not worker.is_lost:
                        self._free.append(worker)
                    self._changed.notify_all()

    async def close(self) -> None:
        """Kill all workers; a second call does nothing."""
        for task in self._hiring:
            task.cancel()
        await asyncio.gather(*self._hiring, return_exceptions=True)
        for worker in list(self._workers):
            worker.kill()
        self._workers.clear()
        self._free.clear()
        if self._end is not None:
            end, self._end = self._end, None
            await end()

    async def _watched(self, worker: Worker, work: Any, given: tuple[Any, ...]) -> Any:
        """Wait for a task; kill the worker if it returns nothing within the time limit."""
        loop = asyncio.get_running_loop()
        if self._free.count(worker) == AT_ONCE - 1:  # it was idle until now
            self._workers[worker] = loop.time()
        doing = asyncio.ensure_future(worker.submit(work, given))
        while not doing.done():
            silent_for = loop.time() - self._workers.get(worker, 0.0)
            if silent_for >= self._patience:
                worker.kill()
                await asyncio.wait([doing], timeout=self._patience)
                break
            await asyncio.wait([doing], timeout=self._patience - silent_for)
        if not doing.done():
            doing.cancel()
            raise WorkerLost(is_cause=True)
        self._workers[worker] = loop.time()
        return doing.result()

    def _drop(self, worker: Worker, *, is_counted: bool) -> None:
        self.lost += is_counted
        worker.is_lost = True
        worker.kill()
        self._workers.pop(worker, None)

    async def _next(self) -> Worker:
        """Return an idle or little loaded worker; start one if all are busy."""
        async with self._changed:
            while True:
                if self._failure is not None:
                    raise self._failure
                while self._free:
                    if not (worker := self._free.popleft()).is_lost:
                        return worker
                if len(self._workers) + len(self._hiring) < self.size:
                    task = asyncio.create_task(self._hired())
                    self._hiring.add(task)
                    task.add_done_callback(self._hiring.discard)
                try:
                    await asyncio.wait_for(self._changed.wait(), self._patience)
                except TimeoutError:
                    if not self._workers:
                        raise WorkersUnavailable(
                            f"no worker started within {self._patience:g} s; are there enough "
                            "resources?"
                        ) from None

    async def _hired(self) -> None:
        try:
            worker = await self._hire()
        except Exception as exc:
            async with self._changed:
                self._refusals += 1
                # A worker that died while it started is started again; other errors are raised.
                if not isinstance(exc, WorkerLost):
                    self._failure = exc
                elif self._refusals > 1 and not self._workers:
                    self._failure = WorkersUnavailable(START_FAILED)
                self._changed.notify_all()
            return
        async with self._changed:
            self._refusals = 0
            self._workers[worker] = asyncio.get_running_loop().time()
            self._free.extend([worker] * AT_ONCE)
            self._changed.notify_all()


START_FAILED = (
    "workers end as soon as they are started; a script that uses them needs "
    "`if __name__ == '__main__':` around its code"
)


# The workers of a setting.


async def open_crew(executor: str) -> Crew | None:
    """Return the pool of an executor, `None` for `inline`; no worker is started yet.

    Raises:
        MissingError: the extra is not installed.
        WorkersUnavailable: the cluster does not answer.
    """
    match = EXECUTOR.fullmatch(executor)
    assert match is not None, executor
    kind, count = match[1], int(match[2] or 0)
    if kind == "processes":
        from qrmem.workers.crew import cores, hired

        return Crew(count or cores(), hired)
    if kind == "ray":
        from qrmem.workers.ray_cluster import open_cluster

        return await open_cluster(count)
    return None


# --- Processes of this machine, each in its own pool, so that a death names its worker


# Code that runs in a worker process.


def prepare() -> None:
    """Set up a worker process: it ignores Ctrl-C, and it ends when the driver ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    if parent := parent_process():
        parent.join()
        os._exit(1)


def run(work: Callable[..., Any], given: tuple[Any, ...]) -> Any:
    """Run a task; a coroutine runs in the event loop of this process."""
    result = work(*given)
    return _runner().run(result) if inspect.iscoroutine(result) else result


@cache
def _runner() -> asyncio.Runner:
    return asyncio.Runner()


def versions() -> dict[str, str]:
    """Return the versions that driver and workers must share: of qrmem and of the prompts."""
    from importlib.metadata import version

    from qrmem.prompts import load_prompts

    return {"qrmem": version("qrmem"), "prompts": load_prompts().checksum}


def cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class ProcessWorker:
    """A process of this machine; see `qrmem.workers.crew.Worker`."""

    def __init__(self) -> None:
        """Prepare; `hired` starts it."""
        # Not forked: a thread of the driver may hold a lock at that moment.
        context = multiprocessing.get_context("spawn")
        self._pool = ProcessPoolExecutor(1, mp_context=context, initializer=prepare)
        self._pid = 0
        self.is_lost = False
        self._is_broken = False

    async def submit(self, work: Callable[..., Any], given: tuple[Any, ...]) -> Any:
        """Run a task in the process."""
        try:
            return await asyncio.wrap_future(self._pool.submit(run, work, given))
        except BrokenProcessPool:
            # Its tasks fail in the order of submission.
            is_cause, self._is_broken = not self._is_broken, True
            raise WorkerLost(is_cause=is_cause) from None

    async def up(self) -> "ProcessWorker":
        """Return the worker when its process runs."""
        self._pid = await self.submit(os.getpid, ())
        return self

    def kill(self) -> None:
        """Kill the process."""
        if self._pid:
            with suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)
        self._pid = 0
        self._pool.shutdown(wait=False, cancel_futures=True)


async def hired() -> ProcessWorker:
    """Start a process and return the worker when it runs.

    Raises:
        WorkerLost: the process ended before that.
    """
    worker = ProcessWorker()
    try:
        return await worker.up()
    except BaseException:
        worker.kill()
        raise
