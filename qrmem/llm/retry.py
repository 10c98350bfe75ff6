"""When a request may go out, and when it is sent again.

Tries are made by `tenacity`. Requests and tokens a minute, and how many are in flight, are bounded.
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
"""A server that asks for a longer wait is given up: a user should hear of it at once. For what it
says that it allows in a minute, no request waits longer either."""
PATIENCE: Mapping[Cause, int] = {"busy": 3, "server": 2, "body": 2, "connection": 1}
"""How many times the retries that were set are allowed for a cause.

A server in a storm refuses quickly and means it. A time-out costs the user the whole of it: it is
tried once more, for one request may go astray, and further only while others are answered.
"""
BURST = 5.0
"""Seconds' worth of the allowance that may be used at once."""
_CALM = 1.0
"""Seconds after a cut during which further refusals belong to the same overload."""


class Retries:
    """When and how often to try again: `most` times for each cause, more for some (`PATIENCE`).

    Attributes:
        was_answered: whether the server has ever taken a connection; one that never has is not
            tried again.
        answers: what it has answered, refusals included; a server that is silent is tried once
            more, and further only while it answers others.
    """

    def __init__(
        self,
        most: int,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Make one for a server; `most` of 0 tries nothing again."""
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

        After the last try `ModelUnavailable` is raised, with the text of the last failure.

        Args:
            may_retry: the budget; asked before each further try.
            tell: hears reason, number of the try and wait.
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
        """Return the wait: what the server asks for, else doubling; jitter spreads a storm."""
        asked = _failure(state).retry_after
        if asked is not None:
            return float(asked + random.uniform(0, 0.1) * max(asked, FIRST_WAIT))
        longest = min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** min(state.attempt_number - 1, 30))
        return random.uniform(longest / 2, longest)


def _failure(state: RetryCallState) -> Transient:
    exc = state.outcome.exception() if state.outcome else None
    assert isinstance(exc, Transient)
    return exc


def _give_up(state: RetryCallState) -> Any:
    exc, made = _failure(state), state.attempt_number
    ending = f" (tried {made} times)" if made > 1 else ""
    if (wait := exc.retry_after or 0.0) > LONGEST_ASKED:
        span = f"{wait / 60:.0f} minutes" if wait < 7200 else f"{wait / 3600:.0f} hours"
        span = span if wait < 1e6 else "many days"
        ending = f" (it asks to wait {span}: try again then)"
    raise ModelUnavailable(f"{exc}{ending}") from exc


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

    @property
    def allowance(self) -> str:
        """What is sent in a minute at most, in words."""
        known = ((self._requests, "requests"), (self._tokens, "tokens"))
        return " and ".join(counted(most, what) for most, what in known if most)

    def learn(self, headers: Mapping[str, str]) -> None:
        """Take what a server says it allows, in the headers that most services send."""
        said = (headers.get(f"x-ratelimit-limit-{what}", "") for what in ("requests", "tokens"))
        requests, tokens = (int(text[:12]) if text.isdecimal() else 0 for text in said)
        self._requests = self._chosen[0] or requests or self._requests
        self._tokens = self._chosen[1] or tokens or self._tokens

    def reserve(self, tokens: int) -> float:
        """Take a turn for so many tokens and return the seconds until it comes."""
        now = self._clock()
        # What a server says binds for as long as it may ask to wait; what is set always does.
        ends = [float("inf") if chosen else now + LONGEST_ASKED for chosen in self._chosen]
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
