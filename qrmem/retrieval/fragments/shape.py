"""A source file's syntax tree as paths need it: without leaves, with its fragments' shares in it.

Four nodes of five are leaves without a call: every path from one goes through its parent. So paths
are sought between parents only, and a leaf takes its parent's times the weight of one edge; just
with itself it has a strength of 1.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """Arrays over the nodes that stay, and over the pairs of a fragment and a node of its own.

    Attributes:
        parents: of the nodes that stay, by their new numbers; the root, -1, first.
        depths: below the root.
        numbers: what the outline calls the nodes that stay, ascending.
        counts: for each fragment in order, how many nodes stand for it.
        nodes: these nodes, as the outline calls them.
        anchors: new number of each of these: its own, or its parent's for a leaf.
        lengths: how much of the fragment each has, in characters.
    """

    parents: "NDArray[np.int32]"
    depths: "NDArray[np.int32]"
    numbers: "NDArray[np.int32]"
    counts: "NDArray[np.int32]"
    nodes: "NDArray[np.int32]"
    anchors: "NDArray[np.int32]"
    lengths: "NDArray[np.int32]"

    @classmethod
    def of(
        cls, parents: Sequence[int], stay: Iterable[int], covers: Sequence[Mapping[int, int]]
    ) -> "Shape":
        """Return the shape of a tree.

        Args:
            parents: of all nodes; a parent comes before its children, the root, -1, first.
            stay: nodes that stay though they are leaves.
            covers: for each fragment, node to length.
        """
        above = np.asarray(parents, dtype=np.int32)
        stays = np.zeros(above.size, dtype=bool)
        stays[above[1:]] = True
        stays[[0, *stay]] = True
        depths = [0]
        for parent in parents[1:]:
            depths.append(depths[parent] + 1)
        new = (np.cumsum(stays) - 1).astype(np.int32)
        nodes = np.array([node for cover in covers for node in cover], dtype=np.int32)
        kept = above[stays]
        return cls(
            parents=np.where(kept >= 0, new[kept], -1).astype(np.int32),
            depths=np.array(depths, dtype=np.int32)[stays],
            numbers=np.flatnonzero(stays).astype(np.int32),
            counts=np.array([len(cover) for cover in covers], dtype=np.int32),
            nodes=nodes,
            anchors=new[np.where(stays[nodes], nodes, above[nodes])],
            lengths=np.array([n for cover in covers for n in cover.values()], dtype=np.int32),
        )

    @property
    def size(self) -> int:
        """Number of nodes that stay."""
        return int(self.parents.size)

    @property
    def fragments(self) -> int:
        """Number of fragments."""
        return int(self.counts.size)

    @property
    def leaves(self) -> "NDArray[np.bool_]":
        """For each pair of fragment and node, whether the node is a leaf that was left out."""
        result: NDArray[np.bool_] = self.numbers[self.anchors] != self.nodes
        return result

    def shares(self) -> "NDArray[np.float64]":
        """Return, for each pair, the share of the fragment that the node has."""
        if not self.counts.size:
            return np.zeros(0)
        totals = np.add.reduceat(self.lengths, np.cumsum(self.counts) - self.counts)
        result: NDArray[np.float64] = self.lengths / np.repeat(totals, self.counts)
        return result

    @property
    def arrays(self) -> "list[NDArray[np.int32]]":
        """What it consists of, in the order in which `Shape` takes it."""
        return [getattr(self, field.name) for field in fields(self)]
