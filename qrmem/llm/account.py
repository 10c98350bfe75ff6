"""One run's account: what it may use, what it has used, and a record of every call (S08)."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

from qrmem.errors import UsageError
from qrmem.llm.caps import Amount, Caps, Price, Purse
from qrmem.llm.sums import Phase, Sums, usage
from qrmem.types import CallRecord, Event, Listener, Usage

PriceOf = Callable[[str], Price | None]
"""Takes a model's name; `None` where its price is not known."""


class Account:
    """Records the calls of one run, and holds its caps for all models that it uses.

    Attributes:
        purse: what is used and reserved.
    """

    def __init__(
        self,
        *,
        run: str,
        phase: Phase,
        caps: Caps | None = None,
        price_of: PriceOf = lambda model: None,
        sink: Callable[[CallRecord], None] | None = None,
        listener: Listener | None = None,
        keeps_records: bool = True,
    ) -> None:
        """Open an account.

        Args:
            price_of: money of an unknown model is not counted.
            sink: takes each record that is not in a store yet.
            listener: hears of each call.
            keeps_records: `False` where a run may be long, and `sink` takes care of them.
        """
        self.purse = Purse(caps or Caps())
        self._caps = caps or Caps()
        self._run = run
        self._phase: Phase = phase
        self._price_of = price_of
        self._sink = sink
        self._listener = listener
        self._keeps_records = keeps_records
        self._records: list[CallRecord] = []
        self._sums = Sums()

    @property
    def records(self) -> tuple[CallRecord, ...]:
        """All records, in the order in which the calls ended; none where they are not kept."""
        return tuple(self._records)

    @property
    def listener(self) -> Listener | None:
        """Who hears of the run."""
        return self._listener

    def usage(self) -> Usage:
        """Return the sums by stage; replies from the cache cost nothing."""
        return self._sums.usage

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

    def check(self) -> None:
        """Stop work that costs nothing but time.

        Raises:
            CapReached: the time is up, or another cap was reached before.
        """
        self.purse.check()

    def record(self, *, cost: float | None, seconds: float, **fields: Any) -> None:
        """Count one call and hand its record over; `fields` are those of `CallRecord`."""
        self.write([self.count(cost=cost, seconds=seconds, **fields)])

    def count(self, *, cost: float | None, seconds: float, **fields: Any) -> CallRecord:
        """Count one call and return its record, which is still to be written."""
        record = CallRecord(
            run=self._run,
            phase=self._phase,
            cost=cost,
            seconds=round(seconds, 6),
            created=datetime.now(UTC).isoformat(timespec="milliseconds"),
            **fields,
        )
        self._sums.add(record)
        if self._keeps_records:
            self._records.append(record)
        if self._listener:
            self._listener(Event("call", _shown(record)))
        return record

    def write(self, records: Iterable[CallRecord]) -> None:
        """Hand records to whoever takes care of them."""
        if self._sink:
            for record in records:
                self._sink(record)

    def warn(self, message: str, **data: Any) -> None:
        """Tell the listener of something that a user should know."""
        if self._listener:
            self._listener(Event("warning", {"message": message, **data}))


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


__all__ = ["Account", "Phase", "PriceOf", "usage"]
