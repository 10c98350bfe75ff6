"""Bounded parallel work, and batches.

Parallel calls survive a temporary failure of the server.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from qrmem.errors import CapReached, ModelUnavailable, ModelUnusable

T = TypeVar("T")


def in_batches(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Yield the items in order in batches of `size`; the last one may be smaller."""
    for start in range(0, len(items), size):
        yield items[start : start + size]


async def each(
    items: Iterable[T],
    work: Callable[[T], Awaitable[None]],
    *,
    concurrency: int,
    was_answered: bool = False,
) -> None:
    """Run some work for each item, started in order, at most `concurrency` at a time.

    If the model does not answer for an item, the item is tried again, and no new item starts before
    one was answered; so a temporary failure of the server does not end a long run. The run ends if
    no item was ever answered, or if an item fails twice without an answer to another in between.

    Args:
        items: the items.
        work: the work for an item.
        concurrency: maximum number of items at a time.
        was_answered: whether the model has answered before, in the same run.

    Raises:
        CapReached: the work raised it; running work is finished first, as it is paid for.
        ModelUnusable: as for `CapReached`.
        Exception: any other error of the work; running work is cancelled.
    """
    pool = _Pool(items, work, was_answered)
    workers: list[asyncio.Task[None]] = []
    for _ in range(concurrency):
        workers.append(asyncio.create_task(pool.run()))
    try:
        await asyncio.gather(*workers)
    finally:
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
    if pool.stop is not None:
        raise pool.stop


@dataclass(slots=True, eq=False)
class _Turn(Generic[T]):
    """An item, and the number of answers when it failed; `None` if it never failed."""

    item: T
    answers: int | None = None


class _Pool(Generic[T]):
    """The shared state of the workers.

    Attributes:
        stop: the error because of which no new item starts, or `None`.
    """

    def __init__(
        self, items: Iterable[T], work: Callable[[T], Awaitable[None]], was_answered: bool
    ) -> None:
        self._new = iter(items)
        self._again: deque[_Turn[T]] = deque()
        self._work = work
        self._answers = int(was_answered)
        self._is_silent = False
        self._busy = 0
        self._changed = asyncio.Condition()
        self.stop: CapReached | ModelUnusable | None = None

    async def run(self) -> None:
        """Work until no item is left."""
        while (turn := await self._next()) is not None:
            try:
                await self._work(turn.item)
            except (CapReached, ModelUnusable) as exc:
                self.stop = exc
            except ModelUnavailable:
                if turn.answers == self._answers or not self._answers:
                    raise
                turn.answers = self._answers
                self._again.append(turn)
                self._is_silent = True
            else:
                self._answers += 1
                self._is_silent = False
            async with self._changed:
                self._busy -= 1
                self._changed.notify_all()

    async def _next(self) -> _Turn[T] | None:
        """Return the next item: a new one if the server answers, else one that failed."""
        async with self._changed:
            while self.stop is None:
                turn = None if self._is_silent else next((_Turn(i) for i in self._new), None)
                # While the server is silent, a running request may still be answered.
                if turn is None and self._again and not (self._is_silent and self._busy):
                    turn = self._again.popleft()
                if turn is not None:
                    self._busy += 1
                    return turn
                if not self._is_silent:
                    return None
                await self._changed.wait()
            return None
