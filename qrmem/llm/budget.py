"""What one run may use and has used: caps, reservations, prices, sums, a record of every call."""

import asyncio
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypedDict

from qrmem.errors import CapReached, UsageError
from qrmem.llm.usage import Phase, Totals
from qrmem.types import CallRecord, Event, Listener, Usage


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


PriceOf = Callable[[str], Price | None]
"""Takes a model's name; `None` where its price is not known."""


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


class Budget:
    """One run's budget, for all models that it uses."""

    def __init__(
        self,
        *,
        run: str = "",
        phase: Phase = "online",
        caps: Caps | None = None,
        price_of: PriceOf = lambda model: None,
        sink: Callable[[CallRecord], None] | None = None,
        listener: Listener | None = None,
        keeps_records: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Open a budget.

        Args:
            price_of: money of an unknown model is not counted.
            sink: takes each record that is not in a store yet.
            listener: hears of each call.
            keeps_records: `False` where a run may be long, and `sink` takes care of them.
        """
        self.listener = listener
        self._caps = caps or Caps()
        self._run = run
        self._phase: Phase = phase
        self._price_of = price_of
        self._sink = sink
        self._keeps_records = keeps_records
        self._records: list[CallRecord] = []
        self._totals = Totals()
        self._clock = clock
        self._began = clock()
        self._used = Amount()
        self._reserved = Amount()
        self._settled = asyncio.Event()
        self._reached = ""

    # --- caps -----------------------------------------------------------------------------------

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
            self._reached = self._reached or self._exceeded(self._used.plus(amount))
            if self._reached:
                raise CapReached(self._reached)
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
        """Stop work that costs nothing but time.

        Raises:
            CapReached: the time is up, or a cap was reached before.
        """
        self._reached = self._reached or self._exceeded(self._used)
        if self._reached:
            raise CapReached(self._reached)

    def stop(self, reason: str) -> CapReached:
        """Let nothing more be reserved, and return the error to raise."""
        self._reached = self._reached or reason
        self._settled.set()
        return CapReached(self._reached)

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

    # --- money ----------------------------------------------------------------------------------

    def require_prices(self, models: Iterable[str]) -> None:
        """Refuse to cap money that cannot be counted.

        Raises:
            UsageError: money is capped and the price of a model is not known.
        """
        for model in models:
            if self._caps.cost is not None and self._price_of(model) is None:
                raise UsageError(
                    f"money cannot be capped: the price of {model} is not known; name it in a file "
                    "of your own (setting `prices`)"
                )

    def cost(
        self, model: str, tokens_in: int, tokens_out: int, cached_tokens: int = 0
    ) -> float | None:
        """Return what a call costs, or `None` where the price is not known."""
        price = self._price_of(model)
        return price.of(tokens_in, tokens_out, cached_tokens) if price else None

    def amount(self, model: str, tokens_in: int, tokens_out: int) -> Amount:
        """Return one request as the caps count it."""
        money = self.cost(model, tokens_in, tokens_out) or 0.0
        return Amount(1, tokens_in + tokens_out, money)

    # --- records --------------------------------------------------------------------------------

    @property
    def records(self) -> tuple[CallRecord, ...]:
        """All records, in the order in which the calls ended; none where they are not kept."""
        return tuple(self._records)

    def usage(self) -> Usage:
        """Return the sums by stage; replies from the cache cost nothing."""
        return self._totals.usage

    def count(self, *, seconds: float, **fields: Any) -> CallRecord:
        """Count one call and return its record, which is still to be written.

        Args:
            fields: those of `CallRecord`.
        """
        record = CallRecord(
            run=self._run,
            phase=self._phase,
            seconds=round(seconds, 6),
            created=datetime.now(UTC).isoformat(timespec="milliseconds"),
            **fields,
        )
        self._totals.add(record)
        if self._keeps_records:
            self._records.append(record)
        if self.listener:
            self.listener(Event("call", _shown(record)))
        return record

    def write(self, records: Iterable[CallRecord]) -> None:
        """Hand records to whoever takes care of them."""
        if self._sink:
            for record in records:
                self._sink(record)

    def warn(self, message: str, **data: Any) -> None:
        """Tell the listener of something that a user should know."""
        if self.listener:
            self.listener(Event("warning", {"message": message, **data}))


def _shown(record: CallRecord) -> dict[str, str | int | float | None]:
    return {
        "stage": record.stage,
        "prompt": record.prompt,
        "model": record.model,
        "segment": record.segment_id,
        "tokens_in": record.tokens_in,
        "tokens_out": record.tokens_out,
        "cost": record.cost,
        "seconds": record.seconds,
        "attempts": record.attempts,
        "outcome": record.outcome,
    }


__all__ = ["Amount", "Budget", "CapOptions", "Caps", "Phase", "Price", "PriceOf"]
