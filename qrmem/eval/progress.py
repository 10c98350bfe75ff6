"""How far a run is, on standard error: items, time left, money so far."""

import sys
import time
from types import TracebackType
from typing import Self

from qrmem.types import Event

EVERY = 5.0
"""Seconds between two lines."""


class Progress:
    """Prints a line every few seconds; the last one always."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._first = self._said = time.monotonic()
        self._total = self._done = self._failed = 0
        self._before: tuple[float, ...] = (0, 0, 0.0)
        self._paid: tuple[float, ...] = self._before
        self._is_priced = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._total:
            self._say()

    def __call__(self, event: Event) -> None:
        """Take one event; never raises."""
        if event.kind == "items":
            self._total += int(event.data["total"])
            self._before = self._paid
        elif event.kind == "item":
            self._first = self._first if self._done else time.monotonic()
            self._done += 1
            self._failed += bool(event.data["error"])
        elif event.kind == "paid":
            now = (int(event.data["calls"]), int(event.data["tokens"]), event.data["money"] or 0.0)
            self._paid = tuple(a + b for a, b in zip(self._before, now, strict=True))
            self._is_priced = event.data["money"] is not None
        elif event.kind == "memory" and event.data["seconds"] > EVERY:
            self._print(f"built {event.data['context']} in {event.data['seconds']:.0f} s")
        elif event.kind == "warning":
            self._print(str(event.data.get("message", "")))
        if time.monotonic() - self._said > EVERY:
            self._say()

    def _say(self) -> None:
        self._said = time.monotonic()
        parts = [f"{self._done}/{self._total} results", self._left()]
        calls, tokens, money = self._paid
        if calls:
            parts.append(f"{calls:,} calls, {tokens:,} tokens")
        if self._is_priced:
            parts.append(f"{money:.4f} in money")
        if self._failed:
            parts.append(f"{self._failed} failed")
        self._print(", ".join(parts))

    def _left(self) -> str:
        """Return the time left; what was built before the first result says nothing of it."""
        if self._done < 2:
            return "time left not known yet"
        pace = (time.monotonic() - self._first) / (self._done - 1)
        return f"{(self._total - self._done) * pace:,.0f} s left"

    def _print(self, text: str) -> None:
        if not self._quiet:
            print(f"qrmem: {text}", file=sys.stderr, flush=True)
