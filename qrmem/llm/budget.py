"""The budget of a run: caps, reservations, prices, sums, a record of every call."""

import asyncio
import re
import time
import tomllib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.resources import files
from math import inf
from pathlib import Path
from typing import Any, TypeVar

from qrmem.config import Settings
from qrmem.errors import CapReached, QrmemError, UsageError
from qrmem.llm.servers import Transient
from qrmem.llm.totals import Phase, Totals
from qrmem.text.decoding import open_file
from qrmem.text.numbers import counted
from qrmem.types import CallRecord, Event, Listener, Usage

UNSEEN = 200_000
"""Tokens that a server may report beyond the bytes of a text, for its template and reasoning."""
T = TypeVar("T")
_DATED = re.compile(r"-(20\d\d-?\d\d-?\d\d|latest)$")


@dataclass(frozen=True, slots=True)
class Price:
    """Prices per million tokens, in one currency.

    Attributes:
        input: price of prompt tokens.
        output: price of reply tokens.
        cached: price of prompt tokens that the server had cached; `None` uses `input`.
    """

    input: float
    output: float
    cached: float | None = None

    def of(self, tokens_in: int, tokens_out: int, cached_tokens: int = 0) -> float:
        """Return the cost of a call."""
        cached_price = self.input if self.cached is None else self.cached
        cached_tokens = min(cached_tokens, tokens_in)
        fresh = tokens_in - cached_tokens
        money = fresh * self.input + cached_tokens * cached_price + tokens_out * self.output
        return money / 1_000_000


