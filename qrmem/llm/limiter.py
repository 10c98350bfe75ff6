"""How many requests are in flight: at most what was set, fewer while the server is overloaded."""

import asyncio
import time
from collections import deque
from collections.abc import Callable

from qrmem.llm.exchange import Exchange, Sender
from qrmem.llm.failures import Transient
from qrmem.types import ChatReply

_CALM = 1.0
"""Seconds after a cut during which further refusals belong to the same overload."""


class Limiter:
    """Lets at most `limit` exchanges through; the limit halves on overload and creeps up again.

    Waiting happens in order of arrival. The back-off of a failed request is spent above this layer,
    so that a request that waits never holds up one that could go.
    """

    def __init__(
        self, inner: Sender, *, most: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._inner = inner
        self._most = most
        self._limit = float(most)
        self._clock = clock
        self._cut_at = float("-inf")
        self._busy = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def limit(self) -> int:
        """How many may be in flight now."""
        return max(1, int(self._limit))

    async def send(self, exchange: Exchange) -> ChatReply:
        """Wait for a place, send, and learn from the outcome."""
        await self._enter()
        try:
            reply = await self._inner.send(exchange)
        except Transient as exc:
            if exc.cause in {"busy", "timeout"}:
                self._cut()
            raise
        else:
            self._limit = min(float(self._most), self._limit + 1.0 / self._limit)
            return reply
        finally:
            self._leave()

    async def _enter(self) -> None:
        if self._busy < self.limit and not self._waiting:
            self._busy += 1
            return
        place = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self._leave()  # the place was given just before the cancellation
            elif place in self._waiting:
                self._waiting.remove(place)
            raise

    def _leave(self) -> None:
        self._busy -= 1
        while self._waiting and self._busy < self.limit:
            place = self._waiting.popleft()
            if not place.done():
                self._busy += 1
                place.set_result(None)

    def _cut(self) -> None:
        now = self._clock()
        if now - self._cut_at >= _CALM:
            self._cut_at = now
            self._limit = max(1.0, self._limit / 2)


__all__ = ["Limiter"]
