"""What is tried again after a failure that may pass, when, and how often (by `tenacity`)."""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception

from qrmem.errors import ModelUnavailable
from qrmem.llm.failures import Cause, Transient

T = TypeVar("T")

FIRST_WAIT = 0.5
LONGEST_WAIT = 16.0
LONGEST_ASKED = 120.0
"""A server that asks for a longer wait is given up: a user should hear of it at once."""

PATIENCE: Mapping[Cause, int] = {
    "busy": 3,
    "server": 2,
    "body": 2,
    "timeout": 1,
    "connection": 1,
}
"""How many times the retries that were set are allowed for a cause.

A server in a storm refuses quickly and means it; a time-out costs the user the whole of it.
"""


class Retries:
    """When and how often to try again: `most` times for each cause, more for some (`PATIENCE`).

    A server that is silent costs a whole time-out with every try: it is tried once more, for one
    request in a storm may go astray, and further only while it answers others. One that has never
    answered a connection is not tried again.

    Attributes:
        answers: how often the server has answered anyone, be it with a refusal.
    """

    def __init__(
        self,
        most: int,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        jitter: random.Random | None = None,
    ) -> None:
        """Make one for a server; `most` of 0 tries nothing again."""
        self.most = most
        self.answers = 0
        self._sleep = sleep
        self._jitter = jitter or random.Random()

    async def run(
        self,
        call: Callable[[], Awaitable[T]],
        *,
        may_retry: Callable[[], bool] = lambda: True,
        tell: Callable[[str, int, float], None] = lambda *_: None,
    ) -> T:
        """Call, and again after a wait while that may help.

        Args:
            may_retry: the budget; asked before each further try.
            tell: hears reason, number of the try and wait.

        Raises:
            ModelUnavailable: it did not help; the text is that of the last failure.
        """
        tries = _Tries(self, may_retry)

        def told(state: RetryCallState) -> None:
            tell(str(_failure(state)), state.attempt_number, state.upcoming_sleep)

        retrying = AsyncRetrying(
            retry=retry_if_exception(tries.may_help),
            wait=self._wait,
            before_sleep=told,
            sleep=self._sleep,
            reraise=True,
        )
        try:
            made: T = await retrying(tries.make, call)
        except Transient as exc:
            raise ModelUnavailable(f"{exc}{_ending(exc, tries.made)}") from exc
        return made

    def _wait(self, state: RetryCallState) -> float:
        """Return the wait: what the server asks for, else doubling; jitter spreads a storm."""
        asked = getattr(_failure(state), "retry_after", None)
        if asked is not None:
            return float(asked + self._jitter.uniform(0, 0.1) * max(asked, FIRST_WAIT))
        longest = min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** min(state.attempt_number - 1, 30))
        return self._jitter.uniform(longest / 2, longest)


class _Tries:
    """The tries of one call: how many, how they failed, whether others were answered meanwhile."""

    def __init__(self, retries: Retries, may_retry: Callable[[], bool]) -> None:
        self._retries = retries
        self._may_retry = may_retry
        self._failures: Counter[Cause] = Counter()
        self._heard = 0
        self.made = 0

    async def make(self, call: Callable[[], Awaitable[T]]) -> T:
        """Call once more."""
        self.made, self._heard = self.made + 1, self._retries.answers
        is_silent = False
        try:
            return await call()
        except BaseException as exc:
            is_silent = not isinstance(exc, Exception) or (
                isinstance(exc, Transient) and exc.cause in {"connection", "timeout"}
            )
            raise
        finally:
            self._retries.answers += not is_silent

    def may_help(self, exc: BaseException) -> bool:
        """Whether to try again after a failure."""
        if not isinstance(exc, Transient):
            return False
        self._failures[exc.cause] += 1
        if self._failures[exc.cause] > self._retries.most * PATIENCE[exc.cause]:
            return False
        return not self._is_vain(exc) and self._may_retry()

    def _is_vain(self, exc: Transient) -> bool:
        if exc.cause == "connection" and not self._retries.answers:
            return True
        if exc.cause == "timeout" and self._failures["timeout"] > 1:
            return self._heard == self._retries.answers
        return exc.retry_after is not None and exc.retry_after > LONGEST_ASKED


def _failure(state: RetryCallState) -> BaseException | None:
    return state.outcome.exception() if state.outcome else None


def _ending(exc: Transient, made: int) -> str:
    """Return what a last failure's message ends with."""
    wait = exc.retry_after or 0.0
    if wait > LONGEST_ASKED:
        span = f"{wait / 60:.0f} minutes" if wait < 7200 else f"{wait / 3600:.0f} hours"
        return f" (it asks to wait {span}: try again then)"
    return f" (tried {made} times)" if made > 1 else ""


__all__ = ["Retries"]
