"""Chooses the most helpful of many answers without a model: by words of the question, and by form.

The signals are superficial: the question's rare words and its code, whether an answer belongs to
this question at all, length, code, and its beginning. No votes, no dates. Weights were fitted by
`python -m tools.fit_adaleval`.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from math import log, sqrt

import numpy as np
from numpy.typing import NDArray

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
