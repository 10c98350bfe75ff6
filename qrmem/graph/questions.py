"""Selection of generated questions for a document's pool (QRMeM, section 2.1).

A question is accepted if its ROUGE-L F with every pooled question is below 0.6. The decision is
exact but compares few questions: F is at least 0.6 only if two questions share `least_overlap`
words one to one. So one of the rarest `length - least_overlap + 1` words of the new question
must occur in the other, and the lengths bound each other. Only candidates from lists by
length and word are compared.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import lru_cache

from rapidfuzz import process
from rapidfuzz.distance import LCSseq

from qrmem.text.words import THRESHOLD, fmeasure, tokens
from qrmem.types import Contribution

_OCCURRENCE = 1 << 32
"""A word with the number of its occurrence, so that words are shared one to one."""


@lru_cache(maxsize=1 << 16)
def least_overlap(first: int, second: int) -> int:
    """Return the least length of a common subsequence that makes two questions too similar.

    Args:
        first: number of words of one question.
        second: number of words of the other.

    Returns:
        A number above the shorter length if no overlap is enough.
    """
    shorter = min(first, second)
    overlap = min(3 * (first + second) // 10, shorter)
    while overlap <= shorter and fmeasure(overlap, first, second) < THRESHOLD:
        overlap += 1
    return overlap


class QuestionPool:
    """The accepted questions of one document."""

    def __init__(self, seeds: Iterable[str] = ()) -> None:
        """Make a pool.

        Args:
            seeds: questions that are in the pool from the start, unchecked (the user's question).
        """
        self._codes: dict[str, int] = {}
        self._used: Counter[int] = Counter()
        self._exact: set[str] = set()
        self._lists: dict[int, dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
        for seed in seeds:
            coded = self._coded(seed)
            if coded:
                self._add(coded)

    def __len__(self) -> int:
        """Return how many distinct questions it holds, seeds included."""
        return len(self._exact)

    def accept(self, text: str) -> bool:
        """Accept a question unless it is too similar to an accepted one; return whether it was.

        A question without a word is rejected.
        """
        coded = self._coded(text)
        if not coded or self._has_alike(coded):
            return False
        self._add(coded)
        return True

    def _coded(self, text: str) -> list[int]:
        codes = self._codes
        return [codes.setdefault(word, len(codes) + 1) for word in tokens(text)]

    def _add(self, coded: list[int]) -> None:
        question = _comparable(coded)
        if question in self._exact:
            return
        self._exact.add(question)
        lists = self._lists[len(coded)]
        for word in _one_to_one(coded):
            self._used[word] += 1
            lists[word].append(question)

    def _has_alike(self, coded: list[int]) -> bool:
        question = _comparable(coded)
        if question in self._exact:
            return True
        rarest = sorted(_one_to_one(coded), key=self._used.__getitem__)
        return any(
            self._has_alike_of(length, question, rarest)
            for length in sorted(self._lists, key=lambda other: (abs(other - len(coded)), other))
        )

    def _has_alike_of(self, length: int, question: str, rarest: list[int]) -> bool:
        least = least_overlap(len(rarest), length)
        if least > min(len(rarest), length):
            return False
        lists = self._lists[length]
        candidates: set[str] = set()
        for word in rarest[: len(rarest) - least + 1]:
            if word in lists:
                candidates.update(lists[word])
        if not candidates:
            return False
        best = process.extractOne(
            question, candidates, scorer=LCSseq.similarity, score_cutoff=least
        )
        return best is not None


def _comparable(coded: list[int]) -> str:
    """Return a question with a character for each word, as strings are compared fastest."""
    return "".join(map(chr, coded))


def _one_to_one(coded: list[int]) -> list[int]:
    if len(set(coded)) == len(coded):
        return coded
    counts: Counter[int] = Counter()
    words = []
    for word in coded:
        words.append(word + counts[word] * _OCCURRENCE)
        counts[word] += 1
    return words


def accept_in_order(
    extractions: Sequence[Contribution], seeds: Sequence[str] = ()
) -> list[tuple[str, ...]]:
    """Accept or reject a document's generated questions, with one pool, in segment order.

    Args:
        extractions: contributions in segment order, so that parallel reading does not matter.
        seeds: questions that are in the pool already.

    Returns:
        The accepted questions of each extraction, in its order.
    """
    pool = QuestionPool(seeds)
    return [
        tuple(question for question in extraction.questions if pool.accept(question))
        for extraction in extractions
    ]