PriceOf = Callable[[str], Price | None]
"""Returns the price of a model by its name; `None` if it is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caps:
    """Upper bounds of one run; `None` sets no bound.

    Attributes:
        calls: number of requests to the server, with failed ones.
        tokens: number of prompt and reply tokens.
        cost: money, in the currency of the prices.
        seconds: wall time in seconds.
    """

    calls: int | None = None
    tokens: int | None = None
    cost: float | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Amount:
    """An amount of calls, tokens and money, reserved or used."""

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


NOTHING = Amount()


@dataclass(slots=True)
class Reservation:
    """The amount that a request used; until it is known, the amount that was reserved."""

    amount: Amount


class Budget:
    """One run's budget, for all models that it uses.

    Attributes:
        listener: gets an event for each call and each warning.
        phase: the current phase of the run.
        used: amount that the finished requests used.
    """

    def __init__(
        self,
        *,
        run: str = "",
        phase: Phase = "online",
        caps: Caps | None = None,
        price_of: PriceOf = lambda model: None,
        sink: Callable[[CallRecord], None] | None = None,
        listener: Listener | None = None,
        within: "Budget | None" = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Open a budget.

        Args:
            price_of: returns a model's price; calls without a price cost nothing.
            sink: takes each record that is not in a store yet.
            within: budget of an outer run, whose caps apply, too.
        """
        self.listener = listener
        self._caps = caps or Caps()
        self._run = run
        self.phase: Phase = phase
        self._price_of = price_of
        self._sink = sink
        self._within = within
        self._totals = Totals()
        self._clock = clock
        self._began = clock()
        self.used = Amount()
        self._reserved = Amount()
        self._settled = asyncio.Event()
        self._reached = ""
        self._has_doubted = False

    # --- caps -----------------------------------------------------------------------------------

    def seconds_left(self) -> float | None:
        """Return the remaining time in seconds, or `None` if time is not capped."""
        left = [] if self._within is None else [self._within.seconds_left()]
        if self._caps.seconds is not None:
            left.append(max(0.0, self._caps.seconds - (self._clock() - self._began)))
        return min((seconds for seconds in left if seconds is not None), default=None)

    @asynccontextmanager
    async def spending(
        self, most: Amount, spent: Reservation | None = None
    ) -> AsyncIterator[Reservation]:
        """Reserve the most that a request may use; afterwards replace it by its actual use.

        If the outcome of a request is unknown, the full reservation counts. It waits as long as
        reservations of running requests are all that blocks it.

        Raises:
            CapReached: too little is left, now and for every later request; nothing is sent.
        """
        spent = spent or Reservation(most)
        await self._reserve(most)
        try:
            if self._within is None:
                yield spent
            else:
                async with self._within.spending(most, spent):
                    yield spent
        except CapReached:
            spent.amount = NOTHING  # the outer budget refused: nothing was sent
            raise
        except QrmemError as exc:
            spent.amount = Amount(1) if not isinstance(exc, Transient) or exc.is_free else most
            raise
        finally:
            self._reserved = self._reserved.plus(most, -1)
            self.used = self.used.plus(spent.amount)
            self._settled.set()

    async def _reserve(self, amount: Amount) -> None:
        while True:
            self.check(amount)
            if not self._exceeded(self.used.plus(self._reserved).plus(amount)):
                self._reserved = self._reserved.plus(amount)
                return
            self._settled.clear()
            await self._settled.wait()

    def check(self, amount: Amount = NOTHING) -> None:
        """Check that an amount is within the caps; work may cost only time.

        Raises:
            CapReached: the time is up, or a cap is reached now or was reached before.
        """
        if self._within is not None:
            self._within.check(amount)
        self._reached = self._reached or self._exceeded(self.used.plus(amount))
        if self._reached:
            raise CapReached(self._reached)

    @asynccontextmanager
    async def in_time(self) -> AsyncIterator[None]:
        """Cancel the work in this context when the time is up.

        Raises:
            CapReached: the time is up; nothing more can be reserved.
        """
        try:
            async with asyncio.timeout(self.seconds_left()) as bound:
                yield
        except TimeoutError as exc:
            if not bound.expired():
                raise
            self._reached = self._reached or "the cap on seconds is reached"
            self._settled.set()
            raise CapReached(self._reached) from exc

    def _exceeded(self, total: Amount) -> str:
        caps = self._caps
        if caps.calls is not None and total.calls > caps.calls:
            return f"the cap of {counted(caps.calls, 'calls')} is reached"
        if caps.tokens is not None and total.tokens > caps.tokens:
            return f"the cap of {counted(caps.tokens, 'tokens')} is reached"
        if caps.cost is not None and total.cost > caps.cost + 1e-12:
            return f"the cap of {caps.cost:g} in money is reached"
        if caps.seconds is not None and self._clock() - self._began >= caps.seconds:
            return f"the cap of {caps.seconds:g} seconds is reached"
        return ""

    # --- money ----------------------------------------------------------------------------------

    def require_prices(self, models: Sequence[str]) -> None:
        """Check that all prices are known if money is capped.

        Raises:
            UsageError: money is capped and the price of a model is unknown.
        """
        if self._within is not None:
            self._within.require_prices(models)
        for model in models:
            if self._caps.cost is not None and self._price_of(model) is None:
                raise UsageError(
                    f"max_cost needs the price of {model}: add it to a price file"
                    " (--prices FILE, or the setting `prices`)"
                )

    def cost(
        self, model: str, tokens_in: int, tokens_out: int, cached_tokens: int = 0
    ) -> float | None:
        """Return the cost of a call, or `None` if the price is unknown."""
        price = self._price_of(model)
        return price.of(tokens_in, tokens_out, cached_tokens) if price else None

    def amount(self, model: str, tokens_in: int, tokens_out: int) -> Amount:
        """Return the amount of one request."""
        money = self.cost(model, tokens_in, tokens_out) or 0.0
        return Amount(1, tokens_in + tokens_out, money)

    def tokens(self, reported: int, texts: Sequence[str], count: Callable[[str], int]) -> int:
        """Return a server's token count of some texts, or our own count if it is implausible.

        It is implausible if it is 0, or above the number of bytes plus `UNSEEN`; the latter gives
        one warning.
        """
        most = UNSEEN + sum(len(text.encode("utf-8", "replace")) for text in texts)
        if 0 < reported <= most:
            return reported
        if reported > most and not self._has_doubted:
            self._has_doubted = True
            message = f"a server reports {reported:,} tokens; at most {most:,} are possible"
            self.warn(f"{message}: qrmem counts such replies itself", what="usage", tokens=reported)
        return sum(map(count, texts))

    # --- records --------------------------------------------------------------------------------

    def usage(self) -> Usage:
        """Return the sums by stage; replies from the cache cost nothing."""
        return self._totals.usage

    def count(
        self, *, seconds: float, said: Mapping[str, Any] | None = None, **fields: Any
    ) -> CallRecord:
        """Count one call and return its record, which the caller must still write.

        Args:
            said: further data for the event of the call.
            fields: the fields of `CallRecord`.
        """
        record = CallRecord(
            run=self._run,
            phase=self.phase,
            seconds=round(seconds, 6),
            created=datetime.now(UTC).isoformat(timespec="milliseconds"),
            **fields,
        )
        self._totals.add(record)
        if self.listener:
            values_shown = {name: getattr(record, name) for name in _SHOWN}
            self.listener(
                Event("call", {**values_shown, "segment": record.segment_id, **(said or {})})
            )
        return record

    async def request(
        self,
        stage: str,
        model: str,
        texts: Sequence[str],
        count: Callable[[str], int],
        send: Callable[[], Awaitable[tuple[T, int]]],
    ) -> T:
        """Reserve the most that a request of texts may use, send it, and record its actual use.

        Args:
            texts: the texts that are sent, to an embedder or a reranker.
            count: counts the tokens of a text.
            send: sends them; it returns the result and the server's token count, 0 if it reports
                none.
        """
        began, tokens = time.monotonic(), sum(map(count, texts))
        outcome, counted = "", 0
        try:
            most = self.amount(model, tokens, 0)
            async with self.in_time(), self.spending(most) as use:
                outcome = "cancelled"
                result, tokens_reported = await send()
                counted = self.tokens(tokens_reported, texts, count)
                use.amount = self.amount(model, counted, 0)
                outcome = "ok"
                return result
        except QrmemError as exc:
            outcome = outcome and type(exc).__name__
            raise
        finally:
            if outcome:  # else a cap prevented it, so that there was no call
                record = self.count(
                    stage=stage,
                    prompt="",
                    model=model,
                    tokens_in=counted,
                    cost=self.cost(model, counted, 0),
                    seconds=time.monotonic() - began,
                    outcome=outcome,
                )
                self.write([record])

    def write(self, records: Iterable[CallRecord]) -> None:
        """Pass records to the function that stores them."""
        if self._sink:
            for record in records:
                self._sink(record)

    def warn(self, message: str, **data: Any) -> None:
        """Send a warning to the listener."""
        if self.listener:
            self.listener(Event("warning", {"message": message, **data}))


