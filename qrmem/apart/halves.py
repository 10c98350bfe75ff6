"""Both halves of a long list worked on at once, by a process of one thread and a fork of it.

What the work needs is there in both without being sent; only what the second half came to is. A
fork is safe where no other thread can hold a lock, as in the processes that `qrmem.processes`
starts (ADR 0014).
"""

import gc
import os
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from qrmem.processes import usable

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

T = TypeVar("T")
R = TypeVar("R")

LEAST = 20_000
"""Items from which a fork is worth its price: every page that is written to is copied."""
_BREATH = 500
"""Items after which the fork looks whether anybody still waits for it."""


def mapped(function: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """Return what a function makes of each item, in order, as `map` does."""
    if len(items) < LEAST or not is_safe():
        return [function(item) for item in items]
    import multiprocessing

    half = len(items) // 2
    context = multiprocessing.get_context("fork")
    incoming, outgoing = context.Pipe(duplex=False)
    given = (incoming, outgoing, function, items[half:])
    fork = context.Process(target=_work, args=given, daemon=True)
    fork.start()
    outgoing.close()
    try:
        first = [function(item) for item in items[:half]]
        second: list[R] | None = None
        with suppress(EOFError):  # it was killed
            second = incoming.recv()
    finally:
        fork.kill()
        fork.join()
        incoming.close()
    return first + ([function(item) for item in items[half:]] if second is None else second)


def is_safe() -> bool:
    """Whether this process may be forked, and a fork would have a core."""
    return sys.platform == "linux" and threading.active_count() == 1 and usable() > 1


def _work(
    incoming: "Connection",
    outgoing: "Connection",
    function: Callable[[T], R],
    items: Sequence[T],
) -> None:
    incoming.close()  # held here too, it would let the fork wait for a reader that was killed
    gc.disable()  # it would write to every object that the fork shares
    waiting = os.getppid()
    made: list[R] = []
    for start in range(0, len(items), _BREATH):
        if os.getppid() != waiting:
            return
        made += [function(item) for item in items[start : start + _BREATH]]
    with suppress(BrokenPipeError):
        outgoing.send(made)
