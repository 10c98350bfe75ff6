"""Rerankers: they score the first candidates of a search again, each together with the question.

A reranker is a local cross-encoder, or a server with a rerank endpoint like those of Cohere and
Jina. If it fails, the order stays as it was, and the search goes on.
"""

import asyncio
import json
import math
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol
from urllib.parse import urlsplit

from qrmem.config import Secret, Settings, revealed
from qrmem.errors import (
    AccessRefused,
    MissingError,
    ModelUnavailable,
    QrmemError,
    UsageError,
    require_extra,
)
from qrmem.llm.budget import Budget
from qrmem.llm.client import Client
from qrmem.llm.encoder import quiet
from qrmem.llm.retry import Retries
from qrmem.llm.servers import DEFAULT_URL, count, endpoint, from_body
from qrmem.types import Tokenizer

STAGE = "rerank"
"""Stage in which requests to a reranking server are counted."""
_RETRIES = 1
"""Number of retries; it is low, as a search can do without the reranker."""


class Scorer(Protocol):
    """Scores how well texts answer a question.

    Attributes:
        name: the chosen name, without secrets.
        priced: name of the model whose price applies; "" if it costs only time.
    """

    name: str
    priced: str

    async def scores(
        self, question: str, texts: Sequence[str], budget: Budget, counter: Tokenizer
    ) -> list[float | None]:
        """Return a score for each text, higher for a better fit; `None` for a text without a score.

        Args:
            question: the question.
            texts: the texts.
            budget: budget of the run; it counts the usage.
            counter: counts tokens if the server reports none.
        """
        ...

    async def aclose(self) -> None:
        """Close connections and release the model."""
        ...


def open_reranker(name: str, settings: Settings) -> Scorer | None:
    """Return a reranker; `None` for "" and `none`. No model is loaded and nothing is sent yet.

    Args:
        name: a URL, or the name or folder of a cross-encoder.
        settings: the settings.

    Raises:
        MissingError: the extra `local` is not installed, or a key is malformed.
        UsageError: the name looks like a URL but is not valid.
    """
    if name in ("", "none"):
        return None
    if is_remote(name):
        return RemoteReranker(name, settings)
    require_extra("local", f"the reranker {name!r}", "sentence_transformers")
    return CrossEncoder(name)


def is_remote(name: str) -> bool:
    """Return whether a reranker of this name is on a server."""
    return "://" in name


class Reranker:
    """A reranker in one run; after a failure, with one warning, it is not used any more.

    Attributes:
        depth: maximum number of candidates to score.
    """

    depth = 50

    def __init__(self, scorer: Scorer, budget: Budget, counter: Tokenizer) -> None:
        """Take an open reranker.

        Raises:
            UsageError: money is capped, and its price is not known.
        """
        if scorer.priced:
            budget.require_prices([scorer.priced])
        self._scorer = scorer
        self._budget = budget
        self._counter = counter
        self._has_failed = False

    async def ranked(
        self, question: str, texts: Sequence[str]
    ) -> list[tuple[int, float | None]] | None:
        """Return the indices of texts with their scores, best first; `None` keeps the order.

        Texts without a score come last; ties keep their order.

        Raises:
            MissingError: the model cannot be loaded.
        """
        if self._has_failed or not texts:
            return None
        try:
            scores = await self._scorer.scores(question, texts, self._budget, self._counter)
        except QrmemError as exc:
            if isinstance(exc, MissingError) and not isinstance(exc, AccessRefused):
                raise
            self._has_failed = True
            self._budget.warn(f"not reranked; the order of the search stays: {exc}", what="rerank")
            return None
        order = sorted(range(len(texts)), key=lambda place: -_or_least(scores[place]))
        return [(place, scores[place]) for place in order]


def _or_least(score: float | None) -> float:
    return -math.inf if score is None else score


# --- on this machine ------------------------------------------------------------------------------


class CrossEncoder:
    """A cross-encoder of sentence-transformers in a separate thread; the first use loads it.

    Attributes:
        name: name on the Hugging Face hub, or a folder.
        priced: "", as it costs only time.
    """

    priced = ""

    def __init__(self, name: str) -> None:
        self.name = name
        self._model: Any = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="qrmem-rerank")

    async def scores(
        self, question: str, texts: Sequence[str], budget: Budget, counter: Tokenizer
    ) -> list[float | None]:
        """Return the model's scores.

        Raises:
            CapReached: the time is up.
            MissingError: the model cannot be loaded.
            ModelUnavailable: it does not return one number per text.
        """
        budget.check()
        loop = asyncio.get_running_loop()
        async with budget.in_time():
            result = await loop.run_in_executor(self._thread, self._scored, question, texts)
        if len(result) != len(texts) or not all(map(_is_number, result)):
            raise ModelUnavailable(
                f"{self.name} does not return a single number for a text, so it is not a reranker"
            )
        return list(result)

    async def aclose(self) -> None:
        """Release the model and its thread."""
        self._thread.shutdown(wait=False, cancel_futures=True)
        self._model = None

    def _scored(self, question: str, texts: Sequence[str]) -> list[float]:
        if self._model is None:
            self._model = _loaded(self.name)
        pairs = [(question, text) for text in texts]
        scores: list[float] = self._model.predict(pairs, show_progress_bar=False).tolist()
        return scores


