"""From the segments that a question finds by itself, over what they name, to the candidates."""

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from qrmem.retrieval import fusion, links, pagerank, residual
from qrmem.retrieval.features import Evidence
from qrmem.retrieval.links import Reached
from qrmem.retrieval.reading import Sentence, read

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from qrmem.graphstore.protocol import GraphStore
    from qrmem.retrieval.columns import Columns
    from qrmem.retrieval.direct import Direct
    from qrmem.retrieval.graph import Graph
    from qrmem.retrieval.settings import SearchSettings

_KEPT = 20_000
"""Segments whose reading is kept between searches."""
_SHARED, _FAR, _FAR_SHARED, _RESIDUAL = 60, 60, 30, 40
"""Candidates by shared names, by a second hop, by shared names after it, by the second query."""


class Memory:
    """A namespace as one search after another sees it; reads a segment's text once.

    Attributes:
        columns: its segments.
        graph: its names and mentions.
    """

    def __init__(self, store: "GraphStore", ns: str, columns: "Columns", graph: "Graph") -> None:
        self.store = store
        self.ns = ns
        self.columns = columns
        self.graph = graph
        self._read: OrderedDict[int, Sequence[Sentence]] = OrderedDict()
        self._parts: dict[int, str] = {}

    async def readings(self, rows: Iterable[int]) -> dict[int, Sequence[Sentence]]:
        """Return the sentences of some segments; those deleted meanwhile have none."""
        wanted = [int(row) for row in rows]
        missing = [row for row in wanted if row not in self._read]
        if missing:
            ids = [self.columns.catalog.segment_ids[row] for row in missing]
            for segment in await self.store.segments(self.ns, ids):
                row = self.columns.row_of[segment.id]
                self._read[row] = read(segment.text, self.graph)
                self._parts[row] = segment.part
        found = {row: self._read.get(row, ()) for row in wanted}
        while len(self._read) > _KEPT:
            self._parts.pop(self._read.popitem(last=False)[0], None)
        return found

    def part(self, row: int) -> str:
        """Return the part of its document (a chapter) that a segment is of, if it was read."""
        return self._parts.get(row, "")


@dataclass(frozen=True, slots=True)
class _Hop:
    """Links out of some segments, and the best one to each target."""

    links: links.Links
    reached: Reached


async def explore(
    memory: Memory,
    direct: "Direct",
    allowed: "NDArray[np.bool_]",
    settings: "SearchSettings",
) -> Evidence:
    """Follow what the best segments name, for two hops, and gather the candidates."""
    columns, graph = memory.columns, memory.graph
    ordered = _positive(direct.scores, columns.ranks, settings.direct)
    seeds = ordered[: settings.seeds]
    weight = {int(row): float(direct.scores[row]) for row in seeds}
    covered = dict(zip(weight, direct.profiles(seeds), strict=True))
    first = await _hop(memory, direct, allowed, weight, covered)

    onward = _onward(first.reached, weight, settings.onward)
    top = float(first.reached.scores.max(initial=0.0)) or 1.0
    profiles = direct.profiles(onward.links.targets)
    sources = onward.links.sources.tolist()
    weight_2 = dict(zip(onward.links.targets.tolist(), (onward.scores / top).tolist(), strict=True))
    covered_2 = {
        row: np.maximum(covered[source], profile)
        for row, source, profile in zip(weight_2, sources, profiles, strict=True)
    }
    second = await _hop(memory, direct, allowed, weight_2, covered_2)

    asked = await memory.readings(seeds[: settings.asked_again])
    again = await residual.find(
        memory.store, memory.ns, columns, graph, direct, asked, allowed, k1=settings.k1
    )
    rows = _candidates(ordered, direct, first.reached, second.reached, again)
    walk = pagerank.rank(graph, rows, direct.scores[rows], first.links.then(second.links))
    return Evidence(rows, direct, seeds, first.reached, second.reached, again, walk)


async def _hop(
    memory: Memory,
    direct: "Direct",
    allowed: "NDArray[np.bool_]",
    weight: "dict[int, float]",
    covered: "dict[int, NDArray[np.float64]]",
) -> _Hop:
    readings = await memory.readings(weight)
    out = links.follow(memory.columns, memory.graph, direct, readings, allowed)
    return _Hop(out, links.weigh(direct, out, weight, covered))


def _onward(reached: Reached, seeds: "dict[int, float]", limit: int) -> Reached:
    """Return the best new segments, each once."""
    new = reached.only(~np.isin(reached.links.targets, list(seeds)))
    ordered = new.best(len(new.links))
    _, first = np.unique(ordered.links.targets, return_index=True)
    places = np.sort(first)[:limit]
    return Reached(ordered.links.chosen(places), ordered.scores[places])


def _candidates(
    ordered: "NDArray[np.int64]",
    direct: "Direct",
    first: Reached,
    second: Reached,
    again: residual.Residual,
) -> "NDArray[np.int64]":
    parts = [
        ordered,
        np.flatnonzero(direct.named),
        first.links.targets[first.links.entitled],
        first.only(~first.links.entitled).best(_SHARED).links.targets,
        second.only(second.links.entitled).best(_FAR).links.targets,
        second.only(~second.links.entitled).best(_FAR_SHARED).links.targets,
        _positive(again.scores, np.arange(again.scores.size), _RESIDUAL),
        np.flatnonzero(again.titles),
    ]
    return np.unique(np.concatenate(parts))


def _positive(
    scores: "NDArray[np.float64]", ranks: "NDArray[np.int64]", limit: int
) -> "NDArray[np.int64]":
    """Return the rows of the highest scores, best first, without those that are 0."""
    rows = [row for row in fusion.best(scores, ranks, limit) if scores[row] > 0]
    return np.array(rows, dtype=np.int64)
