"""Terminal output of evaluation: the list of tasks and systems, and the progress of a run."""

import sys
import time
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Self

from qrmem.eval.preset import preset_named, preset_names
from qrmem.eval.registry import BUILDERS, DATASETS, SYSTEMS, needs
from qrmem.types import Event

EVERY = 5.0
"""Seconds between two lines of progress."""


class Progress:
    """Prints a line of progress every few seconds, and always the last line of a run."""

    def __init__(self, *, quiet: bool, is_rehearsal: bool = False) -> None:
        """Start at zero.

        Args:
            is_rehearsal: whether this is a plan, which builds and pays for nothing.
        """
        self._quiet = quiet
        self._is_rehearsal = is_rehearsal
        self._first = self._said = time.monotonic()
        self._total = self._done = self._failed = 0
        self._before: tuple[float, ...] = (0, 0, 0.0)
        self._paid: tuple[float, ...] = self._before
        self._is_priced = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._total and not self._is_rehearsal:
            self._say()

    def __call__(self, event: Event) -> None:
        """Handle one event; never raises."""
        if event.kind == "items":
            self._total += int(event.data["total"])
            self._before = self._paid
        elif event.kind == "item":
            self._first = self._first if self._done else time.monotonic()
            self._done += 1
            self._failed += bool(event.data["error"])
        elif event.kind in ("paid", "memory", "warning") and self._is_rehearsal:
            pass  # a rehearsal costs nothing, and warnings about a stand-in's replies mean nothing
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
        what = "rehearsed" if self._is_rehearsal else "results"
        parts = [f"{self._done}/{self._total} {what}", self._time_left()]
        calls, tokens, money = self._paid
        if calls:
            parts.append(f"{calls:,} calls, {tokens:,} tokens")
        if self._is_priced:
            parts.append(f"{money:.4f} in money")
        if self._failed:
            parts.append(f"{self._failed} failed")
        self._print(", ".join(parts))

    def _time_left(self) -> str:
        """Return the time left; building before the first result does not count."""
        if self._done < 2:
            return "time left not known yet"
        pace = (time.monotonic() - self._first) / (self._done - 1)
        return f"{(self._total - self._done) * pace:,.0f} s left"

    def _print(self, text: str) -> None:
        if not self._quiet:
            print(f"qrmem: {text}", file=sys.stderr, flush=True)


def listing() -> Mapping[str, Any]:
    """Return all tasks, systems, presets and builders, as plain values."""
    return {
        "tasks": {
            name: {
                "what": task.what,
                "files": list(task.files) or [f"a folder with {task.inside}"],
                "where": task.where,
                "licence": task.licence,
                "metrics": list(task.metrics),
            }
            for name, task in DATASETS.items()
        },
        "presets": {
            name: {
                "title": preset.title,
                "tasks": [part.task for part in preset.parts],
                "systems": dict(preset.systems),
            }
            for name, preset in ((name, preset_named(name)) for name in preset_names())
        },
        "systems": {
            name: {
                "what": entry.what,
                "source": entry.source,
                "needs": sorted(needs(entry.system)),
                "parameters": {f.name: getattr(entry.system, f.name) for f in fields(entry.system)},
            }
            for name, entry in SYSTEMS.items()
        },
        "builders": {
            name: {"what": entry.what, "options": dict(entry.options)}
            for name, entry in BUILDERS.items()
        },
    }


_NEEDED = {"model": "a chat model", "embedder": "an embedder"}


def listing_lines() -> list[str]:
    """Return the list as lines of text."""
    listed_parts = listing()
    lines = ["tasks (--data names the file, or a folder that holds it; scores: docs/evaluation.md)"]
    for name, task in listed_parts["tasks"].items():
        licence = "" if task["licence"] == "your own" else f"; {task['licence']}"
        lines += [
            f"  {name:20} {task['what']}",
            f"  {'':20} {' or '.join(task['files'])}",
            f"  {'':20} {task['where']}{licence}",
            f"  {'':20} scored by {', '.join(task['metrics'])}",
        ]
    lines.append("presets (--data is a folder with what their tasks need)")
    for name, preset in listed_parts["presets"].items():
        lines.append(f"  {name:20} {preset['title']}")
    lines.append(
        "systems (in brackets the paper, or ours; below each its parameters with their "
        "defaults; set them by NAME:KEY=VALUE:KEY=VALUE)"
    )
    for name, system in listed_parts["systems"].items():
        needs_in_words = " and ".join(
            _NEEDED.get(what, f"the extra {what}") for what in system["needs"]
        )
        wants = f"; needs {needs_in_words}" if needs_in_words else ""
        source = f" ({system['source']})" if system["source"] else ""
        lines += [f"  {name:20} {system['what']}{source}{wants}", *_options(system["parameters"])]
    lines.append("builders (`qrmem eval build KIND KEY=VALUE … --data PATH --out FOLDER`)")
    for name, builder in listed_parts["builders"].items():
        lines += [f"  {name:20} {builder['what']}", *_options(builder["options"])]
    return lines


def _options(options: Mapping[str, Any]) -> list[str]:
    """Return a line of options with their defaults; empty defaults are not shown."""
    options_in_words = " ".join(f"{key}={value}" for key, value in options.items())
    return [f"  {'':20} {options_in_words}"] if options_in_words else []
