"""Relations between fragments (FragRel, Equations 5 to 8) as linear operators.

Scores need a relation's products with vectors, never its matrix: none is stored, and those with a
closed form need no matrix at all.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from qrmem.errors import UsageError
from qrmem.retrieval.fragments.code_graph import DIRECTORY, Strengths

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Matrix = NDArray[np.float64]
    from qrmem.retrieval.fragments.gathering import Fragments


EXACT = 10_000
"""Fragments up to which the semantic relation is computed whole, in blocks."""
SAMPLE = 4_096
"""Fragments, evenly spread, that stand for all of them beyond that."""
_DOUBLE = 2_048
"""Fragments up to which it is computed in float64; beyond, products are float32."""
_BLOCK = 1_024
_NOTHING = 1e-17


@runtime_checkable
class Relation(Protocol):
    """W of Equation 5: query-independent, never negative, larger is stronger."""

    @property
    def size(self) -> int:
        """Number of fragments, n."""
        ...

    def times(self, columns: "Matrix") -> "Matrix":
        """Return W times `(n, m)`."""
        ...

    def diagonal(self) -> "Matrix":
        """Return `(n,)`: how strongly each fragment is related to itself."""
        ...


@dataclass(frozen=True, slots=True)
class Structure:
    """`w_rel ** |loc_i - loc_j|` within a document, nothing across (Equation 7); 0^0 is 1.

    Attributes:
        documents: `(n,)`, ascending: the document that each fragment is of.
        places: `(n,)`, ascending within a document: `loc`.
        w_rel: in [0, 1].
    """

    documents: "NDArray[np.int64]"
    places: "NDArray[np.int64]"
    w_rel: float

    @property
    def size(self) -> int:
        """Number of fragments."""
        return int(self.places.size)

    def times(self, columns: "Matrix") -> "Matrix":
        """Return W times columns, diagonal by diagonal until they vanish."""
        result = columns.copy()
        for lag in range(1, self.size):
            same = self.documents[lag:] == self.documents[:-lag]
            apart = (self.places[lag:] - self.places[:-lag]).astype(np.float64)
            weights = np.where(same, self.w_rel ** np.where(same, apart, 0.0), 0.0)[:, None]
            # Places rise within a document: no later diagonal is heavier than this one.
            if weights.max() < _NOTHING:
                break
            result[lag:] += weights * columns[:-lag]
            result[:-lag] += weights * columns[lag:]
        return result

    def diagonal(self) -> "Matrix":
        """Return ones."""
        return np.ones(self.size)


@dataclass(frozen=True, slots=True)
class Semantic:
    """Cosine of the fragments' vectors, below 0 clipped to 0 (FragRel, Equation 6).

    Attributes:
        vectors: `(n, dimension)`, rows of unit length, or of zeros where there is none.
        is_printed: `1 - cosine`, as the paper prints the equation.
        is_sampled: whether `SAMPLE` fragments stand for all: the work then grows with n, not n².
    """

    vectors: "NDArray[np.float32]"
    is_printed: bool = False
    is_sampled: bool = False

    @property
    def size(self) -> int:
        """Number of fragments."""
        return int(self.vectors.shape[0])

    def times(self, columns: "Matrix") -> "Matrix":
        """Return W times columns, in blocks: of two that mirror each other, one is computed."""
        if self.is_printed:
            thin = self.vectors.astype(np.float64)
            printed: Matrix = columns.sum(axis=0) - thin @ (thin.T @ columns)
            return printed
        if self.is_sampled:
            return self._sampled(columns)
        total = np.zeros_like(columns)
        given: NDArray[Any] = columns.astype(self._type)
        blocks = self._blocks()
        for n, one in enumerate(blocks):
            for other in blocks[n:]:
                block = self._block(one, other)
                total[one] += block @ given[other]
                if other != one:
                    total[other] += block.T @ given[one]
        return total

    def diagonal(self) -> "Matrix":
        """Return 1 for every fragment with a vector; 0 as the equation is printed."""
        vectors = self.vectors.astype(np.float64)
        squares: Matrix = np.einsum("ij,ij->i", vectors, vectors)
        return 1.0 - squares if self.is_printed else squares

    @property
    def _type(self) -> type[np.floating[Any]]:
        return np.float64 if self.size <= _DOUBLE else np.float32

    def _blocks(self) -> list[slice]:
        return [slice(at, min(at + _BLOCK, self.size)) for at in range(0, self.size, _BLOCK)]

    def _block(self, one: slice, other: "slice | NDArray[np.int64]") -> "NDArray[Any]":
        mine: NDArray[Any] = self.vectors[one].astype(self._type)
        theirs: NDArray[Any] = self.vectors[other].astype(self._type)
        cosines: NDArray[Any] = mine @ theirs.T
        np.maximum(cosines, 0, out=cosines)
        return cosines

    def _sampled(self, columns: "Matrix") -> "Matrix":
        """Return what a sample says of all, and of each fragment itself what is true."""
        some = np.unique(np.linspace(0, self.size - 1, min(SAMPLE, self.size)).round())
        rows = some.astype(np.int64)
        share = self.size / rows.size
        given: NDArray[Any] = columns[rows].astype(self._type)
        total = np.concatenate([self._block(one, rows) @ given for one in self._blocks()])
        result: Matrix = share * total.astype(np.float64)
        own = self.diagonal()[:, None] * columns
        result += own
        result[rows] -= share * own[rows]
        return result


@dataclass(frozen=True, slots=True)
class Links:
    """Weighted pairs of fragments; what is not named is not related.

    Attributes:
        size: number of fragments.
        heads: `(k,)`, rows of W.
        tails: `(k,)`, columns of W; a pair that is given twice counts twice.
        weights: `(k,)`.
        own: how strongly each fragment is related to itself, unless a pair says so.
    """

    size: int
    heads: "NDArray[np.int64]"
    tails: "NDArray[np.int64]"
    weights: "Matrix"
    own: float = 0.0

    def __post_init__(self) -> None:
        """Refuse places that no fragment has, and weights that are negative or no numbers."""
        for places in (self.heads, self.tails):
            if places.size and not 0 <= places.min() <= places.max() < self.size:
                named = f"{places.min()} to {places.max()}"
                raise UsageError(f"pairs name fragments {named}; there are 0 to {self.size - 1}")
        if not (np.isfinite(self.weights) & (self.weights >= 0)).all():
            raise UsageError("a weight is negative, infinite or not a number")

    @classmethod
    def both_ways(
        cls, size: int, pairs: "Sequence[tuple[int, int, float]]", *, own: float = 1.0
    ) -> "Links":
        """Return links that hold in both directions."""
        table = np.array(pairs, dtype=np.float64).reshape(-1, 3)
        one, other = table[:, 0].astype(np.int64), table[:, 1].astype(np.int64)
        heads, tails = np.concatenate([one, other]), np.concatenate([other, one])
        return cls(size, heads, tails, np.tile(table[:, 2], 2), own)

    def times(self, columns: "Matrix") -> "Matrix":
        """Return W times columns."""
        result = self.own * columns
        for n in range(columns.shape[1]):
            given = self.weights * columns[self.tails, n]
            result[:, n] += np.bincount(self.heads, given, self.size)
        return result

    def diagonal(self) -> "Matrix":
        """Return what each fragment has with itself."""
        selves = self.heads == self.tails
        result = np.zeros(self.size)
        np.add.at(result, self.heads[selves], self.weights[selves])
        return result + self.own


@dataclass(frozen=True, slots=True)
class Blend:
    """The mean of several relations over the same fragments."""

    parts: "Sequence[Relation]"

    @property
    def size(self) -> int:
        """Number of fragments."""
        return self.parts[0].size

    def times(self, columns: "Matrix") -> "Matrix":
        """Return W times columns."""
        return _mean([part.times(columns) for part in self.parts])

    def diagonal(self) -> "Matrix":
        """Return the mean of the parts'."""
        return _mean([part.diagonal() for part in self.parts])


def _mean(found: "Sequence[Matrix]") -> "Matrix":
    result: Matrix = np.mean(np.stack(found), axis=0)
    return result


# The code relation over a memory's fragments (Equation 8).
#
# Between files, the way over the directories factors: how strongly a fragment is tied to its file,
# times the way from file to file. Only what syntax and calls give beyond that is kept, pair by
# pair.


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
