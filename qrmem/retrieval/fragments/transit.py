"""What a file is to paths that only pass through it; where that stays, they stay.

A door is a node by which calls leave or enter a file. A path through the file comes in by one door
and goes out by another: for a row, only the doors matter that its file reaches strongly enough to
get out by another within the cut-off.
"""

import hashlib
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from qrmem.retrieval.fragments.code_graph import CodeGraph
    from qrmem.retrieval.fragments.source_files import Edge

_Crossing = tuple[str, str | int, int]
"""The other file, what of it (a definition's label, or the node with the call), and how many edges
lie between."""


@dataclass(frozen=True, slots=True)
class _Doors:
    """The doors of one file.

    Attributes:
        places: in the graph.
        names: digests of where they lead, as numbers.
        costs: of the cheapest way out by each.
        are_single: of each, whether there is one way through it: who came in by it does not go out
            by it again.
        inside: from door to door within the file; not a number where nobody has asked.
    """

    places: "NDArray[np.int64]"
    names: "NDArray[np.int64]"
    costs: "NDArray[np.float64]"
    are_single: "NDArray[np.bool_]"
    inside: "NDArray[np.float64]"


class Transits:
    """The ways through the files of a repository."""

    def __init__(
        self,
        graph: "CodeGraph",
        edges: Mapping[str, Sequence["Edge"]],
        labels: Mapping[tuple[str, int], str],
    ) -> None:
        """Collect, for every file, by which nodes calls leave and enter it."""
        self._graph = graph
        self._found: dict[str, dict[int, list[_Crossing]]] = defaultdict(lambda: defaultdict(list))
        self._ranks: dict[str, dict[int, int]] = {}
        self._doors: dict[str, _Doors] = {}
        for path, found in edges.items():
            for node, hops, other, target in found:
                if path != other:
                    to = other, labels[other, target], hops
                    self._found[path][node].append(to)
                    self._found[other][target].append((path, node, hops))

    def seen_from(self, distances: "NDArray[np.float64]") -> dict[str, str]:
        """Return what stands for the ways through files within reach of one.

        Args:
            distances: from the file to all nodes, infinite beyond the cut-off.

        Returns:
            Digests by path. Equal digests of a file then and now: whoever changed that file
            between, paths from here to files beyond it are as they were.
        """
        found = {}
        for path in sorted(self._graph.files_at(np.flatnonzero(np.isfinite(distances)))):
            if path in self._found or self._graph.has_folders:
                digest = self._digest(path, distances[self._of(path).places])
                if digest:
                    found[path] = digest
        return found

    def through(self, path: str) -> dict[str, str]:
        """Return what stands for the ways through one file, as seen from all within reach."""
        if path not in self._found and not self._graph.has_folders:
            return {}
        found = {}
        others, distances = self._graph.distances(self._of(path).places)
        for other, starts in zip(others, distances.T, strict=True):
            digest = self._digest(path, starts)
            if digest:
                found[other] = digest
        return found

    # --- inside ---------------------------------------------------------------------------------

    def _digest(self, path: str, starts: "NDArray[np.float64]") -> str:
        """Return a digest of the ways that remain, where the doors are reached at some costs."""
        doors, limit = self._of(path), self._graph.limit
        entries = np.flatnonzero(starts + doors.costs.min() <= limit)
        if not entries.size:
            return ""
        inside = self._inside(path, entries)
        entry, way_out = np.nonzero(starts[entries, None] + inside + doors.costs <= limit)
        if not entry.size:
            return ""
        names = doors.names[[entries[entry], way_out]]
        rounded = np.round(inside[entry, way_out], 7)
        return hashlib.blake2b(names.tobytes() + rounded.tobytes(), digest_size=8).hexdigest()

    def _inside(self, path: str, entries: "NDArray[np.int64]") -> "NDArray[np.float64]":
        doors = self._of(path)
        missing = entries[np.isnan(doors.inside[entries, 0])]
        if missing.size:
            inside = self._graph.inside(path, doors.places[missing], doors.places)
            single = np.flatnonzero(doors.are_single[missing])
            inside[single, missing[single]] = np.inf
            doors.inside[missing] = inside
        found: NDArray[np.float64] = doors.inside[entries]
        return found

    def _of(self, path: str) -> _Doors:
        if path not in self._doors:
            found = self._found.get(path, {})
            nodes = sorted(found)
            hops = [min(crossing[2] for crossing in found[node]) for node in nodes]
            costs = self._graph.call_costs(np.array(hops, dtype=np.int64))
            names = [self._name(found[node]) for node in nodes]
            single = [len(found[node]) == 1 for node in nodes]
            if self._graph.has_folders:  # the root is the door to these
                nodes, names, single = [0, *nodes], [0, *names], [True, *single]
                costs = np.concatenate([[0.0], costs])
            self._doors[path] = _Doors(
                self._graph.places(path, nodes),
                np.array(names, dtype=np.int64),
                costs,
                np.array(single, dtype=bool),
                np.full((len(nodes), len(nodes)), np.nan),
            )
        return self._doors[path]

    def _name(self, crossings: Sequence[_Crossing]) -> int:
        said = json.dumps(sorted(map(self._said, crossings))).encode()
        return int.from_bytes(hashlib.blake2b(said, digest_size=8).digest(), "big", signed=True)

    def _said(self, crossing: _Crossing) -> tuple[str, str, int]:
        """Return it by names that stay where lines move: of a call, which door it is there."""
        other, what, hops = crossing
        if isinstance(what, int):
            what = str(self._rank(other)[what])
        return other, what, hops

    def _rank(self, path: str) -> dict[int, int]:
        if path not in self._ranks:
            self._ranks[path] = {node: n for n, node in enumerate(sorted(self._found[path]))}
        return self._ranks[path]
