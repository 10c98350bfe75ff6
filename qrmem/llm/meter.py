"""Counts a run's calls: one record for each, sums by stage, caps, and a budget of retries (S08)."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

from qrmem.errors import QrmemError
from qrmem.llm.account import Account, Phase, PriceOf, usage
from qrmem.llm.caps import Amount, Caps, Price
from qrmem.llm.exchange import Exchange, send
from qrmem.llm.outcomes import outcome_of
from qrmem.llm.staged import model_for, models_of
from qrmem.llm.trust import Trust
from qrmem.types import CallRecord, ChatModel, ChatReply, ChatRequest, Listener, Tokenizer, Usage

MESSAGE_TOKENS = 4
"""What a chat template adds to each message."""
REQUEST_TOKENS = 3
"""What it adds to a request."""
_FREE_RETRIES = 10


class Meter:
    """A chat model that counts what one run uses and stops it before a cap is exceeded.

    It is the outermost layer, and the gate that the innermost one asks before each request.

    Attributes:
        account: of the run; others that cost something may share it.
        trust: stops a build whose model gives nothing that can be read; a question is short.
    """

    def __init__(
        self,
        chat: ChatModel,
        *,
        run: str,
        phase: Phase,
        tokenizer: Tokenizer,
        caps: Caps | None = None,
        price: Price | PriceOf | None = None,
        sink: Callable[[CallRecord], None] | None = None,
        listener: Listener | None = None,
        keeps_records: bool = True,
    ) -> None:
        """Wrap a chat model for one run.

        Args:
            tokenizer: counts where the server does not, and before a request is sent.
            price: of the model, or what knows the prices of all; `None` leaves money uncounted.
            sink: takes each record as it is made.
            keeps_records: see `Account`.

        Raises:
            UsageError: money is capped and the price is not known.
        """
        price_of: PriceOf = price if callable(price) else lambda model: price
        self._chat = chat
        self._tokenizer = tokenizer
        self._is_building = phase == "construction"
        self.account = Account(
            run=run,
            phase=phase,
            caps=caps,
            price_of=price_of,
            sink=sink,
            listener=listener,
            keeps_records=keeps_records,
        )
        self.account.require_prices(models_of(chat))
        self.trust = Trust()
        self._models: dict[str, str] = {}
        self._retries = 0
        self._successes = 0
        self._open = 0

    @property
    def name(self) -> str:
        """Name of the model behind it."""
        return self._chat.name

    @property
    def records(self) -> tuple[CallRecord, ...]:
        """All records of the run, in the order in which the calls ended."""
        return self.account.records

    @property
    def used(self) -> Amount:
        """Requests, tokens and money as the caps count them."""
        return self.account.purse.used

    def usage(self) -> Usage:
        """Return the sums by stage; replies from the cache cost nothing."""
        return self.account.usage()

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Send one request and record it.

        Raises:
            CapReached: it might exceed a cap; nothing was sent.
            ModelUnusable: a build has been given nothing but replies that cannot be read.
        """
        return await self.send(Exchange(request))

    async def send(self, exchange: Exchange) -> ChatReply:
        """Send an exchange onward with this meter as its gate."""
        if self._is_building:
            self.trust.check(self._model(exchange.request))
        exchange.gate, exchange.listener = self, self.account.listener
        exchange.began = asyncio.get_running_loop().time()
        self._open += 1
        try:
            async with asyncio.timeout(self.account.purse.seconds_left()) as bound:
                reply = await send(self._chat, exchange)
        except (QrmemError, TimeoutError) as exc:
            error = exc
            if isinstance(exc, TimeoutError) and bound.expired():
                error = self.account.purse.stop("the cap on seconds is reached")
            # Where nothing was sent a cap held it back: it is no call.
            if exchange.sent and not exchange.is_booked:
                self._count(exchange, ChatReply(""), type(error).__name__)
            if error is exc:
                raise
            raise error from exc
        else:
            if not exchange.is_booked:
                is_cached = reply.from_cache
                outcome = "cached" if is_cached else outcome_of(reply, exchange.request)
                self.book(exchange, reply, outcome)
            return reply
        finally:
            self._open -= 1
            self.account.write(exchange.unwritten)

    # --- the gate --------------------------------------------------------------------------------

    async def admit(self, request: ChatRequest) -> int:
        """Reserve prompt and `max_tokens`."""
        tokens = self.prompt_tokens(request) + request.max_tokens
        await self.account.purse.reserve(self._reservation(request, tokens))
        return tokens

    def settle(
        self, request: ChatRequest, reserved: int, reply: ChatReply | None, *, is_certain: bool
    ) -> None:
        """Replace a reservation by what was used; a request of unknown fate keeps all of it."""
        amount = self._reservation(request, reserved)
        if reply is not None:
            counted = self._counted(reply, request)
            cost = self._cost(request, counted) or 0.0
            used = Amount(1, counted.tokens_in + counted.tokens_out, cost)
            self._successes += 1
            if used.tokens > reserved:
                message = f"{used.tokens} tokens were used where at most {reserved} were expected"
                self.account.warn(message, what="excess", tokens=used.tokens, reserved=reserved)
        else:
            used = Amount(1) if is_certain else amount
        self.account.purse.settle(amount, used)

    def may_retry(self) -> bool:
        """Whether retries stay within ten, one for each reply that came, one for each open call.

        What fails of many calls that were sent at once comes back before what succeeds.
        """
        self._retries += 1
        return self._retries <= _FREE_RETRIES + self._successes + self._open

    def book(self, exchange: Exchange, reply: ChatReply, outcome: str) -> None:
        """Count a call to which a reply came."""
        if outcome != "cached":
            self.trust.hear(self._model(exchange.request), reply, outcome)
        self._count(exchange, self._counted(reply, exchange.request), outcome)

    # --- counting --------------------------------------------------------------------------------

    def prompt_tokens(self, request: ChatRequest) -> int:
        """Return what a request's prompt may take, its schema included."""
        count = self._tokenizer.count
        tokens = sum(count(m.content) + MESSAGE_TOKENS for m in request.messages) + REQUEST_TOKENS
        if request.schema is not None:
            tokens += count(str(request.schema))
        return tokens

    def _reservation(self, request: ChatRequest, tokens: int) -> Amount:
        prompt = max(0, tokens - request.max_tokens)
        return self.account.amount(self._model(request), prompt, tokens - prompt)

    def _model(self, request: ChatRequest) -> str:
        # Asked several times a call, and a look at what the chat model can do takes its time.
        stage = request.stage
        if (name := self._models.get(stage)) is None:
            name = self._models[stage] = model_for(self._chat, stage)
        return name

    def _counted(self, reply: ChatReply, request: ChatRequest) -> ChatReply:
        """Return the reply with our own counts where the server gave none."""
        if reply.tokens_in or reply.tokens_out:
            return reply
        return replace(
            reply,
            tokens_in=sum(self._tokenizer.count(m.content) for m in request.messages),
            tokens_out=self._tokenizer.count(reply.text),
        )

    def _cost(self, request: ChatRequest, reply: ChatReply) -> float | None:
        model = self._model(request)
        return self.account.cost(model, reply.tokens_in, reply.tokens_out, reply.cached_tokens)

    def _count(self, exchange: Exchange, counted: ChatReply, outcome: str) -> None:
        request, cost = exchange.request, self._cost(exchange.request, counted)
        record = self.account.count(
            stage=request.stage,
            prompt=request.prompt,
            model=self._model(request),
            segment_id=request.segment_id,
            tokens_in=counted.tokens_in,
            tokens_out=counted.tokens_out,
            cached_tokens=counted.cached_tokens,
            cost=0.0 if outcome == "cached" and cost is not None else cost,
            seconds=asyncio.get_running_loop().time() - exchange.began,
            attempts=exchange.sent,
            outcome=outcome,
        )
        exchange.is_booked = True
        exchange.unwritten.append(record)


__all__ = ["Meter", "Phase", "usage"]