def _loaded(name: str) -> Any:
    from sentence_transformers import CrossEncoder

    source = os.path.expanduser(name)
    try:
        with quiet():
            return CrossEncoder(source, local_files_only=os.path.isdir(source))
    except (OSError, ValueError, ImportError, RuntimeError) as exc:
        reason = " ".join(str(exc).split())[:200]
        raise MissingError(f"the reranker {name!r} cannot be loaded: {reason}") from exc


# --- on a server ----------------------------------------------------------------------------------


class RemoteReranker:
    """A rerank endpoint: it takes a question with texts and returns scores.

    Attributes:
        name: its URL, without secrets.
        priced: name of the model, or of the server if no model is chosen.
    """

    def __init__(self, url: str, settings: Settings) -> None:
        key = settings.rerank_api_key or (
            settings.api_key if _is_of_chat(url, settings) else Secret("")
        )
        try:
            self._endpoint = endpoint(settings.with_(base_url=url, api_key=key))
        except UsageError:
            raise UsageError(
                "a reranker's URL must look like http://localhost:8000/v1/rerank"
            ) from None
        self.name = self._endpoint.address
        self._model = settings.rerank_model
        self.priced = self._model or self._endpoint.host
        self._client = Client(self._endpoint, "", self.priced, settings.timeout)
        self._retries = Retries(min(settings.retries, _RETRIES))

    async def scores(
        self, question: str, texts: Sequence[str], budget: Budget, counter: Tokenizer
    ) -> list[float | None]:
        """Return the server's scores; it may leave out some texts.

        Raises:
            AccessRefused: the server rejects the key or the model's name.
            CapReached: a request might exceed a cap, or the time is up.
            ModelUnavailable: the server does not answer after all retries, or returns no scores of
                these texts.
        """
        payload = {"query": question, "documents": list(texts), "top_n": len(texts)}
        body = {"model": self._model, **payload} if self._model else payload
        async for attempt in self._retries.tries():
            with attempt:
                result = await self._send(body, [question, *texts], budget, counter)
        self._retries.was_answered = True
        return result

    async def aclose(self) -> None:
        """Close all connections; the next use opens them again."""
        await self._client.aclose()

    async def _send(
        self, body: dict[str, Any], sent: Sequence[str], budget: Budget, counter: Tokenizer
    ) -> list[float | None]:
        async def send() -> tuple[list[float | None], int]:
            answer = await self._client.post(body)
            if (reply := _read(answer, len(sent) - 1)) is None:
                raise from_body(answer, "reranking", self._endpoint, self.priced)
            return reply

        return await budget.request(STAGE, self.priced, sent, counter.count, send)


def _is_of_chat(url: str, settings: Settings) -> bool:
    """Return whether a URL is on the chat model's server: its key goes to no other."""
    try:
        chat, reranker_parts = (
            urlsplit(revealed(one)) for one in (settings.base_url or DEFAULT_URL, url)
        )
        return (chat.scheme, chat.hostname, chat.port) == (
            reranker_parts.scheme,
            reranker_parts.hostname,
            reranker_parts.port,
        )
    except ValueError:
        return False


def _read(answer: str, texts: int) -> tuple[list[float | None], int] | None:
    """Return the scores of a reply and the server's token count, 0 if it reports none.

    It returns `None` for an invalid reply: with an unknown text, a repeated one, or no number.
    """
    scores: list[float | None] = [None] * texts
    try:
        data = json.loads(answer)
        for row in data["results"]:
            place, score = row["index"], row["relevance_score"]
            is_one = type(place) is int and 0 <= place < texts and scores[place] is None
            if not (is_one and _is_number(score)):
                return None
            scores[place] = float(score)
        usage = data.get("usage") or (data.get("meta") or {}).get("tokens") or {}
        tokens_reported = usage.get("total_tokens") or usage.get("input_tokens")
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError, OverflowError):
        return None
    return (scores, count(tokens_reported)) if any(one is not None for one in scores) else None


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)
