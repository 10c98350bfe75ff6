"""Fits the weights of the search's features: they stand in `qrmem/retrieval/ranking.py`.

    QRMEM_DATA=… python -m tools.fit_search [--kept FOLDER]

A conditional logit: each gold passage against all candidates that are none, over the questions that
are never measured. No weight may be below 0, so that each feature speaks for a segment and an
explanation of a hit holds. It is convex and draws nothing at random: the same data, whose checksums
are printed, give the same weights.
"""

import argparse
import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks import multihop
from benchmarks.search_memories import Built, built, findings, passage
from qrmem.retrieval.ranking import FEATURES

FITTED = {"musique-fit": 200.0, "hotpotqa": 100.0, "2wikimultihopqa": 100.0, "xquad": 60.0}
"""What the fitted questions of each set count together, without an embedder.

The ordinary questions of `xquad` keep a search from looking past a passage that answers alone.
"""
EMBEDDED = ("musique-fit", "xquad")
"""Sets that are fitted with an embedder too, and count as much again: one set of weights serves
memories with vectors and without."""
AT_MOST = 200
"""Questions of a set, the first ones."""
RIDGE = 1e-4
"""Penalty on squared weights, per question."""
FILES = (
    "musique/migres_dev200.jsonl",
    "hotpotqa/rpt_train300.jsonl",
    "hotpotqa/hippo_train100.json",
    "2wikimultihopqa/migres_train500_llm_decomp.jsonl",
    "squad/xquad.en.json",
)


@dataclass(frozen=True, slots=True)
class Example:
    """One question: features of its gold candidates and of the others, and what it counts."""

    gold: NDArray[np.float64]
    others: NDArray[np.float64]
    weight: float


async def examples(memory: Built, names: Sequence[str], counting: float) -> list[Example]:
    """Return the fitted questions of a memory that have gold among their candidates.

    Args:
        memory: a corpus.
        names: features.
        counting: what its questions count together.
    """
    searcher = memory.searcher()
    asked = memory.corpus.fitted[:AT_MOST]
    result = []
    for question in asked:
        found = (await findings(searcher, question.text)).evidence
        assert found is not None
        table = np.stack([FEATURES[name](found) for name in names], axis=1)
        owners = [passage(found.near.entries[row].document_id) for row in found.rows.tolist()]
        is_gold = np.array([owner in question.gold for owner in owners], dtype=bool)
        if is_gold.any() and not is_gold.all():
            share = counting / len(asked) / int(is_gold.sum())
            result.append(Example(table[is_gold], table[~is_gold], share))
    return result


def fitted(data: Sequence[Example]) -> NDArray[np.float64]:
    """Return the weights with the least loss, none of them below 0."""
    from scipy.optimize import minimize

    start = np.ones(data[0].gold.shape[1])
    found = minimize(_loss, start, (data,), jac=True, bounds=[(0, None)] * start.size)
    weights: NDArray[np.float64] = found.x
    return weights


def _loss(
    weights: NDArray[np.float64], data: Sequence[Example]
) -> tuple[float, NDArray[np.float64]]:
    """Return the loss and its slope."""
    ridge = RIDGE * sum(example.weight * len(example.gold) for example in data)
    value = 0.5 * ridge * float(weights @ weights)
    slope = ridge * weights
    for example in data:
        top = max((example.gold @ weights).max(), (example.others @ weights).max())
        theirs = np.exp(example.others @ weights - top)
        first = theirs @ example.others
        for likely, row in zip(np.exp(example.gold @ weights - top), example.gold, strict=True):
            total = theirs.sum() + likely
            value -= example.weight * float(np.log(likely / total))
            slope = slope + example.weight * ((first + likely * row) / total - row)
    return value, slope


async def gathered(folder: Path, names: Sequence[str]) -> list[Example]:
    """Return the fitted questions of all sets, with their features of these names."""
    data: list[Example] = []
    for name, counting in FITTED.items():
        corpus = multihop.load(name, multihop.folder())
        for embedded in (False, True) if name in EMBEDDED else (False,):
            async with built(corpus, folder, embedded=embedded) as memory:
                data += await examples(memory, names, counting)
    return data


async def main(folder: Path) -> None:
    """Print the weights, and the checksum of each file that they were fitted on."""
    names = list(FEATURES)
    weights = fitted(await gathered(folder, names)).tolist()
    print({name: round(weight, 2) for name, weight in zip(names, weights, strict=True)})
    for path in FILES:
        print(hashlib.sha256((multihop.folder() / path).read_bytes()).hexdigest(), path)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(allow_abbrev=False, description=__doc__)
    parser.add_argument("--kept", type=Path, default=Path("build/benchmarks"))
    kept = parser.parse_args().kept
    kept.mkdir(parents=True, exist_ok=True)
    asyncio.run(main(kept))
