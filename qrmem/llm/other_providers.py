"""Chat models of other providers through LiteLLM: `anthropic/…`, `gemini/…`, `bedrock/…`.

A name of that form goes this way where no server of one's own is named (`base_url`). LiteLLM takes
keys and addresses from each provider's own variables, such as ANTHROPIC_API_KEY.
"""

import asyncio
import json
import os
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from qrmem.config import Secret, Settings, provider_keys
from qrmem.errors import MissingError, install
from qrmem.llm.client import joined
from qrmem.llm.servers import Endpoint, in_words, translated

_MILLION = 1_000_000


def is_elsewhere(settings: Settings) -> bool:
    """Say whether the chat model is asked through LiteLLM."""
    return "/" in settings.model and not settings.base_url


def provider_endpoint(model: str) -> Endpoint:
    """Return how a provider is named in messages, and which keys they never show."""
    provider = model.partition("/")[0]
    return Endpoint("", f"litellm:{provider}", provider, Secret(""), None, provider_keys())


class ProviderClient:
    """Sends what `Client` sends, by LiteLLM; see there for what it raises."""

    def __init__(self, endpoint: Endpoint, model: str, seconds: float) -> None:
        self._endpoint = endpoint
        self._model = model
        self._seconds = seconds

    async def post(
        self,
        body: Mapping[str, Any],
        *,
        hear: Callable[[Mapping[str, str]], None] = lambda headers: None,
        take: Callable[[str], None] | None = None,
    ) -> str:
        """Return an answer in OpenAI's form, whatever the provider's is; see `Client.post`."""
        litellm = await asyncio.to_thread(_library)
        options = {**body, "timeout": self._seconds, "max_retries": 0}
        try:
            async with asyncio.timeout(self._seconds):
                answer = await litellm.acompletion(**options)
                if take is None:
                    return str(answer.model_dump_json())
                return await joined((piece.model_dump() async for piece in answer), take)
        except Exception as exc:
            error = translated(exc, self._endpoint, self._model, self._seconds)
            if error is None:
                raise
            cause = in_words(exc, self._endpoint)
        # Outside of the handler: what the library raised holds keys and the whole answer.
        raise error from cause

    async def aclose(self) -> None:
        """Nothing is held between two requests."""


def listed_price(model: str) -> tuple[float, float, float | None] | None:
    """Return what LiteLLM's list has of a model: money a million tokens in, out, in from a cache.

    The list is read without importing the library.
    """
    known = _listed()
    row = known.get(model) or known.get(model.partition("/")[2])
    if row is None or "input_cost_per_token" not in row or "output_cost_per_token" not in row:
        return None
    cached = row.get("cache_read_input_token_cost")
    return (
        float(row["input_cost_per_token"]) * _MILLION,
        float(row["output_cost_per_token"]) * _MILLION,
        None if cached is None else float(cached) * _MILLION,
    )


@cache
def _listed() -> Mapping[str, Mapping[str, Any]]:
    spec = find_spec("litellm")
    if spec is None or not spec.submodule_search_locations:
        return {}
    file = Path(spec.submodule_search_locations[0]) / "model_prices_and_context_window_backup.json"
    found: dict[str, dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))
    return found


def _library() -> Any:
    """Return LiteLLM; at its import it would fetch a list of prices from the network."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    try:
        litellm: Any = import_module("litellm")
    except ImportError as exc:
        raise MissingError(f"models of other providers need: {install('litellm')}") from exc
    litellm.telemetry = False
    litellm.suppress_debug_info = True
    return litellm
