"""The chat model of one run: counts its calls, keeps its caps, and stops where nothing is read."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from qrmem.errors import ModelUnusable, QrmemError
from qrmem.llm.budget import Amount, Budget, Phase, Price, PriceOf
from qrmem.llm.chat import Call, model_for, models_of, send
from qrmem.llm.failures import Transient
from qrmem.llm.structured import outcome_of, with_reading
from qrmem.types import CallRecord, ChatModel, ChatReply, ChatRequest, Tokenizer, Usage

MESSAGE_TOKENS = 4
"""What a chat template adds to each message."""
REQUEST_TOKENS = 3
"""What it adds to a request."""
_FREE_RETRIES = 10


class Meter:
    """A chat model that counts what one run uses and stops it before a cap is exceeded.

    Attributes:
        budget: of the run; others that cost something may share it.
        breaker: stops a build whose model gives nothing that can be read; a question is short.
    """

    def __init__(
        self,
        chat: ChatModel,
        *,
        tokenizer: Tokenizer,
        phase: Phase,
        price: Price | PriceOf | None = None,
        **budget: Any,
    ) -> None:
        """Wrap a chat model for one run.

        Args:
            tokenizer: counts where the server does not, and before a request is sent.
            price: of the model, or what knows the prices of all; `None` leaves money uncounted.
            budget: what else `Budget` takes.

        Raises:
            UsageError: money is capped and the price is not known.
        """
        price_of: PriceOf = price if callable(price) else lambda model: price
        self._chat = chat
        self._tokenizer = tokenizer
        self._is_building = phase == "construction"
        self.budget = Budget(phase=phase, price_of=price_of, **budget)
        self.budget.require_prices(models_of(chat))
        self.breaker = CircuitBreaker()
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
        return self.budget.records

    @property
    def used(self) -> Amount:
        """Requests, tokens and money as the caps count them."""
        return self.budget.used

    def usage(self) -> Usage:
        """Return the sums by stage; replies from the cache cost nothing."""
        return self.budget.usage()

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Send one request and record it.

        Raises:
            CapReached: it might exceed a cap; nothing was sent.
            ModelUnusable: a build has been given nothing but replies that cannot be read.
        """
        return await self.send(Call(request))

    async def send(self, call: Call) -> ChatReply:
        """Send a call onward; each of its requests is reserved first."""
        if self._is_building:
            self.breaker.check(self._model(call))
        call.meter, call.listener = self, self.budget.listener
        call.began = asyncio.get_running_loop().time()
        self._open += 1
        try:
            async with asyncio.timeout(self.budget.seconds_left()) as bound:
                reply = await send(self._chat, call)
            if not call.is_booked:
                reply = self.book(call, with_reading(reply, call.request))
            return reply
        except (QrmemError, TimeoutError) as exc:
            error = exc
            if isinstance(exc, TimeoutError) and bound.expired():
                error = self.budget.stop("the cap on seconds is reached")
            # Where nothing was sent a cap held it back: it is no call.
            if call.sent and not call.is_booked:
                self._count(call, ChatReply(""), type(error).__name__)
            if error is exc:
                raise
            raise error from exc
        finally:
            self._open -= 1
            self.budget.write(call.unwritten)

    # --- each request ----------------------------------------------------------------------------

    async def admit(self, call: Call, post: Callable[[], Awaitable[ChatReply]]) -> ChatReply:
        """Reserve prompt and `max_tokens`, send, and replace the reservation by what was used.

        Of a request whose fate is not known all of it counts.

        Raises:
            CapReached: it might exceed a cap; nothing was sent.
        """
        request = call.request
        prompt = self.prompt_tokens(request)
        reserved = self.budget.amount(self._model(call), prompt, request.max_tokens)
        await self.budget.reserve(reserved)
        call.sent += 1
        used = reserved
        try:
            reply = await post()
            used = self._used(call, reply, reserved)
            return reply
        except QrmemError as exc:
            used = Amount(1) if not isinstance(exc, Transient) or exc.is_free else reserved
            raise
        finally:
            self.budget.settle(reserved, used)

    def _used(self, call: Call, reply: ChatReply, reserved: Amount) -> Amount:
        counted = self._counted(reply, call.request)
        tokens = counted.tokens_in + counted.tokens_out
        self._successes += 1
        if tokens > reserved.tokens:
            message = f"{tokens} tokens were used where at most {reserved.tokens} were expected"
            self.budget.warn(message, what="excess", tokens=tokens, reserved=reserved.tokens)
        return Amount(1, tokens, self._cost(call, counted) or 0.0)

    def may_retry(self) -> bool:
        """Whether retries stay within ten, one for each reply that came, one for each open call.

        What fails of many calls that were sent at once comes back before what succeeds.
        """
        self._retries += 1
        return self._retries <= _FREE_RETRIES + self._successes + self._open

    # --- counting --------------------------------------------------------------------------------

    def book(self, call: Call, reply: ChatReply) -> ChatReply:
        """Count a call to which a reply came; its record is in `call.unwritten` then."""
        outcome = "cached" if reply.from_cache else outcome_of(reply)
        if outcome != "cached":
            self.breaker.hear(self._model(call), reply, outcome)
        self._count(call, self._counted(reply, call.request), outcome)
        return reply

    def prompt_tokens(self, request: ChatRequest) -> int:
        """Return what a request's prompt may take, its schema included."""
        if request.prompt_tokens:
            return request.prompt_tokens
        count = self._tokenizer.count
        tokens = sum(count(m.content) + MESSAGE_TOKENS for m in request.messages) + REQUEST_TOKENS
        if request.schema is not None:
            tokens += count(str(request.schema))
        return tokens

    def _model(self, call: Call) -> str:
        return model_for(self._chat, call.request.stage)

    def _counted(self, reply: ChatReply, request: ChatRequest) -> ChatReply:
        """Return the reply with our own counts where the server gave none."""
        if reply.tokens_in or reply.tokens_out:
            return reply
        return replace(
            reply,
            tokens_in=sum(self._tokenizer.count(m.content) for m in request.messages),
            tokens_out=self._tokenizer.count(reply.text),
        )

    def _cost(self, call: Call, reply: ChatReply) -> float | None:
        model = self._model(call)
        return self.budget.cost(model, reply.tokens_in, reply.tokens_out, reply.cached_tokens)

    def _count(self, call: Call, counted: ChatReply, outcome: str) -> None:
        request, cost = call.request, self._cost(call, counted)
        record = self.budget.count(
            stage=request.stage,
            prompt=request.prompt,
            model=self._model(call),
            segment_id=request.segment_id,
            tokens_in=counted.tokens_in,
            tokens_out=counted.tokens_out,
            cached_tokens=counted.cached_tokens,
            cost=0.0 if outcome == "cached" and cost is not None else cost,
            seconds=asyncio.get_running_loop().time() - call.began,
            attempts=call.sent,
            outcome=outcome,
        )
        call.is_booked = True
        call.unwritten.append(record)


