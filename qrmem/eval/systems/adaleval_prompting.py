"""Ada-LEval as in the paper, with the benchmark's own prompt and one reply; and by rules."""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import log, sqrt
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from qrmem.errors import ContextExceeded, UsageError, WindowTooSmall
from qrmem.eval.datasets.adaleval import asked, sample_order, strict_answer
from qrmem.eval.harness import Harness
from qrmem.eval.items import Context, Item, Prediction
from qrmem.eval.registry import system
from qrmem.eval.systems.ordering import order
from qrmem.types import Step

REPLY = 1024
"""Maximum tokens of a reply in the released evaluation."""


@system("ada-leval", "Ada-LEval's own prompt, one reply", "Ada-LEval")
@dataclass(frozen=True, slots=True, kw_only=True)
class Prompted:
    """Sends a whole case in the benchmark's prompt; the reply is scored without changes.

    A case that does not fit the window, or the server's context, gets no answer: it counts
    as wrong and as not following the instruction, as in the paper.

    Attributes:
        window: the model's own window.
        reply: tokens of the window reserved for the reply.
        body: maximum tokens of the parts or answers, whose middle is cut out; 0 for all (Table 10).
        sampling: `model` leaves the temperature to the model's server, as the paper does for open
            models; `greedy` sends 0, as it does for models with an API.
    """

    window: int = 128_000
    reply: int = REPLY
    body: int = 0
    sampling: Literal["greedy", "model"] = "greedy"

    needs = frozenset({"model"})

    async def __call__(self, item: Item, context: Context, harness: Harness) -> Prediction:
        """Answer one item."""
        require_case(item)
        texts = [document.text for document in context.documents]
        is_order = item.labels["task"] == "tsort"
        documents_shown = context.documents[1:-1] if is_order else context.documents
        body = "\n\n".join(f"{document.title}:\n{document.text}" for document in documents_shown)
        if self.body:
            body = without_middle(body, self.body, harness.tools.counter.count)
        if is_order:
            sample = sample_order(len(documents_shown))
            slots = dict(before=texts[0], parts=body, after=texts[-1])
            slots |= dict(count=str(len(documents_shown)), sample=str(sample))
        else:
            slots = dict(question=asked(item), answers=body)
        try:
            call = await harness.caller.say(
                "tsort" if is_order else "best-answer",
                lambda kept: slots,
                window=self.window,
                reply=self.reply,
                temperature=0.0 if self.sampling == "greedy" else None,
            )
        except (WindowTooSmall, ContextExceeded) as exc:
            step = Step(n=1, action="read", reason=f"no answer: {exc}")
            return Prediction(steps=(step,), reason=str(exc))
        return prediction(item, call.value, call.tokens)


@system("ada-rules", "parts put in order, answers chosen, by signals of the text", "ours")
@dataclass(frozen=True, slots=True, kw_only=True)
class ByRules:
    """Sorts parts and chooses answers without a chat model or an embedder."""

    async def __call__(self, item: Item, context: Context, harness: Harness) -> Prediction:
        """Answer one item."""
        require_case(item)
        texts = [document.text for document in context.documents]
        if item.labels["task"] == "tsort":
            return prediction(item, f"Answer: {order(texts[1:-1], texts[0], texts[-1])}")
        return prediction(item, f"Answer: A{best_answer(asked(item), texts) + 1}")


def prediction(item: Item, output: str, tokens: int = 0) -> Prediction:
    """Return a prediction from an output, with the answer that it names."""
    choice = strict_answer(output, len(item.choices)) if item.choices else None
    return Prediction(
        text=output,
        choice=None if choice is None else choice - 1,
        status="answered",
        steps=(Step(n=1, action="read", tokens=tokens),),
    )


def without_middle(text: str, tokens: int, count: Callable[[str], int]) -> str:
    """Return the start and the end of a text, together a number of tokens (LongBench's rule)."""
    words = text.split(" ")
    sizes = [count(f" {word}") for word in words]
    if sum(sizes) <= tokens:
        return text
    half, head, tail = tokens // 2, 0, len(words)
    tokens_left = half
    while tokens_left >= sizes[head]:
        tokens_left -= sizes[head]
        head += 1
    tokens_left = tokens - half
    while tail > head and tokens_left >= sizes[tail - 1]:
        tokens_left -= sizes[tail - 1]
        tail -= 1
    return " ".join([*words[:head], *words[tail:]])


def require_case(item: Item) -> None:
    """Check that an item is one of TSort's or BestAnswer's."""
    if item.labels.get("task") not in ("tsort", "bestanswer"):
        raise UsageError("this system answers TSort and BestAnswer only; see `qrmem eval list`")


