"""Fits the weights of the search's features.

    QRMEM_DATA=… python -m tools.fit_search [--kept FOLDER] [--embedder light:FOLDER] [--left-out]

A conditional logit: each gold passage against all candidates that are none, over the questions that
are never measured. No weight may be below 0, so that each feature speaks for a segment and an
explanation of a hit holds. It is convex and draws nothing at random: the same data, whose checksums
are printed, give the same weights. Every set counts the same, however many questions it has. With
`--left-out` each set's measured questions are asked, too: by weights that were fitted on all sets,
and by weights that were fitted on the other ones alone.
"""

import argparse
import asyncio
import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks import multihop, rare_words
from benchmarks.search_memories import Built, built, findings, passage
from qrmem.retrieval.ranking import FEATURES

FITTED = ("musique-fit", "hotpotqa", "2wikimultihopqa", "xquad", "rare words")
"""The sets. Half of what one counts are its questions with the embedder, half the same without: one
set of weights serves memories with vectors and without. Rare words are asked without it alone.

The ordinary questions of `xquad` keep a search from looking past a passage that answers alone,
those about rare words from leaving the word for names.
"""
MEASURED = {"musique-fit": "musique"}
"""Sets whose measured questions are asked of another corpus than the fitted ones."""
RARE_WORDS = (20, 70)
"""Questions about rare words of each novel: the first ones are measured, the next are fitted."""
AT_MOST = {"hotpotqa": 100, "2wikimultihopqa": 80, "xquad": 60}
"""Questions that are fitted of a set, the first ones; 200 where nothing else is said."""
RIDGE = 0.02
"""Penalty on squared weights, per set: the larger it is, the less the weights follow one set."""
LENIENT = {"telling words": 0.37}
"""Share of the penalty for a feature that few questions need: it is small for all other ones."""
TOTAL = 22.0
"""Sum of the printed weights. It changes no order; the scores of hits keep their spread."""
FIRST = 5
"""Passages that a left-out set's recall counts."""
FILES = (
    "musique/migres_dev200.jsonl",
    "hotpotqa/rpt_train300.jsonl",
    "hotpotqa/hippo_train100.json",
    "2wikimultihopqa/migres_train500_llm_decomp.jsonl",
    "squad/xquad.en.json",
    "gutenberg/84_frankenstein.txt",
    "gutenberg/1342_pride_and_prejudice.txt",
)

Asked = tuple[str, frozenset[int] | frozenset[str]]
"""A question, with its gold passages or segments."""


@dataclass(frozen=True, slots=True)
class Table:
    """One question: features of its candidates, `(c, f)`, what each belongs to, and its gold."""

    features: NDArray[np.float64]
    owners: Sequence[int | str]
    gold: frozenset[int] | frozenset[str]

    @property
    def is_gold(self) -> NDArray[np.bool_]:
        """Which candidates are gold."""
        return np.array([owner in self.gold for owner in self.owners], dtype=bool)

    def recall(self, weights: NDArray[np.float64]) -> float:
        """Return how much of the gold that has room there is among the first."""
        order = np.argsort(-(self.features @ weights), kind="stable")
        first = list(dict.fromkeys(self.owners[row] for row in order.tolist()))[:FIRST]
        return len(self.gold.intersection(first)) / min(FIRST, len(self.gold))


@dataclass(frozen=True, slots=True)
class Example:
    """One question: features of its gold candidates and of the others, and what it counts."""

    gold: NDArray[np.float64]
    others: NDArray[np.float64]
    weight: float


async def tables(memory: Built, asked: Sequence[Asked], names: Sequence[str]) -> list[Table]:
    """Return the candidates of some questions, with their features of these names."""
    searcher, by_segment = memory.searcher(), len(memory.corpus.passages) == 1
    result = []
    for text, gold in asked:
        found = (await findings(searcher, text)).explored
        if found is None:  # no segment has a word of it
            result.append(Table(np.zeros((0, len(names))), (), gold))
            continue
        entries = [found.near.entries[row] for row in found.rows.tolist()]
        owners = [one.id if by_segment else passage(one.document_id) for one in entries]
        features = np.stack([FEATURES[name](found) for name in names], axis=1)
        result.append(Table(features, owners, gold))
    return result


def examples(asked: Sequence[Table], counting: float) -> list[Example]:
    """Return the questions that have gold among their candidates; together they count so much."""
    found = [table for table in asked if 0 < table.is_gold.sum() < table.is_gold.size]
    return [
        Example(
            one.features[one.is_gold],
            one.features[~one.is_gold],
            counting / len(asked) / int(one.is_gold.sum()),
        )
        for one in found
    ]


