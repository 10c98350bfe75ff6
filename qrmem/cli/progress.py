"""Output on standard error while a command runs: progress, warnings, a streamed reply."""

import sys
import time
from collections.abc import Callable
from typing import Any, Self

from qrmem.cli.output import note
from qrmem.types import Event, Words

LONG = 10.0
"""An estimate of embedding of at least so many seconds is announced."""
PAUSE = 5.0
"""Seconds between two lines about retries: a storm of refusals has hundreds."""


class Warnings:
    """Prints warnings of a run as they occur."""

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
        note(str(event.data["message"]), quiet=self._quiet)


class Progress:
    """Segments done, rate and time left; without a terminal, a line every ten seconds.

    Attributes:
        done: segments finished in this run.
        total: segments known so far.
    """

    def __init__(self, *, quiet: bool, first: str = "") -> None:
        """Begin with nothing done.

        Args:
            first: a note to print before the first document is read; an unreadable one prints only
                its error.
        """
        self.done = 0
        self.total = 0
        self._quiet = quiet
        self._first = first
        self._warnings = Warnings(quiet=quiet)
        self._embedding = _Embedding(0)
        self._started = self._said = time.monotonic()
        self._is_counted = True
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Self:
        if not self._quiet and sys.stderr.isatty():
            self._bar = _bar()
            self._task = self._bar.add_task("reading", total=None, rate="")
            self._bar.start()
        return self

    def __exit__(self, *exc: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, event: Event) -> None:
        """Take one event; never raises."""
        if event.kind == "document":
            if self._first:
                note(self._first, quiet=self._quiet)
            self._first = ""
            self.total += int(event.data.get("segments", 0))
        elif event.kind == "segment":
            self.done += int(event.data.get("count", 1))
        elif event.kind == "phase":
            self._name(str(event.data.get("phase", "")))
            self._embedding = _Embedding(int(event.data.get("segments", 0)))
        elif event.kind == "embedded" and (
            line := self._embedding.after(int(event.data.get("count", 0)))
        ):
            note(line, quiet=self._quiet)
        self._warnings(event)
        self._draw()

    def _name(self, phase: str) -> None:
        self._is_counted = phase != "merging"
        if self._bar is not None:
            self._bar.remove_task(self._task)  # rich cannot make a known total unknown again
            self._task = self._bar.add_task(phase, total=None, rate="")

    def _draw(self) -> None:
        elapsed = max(time.monotonic() - self._started, 1e-6)
        rate = self.done / elapsed
        if self._bar is not None:
            # Merging comes after the last segment and takes an unknown time: a full bar would claim
            # that everything is done.
            total = self.total if self._is_counted and self.total else None
            self._bar.update(self._task, total=total, completed=self.done, rate=f"{rate:,.1f}/s")
        elif self.total and not self._quiet and time.monotonic() - self._said > 10:
            self._said = time.monotonic()
            rest_in_words = (
                f", {rate:,.1f}/s, {(self.total - self.done) / rate:,.0f} s left" if rate else ""
            )
            note(f"{self.done}/{self.total} segments{rest_in_words}")


class _Embedding:
    """Estimates the time for embedding after the first batch."""

    def __init__(self, total: int) -> None:
        self._left = self._total = total
        self._began = time.monotonic()

    def after(self, count: int) -> str:
        """Count embedded segments; return a line to print, or None."""
        is_first, self._left = self._left == self._total, self._left - count
        if not is_first or not count:
            return ""
        seconds = (time.monotonic() - self._began) / count * self._left
        if seconds < LONG:
            return ""
        return f"embedding {self._total:,} segments: about {seconds:,.0f} s"


def _bar() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    return Bar(
        TextColumn("{task.description}"),
        BarColumn(complete_style="cyan", finished_style="green", pulse_style="cyan"),
        MofNCompleteColumn(),
        TextColumn("segments  {task.fields[rate]}  left"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )


class Writing:
    """Shows reasoning and answer as they are written, each on a line of its own."""

    def __init__(self) -> None:
        self._field = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.end()

    def show(self, words: Words) -> None:
        """Print a piece, without control characters."""
        if words.field != self._field:
            self.end()
            self._field = words.field
            if words.field:
                self._print(f"  {words.field}: ")
        self._print("".join(c if c.isprintable() else " " for c in words.text))

    def end(self) -> None:
        """End the current line, if there is one."""
        if self._field:
            self._print("\n")
        self._field = ""

    @staticmethod
    def _print(text: str) -> None:
        if text:
            print(text, end="", file=sys.stderr, flush=True)
