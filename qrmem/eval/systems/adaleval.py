"""Ada-LEval asked as in the paper: the benchmark's own prompt, one reply, perplexity of orders."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import permutations
from math import exp, inf

from qrmem.errors import ContextExceeded, MissingError, UsageError, WindowTooSmall
from qrmem.eval import designations
from qrmem.eval.datasets.adaleval import asked
from qrmem.eval.harness import CallCounter, Harness
from qrmem.eval.records import Context, Item, Prediction
from qrmem.eval.registry import system
from qrmem.eval.systems.choosing_answers import best_answer
from qrmem.eval.systems.ordering import order
from qrmem.llm.client import Client
from qrmem.llm.endpoint import endpoint
from qrmem.types import Event, Step, Usage

REPLY = 1024
"""Tokens of a reply, as the released evaluation has it."""
_MOST_SURPRISE = 9.0
"""Nats a token: no language model is that surprised by prose; by chance it is the logarithm of the
vocabulary's size, about 10 to 12."""


@system("ada-leval", "Ada-LEval's own prompt, one reply", "Ada-LEval")
@dataclass(frozen=True, slots=True, kw_only=True)
class Prompted:
    """Sends a whole case in the benchmark's prompt; the reply is scored as it is.

    A case that does not fit the window, or the server's context, is answered by nothing: it counts
    as wrong and as not following the instruction, as in the paper.

    Attributes:
        window: the model's own.
        reply: tokens of it kept for the reply.
        body: most tokens of the parts or answers, the middle cut out; 0: all (Table 10).
    """

    window: int = 128_000
    reply: int = REPLY
    body: int = 0

    needs = frozenset({"model"})

    async def __call__(self, item: Item, context: Context, harness: Harness) -> Prediction:
        """Answer one item."""
        _require(item)
        calls = CallCounter(harness.listener)
        run = harness.reader(calls)
        texts = [document.text for document in context.documents]
        is_order = item.labels["task"] == "tsort"
        shown = context.documents[1:-1] if is_order else context.documents
        body = "\n\n".join(f"{document.title}:\n{document.text}" for document in shown)
        if self.body:
            body = without_middle(body, self.body, harness.tools.counter.count)
        if is_order:
            sample = designations.sample_order(len(shown))
            slots = dict(before=texts[0], parts=body, after=texts[-1])
            slots |= dict(count=str(len(shown)), sample=str(sample))
        else:
            slots = dict(question=asked(item), answers=body)
        try:
            called = await harness.caller(run).say(
                "tsort" if is_order else "best-answer",
                lambda kept: slots,
                window=self.window,
                reply=self.reply,
            )
        except (WindowTooSmall, ContextExceeded) as exc:
            step = Step(n=1, action="read", reason=f"no answer: {exc}")
            return Prediction(steps=(step,), reason=str(exc), usage=calls.usage)
        return _found(item, called.value, calls, called.tokens)


@system("ada-perplexity", "TSort: the order of the lowest perplexity", "Ada-LEval")
@dataclass(frozen=True, slots=True, kw_only=True)
class ByPerplexity:
    """Reads a case's text in every order of its parts and takes the likeliest (section 4.5.1).

    It costs n! prompts a case. The server has to give a prompt's log-probabilities by
    `/completions` with `echo`: vLLM does, and llama-cpp-python's server with `logits_all`;
    llama.cpp's own server does not.

    Attributes:
        begin: what every prompt begins with. llama-cpp-python needs the model's begin token here
            where the model does not set one itself: without it, it gives every token the
            log-probability of the place after it.
    """

    begin: str = ""

    needs = frozenset({"model"})

    async def __call__(self, item: Item, context: Context, harness: Harness) -> Prediction:
        """Answer one item."""
        _require(item)
        if item.labels["task"] != "tsort":
            raise UsageError("perplexity is of the orders of TSort; BestAnswer has none")
        before, *parts, after = (document.text for document in context.documents)
        calls = CallCounter(harness.listener)
        best: tuple[float, list[int]] = (inf, [])
        settings = harness.settings
        async with Client(
            endpoint(settings), "/completions", settings.model, settings.timeout
        ) as to:
            for places in permutations(range(1, len(parts) + 1)):
                text = "\n\n".join([before, *(parts[k - 1] for k in places), after])
                found = await _surprise(to, self.begin, text, harness, calls)
                best = min(best, (found, list(places)))
        return _found(item, f"Answer: {best[1]}", calls)


async def _surprise(
    client: Client, begin: str, text: str, harness: Harness, calls: CallCounter
) -> float:
    """Return the mean negative log-probability of a text's tokens, within the run's caps."""
    budget, model = harness.model.budget if harness.model else None, harness.settings.model
    assert budget is not None
    began = time.monotonic()
    prompt = begin + text
    body = {"model": model, "prompt": prompt, "max_tokens": 1, "echo": True, "logprobs": 1}
    size = harness.tools.counter.count(prompt)
    async with budget.spending(budget.amount(model, size, 1)) as spent:
        answer = await client.post({**body, "temperature": 0})
        found = _log_probs(answer, len(text))
        spent.amount = budget.amount(model, len(found) + 1, 1)
    data = {"tokens_in": len(found) + 1, "tokens_out": 1, "seconds": time.monotonic() - began}
    calls(Event("call", {"stage": "perplexity", **data}))
    mean = -sum(found) / len(found)
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
        found = json.loads(answer)["choices"][0]["logprobs"]
        pairs = zip(found["token_logprobs"], found["text_offset"], strict=True)
        made = [float(value) for value, at in pairs if value is not None and at < length]
    except (ValueError, LookupError, TypeError):
        made = []
    if not made:
        raise MissingError(
            "the server gives no log-probabilities of a prompt, which perplexity needs: use vLLM, "
            "or llama-cpp-python's server with logits_all"
        )
    return made


@system("ada-rules", "parts put in order, answers chosen, by signals of the text", "ours")
@dataclass(frozen=True, slots=True, kw_only=True)
class ByRules:
    """Orders parts and chooses answers without a chat model or an embedder."""

    async def __call__(self, item: Item, context: Context, harness: Harness) -> Prediction:
        """Answer one item."""
        _require(item)
        texts = [document.text for document in context.documents]
        if item.labels["task"] == "tsort":
            return _found(item, f"Answer: {order(texts[1:-1], texts[0], texts[-1])}")
        return _found(item, f"Answer: A{best_answer(asked(item), texts) + 1}")


def _found(
    item: Item, output: str, calls: CallCounter | None = None, tokens: int = 0
) -> Prediction:
    chosen = designations.strict_answer(output, len(item.choices)) if item.choices else None
    return Prediction(
        text=output,
        choice=None if chosen is None else chosen - 1,
        status="answered",
        steps=(Step(n=1, action="read", tokens=tokens),),
        usage=calls.usage if calls else Usage(),
    )


def without_middle(text: str, tokens: int, count: Callable[[str], int]) -> str:
    """Return the first and the last words of a text, together so many tokens (LongBench's rule)."""
    words = text.split(" ")
    sizes = [count(f" {word}") for word in words]
    if sum(sizes) <= tokens:
        return text
    half, head, tail = tokens // 2, 0, len(words)
    left = half
    while left >= sizes[head]:
        left -= sizes[head]
        head += 1
    left = tokens - half
    while tail > head and left >= sizes[tail - 1]:
        left -= sizes[tail - 1]
        tail -= 1
    return " ".join([*words[:head], *words[tail:]])


def _require(item: Item) -> None:
    if item.labels.get("task") not in ("tsort", "bestanswer"):
        raise UsageError("this system answers TSort and BestAnswer only; see `qrmem eval list`")
