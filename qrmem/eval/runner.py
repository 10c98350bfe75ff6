"""One item under one system becomes a result; many of them at once."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from qrmem.errors import AccessRefused, CapReached, MissingError, ModelOutputError, OutOfReach
from qrmem.eval.harness import Harness
from qrmem.eval.records import WHOLE, Context, Item, Prediction, Row
from qrmem.eval.registry import System
from qrmem.prompts import fenced
from qrmem.prompts.replies import ShortReply
from qrmem.types import Usage

T = TypeVar("T")

SHORT_ENOUGH = 5
"""Words up to which an answer is short already."""
REPLY = 128


async def shortened(harness: Harness, item: Item, found: Prediction) -> str:
    """Return the short form of an answer."""
    if "repository" in item.labels or found.rounds:
        return found.text  # code is compared as it is, and a judge reads a reply whole
    text = " ".join(found.text.split())
    if item.labels.get("answers") == WHOLE:
        return text
    if item.choices or harness.model is None or len(text.split()) <= SHORT_ENOUGH:
        return text
    try:
        called = await harness.caller.call(
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
    """

    done: int = 0
    failed: int = 0
    reused: int = 0

    def plus(self, other: "RunStats") -> "RunStats":
        """Return what two runs did together."""
        return RunStats(
            self.done + other.done, self.failed + other.failed, self.reused + other.reused
        )


async def at_once(
    items: Sequence[T], work: Callable[[T], Awaitable[None]], concurrency: int
) -> None:
    """Work on all items, so many at a time; the first error stops the others, and is raised."""
    queue = iter(items)

    async def worker() -> None:
        for item in queue:
            await work(item)

    tasks = [asyncio.create_task(worker()) for _ in range(min(concurrency, len(items)))]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def result_of(
    harness: Harness, context: Context, item: Item, name: str, system: System
) -> Row:
    """Return what a system makes of an item; its errors are kept, but those that would end all."""
    began, own = time.monotonic(), harness.apart()
    try:
        found = await system(item, context, own)
        short = await shortened(own, item, found)
        online = {**found.usage.online, **own.calls.stages}
        found = replace(found, usage=Usage(found.usage.construction, online))
        row = Row(item=item.id, system=name, prediction=found, short=short)
    except FATAL:
        raise
    except Exception as exc:
        error = f"{type(exc).__name__}: {' '.join(str(exc).split())}"
        row = Row(item=item.id, system=name, error=error)
    return replace(row, seconds=round(time.monotonic() - began, 4))
