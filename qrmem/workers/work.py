"""What runs in a worker: the process's side."""

import asyncio
import inspect
import os
import signal
import threading
from collections.abc import Callable
from functools import cache
from multiprocessing import parent_process
from typing import Any


def prepare() -> None:
    """Make a process a worker: Ctrl-C is for the driver, and without the driver it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    if parent := parent_process():
        parent.join()
        os._exit(1)


def run(work: Callable[..., Any], given: tuple[Any, ...]) -> Any:
    """Do a piece of work, in the one event loop of this process if it wants one."""
    made = work(*given)
    return _runner().run(made) if inspect.iscoroutine(made) else made


@cache
def _runner() -> asyncio.Runner:
    return asyncio.Runner()


def versions() -> dict[str, str]:
    """Return what driver and workers must have in common, with the name of each."""
    from importlib.metadata import version

    from qrmem.prompts import load_prompts

    return {"qrmem": version("qrmem"), "prompts": load_prompts().checksum}
