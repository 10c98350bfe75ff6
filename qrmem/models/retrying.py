"""Transport retries: back-off with jitter, Retry-After honoured, the last error's text kept."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception

from qrmem.errors import ModelUnavailable
from qrmem.models.exchange import Exchange, Sender, Transient
from qrmem.ports import ChatReply, Event, Listener

FIRST_WAIT = 0.5
LONGEST_WAIT = 30.0
LONGEST_ASKED = 120.0
"""A server that asks for a longer wait is given up: a user should hear of it at once."""


@dataclass(slots=True)
class Reached:
    """Whether a server has ever answered; while it has not, trying again helps nobody."""

    yet: bool = False


class Retrying:
    """Sends again what failed in a way that may pass."""

    def __init__(
        self,
        inner: Sender,
        *,
        retries: int,
        listener: Listener | None = None,
        reached: Reached | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        jitter: random.Random | None = None,
    ) -> None:
        self._inner = inner
        self._retries = retries
        self._listener = listener
        self._reached = reached or Reached()
        self._sleep = sleep
        self._jitter = jitter or random.Random()

    async def send(self, exchange: Exchange) -> ChatReply:
        """Send, and again after a wait while that may help.

        Raises:
            ModelUnavailable: it did not help; the text is that of the last failure.
        """
        before = exchange.sent

        async def attempt() -> ChatReply:
            try:
                reply = await self._inner.send(exchange)
            except Transient as exc:
                self._reached.yet |= exc.cause != "connection"
                raise
            self._reached.yet = True
            return reply

        policy = AsyncRetrying(
            retry=retry_if_exception(lambda exc: self._may_help(exchange, exc)),
            stop=lambda state: state.attempt_number > self._retries,
            wait=self._wait,
            sleep=self._sleep,
            before_sleep=lambda state: self._tell(exchange, state),
            reraise=True,
        )
        try:
            return await policy(attempt)
        except Transient as exc:
            times = exchange.sent - before
            tried = f" (tried {times} times)" if times > 1 else ""
            raise ModelUnavailable(f"{exc}{tried}") from exc

    def _may_help(self, exchange: Exchange, exc: BaseException) -> bool:
        if not isinstance(exc, Transient):
            return False
        if exc.cause == "connection" and not self._reached.yet:
            return False
        if exc.retry_after is not None and exc.retry_after > LONGEST_ASKED:
            return False
        return exchange.gate is None or exchange.gate.may_retry()

    def _wait(self, state: RetryCallState) -> float:
        """Return the wait: what the server asks for, else doubling; jitter spreads a storm."""
        exc = state.outcome.exception() if state.outcome else None
        asked = exc.retry_after if isinstance(exc, Transient) else None
        if asked is not None:
            return asked + self._jitter.uniform(0, 0.1) * max(asked, FIRST_WAIT)
        longest = min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** (state.attempt_number - 1))
        return self._jitter.uniform(longest / 2, longest)

    def _tell(self, exchange: Exchange, state: RetryCallState) -> None:
        if self._listener is None or state.outcome is None:
            return
        data = {
            "what": "retry",
            "stage": exchange.request.stage,
            "segment": exchange.request.segment_id,
            "reason": str(state.outcome.exception()),
            "attempt": state.attempt_number,
            "wait": round(state.upcoming_sleep, 3),
        }
        self._listener(Event("warning", data))


__all__ = ["Reached", "Retrying"]
