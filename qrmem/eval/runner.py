"""Runs systems over items: many at once, each result kept as it comes, resumable at any item."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from qrmem.errors import AccessRefused, CapReached, MissingError, ModelOutputError, OutOfReach
from qrmem.eval.harness import Harness, Reader
from qrmem.eval.records import WHOLE, Dataset, Item, Prediction, Row
from qrmem.eval.registry import System
from qrmem.eval.run_folder import RunFolder
from qrmem.llm.budget import Amount
from qrmem.prompts import fenced
from qrmem.prompts.replies import ShortReply
from qrmem.types import Event, Usage

SHORT_ENOUGH = 5
"""Words up to which an answer is short already."""
REPLY = 128


async def shortened(harness: Harness, item: Item, found: Prediction) -> tuple[Prediction, str]:
    """Return the short form of an answer, and what was found with the step's own cost in it."""
    if "repository" in item.labels or found.rounds:
        return found, found.text  # code is compared as it is, and a judge reads a reply whole
    text = " ".join(found.text.split())
    if item.labels.get("answers") == WHOLE:
        return found, text
    if item.choices or not text or len(text.split()) <= SHORT_ENOUGH:
        return found, text
    if harness.model is None:
        return found, text
    reader = harness.reader()
    short = await _by_model(harness, item, text, reader)
    online = {**found.usage.online, **reader.calls.stages}
    return replace(found, usage=Usage(found.usage.construction, online)), short


async def _by_model(harness: Harness, item: Item, text: str, reader: Reader) -> str:
    try:
        called = await reader.caller.call(
            "short-answer",
            ShortReply,
            lambda kept: dict(
                question=f"Question: {item.question}", given=fenced(" ".join(kept[0]))
            ),
            [text.split()],
            window=harness.settings.window,
            reply=REPLY,
        )
    except ModelOutputError:
        return text
    return " ".join(called.value.answer.split())


FATAL = (AccessRefused, CapReached, MissingError, OutOfReach)
"""What would fail for every other item too: the run stops, and what is done is kept."""


@dataclass(frozen=True, slots=True)
class RunStats:
    """What one run did.

    Attributes:
        reused: results that were there already.
        used: as the caps count it.
    """

    done: int = 0
    failed: int = 0
    reused: int = 0
    used: Amount = field(default_factory=Amount)

    def plus(self, other: "RunStats") -> "RunStats":
        """Return what two runs did together."""
        return RunStats(
            self.done + other.done,
            self.failed + other.failed,
            self.reused + other.reused,
            self.used.plus(other.used),
        )


async def run(
    harness: Harness,
    dataset: Dataset,
    items: Sequence[Item],
    systems: Mapping[str, System],
    folder: RunFolder,
    *,
    concurrency: int = 1,
) -> RunStats:
    """Run every system over every item that has no result yet; failed ones are tried again.

    Raises:
        CapReached: a cap was reached; the same command with a higher one goes on.
        OutOfReach: the model does not answer any more.
    """
    known = {key for key, row in folder.rows().items() if not row.error}
    todo = [(name, item) for item in items for name in systems if (name, item.id) not in known]
    harness.listener(Event("items", {"total": len(todo)}))
    counts = {"done": 0, "failed": 0}
    queue = iter(todo)

    async def work() -> None:
        for name, item in queue:
            row = await _one(harness, dataset, item, name, systems[name])
            folder.add(row)
            counts["failed" if row.error else "done"] += 1
            harness.listener(Event("item", {"system": name, "item": item.id, "error": row.error}))
            harness.tell_paid()

    await together(work, max(1, min(concurrency, len(todo))))
    used = harness.used
    return RunStats(counts["done"], counts["failed"], len(items) * len(systems) - len(todo), used)


async def together(work: Callable[[], Coroutine[Any, Any, None]], workers: int) -> None:
    """Run workers until all are done; the first error stops the others and is raised alone."""
    tasks = [asyncio.create_task(work()) for _ in range(workers)]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _one(harness: Harness, dataset: Dataset, item: Item, name: str, system: System) -> Row:
    began = time.monotonic()
    try:
        found = await system(item, dataset.contexts[item.context], harness)
        found, short = await shortened(harness, item, found)
    except FATAL:
        raise
    except Exception as exc:
        return Row(
            item=item.id,
            system=name,
            seconds=round(time.monotonic() - began, 4),
            error=f"{type(exc).__name__}: {' '.join(str(exc).split())}",
        )
    return Row(
        item=item.id,
        system=name,
        prediction=found,
        short=short,
        seconds=round(time.monotonic() - began, 4),
    )