# --- a model that gives nothing -------------------------------------------------------------------

UNKNOWN = 20
"""Replies in a row that cannot be read, of a model that has never given one that could."""
PROVEN = 60
"""The same of a model that has: ten segments one after the other, each tried six times."""
_SHOWN = 80
"""Characters of a reply that an error shows."""
_OF_THE_TEXT = frozenset({"refusal", "content_filter"})
"""Ends of a reply that say more about what was read than about the model."""


class CircuitBreaker:
    """Counts, for each model of a run, the replies in a row that cannot be read.

    A spoilt reply now and then is nothing: it is asked for again. A server with the wrong template,
    or a model that is too small for the task, would be asked six times a segment.
    """

    def __init__(self) -> None:
        self._spoilt: dict[str, int] = {}
        self._proven: set[str] = set()
        self._is_known = False
        self._last = ""

    def prove(self) -> None:
        """Take it that the models have been of use before, in an earlier run."""
        self._is_known = True

    def hear(self, model: str, reply: ChatReply, outcome: str) -> None:
        """Take note of a reply that came from a server."""
        if outcome in {"ok", "repaired"}:
            self._proven.add(model)
            self._spoilt[model] = 0
        elif outcome == "unparsable" and reply.finish_reason not in _OF_THE_TEXT:
            self._spoilt[model] = self._spoilt.get(model, 0) + 1
            self._last = reply.text

    def check(self, model: str) -> None:
        """Stop before a model is asked once more for nothing.

        Raises:
            ModelUnusable: with what its last reply looks like.
        """
        spoilt = self._spoilt.get(model, 0)
        if spoilt < (PROVEN if self._is_known or model in self._proven else UNKNOWN):
            return
        text = " ".join(self._last.split())
        shown = f"begins {text[:_SHOWN]!r}" if text else "is empty"
        raise ModelUnusable(
            f"no reply of {model} can be read, {spoilt} in a row now (the last {shown}); "
            "`qrmem doctor --model` shows what it can do; what was read is kept, and the same "
            "command goes on from there, with this model or with another"
        )


__all__ = ["CircuitBreaker", "Meter"]
