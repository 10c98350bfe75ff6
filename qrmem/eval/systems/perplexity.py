"""TSort by perplexity: every order of a case's parts is read; the most likely one is the answer."""

import asyncio
import json
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import lru_cache
from inspect import signature
from itertools import permutations
from math import exp
from pathlib import Path
from typing import Any

from qrmem.errors import ContextExceeded, MissingError, UsageError, missing_extra
from qrmem.eval.harness import Harness
from qrmem.eval.items import Context, Item, Prediction
from qrmem.eval.registry import system
from qrmem.eval.systems.adaleval_prompting import prediction, require_case
from qrmem.llm.client import Client
from qrmem.llm.servers import endpoint
from qrmem.types import Event, Step

_SEAM = "\n\n"
_MOST_SURPRISE = 9.0
"""Upper bound of nats per token: prose surprises no language model more; a uniform guess has the
logarithm of the vocabulary's size, about 10 to 12."""
_AT_ONCE = 512
"""Number of tokens that a local model reads at once, with all their logits in memory."""

Orders = Mapping[tuple[int, ...], float]
"""Order of the parts, from 1, to the mean negative log-probability per token."""


@system("ada-perplexity", "TSort: the order of the lowest perplexity", "Ada-LEval")
@dataclass(frozen=True, slots=True, kw_only=True)
class ByPerplexity:
    """Reads a case's text in every order of its parts and returns the most likely (section 4.5.1).

    A server gets n! prompts per case. It must return a prompt's log-probabilities by
    `/completions` with `echo`: vLLM does, and llama-cpp-python's server with `logits_all`;
    llama.cpp's own server does not. With `weights` a causal language model runs in this process
    (extra `perplexity`) without a server, and the common beginning of orders is read once.

    Attributes:
        weights: a folder in Hugging Face's format, or a GGUF file; "" uses the server's model.
        begin: text before every order; "" for none, or for the local model's begin token.
            llama-cpp-python needs the begin token here if the model does not set one
            itself: without it, every token gets the log-probability of the next position.
    """

    weights: str = ""
    begin: str = ""

    @property
    def needs(self) -> frozenset[str]:
        """`model`, if no weights are set."""
        return frozenset() if self.weights else frozenset({"model"})

    async def __call__(self, item: Item, context: Context, harness: Harness) -> Prediction:
        """Answer one item; a text that is too long for the model gets no answer."""
        require_case(item)
        if item.labels["task"] != "tsort":
            raise UsageError("perplexity is of the orders of TSort; BestAnswer has none")
        texts = [document.text for document in context.documents]
        try:
            if self.weights:
                surprise_of = await asyncio.to_thread(_local, self.weights, self.begin, texts)
            else:
                surprise_of = await _served(self.begin, texts, harness)
        except ContextExceeded as exc:
            step = Step(n=1, action="read", reason=f"no answer: {exc}")
            return Prediction(steps=(step,), reason=str(exc))
        _, order = min((surprise, order) for order, surprise in surprise_of.items())
        return prediction(item, f"Answer: {list(order)}")


# --- by a server ---------------------------------------------------------------------------------


async def _served(begin: str, texts: Sequence[str], harness: Harness) -> Orders:
    before, *parts, after = texts
    settings, surprise_of = harness.settings, {}
    client = Client(endpoint(settings), "/completions", settings.model, settings.timeout)
    async with aclosing(client) as to:
        for order in permutations(range(1, len(parts) + 1)):
            text = _SEAM.join([before, *(parts[k - 1] for k in order), after])
            surprise_of[order] = await _surprise(to, begin, text, harness)
    return surprise_of


async def _surprise(client: Client, begin: str, text: str, harness: Harness) -> float:
    """Return the mean negative log-probability of a text's tokens, within the run's caps."""
    budget, model = harness.budget, harness.settings.model
    began = time.monotonic()
    prompt = begin + text
    body = {"model": model, "prompt": prompt, "max_tokens": 1, "echo": True, "logprobs": 1}
    size = harness.tools.counter.count(prompt)
    async with budget.spending(budget.amount(model, size, 1)) as use:
        if harness.is_rehearsal:
            log_probs = [-1.0] * size
        else:
            log_probs = _log_probs(await client.post({**body, "temperature": 0}), len(text))
        use.amount = budget.amount(model, len(log_probs) + 1, 1)
    data = {"tokens_in": len(log_probs) + 1, "tokens_out": 1, "seconds": time.monotonic() - began}
    harness.calls(Event("call", {"stage": "perplexity", **data}))
    mean = -sum(log_probs) / len(log_probs)
    if mean > _MOST_SURPRISE:
        raise MissingError(
            f"the server's log-probabilities do not fit the prompt (perplexity {exp(mean):,.0f}): "
            "llama-cpp-python shifts them by a token where the model sets no begin token; name "
            "that token, as in ada-perplexity:begin=<s>, or use vLLM"
        )
    return mean