# `ada-rules` chooses the most helpful of many answers by words of the question, and by form.
#
# The signals are superficial: the question's rare words and its code, whether an answer belongs to
# this question at all, length, code, and its beginning. No votes, no dates. Weights were fitted by
# `python -m tools.fit_adaleval`.


_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|\d+")
_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_CODE_LINE = re.compile(
    r".*[;{}]\s*$|^\s{2,}\S|.*\w\(.*\)|^[<$#>@.]|.*[=<>]=?\s*\S+.*[)\]\"';]\s*$"
)
_IDENTIFIER = re.compile(r"[a-z]+[A-Z]\w*|\w+_\w+|\w+\(\)|\w+\.\w+\b")
_LINK = re.compile(r"https?://")
_ASKS = re.compile(r"\?\s*$", re.MULTILINE)
_OF_ONESELF = re.compile(
    r"\b(?:same (?:problem|issue)|thanks|i (?:have|had|am|was|found|got|think))\b", re.IGNORECASE
)

SIGNALS = (
    "likeness",
    "share of the question's rare words",
    "likeness to the other answers",
    "has code",
    "identifiers of the question",
    "links",
    "asks",
    "of oneself",
    "length",
    "paragraphs",
)
"""The signals of an answer, in the order of `signals`."""
WEIGHTS = np.array([13.3, 3.97, -7.97, 0.12, 0.14, 0.21, -0.75, -0.37, 0.12, 0.27])


def best_answer(question: str, answers: Sequence[str]) -> int:
    """Return the index of the most likely answer, from 0; of ties the first."""
    return int(np.argmax(signals(question, answers) @ WEIGHTS))


def signals(question: str, answers: Sequence[str]) -> NDArray[np.float64]:
    """Return `(answers, signals)`, each signal with mean 0 over the answers of the question."""
    bags = [_bag(answer) for answer in answers]
    question_bag = _bag(question)
    rare = _rarity([question_bag, *bags])
    code = Counter(_IDENTIFIER.findall(question))
    rows = [
        _of_answer(question_bag, code, answer, bag, [b for b in bags if b is not bag], rare)
        for answer, bag in zip(answers, bags, strict=True)
    ]
    matrix = np.array(rows)
    return np.asarray(matrix - matrix.mean(axis=0))


def _of_answer(
    asked: Counter[str],
    code: Counter[str],
    answer: str,
    bag: Counter[str],
    others: Sequence[Counter[str]],
    rare: Mapping[str, float],
) -> list[float]:
    lines = [line for line in answer.split("\n") if line.strip()]
    identifiers = Counter(_IDENTIFIER.findall(answer))
    total = sum(rare[word] for word in asked) or 1.0
    return [
        _cosine(asked, bag, rare),
        sum(rare[word] for word in asked.keys() & bag.keys()) / total,
        sum(_cosine(bag, other, rare) for other in others) / max(1, len(others)),
        float(any(_CODE_LINE.match(line) for line in lines)),
        log(1 + len(code.keys() & identifiers.keys())),
        float(bool(_LINK.search(answer))),
        float(bool(_ASKS.search(answer))),
        float(bool(_OF_ONESELF.search(answer[:300]))),
        log(len(answer.split()) + 1),
        log(len(lines) + 1),
    ]


def _bag(text: str) -> Counter[str]:
    bag: Counter[str] = Counter()
    for word in _WORD.findall(text):
        parts = [part.lower() for part in _PART.findall(word)]
        bag.update(_stem(part) for part in parts if len(part) > 1)
        if len(parts) > 1:
            bag[word.lower()] += 1
    return bag


def _stem(word: str) -> str:
    for ending in ("ing", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


def _rarity(bags: Sequence[Counter[str]]) -> dict[str, float]:
    spread = Counter(word for bag in bags for word in bag)
    return {word: log((len(bags) + 1) / (count + 0.5)) for word, count in spread.items()}


def _cosine(one: Counter[str], other: Counter[str], rare: Mapping[str, float]) -> float:
    def weight(bag: Counter[str], word: str) -> float:
        return (1 + log(bag[word])) * rare.get(word, 1.0)

    shared = one.keys() & other.keys()
    if not shared:
        return 0.0
    product = sum(weight(one, word) * weight(other, word) for word in shared)
    return product / sqrt(
        sum(weight(one, word) ** 2 for word in one)
        * sum(weight(other, word) ** 2 for word in other)
    )
