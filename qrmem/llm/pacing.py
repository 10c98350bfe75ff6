"""When a request may go out: requests and tokens a minute, and how many are in flight."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Mapping
from types import TracebackType

from qrmem.llm.failures import Transient

BURST = 5.0
"""Seconds' worth of the allowance that may be used at once."""
_CALM = 1.0
"""Seconds after a cut during which further refusals belong to the same overload."""


class RateLimiter:
    """Spreads requests over the minute, in order of arrival."""

    def __init__(
        self, *, requests: int, tokens: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Set the allowance for a minute; 0: what the server says in its answers, if it does."""
        self._chosen = requests, tokens
        self._requests = requests
        self._tokens = tokens
        self._clock = clock
        self._requests_due = float("-inf")
        self._tokens_due = float("-inf")

    def learn(self, headers: Mapping[str, str]) -> None:
        """Take what a server says it allows, in the headers that most services send."""
        said = (headers.get(f"x-ratelimit-limit-{what}", "") for what in ("requests", "tokens"))
        requests, tokens = (int(text) if text.isdecimal() else 0 for text in said)
        self._requests = self._chosen[0] or requests or self._requests
        self._tokens = self._chosen[1] or tokens or self._tokens

    def reserve(self, tokens: int) -> float:
        """Take a turn for so many tokens and return the seconds until it comes."""
        now = self._clock()
        turn = max(now, self._requests_due - BURST, self._tokens_due - BURST)
        if self._requests:
            self._requests_due = max(self._requests_due, turn) + 60 / self._requests
        if self._tokens:
            self._tokens_due = max(self._tokens_due, turn) + 60 * tokens / self._tokens
        return turn - now


class AdaptiveConcurrency:
    """Lets at most `limit` requests be in flight, in order of arrival; an async context manager.

    The limit halves when the server is overloaded and creeps up again. The back-off of a failed
    request is spent outside, so that a request that waits never holds up one that could go.
    """

    def __init__(self, most: int, *, clock: Callable[[], float] = time.monotonic) -> None:
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

    async def __aenter__(self) -> None:
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

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, _: TracebackType | None
    ) -> None:
        if exc is None:
            self._limit = min(float(self._most), self._limit + 1.0 / self._limit)
        elif isinstance(exc, Transient) and exc.cause in {"busy", "timeout"}:
            self._cut()
        self._leave()

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


__all__ = ["BURST", "AdaptiveConcurrency", "RateLimiter"]