_SHOWN = (
    "stage",
    "prompt",
    "model",
    "tokens_in",
    "tokens_out",
    "cost",
    "seconds",
    "attempts",
    "outcome",
)
"""Fields of a call's event."""


# --- prices ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices by model name.

    Attributes:
        date: date of the newest price file; shown with every sum.
    """

    date: str
    models: Mapping[str, Price]

    def of(self, model: str) -> Price | None:
        """Return a model's price, or `None` if it is unknown; a date in the name is ignored.

        The price of `provider/name` comes from LiteLLM's list, if LiteLLM is installed.
        """
        price = self.models.get(model) or self.models.get(_DATED.sub("", model))
        if price is not None or "/" not in model:
            return price
        from qrmem.llm.client import listed_price

        litellm_price = listed_price(model)
        return Price(*litellm_price) if litellm_price else None


def load_prices(file: Path | None = None) -> Prices:
    """Return the package's prices; prices of a file override them.

    Raises:
        UsageError: the file cannot be read or is not a price file.
    """
    shipped = (files("qrmem.llm") / "prices.toml").read_text(encoding="utf-8")
    shipped_prices = _read(shipped, "the package's prices")
    if file is None:
        return shipped_prices
    try:
        with open_file(file) as opened:
            text = opened.read().decode("utf-8-sig")
    except OSError as exc:
        raise UsageError(f"the prices in {file} cannot be read: {exc.strerror or exc}") from exc
    except UnicodeDecodeError as exc:
        raise UsageError(f"the prices in {file} are not UTF-8: byte {exc.start}") from exc
    own_prices = _read(text, str(file))
    return Prices(
        own_prices.date or shipped_prices.date, {**shipped_prices.models, **own_prices.models}
    )


def prices_of(settings: Settings) -> Prices:
    """Return the prices by the settings."""
    return load_prices(Path(settings.prices) if settings.prices else None)


def _read(text: str, source: str) -> Prices:
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as exc:
        raise UsageError(f"{source} is not TOML: {exc}") from exc
    try:
        models = {name: _price(values) for name, values in table.get("models", {}).items()}
    except (AttributeError, KeyError, TypeError, ValueError) as exc:
        raise UsageError(f"{source}: each model needs input and output, as numbers: {exc}") from exc
    return Prices(str(table.get("date", "")), models)


def _price(values: Mapping[str, Any]) -> Price:
    if unknown := values.keys() - {"input", "output", "cached"}:
        raise ValueError(f"there is no {sorted(unknown)[0]!r}")
    cached = values.get("cached")
    return Price(
        input=_money(values["input"]),
        output=_money(values["output"]),
        cached=None if cached is None else _money(cached),
    )


def _money(value: Any) -> float:
    """Return a valid price, else None; NaN would never exceed a cap."""
    money = float(value)
    if isinstance(value, bool) or not 0 <= money < inf:
        raise ValueError(f"a price cannot be {value}")
    return money