def _log_probs(answer: str, length: int) -> list[float]:
    """Return the log-probabilities of a prompt's tokens; the first token has none."""
    try:
        data = json.loads(answer)["choices"][0]["logprobs"]
        pairs = zip(data["token_logprobs"], data["text_offset"], strict=True)
        values = [float(value) for value, at in pairs if value is not None and at < length]
    except (ValueError, LookupError, TypeError):
        values = []
    if not values:
        raise MissingError(
            "the server gives no log-probabilities of a prompt, which perplexity needs: use vLLM, "
            "or llama-cpp-python's server with logits_all, or weights on this machine "
            "(ada-perplexity:weights=PATH)"
        )
    return values


# --- in this process -----------------------------------------------------------------------------


def _local(weights: str, begin: str, texts: Sequence[str]) -> Orders:
    """Return the surprise of every order, read depth first: a common beginning is read once."""
    model = _opened(weights)
    start = model.tokens(begin) if begin else model.begin
    first, *parts, last = [model.tokens(text) for text in _with_seams(texts)]
    first = [*start, *first]
    count = len(first) + len(last) + sum(map(len, parts))
    if count > model.most:
        raise ContextExceeded(f"{count} tokens are more than the model's {model.most}")
    surprise_of: dict[tuple[int, ...], float] = {}

    def read(order: tuple[int, ...], total: float, state: Any) -> None:
        parts_left = [k for k in range(1, len(parts) + 1) if k not in order]
        for k in parts_left or [0]:
            loss, after = model.read(parts[k - 1] if k else last, state)
            if k:
                read((*order, k), total + loss, after)
            else:
                surprise_of[order] = (total + loss) / count
            model.back_to(state)

    read((), *model.read(first, None))
    return surprise_of


def _with_seams(texts: Sequence[str]) -> Iterable[str]:
    """Yield texts that can be joined in any order."""
    yield from (f"{text}{_SEAM}" for text in texts[:-1])
    yield texts[-1]


@lru_cache(maxsize=1)
def _opened(weights: str) -> "_Causal":
    return _Causal(Path(weights))


class _Causal:
    """A causal language model in this process, with the state of its reading."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            raise UsageError(f"there are no weights at {path}")
        try:
            import torch
            import transformers
        except ImportError as exc:
            raise missing_extra("perplexity", "a local model's perplexity") from exc
        where: dict[str, Any] = {"local_files_only": True}
        if path.is_file():
            where["gguf_file"] = path.name
        folder = str(path.parent if path.is_file() else path)
        try:
            self._tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **where)
            model = transformers.AutoModelForCausalLM.from_pretrained(folder, **where)
        except (OSError, ValueError, KeyError, ImportError) as exc:
            reason = (str(exc).splitlines() or [type(exc).__name__])[0]
            raise UsageError(f"{path} holds no causal language model: {reason}") from exc
        self._torch = torch
        self._model = model.eval().to("cuda" if torch.cuda.is_available() else "cpu")
        self._new = transformers.DynamicCache
        # Transformers 5.24 renamed the argument for the texts that were read before.
        is_renamed = "cache" in signature(self._model.forward).parameters
        self._cache_name = "cache" if is_renamed else "past_key_values"
        self.most = int(getattr(model.config, "max_position_embeddings", 0) or 1 << 30)
        first_token = self._tokenizer.bos_token_id
        self.begin = [] if first_token is None else [first_token]

    def tokens(self, text: str) -> list[int]:
        """Return a text's tokens."""
        return list(self._tokenizer.encode(text, add_special_tokens=False))

    def read(self, tokens: Sequence[int], state: Any) -> tuple[float, Any]:
        """Read on; return the sum of negative log-probabilities, and the state after it.

        Args:
            state: state after the earlier text; `None`: nothing was read.
        """
        torch, total = self._torch, 0.0
        cache, size, expected = state or (self._new(), 0, None)
        with torch.inference_mode():
            for at in range(0, len(tokens), _AT_ONCE):
                some = torch.tensor([tokens[at : at + _AT_ONCE]], device=self._model.device)
                logits = self._model(input_ids=some, **{self._cache_name: cache}).logits[0]
                log_probs = logits.float().log_softmax(-1)
                if expected is not None:
                    total -= float(expected[some[0, 0]])
                total -= float(log_probs[:-1].gather(1, some[0, 1:, None]).sum())
                expected, size = log_probs[-1], size + some.shape[1]
        return total, (cache, size, expected)

    def back_to(self, state: Any) -> None:
        """Return to an earlier state."""
        cache, size, _ = state
        if more := cache.get_seq_length() - size:
            cache.crop(-more)
