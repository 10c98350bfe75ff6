"""Warnings of a run as lines on standard error."""

import time
from collections.abc import Callable

from qrmem.cli import output
from qrmem.types import Event

PAUSE = 5.0
"""Seconds between two lines about retries: a storm of refusals has hundreds."""


class Warnings:
    """Prints what a run warns of, as it happens."""

    def __init__(self, *, quiet: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self._quiet = quiet
        self._clock = clock
        self._told = float("-inf")

    def __call__(self, event: Event) -> None:
        """Take one event; never raises."""
        if event.kind != "warning" or not event.data.get("message"):
            return
        if event.data.get("what") == "retry":
            if self._clock() - self._told < PAUSE:
                return
            self._told = self._clock()
        output.note(str(event.data["message"]), quiet=self._quiet)
