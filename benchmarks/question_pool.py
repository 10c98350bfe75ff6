"""How the time of the question pool grows, and how far it is from comparing all pairs.

    python benchmarks/question_pool.py [--questions 100000] [--pairs 10000]

Questions are made of words drawn by Zipf's law from a vocabulary of 60,000, as in long texts, each
with a question word and an auxiliary in front; every tenth is an earlier one with one word changed.
"""

import argparse
import itertools
import random
import time
from collections.abc import Iterator, Sequence

from rapidfuzz import process
from rapidfuzz.distance import LCSseq

from qrmem.graph.questions import QuestionPool, least_overlap

_OPENINGS = ("who did", "what is", "where was", "when did the", "why does the", "how many of the")
_VOCABULARY = 60_000


def questions(count: int, seed: int = 0) -> list[str]:
    """Return questions of 5 to 18 words."""
    rng = random.Random(seed)
    weights = list(itertools.accumulate(1 / (rank + 2.7) for rank in range(_VOCABULARY)))
    made: list[str] = []
    while len(made) < count:
        if made and rng.random() < 0.1:
            words = rng.choice(made).split()
            words[rng.randrange(len(words))] = f"word{rng.randrange(_VOCABULARY)}"
        else:
            drawn = rng.choices(range(_VOCABULARY), cum_weights=weights, k=rng.randrange(3, 15))
            words = [rng.choice(_OPENINGS), *(f"word{rank}" for rank in drawn)]
        made.append(" ".join(words))
    return made


def by_all_pairs(texts: Sequence[str]) -> int:
    """Return how many questions a pool takes that compares each with all that are in."""
    codes: dict[str, int] = {}
    kept: dict[int, list[str]] = {}
    for text in texts:
        coded = "".join(chr(codes.setdefault(word, len(codes) + 1)) for word in text.split())
        if not any(
            process.extractOne(
                coded,
                others,
                scorer=LCSseq.similarity,
                score_cutoff=least_overlap(len(coded), length),
            )
            for length, others in kept.items()
        ):
            kept.setdefault(len(coded), []).append(coded)
    return sum(map(len, kept.values()))


def timed(texts: Sequence[str], marks: Sequence[int]) -> Iterator[tuple[int, int, float]]:
    """Yield (questions, accepted, seconds) at each mark."""
    pool = QuestionPool()
    start = time.perf_counter()
    for number, text in enumerate(texts, 1):
        pool.accept(text)
        if number in marks:
            yield number, len(pool), time.perf_counter() - start


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=100_000)
    parser.add_argument("--pairs", type=int, default=10_000)
    options = parser.parse_args()
    texts = questions(options.questions)
    seconds = {}
    for number, accepted, taken in timed(texts, sorted({options.pairs, len(texts)})):
        seconds[number] = taken
        each = 1000 * taken / number
        print(f"{number:>7} questions: {accepted} accepted, {taken:.2f} s, {each:.3f} ms each")
    start = time.perf_counter()
    accepted = by_all_pairs(texts[: options.pairs])
    all_pairs = time.perf_counter() - start
    print(f"{options.pairs:>7} by all pairs: {accepted} accepted, {all_pairs:.2f} s")
    print(f"all pairs / pool: {all_pairs / seconds[options.pairs]:.1f}")


if __name__ == "__main__":
    main()
