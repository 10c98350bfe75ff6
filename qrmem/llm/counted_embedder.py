"""An embedder whose use is counted in a run's budget: each request, and the time that it takes."""

import asyncio
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from qrmem.errors import QrmemError
from qrmem.llm.budget import Amount, Budget
from qrmem.llm.failures import Transient
from qrmem.llm.remote_embedder import Embedded, RemoteEmbedder, Send
from qrmem.types import Embedder, Tokenizer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

STAGE = "embed"
"""Where its requests are counted."""


class CountedEmbedder:
    """An embedder that stops before a cap is exceeded; one on this machine costs time alone."""

    def __init__(self, embedder: Embedder, budget: Budget, tokenizer: Tokenizer) -> None:
        """Wrap an embedder for one run.

        Args:
            tokenizer: counts before a request is sent, and where the server does not.
        """
        self._budget = budget
        self._tokenizer = tokenizer
        self._embedder = embedder
        if isinstance(embedder, RemoteEmbedder):
            self._embedder = embedder.counted(self._request)

    @property
    def name(self) -> str:
        """What is recorded in a namespace."""
        return self._embedder.name

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return self._embedder.dimension

    def windows(self, text: str) -> Sequence[str]:
        """Cut a text into pieces that the encoder reads whole."""
        return self._embedder.windows(text)

    async def embed(
        self, texts: Sequence[str], *, kind: Literal["passage", "query"] = "passage"
    ) -> "NDArray[np.float32]":
        """Return `(len(texts), dimension)`, rows of unit length.

        Raises:
            CapReached: the time is up, or a request might exceed a cap.
            ModelUnavailable: the server does not answer.
        """
        self._budget.check()
        return await self._embedder.embed(texts, kind=kind)

    async def _request(self, model: str, texts: Sequence[str], send: Send) -> Embedded:
        """Reserve what a request may use, send it, and write down what it did use."""
        budget, began = self._budget, time.monotonic()
        tokens = sum(self._tokenizer.count(text) for text in texts)
        amount = budget.amount(model, tokens, 0)
        await budget.reserve(amount)
        used, outcome, made = amount, "cancelled", None
        try:
            async with asyncio.timeout(budget.seconds_left()) as bound:
                made = await send()
            used, outcome = budget.amount(model, made.tokens or tokens, 0), "ok"
            return made
        except QrmemError as exc:
            outcome = type(exc).__name__
            used = Amount(1) if not isinstance(exc, Transient) or exc.is_free else amount
            raise
        except TimeoutError as exc:
            if not bound.expired():
                raise
            outcome = "CapReached"
            raise budget.stop("the cap on seconds is reached") from exc
        finally:
            budget.settle(amount, used)
            counted = (made.tokens or tokens) if made else 0
            record = budget.count(
                stage=STAGE,
                prompt="",
                model=model,
                tokens_in=counted,
                cost=budget.cost(model, counted, 0),
                seconds=time.monotonic() - began,
                outcome=outcome,
            )
            budget.write([record])


__all__ = ["STAGE", "CountedEmbedder"]
