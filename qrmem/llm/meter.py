"""The chat model of one run: cache, caps, server, parsing, usage and recording, in this order."""

import asyncio
from dataclasses import replace
from functools import partial

from qrmem.config import captures_content
from qrmem.errors import QrmemError
from qrmem.llm.breaker import CircuitBreaker
from qrmem.llm.budget import Amount, Budget
from qrmem.llm.chat_model import Call, ServerChatModel
from qrmem.llm.prompting import TokenBudget
from qrmem.llm.recorder import Recording
from qrmem.llm.reply_cache import ReplyCache, cache_key
from qrmem.llm.routing import ChatModels
from qrmem.llm.structured import outcome_of, with_reading
from qrmem.types import ChatModel, ChatReply, ChatRequest, Tokenizer
from qrmem.types.models import COUNTS

_FREE_RETRIES = 10


class Meter:
    """A chat model with cache, usage count and caps for one run.

    Attributes:
        name: name of the model.
        budget: budget of the run; embedder and reranker may share it.
        breaker: stops a build whose model gives only unreadable replies; a question is not stopped.
    """

    def __init__(
        self,
        models: ChatModels,
        budget: Budget,
        tokenizer: Tokenizer,
        cache: ReplyCache | None = None,
    ) -> None:
        """Take the chat models of a run.

        Args:
            tokenizer: counts tokens before a request, and if the server reports none.
            cache: cache of replies; unreadable ones are not cached, so that a failed segment is
                read again.

        Raises:
            UsageError: money is capped and the price of a model is not known.
        """
        self.name = models.name
        self._models = models
        self._cache = None if models.is_replay else cache
        self._tokenizer = tokenizer
        self.budget = budget
        budget.require_prices(models.names)
        self.breaker = CircuitBreaker()
        self._retries = 0
        self._successes = 0
        self._open = 0

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Return the cached reply to a request, or send it; parse, count and cache the reply.

        Raises:
            CapReached: the request might exceed a cap; nothing was sent.
            ModelUnusable: a build has received only unreadable replies.
        """
        call = self._call(request)
        if self.budget.phase == "construction":
            self.breaker.check(call.model)
        self._open += 1
        try:
            async with self.budget.in_time():
                key = self._key(request)
                reply = await self._cache.find(key) if self._cache else None
                if reply is not None:
                    reply = with_reading(reply, request)
                    self._count(call, reply, "cached")
                else:
                    chat = self._models.of(request.stage)
                    sending = (
                        chat.send(call)
                        if isinstance(chat, ServerChatModel)
                        else _foreign(chat, call)
                    )
                    reply = with_reading(await sending, request)
                    outcome = outcome_of(reply)
                    self.breaker.hear(call.model, reply, outcome)
                    self._count(call, reply, outcome)
                    if self._cache is not None and outcome != "unparsable":
                        await self._keep(key, reply, call)
        except (QrmemError, TimeoutError) as exc:
            # If nothing was sent, a cap prevented it: there was no call.
            if call.sent and not call.is_counted:
                self._count(call, ChatReply(""), type(exc).__name__)
            raise
        finally:
            self._open -= 1
            self.budget.write(call.unwritten)
        if self._models.recorder is not None:
            # Cached replies are recorded, too, so that a recording has all that a replay needs.
            self._models.recorder.add(Recording(call.model, request, reply))
        return reply

    def _call(self, request: ChatRequest) -> Call:
        model = self._models.name_of(request.stage)
        tokens = request.prompt_tokens or TokenBudget(self._tokenizer).request(request)
        call = Call(
            request,
            model=model,
            budget=self.budget,
            most=self.budget.amount(model, tokens, request.max_tokens),
            may_retry=self._may_retry,
            began=asyncio.get_running_loop().time(),
        )
        call.used = partial(self._amount_used, call)
        return call

    def _key(self, request: ChatRequest) -> str:
        chat = self._models.of(request.stage)
        return cache_key(request, model=chat.name, address=str(getattr(chat, "address", "")))

    async def _keep(self, key: str, reply: ChatReply, call: Call) -> None:
        """Store a reply together with its record; a record without a reply is stored separately."""
        assert self._cache is not None
        calls, call.unwritten = call.unwritten, []
        try:
            await self._cache.keep(key, reply, call.request, calls)
        except QrmemError:
            call.unwritten = calls
            raise

    # --- counting --------------------------------------------------------------------------------

    def _may_retry(self) -> bool:
        """Return whether a retry is allowed: ten, one for each reply, one for each running call.

        Of many simultaneous calls, failures return before successes.
        """
        self._retries += 1
        return self._retries <= _FREE_RETRIES + self._successes + self._open

    def _amount_used(self, call: Call, reply: ChatReply) -> Amount:
        """Return the actual use of a request, by the server's count or ours."""
        counted = self._counted(reply, call.request)
        tokens, expected = counted.tokens_in + counted.tokens_out, call.most.tokens
        self._successes += 1
        if tokens > expected:
            message = f"{tokens} tokens were used where at most {expected} were expected"
            self.budget.warn(message, what="excess", tokens=tokens, reserved=expected)
        return Amount(1, tokens, self._cost(call, counted) or 0.0)

    def _counted(self, reply: ChatReply, request: ChatRequest) -> ChatReply:
        """Return the reply, with our own counts if the server's are missing or impossible."""
        count_tokens, prompt = (
            self._tokenizer.count,
            [message.content for message in request.messages],
        )
        tokens_in = self.budget.tokens(reply.tokens_in, prompt, count_tokens)
        return replace(
            reply,
            tokens_in=tokens_in,
            tokens_out=self.budget.tokens(reply.tokens_out, [reply.text], count_tokens),
            cached_tokens=min(reply.cached_tokens, tokens_in),
        )

    def _cost(self, call: Call, reply: ChatReply) -> float | None:
        tokens = reply.tokens_in, reply.tokens_out, reply.cached_tokens
        return self.budget.cost(call.model, *tokens)

    def _count(self, call: Call, reply: ChatReply, outcome: str) -> None:
        """Count a call in the budget; its record must still be stored."""
        request, counted = call.request, self._counted(reply, call.request)
        cost = self._cost(call, counted)
        record = self.budget.count(
            stage=request.stage,
            prompt=request.prompt,
            model=call.model,
            segment_id=request.segment_id,
            **{name: getattr(counted, name) for name in COUNTS},
            cost=0.0 if outcome == "cached" and cost is not None else cost,
            seconds=asyncio.get_running_loop().time() - call.began,
            attempts=call.sent,
            outcome=outcome,
            said={"messages": request.messages, "reply": reply.text} if captures_content() else {},
        )
        call.is_counted = True
        call.unwritten.append(record)


async def _foreign(chat: ChatModel, call: Call) -> ChatReply:
    """Send a call to a chat model of another class than `ServerChatModel`."""
    async with call.budget.spending(call.most) as use:
        call.sent += 1
        reply = await chat.complete(call.request)
        use.amount = call.used(reply)
        return reply
