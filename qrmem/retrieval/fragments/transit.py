"""What a file is to paths that only pass through it; where that stays, they stay."""

import hashlib
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from qrmem.retrieval.fragments.code_graph import CodeGraph
    from qrmem.retrieval.fragments.source_files import Edge

_Door = tuple[str, str | int, int]
"""The other file, what of it (a definition's label, or the node with the call), and how many edges
lie between."""


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
        self._doors: dict[str, dict[int, list[_Door]]] = defaultdict(lambda: defaultdict(list))
        self._known: dict[str, dict[int, int]] = {}
        for path, found in edges.items():
            for node, hops, other, target in found:
                if path != other:
                    to = other, labels[other, target], hops
                    self._doors[path][node].append(to)
                    self._doors[other][target].append((path, node, hops))

    def beside(self, path: str) -> set[str]:
        """Return the files that calls lead to from a file, or come from."""
        doors = self._doors.get(path, {})
        return {other for found in doors.values() for other, _, _ in found}

    def digest(self, path: str) -> str:
        """Return what stands for all ways through a file.

        Equal digests: whoever changed the file between, paths among other files are as they were.
        """
        doors = self._doors.get(path, {})
        nodes = sorted(doors)
        # The root is the door to the directories.
        within = self._graph.inside(path, [0, *nodes])
        said = json.dumps([sorted(map(self._said, doors[node])) for node in nodes])
        rounded = np.round(within, 9).tobytes()
        return hashlib.sha256(said.encode() + rounded).hexdigest()[:16]

    def _said(self, door: _Door) -> tuple[str, str, int]:
        """Return a door by names that stay where lines move: of a call, which door it is there."""
        other, what, hops = door
        if isinstance(what, int):
            what = str(self._places(other)[what])
        return other, what, hops

    def _places(self, path: str) -> dict[int, int]:
        """Return which door, counted from the first, a node of a file is."""
        if path not in self._known:
            self._known[path] = {node: n for n, node in enumerate(sorted(self._doors[path]))}
        return self._known[path]
