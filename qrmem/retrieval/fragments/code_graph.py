"""The repository graph and the strength of paths in it (FragRel, appendix A and Equation 8).

Nodes are directories, files and syntax nodes; a file is the root of its own syntax tree, which the
paper ties to it by a weight of 1. The strength of two nodes is the product along the best path.

Four nodes of five are leaves without a call: every path from one goes through its parent. So paths
are sought between parents only, and a leaf takes its parent's times the weight of one edge; just
with itself it has a strength of 1.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import numpy as np

from qrmem.retrieval.fragments.source_files import Edge, SourceFile

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

SYNTAX = 0.5
DIRECTORY = 0.3
CALL = 0.8

_MIXED = DIRECTORY**2 * SYNTAX * CALL
"""What the best path over both directories and calls can have. Above it, directories are no part of
the search: without calls their way is known."""
_LEAST = 0.1
"""Share of the cut-off below which a weight is not kept."""


@dataclass(frozen=True, slots=True)
class Row:
    """What the fragments of one file are related to, beyond the tree of directories.

    Attributes:
        reach: how strongly each fragment is tied to its file, mean over its nodes.
        heads: fragments of the file.
        paths: of the files related, in order.
        files: places in `paths`.
        tails: fragments of those.
        weights: what Equation 8 gives more than the way over the directories.
    """

    reach: "NDArray[np.float32]"
    heads: "NDArray[np.int32]"
    paths: Sequence[str]
    files: "NDArray[np.int32]"
    tails: "NDArray[np.int32]"
    weights: "NDArray[np.float32]"


@dataclass(frozen=True, slots=True)
class _Trunk:
    """A file's nodes without its leaves.

    Attributes:
        parents: of the nodes that stay, by their new numbers.
        depths: below the root.
        anchors: for every old node, the new number of what stays of it: itself or its parent.
        is_leaf: for every old node.
    """

    parents: "NDArray[np.int64]"
    depths: "NDArray[np.int64]"
    anchors: "NDArray[np.int64]"
    is_leaf: "NDArray[np.bool_]"

    @classmethod
    def of(cls, file: SourceFile) -> "_Trunk":
        parents = np.asarray(file.parents, dtype=np.int64)
        stays = np.zeros(parents.size, dtype=bool)
        stays[parents[1:]] = True
        stays[[0, *(d.node for d in file.definitions), *(c.node for c in file.calls)]] = True
        numbers = np.cumsum(stays) - 1
        depths = [0]
        for parent in file.parents[1:]:
            depths.append(depths[parent] + 1)
        return cls(
            parents=numbers[parents[stays]],
            depths=np.array(depths, dtype=np.int64)[stays],
            anchors=numbers[np.where(stays, np.arange(parents.size), parents)],
            is_leaf=~stays,
        )


class CodeGraph:
    """All files of a repository as one graph, for best-product paths by Dijkstra's algorithm."""

    def __init__(
        self,
        files: Mapping[str, SourceFile],
        edges: Mapping[str, Sequence[Edge]],
        cutoff: float,
    ) -> None:
        """Join the files.

        Args:
            files: by path.
            edges: each file's calls.
            cutoff: strength below which a path does not count; one edge more on either end does.
        """
        self._files = files
        self._cutoff = cutoff
        self._limit = -math.log(cutoff) + 1e-9
        self._paths = list(files)
        self._number = {path: n for n, path in enumerate(self._paths)}
        self._trunks = {path: _Trunk.of(file) for path, file in files.items()}
        sizes = [trunk.parents.size for trunk in self._trunks.values()]
        self._starts = dict(zip(self._paths, np.cumsum([0, *sizes])[:-1].tolist(), strict=True))
        self._count = sum(sizes)
        self._graph = self._joined(edges)
        self._cover, self._twins, self._owner = self._covers()
        self._covered = self._cover.T.tocsr()
        self._reach = self._reaches()

    def row(self, path: str) -> tuple[Row, frozenset[str]]:
        """Return what a file's fragments are related to, and all files within the cut-off."""
        mine = self._fragments(path)
        sources = np.unique(self._cover[mine].indices).astype(np.int64)
        near = self._near(sources)
        strengths = self._strengths(sources, near)
        touched = self._covered[near]
        others = np.unique(touched.indices).astype(np.int64)
        # From the left, so that what is dense stays thin.
        weights = touched[:, others].T @ (self._cover[mine][:, sources] @ strengths).T
        twins = self._twins[mine] @ self._twins[others].T
        row = self._row(path, mine, others, weights.T + twins.toarray())
        return row, frozenset(self._files_at(near))

    def within(self, paths: Sequence[str]) -> set[str]:
        """Return the files that a path within the cut-off leads to from any of these."""
        if not paths:
            return set()
        nodes = np.concatenate(
            [self._starts[path] + np.arange(self._trunks[path].parents.size) for path in paths]
        )
        return self._files_at(self._near(nodes))

    # --- inside ---------------------------------------------------------------------------------

    def _joined(self, edges: Mapping[str, Sequence[Edge]]) -> "csr_array":
        heads, tails, costs = [], [], []
        for path, trunk in self._trunks.items():
            heads.append(self._starts[path] + np.arange(1, trunk.parents.size))
            tails.append(self._starts[path] + trunk.parents[1:])
            costs.append(np.full(trunk.parents.size - 1, -math.log(SYNTAX)))
        calls = list(self._calls(edges))
        folders, count = self._folders() if self._cutoff <= _MIXED else ([], self._count)
        for pairs, weight in ((calls, 1.0), (folders, DIRECTORY)):
            table = np.array(pairs, dtype=np.float64).reshape(-1, 3)
            heads.append(table[:, 0].astype(np.int64))
            tails.append(table[:, 1].astype(np.int64))
            costs.append(-np.log(table[:, 2] * weight))
        return _symmetric(
            np.concatenate(heads), np.concatenate(tails), np.concatenate(costs), count
        )

    def _calls(self, edges: Mapping[str, Sequence[Edge]]) -> Iterator[tuple[int, int, float]]:
        for path, found in edges.items():
            for edge in found:
                target = self._place(edge.path, edge.target)
                yield self._place(path, edge.node), target, CALL * SYNTAX**edge.hops

    def _place(self, path: str, node: int) -> int:
        return int(self._starts[path] + self._trunks[path].anchors[node])

    def _folders(self) -> tuple[list[tuple[int, int, float]], int]:
        numbers: dict[str, int] = {}
        pairs: list[tuple[int, int, float]] = []
        for path in self._paths:
            chain = [str(folder) for folder in PurePosixPath(path).parents]
            known = [folder in numbers for folder in chain]
            for folder in chain:
                numbers.setdefault(folder, self._count + len(numbers))
            pairs.append((self._starts[path], numbers[chain[0]], 1.0))
            for (inner, outer), is_known in zip(pairwise(chain), known, strict=False):
                if not is_known:
                    pairs.append((numbers[inner], numbers[outer], 1.0))
        return pairs, self._count + len(numbers)

    def _covers(self) -> "tuple[csr_array, csr_array, NDArray[np.int64]]":
        """Return what stands for each fragment, and each fragment's file.

        The first matrix has the shares of its nodes, those of leaves times an edge at their
        parents; the second, times itself, what leaves have with themselves beyond that.
        """
        from scipy.sparse import csr_array

        counts, nodes, lengths, leaves, owner = [], [], [], [], []
        ids = np.cumsum([0, *(len(file.parents) for file in self._files.values())])
        for number, (path, file) in enumerate(self._files.items()):
            trunk = self._trunks[path]
            own = np.array([node for cover in file.covers for node in cover], dtype=np.int64)
            sizes = [np.array(list(cover.values()), dtype=np.float64) for cover in file.covers]
            lengths += [size / size.sum() for size in sizes]
            counts += [size.size for size in sizes]
            nodes.append(np.stack([self._starts[path] + trunk.anchors[own], ids[number] + own]))
            leaves.append(trunk.is_leaf[own])
            owner += [number] * len(sizes)
        rows, (at, old) = np.repeat(np.arange(len(owner)), counts), np.concatenate(nodes, axis=1)
        share, is_leaf = np.concatenate(lengths), np.concatenate(leaves)
        cover = csr_array(
            (share * np.where(is_leaf, SYNTAX, 1.0), (rows, at)),
            shape=(len(owner), self._graph.shape[0]),
        )
        alone = share[is_leaf] * math.sqrt(1 - SYNTAX**2)
        twins = csr_array((alone, (rows[is_leaf], old[is_leaf])), shape=(len(owner), int(ids[-1])))
        return cover, twins, np.array(owner, dtype=np.int64)

    def _reaches(self) -> "NDArray[np.float64]":
        depths = np.zeros(self._graph.shape[0])
        for path, trunk in self._trunks.items():
            depths[self._starts[path] : self._starts[path] + trunk.depths.size] = trunk.depths
        reaches: NDArray[np.float64] = self._cover @ SYNTAX**depths
        return reaches

    def _fragments(self, path: str) -> "NDArray[np.int64]":
        number = self._number[path]
        first, after = np.searchsorted(self._owner, [number, number + 1])
        return np.arange(first, after)

    def _files_at(self, nodes: "NDArray[np.int64]") -> set[str]:
        firsts = np.fromiter(self._starts.values(), dtype=np.int64)
        numbers = np.searchsorted(firsts, nodes[nodes < self._count], "right")
        return {self._paths[n - 1] for n in np.unique(numbers).tolist()}

    def _near(self, sources: "NDArray[np.int64]") -> "NDArray[np.int64]":
        from scipy.sparse.csgraph import dijkstra

        found = dijkstra(self._graph, indices=sources, limit=self._limit, min_only=True)
        return np.flatnonzero(np.isfinite(found))

    def _strengths(
        self, sources: "NDArray[np.int64]", near: "NDArray[np.int64]"
    ) -> "NDArray[np.float64]":
        """Return `(sources, near)`: the strength of the best path, 0 below the cut-off.

        What lies on a path within the cut-off is itself within it, so nothing outside is missed.
        """
        from scipy.sparse.csgraph import dijkstra

        inner = self._graph[near][:, near]
        place = np.searchsorted(near, sources)
        found: NDArray[np.float64] = np.exp(-dijkstra(inner, indices=place, limit=self._limit))
        return found

    def _row(
        self,
        path: str,
        mine: "NDArray[np.int64]",
        others: "NDArray[np.int64]",
        weights: "NDArray[np.float64]",
    ) -> Row:
        owner = self._owner[others]
        known, at = np.unique(owner, return_inverse=True)
        far = np.array([folder_strength(path, self._paths[n]) for n in known.tolist()])[at]
        beyond = weights - self._reach[mine][:, None] * (far * self._reach[others])[None, :]
        heads, at = np.nonzero(beyond > _LEAST * self._cutoff)
        numbers, files = np.unique(owner[at], return_inverse=True)
        firsts = np.searchsorted(self._owner, owner[at])
        return Row(
            reach=self._reach[mine].astype(np.float32),
            heads=heads.astype(np.int32),
            paths=[self._paths[n] for n in numbers.tolist()],
            files=files.astype(np.int32),
            tails=(others[at] - firsts).astype(np.int32),
            weights=beyond[heads, at].astype(np.float32),
        )


def folder_strength(one: str, other: str) -> float:
    """Return the strength of the way from file to file over the directories."""
    if one == other:
        return 1.0
    mine, theirs = one.split("/"), other.split("/")
    shared = 0
    while shared < min(len(mine), len(theirs)) - 1 and mine[shared] == theirs[shared]:
        shared += 1
    return float(DIRECTORY ** (len(mine) + len(theirs) - 2 * shared))


def _symmetric(
    heads: "NDArray[np.int64]", tails: "NDArray[np.int64]", costs: "NDArray[np.float64]", count: int
) -> "csr_array":
    """Return the graph both ways; of several edges between two nodes, the strongest."""
    from scipy.sparse import csr_array

    both = np.concatenate([heads, tails]), np.concatenate([tails, heads])
    cost = np.tile(costs, 2)
    order = np.lexsort((cost, both[1], both[0]))
    one, other, cost = both[0][order], both[1][order], cost[order]
    first = np.ones(one.size, dtype=bool)
    first[1:] = (one[1:] != one[:-1]) | (other[1:] != other[:-1])
    first &= one != other
    return csr_array((cost[first], (one[first], other[first])), shape=(count, count))
