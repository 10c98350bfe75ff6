"""Retries, rate limits and concurrency of requests.

`tenacity` runs the retries. Requests per minute, tokens per minute and running requests are
limited.
"""

import asyncio
import random
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType
from typing import Any

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type

from qrmem.errors import ModelUnavailable
from qrmem.llm.servers import Cause, Transient
from qrmem.text.numbers import counted

FIRST_WAIT = 0.5
LONGEST_WAIT = 16.0
LONGEST_ASKED = 120.0
"""Longest wait in seconds. If a server asks for a longer one, the call fails at once, so that the
user sees it. No request waits longer for a server's rate limit either."""
PATIENCE: Mapping[Cause, int] = {"busy": 3, "server": 2, "body": 2, "connection": 1}
"""Factor on the configured number of retries, by cause.

An overloaded server refuses quickly. A timeout costs the user its full time, so it is retried once,
and again only while other requests are answered.
"""
BURST = 5.0
"""Seconds of the rate limit that may be used at once."""
_CALM = 1.0
"""Seconds after a reduction during which further refusals belong to the same overload."""


class Retries:
    """When and how often to retry: `most` times for each cause, more for some (`PATIENCE`).

    Attributes:
        was_answered: whether the server has ever accepted a connection; if not, there is no
            retry.
        answers: number of its replies, with refusals; a silent server is retried once, and again
            only while it answers others.
    """

    def __init__(
        self,
        most: int,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Create the retries for a server; `most` = 0 allows none."""
        self.was_answered = False
        self.answers = 0
        self._most = most
        self._sleep = sleep

    def tries(
        self,
        *,
        may_retry: Callable[[], bool] = lambda: True,
        tell: Callable[[str, int, float], None] = lambda *_: None,
    ) -> AsyncRetrying:
        """Return the tries of one call: `async for attempt in tries: with attempt: …`.

        After the last try it raises `ModelUnavailable` with the text of the last failure.

        Args:
            may_retry: called before each retry; it may raise `CapReached`.
            tell: gets the reason, the number of the try and the wait.
        """
        failures: Counter[Cause] = Counter()
        heard = self.answers

        def is_last(state: RetryCallState) -> bool:
            nonlocal heard
            exc = _failure(state)
            is_silent = heard == self.answers
            self.answers += exc.cause not in {"connection", "timeout"}
            heard = self.answers
            failures[exc.cause] += 1
            self.was_answered |= exc.cause != "connection"
            if exc.cause == "connection" and not self.was_answered:
                return True
            if exc.retry_after is not None and exc.retry_after > LONGEST_ASKED:
                return True
            most = min(self._most, 1) if exc.cause == "timeout" and is_silent else self._most
            return failures[exc.cause] > most * PATIENCE.get(exc.cause, 1) or not may_retry()

        def told(state: RetryCallState) -> None:
            tell(str(_failure(state)), state.attempt_number, state.upcoming_sleep)

        return AsyncRetrying(
            retry=retry_if_exception_type(Transient),
            stop=is_last,
            wait=self._wait,
            before_sleep=told,
            sleep=self._sleep,
            retry_error_callback=_give_up,
        )

    def _wait(self, state: RetryCallState) -> float:
        """Return the wait: the server's, else a doubling one with jitter."""
        seconds_asked = _failure(state).retry_after
        if seconds_asked is not None:
            return float(seconds_asked + random.uniform(0, 0.1) * max(seconds_asked, FIRST_WAIT))
        longest = min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** min(state.attempt_number - 1, 30))
        return random.uniform(longest / 2, longest)


def _failure(state: RetryCallState) -> Transient:
    exc = state.outcome.exception() if state.outcome else None
    assert isinstance(exc, Transient)
    return exc


def _give_up(state: RetryCallState) -> Any:
    exc, attempts = _failure(state), state.attempt_number
    ending = f" (tried {attempts} times)" if attempts > 1 else ""
    if (wait := exc.retry_after or 0.0) > LONGEST_ASKED:
        span = f"{wait / 60:.0f} minutes" if wait < 7200 else f"{wait / 3600:.0f} hours"
        span = span if wait < 1e6 else "many days"
        ending = f" (it asks to wait {span}: try again then)"
    raise ModelUnavailable(f"{exc}{ending}") from exc


class RateLimiter:
    """Delays requests to a rate per minute, in order of arrival."""

    def __init__(
        self, *, requests: int, tokens: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Set the limits per minute; 0 uses those in the server's replies, if any."""
        self._chosen = requests, tokens
        self._requests = requests
        self._tokens = tokens
        self._clock = clock
        self._requests_due = float("-inf")
        self._tokens_due = float("-inf")

    @property
    def allowance(self) -> str:
        """The limits per minute, as text."""
        limits = ((self._requests, "requests"), (self._tokens, "tokens"))
        return " and ".join(counted(most, what) for most, what in limits if most)

    def learn(self, headers: Mapping[str, str]) -> None:
        """Take over the limits from the usual headers of a reply."""
        header_values = (
            headers.get(f"x-ratelimit-limit-{what}", "") for what in ("requests", "tokens")
        )
        requests, tokens = (int(text[:12]) if text.isdecimal() else 0 for text in header_values)
        self._requests = self._chosen[0] or requests or self._requests
        self._tokens = self._chosen[1] or tokens or self._tokens

    def reserve(self, tokens: int) -> float:
        """Reserve a request of some tokens; return the seconds to wait for it."""
        now = self._clock()
        # A server's limit can delay a request only up to the longest wait; a set limit always can.
        ends = [float("inf") if is_chosen else now + LONGEST_ASKED for is_chosen in self._chosen]
        dues = zip((self._requests_due, self._tokens_due), ends, strict=True)
        turn = max(now, *(min(due - BURST, end) for due, end in dues))
        if self._requests:
            due = max(min(self._requests_due, ends[0]), turn)
            self._requests_due = due + 60 / self._requests
        if self._tokens:
            due = max(min(self._tokens_due, ends[1]), turn)
            self._tokens_due = due + 60 * tokens / self._tokens
        return turn - now


class AdaptiveConcurrency:
    """Allows at most `limit` running requests, in order of arrival; an async context manager.

    The limit is halved when the server is overloaded, and then rises slowly. A failed request waits
    outside of it, so that it does not block other requests.
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
        """The current limit."""
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
                self._leave()  # the slot was assigned just before the cancellation
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
