"""Sorts the parts of a text without a model, by signals of adjacent parts and of order.

The signals are superficial: words and names that the end of one part shares with the
beginning of the next, continued speech, referents of pronouns, and nouns with "a" before the same
noun with "the". Weights were fitted by `python -m tools.fit_adaleval`.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise, permutations
from math import log, sqrt

import numpy as np
from numpy.typing import NDArray

from qrmem.text.words import STOP_WORDS

EDGES = (40, 120, 400)
"""Number of words to compare at the end of a part and at the beginning of the next."""
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_NAME = re.compile(r"(?<=[a-z,;:] )[A-Z][a-z]{2,}")
_QUOTE = '"“”‘«»'
_OPENS = re.compile(r"\s*[\"“‘«'—-]")
_INDEFINITE = re.compile(r"\b(?:a|an|one|some|another)\s+(?:[a-z]+\s+)?([a-z]{4,})\b")
_DEFINITE = re.compile(r"\b(?:the|this|that|his|her|their|my)\s+(?:[a-z]+\s+)?([a-z]{4,})\b")
_HE = re.compile(r"\b(?:he|him|his|himself)\b", re.IGNORECASE)
_SHE = re.compile(r"\b(?:she|her|hers|herself)\b", re.IGNORECASE)
_I = re.compile(r"\b(?:i|me|my|myself)\b", re.IGNORECASE)
_PAST = re.compile(r"\b(?:was|were|had|said|did|[a-z]{3,}ed)\b", re.IGNORECASE)

PAIR = (
    *(f"shared words, {size}" for size in EDGES),
    *(f"shared names, {size}" for size in EDGES[1:]),
    "shared names, whole",
    "both in speech",
    "speech answers a question",
    "speech is announced",
    "same persons",
    "same tense",
    "paragraphs of one length",
)
"""Signals of a part directly before another."""
PAIR_WEIGHTS = np.array([13.5, 14.7, 27.2, 0.62, 0.78, 0.27, 0.37, 1.09, 3.44, 0.28, 1.26, 0.20])
BROUGHT_IN = 0.035
"""Weight of rare words with "a" in one part and with "the" in a later one."""


@dataclass(frozen=True, slots=True)
class _Part:
    """The compared features of a part."""

    heads: tuple[Counter[str], ...]
    tails: tuple[Counter[str], ...]
    whole: Counter[str]
    name_heads: tuple[frozenset[str], ...]
    name_tails: tuple[frozenset[str], ...]
    names: frozenset[str]
    first: str
    last: str
    brought: frozenset[str]
    known: frozenset[str]


def order(parts: Sequence[str], before: str, after: str) -> list[int]:
    """Return the most likely order of parts: their numbers, from 1, first part first.

    Args:
        parts: the parts.
        before: the text directly before the parts; it may be empty.
        after: the text directly after the parts; it may be empty.
    """
    places = list(permutations(range(1, len(parts) + 1)))
    order_found = of_orders(signals([before, *parts, after]), places)
    return list(places[int(np.argmax(order_found @ np.append(PAIR_WEIGHTS, BROUGHT_IN)))])


def of_orders(found: NDArray[np.float64], places: Sequence[Sequence[int]]) -> NDArray[np.float64]:
    """Return the sums of signals for each order.

    Args:
        found: the result of `signals`.
        places: the orders of the parts between the first and the last text.

    Returns:
        `(orders, len(PAIR) + 1)`: sums over adjacent parts, then over every part before a later
        one.
    """
    rows = np.zeros((len(places), found.shape[2]))
    for row, order in zip(rows, places, strict=True):
        for a, b in pairwise((0, *order, len(found) - 1)):
            row[:-1] += found[a, b, :-1]
        for a, b in combinations(order, 2):
            row[-1] += found[a, b, -1]
    return rows


def signals(texts: Sequence[str]) -> NDArray[np.float64]:
    """Return the signals of every text before every other.

    Returns:
        `(n, n, len(PAIR) + 1)` by the index of the first and of the second text. The last signal is
        the number of words that the first text introduces and the second knows, minus the reverse.
    """
    part_signals = [_part(text) for text in texts]
    rare = _weights([part.whole for part in part_signals])
    matrix = np.zeros((len(part_signals), len(part_signals), len(PAIR) + 1))
    for a, one in enumerate(part_signals):
        for b, other in enumerate(part_signals):
            if a != b:
                matrix[a, b] = [*_pair(one, other, rare), _brought_in(one, other, rare)]
    matrix[:, :, -1] -= matrix[:, :, -1].T.copy()
    return matrix


def _part(text: str) -> _Part:
    paragraphs = [line for line in text.split("\n") if line.strip()] or [""]
    words = [word.lower() for word in _WORD.findall(text)]
    names = _NAME.findall(text)
    spread = [(match.start(), match[0]) for match in _NAME.finditer(text)]
    lower = text.lower()
    return _Part(
        heads=tuple(_bag(words[:size]) for size in EDGES),
        tails=tuple(_bag(words[-size:]) for size in EDGES),
        whole=_bag(words),
        name_heads=tuple(frozenset(w for at, w in spread if at < 6 * size) for size in EDGES[1:]),
        name_tails=tuple(
            frozenset(w for at, w in spread if at > len(text) - 6 * size) for size in EDGES[1:]
        ),
        names=frozenset(names),
        first=paragraphs[0],
        last=paragraphs[-1],
        brought=frozenset(_INDEFINITE.findall(lower)),
        known=frozenset(_DEFINITE.findall(lower)),
    )


def _bag(words: Sequence[str]) -> Counter[str]:
    return Counter(_stem(word) for word in words if word not in STOP_WORDS and len(word) > 2)


def _stem(word: str) -> str:
    for ending in ("'s", "’s", "ing", "ed", "es", "ly", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word[: -len(ending)]
    return word


def _weights(bags: Sequence[Counter[str]]) -> dict[str, float]:
    """Return the rarity of each word among the parts of a case."""
    spread = Counter(word for bag in bags for word in bag)
    return {word: log((len(bags) + 1) / count) for word, count in spread.items()}


def _likeness(one: Counter[str], other: Counter[str], rare: dict[str, float]) -> float:
    shared = one.keys() & other.keys()
    if not shared:
        return 0.0
    product = sum(rare[word] ** 2 * (1 + log(min(one[word], other[word]))) for word in shared)
    sizes = [sum(rare[word] ** 2 for word in bag) for bag in (one, other)]
    return product / sqrt(sizes[0] * sizes[1])


def _overlap(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / sqrt(len(one) * len(other)) if one and other else 0.0


def _pair(one: _Part, other: _Part, rare: dict[str, float]) -> list[float]:
    ends_in_speech = bool(one.last) and (one.last[-1] in _QUOTE or one.last[-1] == "'")
    opens_in_speech = bool(_OPENS.match(other.first))
    in_speech = [any(q in text for q in _QUOTE) for text in (one.last, other.first)]
    lengths = [len(text.split()) for text in (one.last, other.first)]
    return [
        *(_likeness(a, b, rare) for a, b in zip(one.tails, other.heads, strict=True)),
        *(_overlap(a, b) for a, b in zip(one.name_tails, other.name_heads, strict=True)),
        _overlap(one.names, other.names),
        float(in_speech[0] == in_speech[1]),
        float(opens_in_speech and ends_in_speech and "?" in one.last[-3:]),
        float(opens_in_speech and one.last[-1:] in ":,—-;"),
        _same(one.last, other.first, (_HE, _SHE, _I)),
        _same(one.last, other.first, (_PAST,)),
        -abs(log(max(1, lengths[0])) - log(max(1, lengths[1]))),
    ]


def _same(one: str, other: str, patterns: Sequence[re.Pattern[str]]) -> float:
    """Return the similarity of two texts by counts of patterns; a cosine for several patterns."""
    shares = []
    for text in (one, other):
        words = max(1, len(text.split()))
        shares.append([len(pattern.findall(text)) / words for pattern in patterns])
    if len(patterns) == 1:
        return -abs(shares[0][0] - shares[1][0])
    sizes = [sqrt(sum(x * x for x in share)) for share in shares]
    if not all(sizes):
        return 0.0
    shared = sum(a * b for a, b in zip(shares[0], shares[1], strict=True))
    return shared / (sizes[0] * sizes[1])


def _brought_in(one: _Part, other: _Part, rare: dict[str, float]) -> float:
    words = one.brought & other.known - other.brought
    return sum(rare.get(_stem(word), 0.0) for word in words)
