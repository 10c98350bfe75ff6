"""The code relation over a memory's fragments (FragRel, Equation 8) as an operator.

Between files, the way over the directories factors: how strongly a fragment is tied to its file,
times the way from file to file. Only what syntax and calls give beyond that is kept, pair by pair.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import numpy as np

from qrmem.retrieval.fragments.code_graph import DIRECTORY, Strengths
from qrmem.retrieval.fragments.operators import Links

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from qrmem.retrieval.fragments.gathering import Fragments

    Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Folders:
    """The tree of directories with files as leaves: products of weights over its ways.

    Attributes:
        parents: `(nodes,)`; the files come first, a root is its own parent.
        levels: nodes by their depth, the roots first.
        files: number of files.
    """

    parents: "NDArray[np.int64]"
    levels: "Sequence[NDArray[np.int64]]"
    files: int

    @classmethod
    def of(cls, paths: Sequence[str]) -> "Folders":
        """Return the tree of some files."""
        numbers: dict[str, int] = {}
        parents = [0] * len(paths)
        depths = [len(PurePosixPath(path).parents) for path in paths]
        for n, path in enumerate(paths):
            chain = [str(folder) for folder in PurePosixPath(path).parents]
            for depth, folder in enumerate(reversed(chain)):
                if folder not in numbers:
                    numbers[folder] = len(paths) + len(numbers)
                    above = numbers[chain[len(chain) - depth]] if depth else numbers[folder]
                    parents.append(above)
                    depths.append(depth)
            parents[n] = numbers[chain[0]]
        depth_of = np.array(depths, dtype=np.int64)
        levels = [np.flatnonzero(depth_of == depth) for depth in range(max(depths, default=0) + 1)]
        return cls(np.array(parents, dtype=np.int64), levels, len(paths))

    def times(self, columns: "Matrix") -> "Matrix":
        """Return, for every file, the sum of all files' values times the way to them."""
        below = np.zeros((self.parents.size, columns.shape[1]))
        below[: self.files] = columns
        for nodes in reversed(self.levels[1:]):
            np.add.at(below, self.parents[nodes], DIRECTORY * below[nodes])
        total = below.copy()
        for nodes in self.levels[1:]:
            above = total[self.parents[nodes]] - DIRECTORY * below[nodes]
            total[nodes] = below[nodes] + DIRECTORY * above
        return total[: self.files]


@dataclass(frozen=True, slots=True)
class Code:
    """W of Equation 8.

    Attributes:
        folders: over the files.
        file_of: `(n,)`, each fragment's file.
        reach: `(n,)`, how strongly a fragment is tied to its file; 0 for what is no code.
        links: what is stronger than that, pair by pair.
    """

    folders: Folders
    file_of: "NDArray[np.int64]"
    reach: "Matrix"
    links: Links

    @classmethod
    def over(cls, fragments: "Fragments", strengths: Strengths) -> "Code":
        """Return the relation over a memory's fragments from what is known of its source files.

        What is no source file is related to itself alone.
        """
        starts = np.searchsorted(fragments.document_of, np.arange(len(fragments.documents) + 1))
        paths = [info.id for info in fragments.documents]
        place = _places(dict(zip(paths, range(len(paths)), strict=True)), starts, strengths)
        known = place >= 0
        reach, alone = np.zeros(fragments.size), np.ones(fragments.size)
        reach[place[known]], alone[place[known]] = strengths.reach[known], 0.0
        there = known[strengths.heads] & known[strengths.tails]
        others = np.flatnonzero(alone)
        links = Links(
            fragments.size,
            np.concatenate([place[strengths.heads[there]], others]),
            np.concatenate([place[strengths.tails[there]], others]),
            np.concatenate([strengths.weights[there].astype(np.float64), alone[others]]),
        )
        return cls(Folders.of(paths), fragments.document_of, reach, links)

    @property
    def size(self) -> int:
        """Number of fragments."""
        return int(self.reach.size)

    def times(self, columns: "Matrix") -> "Matrix":
        """Return W times columns."""
        tied = self.reach[:, None] * columns
        by_file = np.zeros((self.folders.files, columns.shape[1]))
        np.add.at(by_file, self.file_of, tied)
        far = self.folders.times(by_file)[self.file_of]
        result: Matrix = self.reach[:, None] * far + self.links.times(columns)
        return result

    def diagonal(self) -> "Matrix":
        """Return what each fragment has with itself."""
        return self.reach**2 + self.links.diagonal()


def _places(
    numbers: Mapping[str, int], starts: "NDArray[np.int64]", strengths: Strengths
) -> "NDArray[np.int64]":
    """Return where a memory's fragments have those of the source files; -1 where they have not.

    A file may be left out of a question, or have changed since.
    """
    place = np.full(strengths.reach.size, -1, dtype=np.int64)
    after = np.cumsum(strengths.sizes)
    for path, size, end in zip(strengths.paths, strengths.sizes, after, strict=True):
        number = numbers.get(path)
        if number is not None and starts[number + 1] - starts[number] == size:
            place[end - size : end] = np.arange(starts[number], starts[number + 1])
    return place
