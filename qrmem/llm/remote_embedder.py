"""Embeddings from an OpenAI-compatible server."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from qrmem.config import Settings
from qrmem.llm.client import Client
from qrmem.llm.endpoint import embedding_endpoint
from qrmem.llm.failures import Transient
from qrmem.llm.retry import Retries
from qrmem.llm.vectors import unit_rows

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BATCH = 64
WINDOW_TOKENS = 8_000
"""Tokens of one window; the encoders behind such servers read about this much."""


@dataclass(frozen=True, slots=True)
class Embedded:
    """What one request brought.

    Attributes:
        tokens: as the server counted them, 0 where it does not say.
    """

    rows: Sequence[Any]
    tokens: int


Send = Callable[[], Awaitable[Embedded]]
Count = Callable[[str, Sequence[str], Send], Awaitable[Embedded]]
"""Takes the model's name, the texts of one request and what sends it; counts and sends it."""


async def _uncounted(model: str, texts: Sequence[str], send: Send) -> Embedded:
    return await send()


class RemoteEmbedder:
    """A model of an embeddings endpoint; its dimension is what its first vector has."""

    def __init__(self, model: str, settings: Settings) -> None:
        self._model = model
        self._endpoint = embedding_endpoint(settings)
        self._timeout = settings.timeout
        self._retries = Retries(settings.retries)
        self._places = settings.concurrency
        self._dimension = 0
        self._count: Count = _uncounted

    def counted(self, count: Count) -> "RemoteEmbedder":
        """Return the same embedder with each of its requests counted."""
        other = copy(self)
        other._count = count
        return other

    @property
    def name(self) -> str:
        """What is recorded in a namespace."""
        return f"openai:{self._model}"

    @property
    def dimension(self) -> int:
        """Length of a vector; 0 until a text was embedded."""
        return self._dimension

    def windows(self, text: str) -> Sequence[str]:
        """Cut a text into pieces that the encoder reads whole."""
        return self.pieces(text)

    @staticmethod
    def pieces(text: str) -> Sequence[str]:
        """Cut a text into pieces that the encoders behind such servers read whole."""
        from qrmem.text.tokens import BuiltinTokenizer

        tokenizer = BuiltinTokenizer()
        pieces: list[str] = []
        while tokenizer.count(text) > WINDOW_TOKENS:
            piece = tokenizer.cut(text, WINDOW_TOKENS)
            pieces.append(piece)
            text = text[len(piece) :]
        return [*pieces, text] if text or not pieces else pieces

    async def embed(
        self, texts: Sequence[str], *, kind: Literal["passage", "query"] = "passage"
    ) -> "NDArray[np.float32]":
        """Return `(len(texts), dimension)`, rows of unit length.

        Raises:
            AccessRefused: key or model name refused.
            ModelUnavailable: no answer after all retries, or an answer that is no vectors.
        """
        import numpy as np

        batches = [texts[at : at + BATCH] for at in range(0, len(texts), BATCH)]
        if not batches:
            return np.empty((0, self._dimension), dtype=np.float32)
        async with Client(self._endpoint, "/embeddings", self._model, self._timeout) as client:
            places = asyncio.Semaphore(self._places)

            async def one(batch: Sequence[str]) -> "NDArray[np.float32]":
                async with places:
                    return await self._batch(client, batch)

            # The first one settles the dimension that the others must have.
            done = [await one(batches[0])]
            try:
                async with asyncio.TaskGroup() as group:
                    tasks = [group.create_task(one(batch)) for batch in batches[1:]]
            except ExceptionGroup as failures:
                raise failures.exceptions[0] from failures
        return np.concatenate([*done, *(task.result() for task in tasks)])

    async def _batch(self, client: Client, texts: Sequence[str]) -> "NDArray[np.float32]":
        # An empty text is refused by some servers, and has no meaning to embed.
        sent = [text if text.strip() else "." for text in texts]

        async def send() -> Embedded:
            return await self._rows(client, sent)

        made = await self._retries.run(lambda: self._count(self._model, sent, send))
        unit = unit_rows(made.rows, count=len(texts), dimension=self._dimension, name=self.name)
        self._dimension = unit.shape[1]
        return unit

    async def _rows(self, client: Client, texts: list[str]) -> Embedded:
        asked = {"model": self._model, "input": texts, "encoding_format": "float"}
        body = await client.post(asked)
        embedded = _read(body)
        if embedded is None:
            said = self._endpoint.clean(body)[:120] or "an empty body"
            text = f"{self._endpoint.host} sent something that is no embeddings: {said}"
            raise Transient(text, cause="body")
        return embedded


def _read(body: str) -> Embedded | None:
    try:
        found = json.loads(body)
        rows = sorted(found["data"], key=lambda row: int(row.get("index", 0)))
        tokens = (found.get("usage") or {}).get("prompt_tokens")
        return Embedded(
            [row["embedding"] for row in rows], tokens if isinstance(tokens, int) else 0
        )
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return None


__all__ = ["Embedded", "RemoteEmbedder", "Send"]
