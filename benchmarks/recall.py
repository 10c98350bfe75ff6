"""Recall of gold passages, with and without the embedder, compared with BM25 and MiniLM.

    QRMEM_DATA=… python -m benchmarks recall [--memory URI] [--kept FOLDER]
        [--embedder light:FOLDER | --without] [--sets NAME …]
    QRMEM_DATA=… PYTHONPATH=tests python -m benchmarks recall --replies [--kept FOLDER]

Questions that weights are fitted on are never measured. What is missed is counted by kind. With
`--replies` the set `musique-20` is read in mode `compact` by a chat model that replies with what
GPT-3.5 once found in these passages.
"""

import argparse
import asyncio
import contextlib
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks import multihop
from benchmarks.frame import Figure, note
from benchmarks.search_memories import Built, built, findings, passage
from qrmem.graphstore.reads import merged_segments
from qrmem.retrieval import Searcher
from qrmem.retrieval.candidates import Neighbourhood
from qrmem.retrieval.searcher import Findings

AT = (1, 2, 5, 10)
MEASURED = ("musique", "hotpotqa", "2wikimultihopqa", "xquad")
_DEEP = 2 * max(AT)
_COVERED = 50
"""Number of questions for which the index's candidates are compared with all segments."""


@dataclass(slots=True)
class Tally:
    """Recall of one ranking, question by question."""

    shares: list[list[float]] = field(default_factory=list)

    def count(self, gold: frozenset[int], passages: Sequence[int]) -> None:
        """Add the ranking of one question."""
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


async def ranked(searcher: Searcher, question: str, found: Findings) -> dict[str, list[int]]:
    """Return the first passages of each ranking, each once, by its name."""
    near = await searcher.near(question, _DEEP)
    rows = {"BM25": near.best(near.bm25, _DEEP)}
    if searcher.embedder is not None:
        rows["embedder"] = near.best(near.dense, _DEEP)
    rows["no link followed: words, meaning, titles"] = near.best(near.direct, _DEEP)
    ranked = {name: passages(near, some.tolist()) for name, some in rows.items()}
    return ranked | {"search": passages(found.near, found.best(_DEEP))}


def passages(near: Neighbourhood, rows: Iterable[int]) -> list[int]:
    """Return the passages of some segments, without repeats."""
    return list(dict.fromkeys(passage(near.entries[row].document_id) for row in rows))


def kind(found: Findings, missing: int) -> str:
    """Say how a passage was reached that is missing among the first."""
    explored, entries = found.explored, found.near.entries
    rows = [n for n, entry in enumerate(entries) if passage(entry.document_id) == missing]
    if explored is None or not set(rows) & set(explored.rows.tolist()):
        return "nothing leads there"
    for hop, links in (("one link", explored.first), ("two links", explored.second)):
        if set(rows) & set(links.targets.tolist()):
            return f"{hop} away, put too low"
    if explored.uncovered[rows].any():
        return "found by a follow-up query alone, put too low"
    return "found by its words or meaning alone, put too low"


async def tallied(memory: Built) -> tuple[dict[str, Tally], Counter[str]]:
    """Measure a memory's questions: tallies by name, and misses among the first ten by kind."""
    searcher = memory.searcher()
    tallies: defaultdict[str, Tally] = defaultdict(Tally)
    missed: Counter[str] = Counter()
    for question in memory.corpus.measured:
        found = await findings(searcher, question.text)
        for name, places in (await ranked(searcher, question.text, found)).items():
            tallies[name].count(question.gold, places)
        first = passages(found.near, found.best(10))
        missed.update(kind(found, one) for one in question.gold - set(first))
    return tallies, missed


async def covered(memory: Built, asked: int) -> float:
    """Return the share of the exact first ten by BM25 that are among the index's candidates."""
    searcher = memory.searcher()
    ids = await merged_segments(memory.store, memory.corpus.name)
    shares = []
    for question in memory.corpus.measured[:asked]:
        scores = await Searcher(memory.store, memory.corpus.name).score(question.text, ids)
        edge = sorted(scores.values(), reverse=True)[9]
        best = {id_ for id_, score in scores.items() if score > edge and score > 0}
        found = await searcher.ranking(question.text, "bm25", 10)
        shares.append(len(best & set(found)) / len(best) if best else 1.0)
    return 100 * float(np.mean(shares))


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
    parser.add_argument("--memory", default="", help="a store's URI; files if none is given")
    parser.add_argument("--kept", type=Path, default=Path("build/benchmarks"))
    parser.add_argument("--embedder", default="local", help="`local`, or `light:FOLDER`")
    parser.add_argument("--without", action="store_true", help="without the embedder only")
    parser.add_argument("--sets", nargs="*", default=MEASURED)
    parser.add_argument("--replies", action="store_true", help="musique-20, read by a chat model")


def measure(chosen: argparse.Namespace) -> Iterator[Figure]:
    """Yield R@5 of each set; the tables with all of `AT` go to standard error."""
    chosen.kept.mkdir(parents=True, exist_ok=True)
    if chosen.replies and chosen.memory:
        raise SystemExit("--replies makes a file of its own; leave --memory out")
    for embedder in ("none",) if chosen.without else (chosen.embedder, "none"):
        for name in ("musique-20",) if chosen.replies else chosen.sets:
            corpus = multihop.load(name, multihop.folder())
            tallies, missed, share = asyncio.run(_measured(corpus, chosen, embedder))
            head = f"{name}, {'without' if embedder == 'none' else 'with'} the embedder"
            gold = sum(len(question.gold) for question in corpus.measured)
            note("\n".join([f"### {head}", "", *_table(tallies, missed, gold), ""]))
            for system, tally in tallies.items():
                yield Figure(f"R@5, {head}: {system}", tally.recall[AT.index(5)], "%")
            yield Figure(f"exact first ten among candidates, {name}", share, "%", at_least=99)


async def _measured(
    corpus: multihop.Corpus, chosen: argparse.Namespace, embedder: str
) -> tuple[dict[str, Tally], Counter[str], float]:
    kept, address = chosen.kept, chosen.memory
    async with contextlib.AsyncExitStack() as stack:
        reader = None
        if chosen.replies:
            from benchmarks.model_tokens import stored_replies  # its server is in tests/

            reader = await stack.enter_async_context(stored_replies())
        async with built(corpus, kept, embedder=embedder, memory=address, reader=reader) as memory:
            return *await tallied(memory), await covered(memory, _COVERED)
