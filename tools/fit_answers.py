"""Fits what the features of a short answer's candidates count, and writes the weights.

    QRMEM_DATA=… python -m tools.fit_answers [--kept FOLDER]

A log-linear model over the candidates of a question's first five passages: their share of the
probability is to be that of the words they have in common with the answer, squared. Only questions
that are never measured are used. Nothing is drawn at random, so that the same data give the same
weights.
"""

import argparse
import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks import multihop
from benchmarks.multihop import Asked
from benchmarks.search_memories import NAMESPACE, Built, built
from qrmem.eval.metrics.answers import token_f1
from qrmem.language.local.brief import weights as written
from qrmem.language.local.brief.candidates import Candidate, Field
from qrmem.language.local.brief.following import anchors, asked_relations, follow
from qrmem.language.local.brief.told import told
from qrmem.language.local.evidence import Evidence
from qrmem.language.local.query import query
from qrmem.types import Passage

FITTED = ("musique-fit", "hotpotqa", "2wikimultihopqa", "xquad")
PASSAGES = 5
RIDGE = 0.01
"""Penalty on squared weights."""
RAREST = 20
"""Candidates that must have a feature for it to count."""
_ROUNDS, _STEP = 250, 0.15
_SMALLEST = 0.05
"""Weights below it are left out."""


@dataclass(frozen=True, slots=True)
class Example:
    """One question: features of its candidates, and how good an answer each is."""

    table: NDArray[np.float64]
    worth: NDArray[np.float64]


async def candidates(memory: Built, asked: Asked) -> Sequence[tuple[Candidate, float]]:
    """Return the candidates of a question, with F1 against its answers."""
    hits = await memory.searcher().search(asked.text, k=PASSAGES)
    found = await memory.store.segments(NAMESPACE, [hit.segment_id for hit in hits])
    segments = {segment.id: segment for segment in found}
    passages = [
        Passage(f"S{n}", segments[hit.segment_id], hit.title) for n, hit in enumerate(hits, 1)
    ]
    among = told(passages)
    named = anchors(asked.text, among)
    paths = [
        follow(a.told, asked_relations(asked.text, (a.start, a.end)), among) for a in named[:3]
    ]
    field = Field(Evidence(query(asked.text), passages), among, named, paths)
    return [(c, token_f1(c.text, asked.answers)) for c in field.candidates()]


def fit(examples: Sequence[Example]) -> NDArray[np.float64]:
    """Return the weights, by Adam's steps over all examples."""
    size = examples[0].table.shape[1]
    weights, first, second = np.zeros(size), np.zeros(size), np.zeros(size)
    for turn in range(1, _ROUNDS + 1):
        slope = sum((_slope(example, weights) for example in examples), np.zeros(size))
        slope = slope / len(examples) + RIDGE * weights
        first, second = 0.9 * first + 0.1 * slope, 0.99 * second + 0.01 * slope**2
        even = np.sqrt(second / (1 - 0.99**turn)) + 1e-8
        weights = weights - _STEP * first / (1 - 0.9**turn) / even
    return weights


def _slope(example: Example, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    scores = example.table @ weights
    share = np.exp(scores - scores.max())
    share /= share.sum()
    right = share * example.worth**2
    return np.asarray(example.table.T @ (share - right / (right.sum() + 1e-9)))


def _examples(
    questions: Sequence[Sequence[tuple[Candidate, float]]], names: Sequence[str]
) -> Iterator[Example]:
    column = {name: n for n, name in enumerate(names)}
    for found in questions:
        if max((worth for _, worth in found), default=0.0) < 0.3:
            continue
        table = np.zeros((len(found), len(names)))
        for row, (candidate, _) in enumerate(found):
            for name, value in candidate.features.items():
                if name in column:
                    table[row, column[name]] = value
        yield Example(table, np.array([worth for _, worth in found]))


def _names(questions: Sequence[Sequence[tuple[Candidate, float]]]) -> list[str]:
    counts: dict[str, int] = {}
    for found in questions:
        for candidate, _ in found:
            for name in candidate.features:
                counts[name] = counts.get(name, 0) + 1
    return sorted(name for name, count in counts.items() if count > RAREST)


def _write(names: Sequence[str], weights: NDArray[np.float64]) -> None:
    rows = [
        f'    "{name}": {weight:.2f},'
        for name, weight in zip(names, weights, strict=True)
        if abs(weight) >= _SMALLEST
    ]
    head = (
        '"""What each feature of a candidate counts; fitted by `python -m tools.fit_answers`.'
        '"""\n\nfrom collections.abc import Mapping\n\nWEIGHTS: Mapping[str, float] = {\n'
    )
    Path(str(written.__file__)).write_text(head + "\n".join(rows) + "\n}\n", encoding="utf-8")


async def _main(folder: Path) -> None:
    data = multihop.folder()
    questions = []
    for name in FITTED:
        async with built(multihop.load(name, data), folder, embedded=False) as memory:
            fitted = memory.corpus.fitted
            questions += [await candidates(memory, asked) for asked in fitted]
            print(f"{name}: {len(fitted)} questions", flush=True)
    names = _names(questions)
    examples = list(_examples(questions, names))
    _write(names, fit(examples))
    print(f"{len(names)} features, {len(examples)} questions that have an answer")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kept", type=Path, default=Path("build/benchmarks"))
    chosen = parser.parse_args()
    chosen.kept.mkdir(parents=True, exist_ok=True)
    asyncio.run(_main(chosen.kept))
