"""Keeps requests and tokens a minute within what the server allows."""

import asyncio
import time
from collections.abc import Awaitable, Callable

from qrmem.llm.exchange import Exchange, Sender
from qrmem.types import ChatReply, ChatRequest

BURST = 5.0
"""Seconds' worth of the allowance that may be used at once."""
_CHARACTERS = 3
"""Characters of a token, on the safe side; the limits are the server's and so is the count."""


class Pace:
    """Spreads requests over the minute, in order of arrival, before they take a place in flight."""

    def __init__(
        self,
        inner: Sender,
        *,
        requests: int,
        tokens: int,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Set the allowance for a minute; 0: what the server says in its answers, if it does."""
        self._inner = inner
        self._chosen = requests, tokens
        self._requests = requests
        self._tokens = tokens
        self._clock = clock
        self._sleep = sleep
        self._requests_due = float("-inf")
        self._tokens_due = float("-inf")

    async def send(self, exchange: Exchange) -> ChatReply:
        """Wait for a turn, send, and learn what the server allows."""
        if self._requests or self._tokens:
            wait = self.reserve(_size(exchange.request))
            if wait > 0:
                await self._sleep(wait)
        reply = await self._inner.send(exchange)
        chosen, allowed = self._chosen, exchange.allowed
        self._requests = chosen[0] or allowed[0] or self._requests
        self._tokens = chosen[1] or allowed[1] or self._tokens
        return reply

    def reserve(self, tokens: int) -> float:
        """Take a turn for so many tokens and return the seconds until it comes."""
        now = self._clock()
        turn = max(now, self._requests_due - BURST, self._tokens_due - BURST)
        if self._requests:
            self._requests_due = max(self._requests_due, turn) + 60 / self._requests
        if self._tokens:
            self._tokens_due = max(self._tokens_due, turn) + 60 * tokens / self._tokens
        return turn - now


def _size(request: ChatRequest) -> int:
    characters = sum(len(message.content) for message in request.messages)
    return characters // _CHARACTERS + request.max_tokens


__all__ = ["Pace"]
