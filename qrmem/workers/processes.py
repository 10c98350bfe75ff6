"""Workers as processes of this machine, each in its own pool, so that a death names its worker."""

import asyncio
import inspect
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from functools import cache
from multiprocessing import parent_process
from typing import Any

from qrmem.workers.crew import WorkerLost

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
