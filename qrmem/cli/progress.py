"""A progress bar on standard error, fed by the same events that streams and logs read."""

import sys
import time
from types import TracebackType
from typing import Any, Self

from qrmem.cli.output import note
from qrmem.cli.warnings import Warnings
from qrmem.types import Event


class Progress:
    """Segments done, rate and time left; without a terminal, a line every ten seconds.

    Attributes:
        done: segments finished in this run.
        total: segments known so far.
    """

    def __init__(self, *, quiet: bool) -> None:
        self.done = 0
        self.total = 0
        self._quiet = quiet
        self._warnings = Warnings(quiet=quiet)
        self._started = self._said = time.monotonic()
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Self:
        if not self._quiet and sys.stderr.isatty():
            self._bar = _bar()
            self._task = self._bar.add_task("reading", total=None, rate="")
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, event: Event) -> None:
        """Take one event; never raises."""
        if event.kind == "document":
            self.total += int(event.data.get("segments", 0))
        elif event.kind == "segment":
            self.done += int(event.data.get("count", 1))
        elif event.kind == "phase":
            self._name(str(event.data.get("phase", "")))
        self._warnings(event)
        self._draw()

    def _name(self, phase: str) -> None:
        if self._bar is not None:
            self._bar.update(self._task, description=phase)

    def _draw(self) -> None:
        elapsed = max(time.monotonic() - self._started, 1e-6)
        rate = self.done / elapsed
        if self._bar is not None:
            self._bar.update(
                self._task, total=self.total or None, completed=self.done, rate=f"{rate:,.1f}/s"
            )
        elif not self._quiet and time.monotonic() - self._said > 10:
            self._said = time.monotonic()
            left = f", {(self.total - self.done) / rate:,.0f} s left" if rate else ""
            note(f"{self.done}/{self.total} segments, {rate:,.1f}/s{left}")


def _bar() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    return Bar(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("segments  {task.fields[rate]}  left"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
