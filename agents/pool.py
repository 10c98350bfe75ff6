"""Bounded parallel work inside one node; LangGraph's `Send` per segment is far too slow for it."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from typing import Generic, TypeVar

from qrmem.errors import CapReached, ModelUnavailable

T = TypeVar("T")


async def each(
    items: Iterable[T], work: Callable[[T], Awaitable[None]], *, concurrency: int
) -> None:
    """Do some work for each item, started in order, at most `concurrency` at a time.

    An item whose model does not answer is tried again at the end, as long as others were answered
    since the last such failure: one bad spell of a server does not end a long run, a dead one does.

    Raises:
        CapReached: raised by the work; what was in flight is finished first, as it is paid for.
        Exception: what else the work raised first; everything in flight is cancelled.
    """
    pool = _Pool(items, work)
    workers = [asyncio.create_task(pool.run()) for _ in range(concurrency)]
    try:
        await asyncio.gather(*workers)
    finally:
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
    if pool.cap is not None:
        raise pool.cap


class _Pool(Generic[T]):
    """What the workers share.

    Attributes:
        cap: the cap that was reached, if one was; nothing new is started then.
    """

    def __init__(self, items: Iterable[T], work: Callable[[T], Awaitable[None]]) -> None:
        self._items = iter(items)
        self._again: deque[T] = deque()
        self._work = work
        self._answered = False
        self.cap: CapReached | None = None

    async def run(self) -> None:
        """Work until nothing is left."""
        while self.cap is None:
            try:
                item = next(self._items)
            except StopIteration:
                if not self._again:
                    return
                item = self._again.popleft()
            try:
                await self._work(item)
            except CapReached as exc:
                self.cap = exc
            except ModelUnavailable:
                if not self._answered:
                    raise
                self._answered = False
                self._again.append(item)
            else:
                self._answered = True
