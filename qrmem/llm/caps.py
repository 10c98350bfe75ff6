"""Caps on a run: what a request may cost is reserved before it is sent."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypedDict

from qrmem.errors import CapReached


@dataclass(frozen=True, slots=True)
class Price:
    """Money for a million tokens, in one currency.

    Attributes:
        cached: for prompt tokens that the server had cached; `None` counts them as `input`.
    """

    input: float
    output: float
    cached: float | None = None

    def of(self, tokens_in: int, tokens_out: int, cached_tokens: int = 0) -> float:
        """Return what a call costs."""
        cached_price = self.input if self.cached is None else self.cached
        cached_tokens = min(cached_tokens, tokens_in)
        fresh = tokens_in - cached_tokens
        money = fresh * self.input + cached_tokens * cached_price + tokens_out * self.output
        return money / 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Caps:
    """Upper bounds of one run; `None` is no bound.

    Attributes:
        calls: requests sent to the server, those that failed included.
        tokens: prompt and reply tokens.
        cost: money, in the currency of the prices.
        seconds: wall time.
    """

    calls: int | None = None
    tokens: int | None = None
    cost: float | None = None
    seconds: float | None = None


class CapOptions(TypedDict, total=False):
    """The same as arguments of a run; they are named like the settings that they beat."""

    max_calls: int | None
    max_tokens: int | None
    max_cost: float | None
    max_seconds: float | None


@dataclass(frozen=True, slots=True)
class Amount:
    """What was reserved or used."""

    calls: int = 0
    tokens: int = 0
    cost: float = 0.0

    def plus(self, other: "Amount", sign: int = 1) -> "Amount":
        """Return the sum, or the difference for `sign` -1."""
        return Amount(
            self.calls + sign * other.calls,
            self.tokens + sign * other.tokens,
            self.cost + sign * other.cost,
        )


class Purse:
    """Keeps what a run has used and what its requests in flight may still use."""

    def __init__(self, caps: Caps, clock: Callable[[], float] = time.monotonic) -> None:
        self._caps = caps
        self._clock = clock
        self._began = clock()
        self._used = Amount()
        self._reserved = Amount()
        self._settled = asyncio.Event()
        self._reached: CapReached | None = None

    @property
    def used(self) -> Amount:
        """What the finished requests used."""
        return self._used

    def seconds_left(self) -> float | None:
        """Return the time left, or `None` where time is not capped."""
        if self._caps.seconds is None:
            return None
        return max(0.0, self._caps.seconds - (self._clock() - self._began))

    async def reserve(self, amount: Amount) -> None:
        """Set an amount aside; wait while only requests in flight stand in the way.

        Raises:
            CapReached: there is not enough left, now and for every later request.
        """
        while True:
            if self._reached:
                raise CapReached(str(self._reached))
            if reason := self._exceeded(self._used.plus(amount)):
                self._reached = CapReached(reason)
                continue
            if not self._exceeded(self._used.plus(self._reserved).plus(amount)):
                self._reserved = self._reserved.plus(amount)
                return
            self._settled.clear()
            await self._settled.wait()

    def settle(self, reserved: Amount, used: Amount) -> None:
        """Replace a reservation by what was used."""
        self._reserved = self._reserved.plus(reserved, -1)
        self._used = self._used.plus(used)
        self._settled.set()

    def check(self) -> None:
        """Raise where nothing more may be done at all.

        Raises:
            CapReached: the time is up, or a cap was reached before.
        """
        if self._reached is None and (reason := self._exceeded(self._used)):
            self._reached = CapReached(reason)
        if self._reached:
            raise CapReached(str(self._reached))

    def stop(self, reason: str) -> CapReached:
        """Close the purse for good and return the error to raise."""
        self._reached = self._reached or CapReached(reason)
        self._settled.set()
        return CapReached(str(self._reached))

    def _exceeded(self, total: Amount) -> str:
        caps = self._caps
        if caps.calls is not None and total.calls > caps.calls:
            return f"the cap of {caps.calls} calls is reached"
        if caps.tokens is not None and total.tokens > caps.tokens:
            return f"the cap of {caps.tokens} tokens is reached"
        if caps.cost is not None and total.cost > caps.cost + 1e-12:
            return f"the cap of {caps.cost:g} in money is reached"
        if self.seconds_left() == 0.0:
            return f"the cap of {caps.seconds:g} seconds is reached"
        return ""


__all__ = ["Amount", "CapOptions", "Caps", "Price", "Purse"]
