"""Counts a run's calls: one record for each, sums by stage, caps, and a budget of retries (S08)."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Literal

from qrmem.errors import QrmemError, UsageError
from qrmem.models.caps import Amount, Caps, Price, Purse
from qrmem.models.exchange import Exchange, send
from qrmem.models.outcomes import outcome_of
from qrmem.ports import CallRecord, ChatModel, ChatReply, ChatRequest, Event, Listener, Tokenizer
from qrmem.records import StageUsage, Usage

Phase = Literal["construction", "online"]

MESSAGE_TOKENS = 4
"""What a chat template adds to each message."""
REQUEST_TOKENS = 3
"""What it adds to a request."""
_FREE_RETRIES = 10


class Meter:
    """A chat model that counts what one run uses and stops it before a cap is exceeded.

    It is the outermost layer, and the gate that the innermost one asks before each request.
    """

    def __init__(
        self,
        chat: ChatModel,
        *,
        run: str,
        phase: Phase,
        tokenizer: Tokenizer,
        caps: Caps | None = None,
        price: Price | None = None,
        sink: Callable[[CallRecord], None] | None = None,
        listener: Listener | None = None,
    ) -> None:
        """Wrap a chat model for one run.

        Args:
            tokenizer: counts where the server does not, and before a request is sent.
            price: `None` leaves money uncounted.
            sink: takes each record as it is made.

        Raises:
            UsageError: money is capped and the price is not known.
        """
        caps = caps or Caps()
        if caps.cost is not None and price is None:
            raise UsageError(f"money cannot be capped: the price of {chat.name} is not known")
        self._chat = chat
        self._run = run
        self._phase: Phase = phase
        self._tokenizer = tokenizer
        self._price = price
        self._sink = sink
        self._listener = listener
        self._purse = Purse(caps)
        self._records: list[CallRecord] = []
        self._retries = 0
        self._successes = 0

    @property
    def name(self) -> str:
        """Name of the model behind it."""
        return self._chat.name

    @property
    def records(self) -> tuple[CallRecord, ...]:
        """All records of the run, in the order in which the calls ended."""
        return tuple(self._records)

    @property
    def used(self) -> Amount:
        """Requests, tokens and money as the caps count them."""
        return self._purse.used

    def usage(self) -> Usage:
        """Return the sums by stage; replies from the cache cost nothing."""
        return usage(self._records)

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Send one request and record it.

        Raises:
            CapReached: it might exceed a cap; nothing was sent.
        """
        return await self.send(Exchange(request))

    async def send(self, exchange: Exchange) -> ChatReply:
        """Send an exchange onward with this meter as its gate."""
        exchange.gate, exchange.listener = self, self._listener
        began = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(self._purse.seconds_left()) as bound:
                reply = await send(self._chat, exchange)
        except (QrmemError, TimeoutError) as exc:
            error = exc
            if isinstance(exc, TimeoutError) and bound.expired():
                error = self._purse.stop("the cap on seconds is reached")
            seconds = asyncio.get_running_loop().time() - began
            self._record(exchange, None, type(error).__name__, seconds)
            if error is exc:
                raise
            raise error from exc
        outcome = "cached" if reply.from_cache else outcome_of(reply, exchange.request)
        self._record(exchange, reply, outcome, asyncio.get_running_loop().time() - began)
        return reply

    # --- the gate --------------------------------------------------------------------------------

    async def admit(self, request: ChatRequest) -> int:
        """Reserve prompt and `max_tokens`."""
        tokens = self.prompt_tokens(request) + request.max_tokens
        await self._purse.reserve(self._reservation(request, tokens))
        return tokens

    def settle(
        self, request: ChatRequest, reserved: int, reply: ChatReply | None, *, is_certain: bool
    ) -> None:
        """Replace a reservation by what was used; a request of unknown fate keeps all of it."""
        amount = self._reservation(request, reserved)
        if reply is not None:
            counted = self._counted(reply, request)
            used = Amount(1, counted.tokens_in + counted.tokens_out, self._cost(counted) or 0.0)
            self._successes += 1
            if used.tokens > reserved and self._listener:
                message = f"{used.tokens} tokens were used where at most {reserved} were expected"
                data = {"what": "excess", "tokens": used.tokens, "reserved": reserved}
                self._listener(Event("warning", {"message": message, **data}))
        else:
            used = Amount(1) if is_certain else amount
        self._purse.settle(amount, used)

    def may_retry(self) -> bool:
        """Whether retries stay within ten and one for each reply that came."""
        self._retries += 1
        return self._retries <= _FREE_RETRIES + self._successes

    # --- counting --------------------------------------------------------------------------------

    def prompt_tokens(self, request: ChatRequest) -> int:
        """Return what a request's prompt may take, its schema included."""
        count = self._tokenizer.count
        tokens = sum(count(m.content) + MESSAGE_TOKENS for m in request.messages) + REQUEST_TOKENS
        if request.schema is not None:
            tokens += count(str(request.schema))
        return tokens

    def _reservation(self, request: ChatRequest, tokens: int) -> Amount:
        if self._price is None:
            return Amount(1, tokens)
        prompt = max(0, tokens - request.max_tokens)
        return Amount(1, tokens, self._price.of(prompt, tokens - prompt))

    def _counted(self, reply: ChatReply, request: ChatRequest) -> ChatReply:
        """Return the reply with our own counts where the server gave none."""
        if reply.tokens_in or reply.tokens_out:
            return reply
        return replace(
            reply,
            tokens_in=sum(self._tokenizer.count(m.content) for m in request.messages),
            tokens_out=self._tokenizer.count(reply.text),
        )

    def _cost(self, reply: ChatReply) -> float | None:
        if self._price is None:
            return None
        return self._price.of(reply.tokens_in, reply.tokens_out, reply.cached_tokens)

    def _record(
        self, exchange: Exchange, reply: ChatReply | None, outcome: str, seconds: float
    ) -> None:
        request = exchange.request
        counted = self._counted(reply, request) if reply else ChatReply("")
        cost = 0.0 if outcome == "cached" and self._price else self._cost(counted)
        record = CallRecord(
            run=self._run,
            stage=request.stage,
            phase=self._phase,
            prompt=request.prompt,
            model=self._chat.name,
            segment_id=request.segment_id,
            tokens_in=counted.tokens_in,
            tokens_out=counted.tokens_out,
            cached_tokens=counted.cached_tokens,
            cost=cost,
            seconds=round(seconds, 6),
            attempts=exchange.sent,
            outcome=outcome,
            created=datetime.now(UTC).isoformat(timespec="milliseconds"),
        )
        self._records.append(record)
        if self._sink:
            self._sink(record)
        if self._listener:
            self._listener(Event("call", _shown(record)))


def usage(records: Iterable[CallRecord], *, with_cached: bool = False) -> Usage:
    """Sum records up by stage, construction and online apart.

    Args:
        with_cached: count replies from the cache as if they had been paid for.
    """
    sums: dict[Phase, dict[str, StageUsage]] = {"construction": {}, "online": {}}
    for record in records:
        if record.outcome == "cached" and not with_cached:
            continue
        stages = sums[record.phase]
        stages[record.stage] = _added(stages.get(record.stage, StageUsage()), record)
    return Usage(construction=sums["construction"], online=sums["online"])


def _added(so_far: StageUsage, record: CallRecord) -> StageUsage:
    cost = so_far.cost
    if record.cost is not None:
        cost = (cost or 0.0) + record.cost
    return StageUsage(
        calls=so_far.calls + 1,
        tokens_in=so_far.tokens_in + record.tokens_in,
        tokens_out=so_far.tokens_out + record.tokens_out,
        cached_tokens=so_far.cached_tokens + record.cached_tokens,
        cost=cost,
        seconds=so_far.seconds + record.seconds,
    )


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


__all__ = ["Meter", "Phase", "usage"]