def fitted(data: Sequence[Example], ridge: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the weights with the least loss and penalty, none of them below 0."""
    from scipy.optimize import minimize

    start = np.ones(ridge.size)
    found = minimize(_loss, start, (data, ridge), jac=True, bounds=[(0, None)] * start.size)
    weights: NDArray[np.float64] = found.x * TOTAL / found.x.sum()
    return weights


def _loss(
    weights: NDArray[np.float64], data: Sequence[Example], ridge: NDArray[np.float64]
) -> tuple[float, NDArray[np.float64]]:
    """Return the loss with its penalty, and its slope."""
    slope = ridge * weights * sum(example.weight * len(example.gold) for example in data)
    value = 0.5 * float(slope @ weights)
    for example in data:
        top = max((example.gold @ weights).max(), (example.others @ weights).max())
        theirs = np.exp(example.others @ weights - top)
        first = theirs @ example.others
        for likely, row in zip(np.exp(example.gold @ weights - top), example.gold, strict=True):
            total = theirs.sum() + likely
            value -= example.weight * float(np.log(likely / total))
            slope = slope + example.weight * ((first + likely * row) / total - row)
    return value, slope


Sets = Mapping[tuple[str, bool], Sequence[Table]]
"""Questions by their set, and whether there was an embedder."""


async def gathered(chosen: argparse.Namespace, names: Sequence[str], *, fitting: bool) -> Sets:
    """Return the fitted questions of all sets, or the measured ones, with these features."""
    found = {}
    for name in FITTED:
        for embedded in (False,) if name == "rare words" else (False, True):
            asked: list[Table] = []
            embedder = chosen.embedder if embedded else "none"
            for corpus in _corpora(name, fitting=fitting):
                async with built(corpus, chosen.kept, embedder=embedder) as memory:
                    questions = await _questions(memory, fitting=fitting)
                    asked += await tables(
                        memory, questions[: AT_MOST.get(name, 200) if fitting else None], names
                    )
            found[name, embedded] = asked
    return found


def _corpora(name: str, *, fitting: bool) -> Sequence[multihop.Corpus]:
    if name == "rare words":
        return list(rare_words.corpora())
    return [multihop.load(name if fitting else MEASURED.get(name, name), multihop.folder())]


async def _questions(memory: Built, *, fitting: bool) -> list[Asked]:
    corpus = memory.corpus
    if len(corpus.passages) == 1:
        asked = await rare_words.questions(memory)
        kept = slice(*RARE_WORDS) if fitting else slice(RARE_WORDS[0])
        return [(one.question, one.segments) for one in asked[kept]]
    return [(one.text, one.gold) for one in (corpus.fitted if fitting else corpus.measured)]


def weights_of(sets: Sets, without: str = "") -> NDArray[np.float64]:
    """Return the weights that are fitted on all sets but one."""
    kinds = Counter(name for name, _ in sets)
    data = [
        one
        for (name, _), asked in sets.items()
        if name != without
        for one in examples(asked, 1 / kinds[name])
    ]
    return fitted(data, RIDGE * np.array([LENIENT.get(name, 1.0) for name in FEATURES]))


async def main(chosen: argparse.Namespace) -> None:
    """Print the weights, and the checksum of each file that they were fitted on."""
    names = list(FEATURES)
    sets = await gathered(chosen, names, fitting=True)
    weights = weights_of(sets)
    print(dict(zip(names, weights.round(2).tolist(), strict=True)))
    if chosen.left_out:
        for (name, embedded), asked in (await gathered(chosen, names, fitting=False)).items():
            for how, used in (("all sets", weights), ("the others", weights_of(sets, name))):
                share = 100 * np.mean([table.recall(used) for table in asked])
                embedder = "with" if embedded else "without"
                print(f"R@{FIRST} of {name}, {embedder} the embedder, by {how}: {share:.1f} %")
    for path in FILES:
        print(hashlib.sha256((multihop.folder() / path).read_bytes()).hexdigest(), path)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(allow_abbrev=False, description=__doc__)
    parser.add_argument("--kept", type=Path, default=Path("build/benchmarks"))
    parser.add_argument("--embedder", default="local", help="`local`, or `light:FOLDER`")
    parser.add_argument("--left-out", action="store_true", help="measure each set left out in turn")
    arguments = parser.parse_args()
    arguments.kept.mkdir(parents=True, exist_ok=True)
    asyncio.run(main(arguments))
