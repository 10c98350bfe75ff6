"""Recall of gold passages, with and without the embedder, beside BM25 and it alone.

    QRMEM_DATA=… python -m benchmarks recall [--kept FOLDER] [--parts]

Questions that weights are fitted on are never measured. `--parts` switches each part off in turn,
counts what is missed by kind, and loads GPT-3.5's triples.
"""

import argparse
import asyncio
import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks import multihop
from benchmarks.frame import Figure, note
from benchmarks.search_memories import Built, built, passage
from qrmem.retrieval import Searcher, SearchSettings, fusion
from qrmem.retrieval.columns import Columns
from qrmem.retrieval.features import Evidence
from qrmem.retrieval.searcher import Findings
from tools import fit_search, openie_recall

AT = (1, 2, 5, 10)
MEASURED = ("musique", "hotpotqa", "2wikimultihopqa", "xquad")
_DEEP = 2 * max(AT)

PARTS: Mapping[str, Collection[str]] = {
    "PageRank": ("walk", "walk, rank"),
    "what a segment adds to the best seeds": ("gain",),
    "links to titles": ("titles, one hop", "titles, two hops", "titles, rank"),
    "links to shared names": ("shared names",),
    "second query": ("residual", "residual, rank"),
    "names in titles": ("names in titles",),
    "names in the question": ("named",),
    "words (BM25)": ("lexical", "lexical, leading"),
    "meaning (embedder)": ("dense",),
    "order of these three together": ("direct, rank",),
}
"""Features that go together; the candidates stay, whichever is taken out."""


@dataclass(slots=True)
class Tally:
    """Recall of one way to rank, question by question."""

    shares: list[list[float]] = field(default_factory=list)

    def count(self, gold: frozenset[int], passages: Sequence[int]) -> None:
        """Take the ranking of one question."""
        self.shares.append([len(gold & set(passages[:k])) / len(gold) for k in AT])

    @property
    def recall(self) -> list[float]:
        """Return the mean share of gold among the first k of `AT`, in per cent."""
        return [100 * float(share) for share in np.mean(self.shares, axis=0)]

    @property
    def error(self) -> float:
        """Return the standard error of R@5, in points."""
        fives = [row[AT.index(5)] for row in self.shares]
        return 100 * float(np.std(fives)) / math.sqrt(len(fives))


def systems(*, embedded: bool) -> Iterator[tuple[str, SearchSettings]]:
    """Yield what is compared, with its name."""
    yield "BM25", SearchSettings(graph=False, dense=0, names=0, lexical=1)
    if embedded:
        yield "embedder", SearchSettings(graph=False, lexical=0, names=0, dense=1)
    yield "no link followed: words, meaning, titles", SearchSettings(graph=False)


async def without_parts(folder: Path, *, embedded: bool) -> Mapping[str, SearchSettings]:
    """Return settings without each part, by its name: fitted again on what is left."""
    names, data = await fit_search.gathered(folder, embedded=embedded)
    return {
        f"without {part}": SearchSettings(features=fit_search.weights(names, data, features))
        for part, features in PARTS.items()
        if set(features) <= set(names)
    }


class Ranking:
    """What a search over one memory finds, as passages."""

    def __init__(self, memory: Built, columns: Columns) -> None:
        self._places = np.array([passage(name) for name in columns.catalog.document_ids])
        self._ranks = columns.ranks
        self.row_of = {int(place): row for row, place in enumerate(self._places)}

    def passages(self, scores: NDArray[np.float64]) -> list[int]:
        """Return the passages of the best segments, each once."""
        rows = [row for row in fusion.best(scores, self._ranks, _DEEP) if scores[row] > 0]
        return list(dict.fromkeys(self._places[rows].tolist()))


def kind(found: Evidence, row: int) -> str:
    """Say how a passage was reached that is missing among the first."""
    if row not in found.rows:
        return "nothing leads there"
    for hop, reached in (("one link", found.first), ("two links", found.second)):
        if row in reached.links.targets:
            return f"{hop} away, put too low"
    if found.residual.scores[row] > 0 or found.residual.titles[row] > 0:
        return "found by the second query alone, put too low"
    return "found by its words or meaning alone, put too low"


async def tallied(
    memory: Built, parts: Mapping[str, SearchSettings]
) -> tuple[dict[str, Tally], Counter[str]]:
    """Measure a memory's questions: tallies by name, and misses among the first ten by kind."""
    embedded = memory.embedder is not None
    searcher = memory.searcher()
    columns = await searcher.columns()
    assert columns is not None
    ranking = Ranking(memory, columns)
    same = {"search": searcher}
    same |= {name: memory.searcher(settings) for name, settings in parts.items()}
    anew = {name: memory.searcher(settings) for name, settings in systems(embedded=embedded)}
    tallies = {name: Tally() for name in [*anew, *same]}
    missed: Counter[str] = Counter()
    for question in memory.corpus.measured:
        for name, other in anew.items():
            scores = (await _found(other, question.text)).scores
            tallies[name].count(question.gold, ranking.passages(scores))
        found = await _found(searcher, question.text)
        assert found.evidence is not None
        for name, other in same.items():
            scores = other._ranked(found.direct, found.evidence)
            tallies[name].count(question.gold, ranking.passages(scores))
        first = ranking.passages(found.scores)[:10]
        missed.update(
            kind(found.evidence, ranking.row_of[place]) for place in question.gold - set(first)
        )
    return tallies, missed


async def _found(searcher: Searcher, question: str) -> Findings:
    found = await searcher.findings(question)
    assert found is not None
    return found


def _table(tallies: Mapping[str, Tally], missed: Counter[str], gold: int) -> Iterator[str]:
    yield "| | R@1 | R@2 | R@5 | R@10 | ± (R@5) |"
    yield "|---|---|---|---|---|---|"
    for name, tally in tallies.items():
        figures = " | ".join(f"{share:.1f}" for share in tally.recall)
        shown = f"**{name}**" if name == "search" else name
        yield f"| {shown} | {figures} | {tally.error:.1f} |"
    yield ""
    yield f"Not among the first ten: {missed.total()} of {gold} gold passages."
    for name, count in missed.most_common():
        yield f"- {name}: {count}"


def options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this benchmark."""
    parser.add_argument("--kept", type=Path, default=Path("build/benchmarks"))
    parser.add_argument("--parts", action="store_true")


def measure(chosen: argparse.Namespace) -> Iterator[Figure]:
    """Yield R@5 of each set; the tables with all of `AT` go to standard error."""
    chosen.kept.mkdir(parents=True, exist_ok=True)
    for embedded in (True, False):
        parts = asyncio.run(without_parts(chosen.kept, embedded=embedded)) if chosen.parts else {}
        for name in MEASURED:
            corpus = multihop.load(name, multihop.folder())
            tallies, missed = asyncio.run(_measured(corpus, chosen.kept, embedded, parts))
            head = f"{name}, {'with' if embedded else 'without'} the embedder"
            gold = sum(len(question.gold) for question in corpus.measured)
            note("\n".join([f"### {head}", "", *_table(tallies, missed, gold), ""]))
            for system, tally in tallies.items():
                yield Figure(f"R@5, {head}: {system}", tally.recall[AT.index(5)], "%")
    if chosen.parts:
        asyncio.run(openie_recall.main(chosen.kept))


async def _measured(
    corpus: multihop.Corpus, folder: Path, embedded: bool, parts: Mapping[str, SearchSettings]
) -> tuple[dict[str, Tally], Counter[str]]:
    async with built(corpus, folder, embedded=embedded) as memory:
        return await tallied(memory, parts)
