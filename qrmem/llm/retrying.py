"""Transport retries: back-off with jitter, Retry-After honoured, the last error's text kept."""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from qrmem.errors import ModelUnavailable, QrmemError
from qrmem.llm.exchange import Exchange, Sender
from qrmem.llm.failures import Cause, Transient
from qrmem.types import ChatReply, Event, Listener

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


@dataclass(slots=True)
class Reached:
    """How often a server has answered anyone; one that nobody has reached is not tried again."""

    answers: int = 0

    def hear(self, exc: BaseException | None) -> None:
        """Count an answer, be it a refusal; silence is none."""
        silent = isinstance(exc, Transient) and exc.cause in {"connection", "timeout"}
        self.answers += not silent


class _Tries:
    """The tries of one call: how many, how they failed, whether others were answered meanwhile."""

    def __init__(self, most: int, reached: Reached, may_retry: Callable[[], bool]) -> None:
        self._most = most
        self._reached = reached
        self._may_retry = may_retry
        self._failures: Counter[Cause] = Counter()
        self._heard = 0
        self.made = 0

    async def make(self, call: Callable[[], Awaitable[T]]) -> T:
        """Call once more."""
        self.made, self._heard = self.made + 1, self._reached.answers
        try:
            result = await call()
        except QrmemError as exc:
            self._reached.hear(exc)
            raise
        self._reached.hear(None)
        return result

    def may_help(self, exc: Transient) -> bool:
        """Whether to try again after a failure."""
        self._failures[exc.cause] += 1
        if self._failures[exc.cause] > self._most * PATIENCE[exc.cause]:
            return False
        return not self._is_vain(exc) and self._may_retry()

    def _is_vain(self, exc: Transient) -> bool:
        if exc.cause == "connection" and not self._reached.answers:
            return True
        if exc.cause == "timeout" and self._failures["timeout"] > 1:
            return self._heard == self._reached.answers
        return exc.retry_after is not None and exc.retry_after > LONGEST_ASKED


class Retries:
    """When and how often to try again: `most` times for each cause, more for some (`PATIENCE`).

    A server that is silent costs a whole time-out with every try: it is tried once more, for one
    request in a storm may go astray, and further only while it answers others.
    """

    def __init__(
        self,
        most: int,
        *,
        reached: Reached | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        jitter: random.Random | None = None,
    ) -> None:
        self._most = most
        self._reached = reached or Reached()
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
        tries = _Tries(self._most, self._reached, may_retry)
        while True:
            try:
                return await tries.make(call)
            except Transient as exc:
                if not tries.may_help(exc):
                    raise ModelUnavailable(f"{exc}{_ending(exc, tries.made)}") from exc
                wait = self._wait(exc, tries.made)
                tell(str(exc), tries.made, wait)
            await self._sleep(wait)

    def _wait(self, exc: Transient, made: int) -> float:
        """Return the wait: what the server asks for, else doubling; jitter spreads a storm."""
        asked = exc.retry_after
        if asked is not None:
            return asked + self._jitter.uniform(0, 0.1) * max(asked, FIRST_WAIT)
        longest = min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** min(made - 1, 30))
        return self._jitter.uniform(longest / 2, longest)


def _ending(exc: Transient, made: int) -> str:
    """Return what a last failure's message ends with."""
    wait = exc.retry_after or 0.0
    if wait > LONGEST_ASKED:
        span = f"{wait / 60:.0f} minutes" if wait < 7200 else f"{wait / 3600:.0f} hours"
        return f" (it asks to wait {span}: try again then)"
    return f" (tried {made} times)" if made > 1 else ""


class Retrying:
    """The layer that sends again what failed in a way that may pass, and tells of it."""

    def __init__(self, inner: Sender, retries: Retries, listener: Listener | None = None) -> None:
        self._inner = inner
        self._retries = retries
        self._listener = listener

    async def send(self, exchange: Exchange) -> ChatReply:
        """Send until it succeeds or retrying no longer helps.

        Raises:
            ModelUnavailable: no reply; the text is that of the last failure.
        """
        return await self._retries.run(
            lambda: self._inner.send(exchange),
            may_retry=exchange.gate.may_retry if exchange.gate else lambda: True,
            tell=lambda reason, tried, wait: self._tell(exchange, reason, tried, wait),
        )

    def _tell(self, exchange: Exchange, reason: str, tried: int, wait: float) -> None:
        listener = self._listener or exchange.listener
        if listener is None:
            return
        data = {
            "what": "retry",
            "message": f"{reason}; trying again in {wait:.1f} s",
            "stage": exchange.request.stage,
            "segment": exchange.request.segment_id,
            "reason": reason,
            "attempt": tried,
            "wait": round(wait, 3),
        }
        listener(Event("warning", data))


__all__ = ["Reached", "Retries", "Retrying"]
