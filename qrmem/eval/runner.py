"""Runs systems over items: many at once, each result kept as it comes, resumable at any item."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from qrmem.errors import AccessRefused, CapReached, MissingError, OutOfReach
from qrmem.eval.bench import Bench
from qrmem.eval.records import Dataset, Item, Row
from qrmem.eval.rundir import RunFolder
from qrmem.eval.shortening import shortened
from qrmem.eval.systems import System
from qrmem.llm.caps import Amount
from qrmem.types import Event

FATAL = (AccessRefused, CapReached, MissingError, OutOfReach)
"""What would fail for every other item too: the run stops, and what is done is kept."""


@dataclass(frozen=True, slots=True)
class Ran:
    """What one run did.

    Attributes:
        reused: results that were there already.
        used: as the caps count it.
    """

    done: int = 0
    failed: int = 0
    reused: int = 0
    used: Amount = field(default_factory=Amount)

    def plus(self, other: "Ran") -> "Ran":
        """Return what two runs did together."""
        return Ran(
            self.done + other.done,
            self.failed + other.failed,
            self.reused + other.reused,
            self.used.plus(other.used),
        )


async def run(
    bench: Bench,
    dataset: Dataset,
    items: Sequence[Item],
    systems: Mapping[str, System],
    folder: RunFolder,
    *,
    concurrency: int = 1,
) -> Ran:
    """Run every system over every item that has no result yet; failed ones are tried again.

    Raises:
        CapReached: a cap was reached; the same command with a higher one goes on.
        OutOfReach: the model does not answer any more.
    """
    known = {key for key, row in folder.rows().items() if not row.error}
    todo = [(name, item) for item in items for name in systems if (name, item.id) not in known]
    bench.listener(Event("items", {"total": len(todo)}))
    counts = {"done": 0, "failed": 0}
    queue = iter(todo)

    async def work() -> None:
        for name, item in queue:
            row = await _one(bench, dataset, item, name, systems[name])
            folder.add(row)
            counts["failed" if row.error else "done"] += 1
            bench.listener(Event("item", {"system": name, "item": item.id, "error": row.error}))
            bench.tell_paid()

    await together(work, max(1, min(concurrency, len(todo))))
    used = bench.model.used if bench.model else Amount()
    return Ran(counts["done"], counts["failed"], len(items) * len(systems) - len(todo), used)


async def together(work: Callable[[], Coroutine[Any, Any, None]], workers: int) -> None:
    """Run workers until all are done; the first error stops the others and is raised alone."""
    tasks = [asyncio.create_task(work()) for _ in range(workers)]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _one(bench: Bench, dataset: Dataset, item: Item, name: str, system: System) -> Row:
    began = time.monotonic()
    try:
        found = await system(item, dataset.contexts[item.context], bench)
        found, short = await shortened(bench, item, found)
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
        found=found,
        short=short,
        seconds=round(time.monotonic() - began, 4),
    )
