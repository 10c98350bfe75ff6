"""Python's cycle collector, less eager while records are made by the hundred thousand.

A build allocates objects that nearly all stay, as a repository's graph does. The collector looks
at the young ones after every 700, and at all of them again and again as they grow in number, to
find no cycle: a sixth of the time that reading without a model takes (ADR 0013).
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

LEAST_THRESHOLD = 250_000
"""New objects after which the collector looks, meanwhile."""
LEAST_OLDER = 1000
"""Looks at new objects after which it looks at those, too, that it has seen once."""

_lock = Lock()
_before: list[tuple[int, int, int]] = []


@contextmanager
def seldom_collecting() -> Iterator[None]:
    """Have the collector look seldom until the last who wants that is done.

    What the program has set is put back; a collector that is switched off stays so.
    """
    with _lock:
        _before.append(gc.get_threshold())
        young, *old = _before[0]
        if young:
            seldom = max(young, LEAST_THRESHOLD), max(old[0], LEAST_OLDER), old[1]
            gc.set_threshold(*seldom)
    try:
        yield
    finally:
        with _lock:
            first = _before[0]
            _before.pop()
            if not _before:
                gc.set_threshold(*first)
