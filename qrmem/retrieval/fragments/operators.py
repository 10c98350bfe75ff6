"""Relations between fragments (FragRel, Equations 5 to 8) as linear operators.

The scores need only products of a relation with vectors. No matrix is stored, and a relation with a
closed form computes none.
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
"""Up to this many fragments the semantic relation is exact; it is computed in blocks."""
SAMPLE = 4_096
"""Beyond `EXACT`, this many evenly spaced fragments are used as a sample of all."""
_DOUBLE = 2_048
"""Up to this many fragments products are float64, beyond that float32."""
_BLOCK = 1_024
_NOTHING = 1e-17


@runtime_checkable
class WeightMatrix(Protocol):
    """The matrix W of Equation 5: independent of the query, weights of at least 0."""

    @property
    def size(self) -> int:
        """Number n of fragments; W is `(n, n)`."""
        ...

    def times(self, columns: "Matrix") -> "Matrix":
        """Return the product of W and a matrix `(n, m)`, as `(n, m)`."""
        ...

    def diagonal(self) -> "Matrix":
        """Return the diagonal of W, `(n,)`: the weight between each fragment and itself."""
        ...


@dataclass(frozen=True, slots=True)
class Structure:
    """`w_rel ** |loc_i - loc_j|` within a document, 0 between documents (Equation 7); 0 ** 0 is 1.

    Attributes:
        documents: `(n,)`, ascending: number of each fragment's document.
        places: `(n,)`, ascending within a document: `loc` of each fragment.
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
        """Return the product of W and a matrix; diagonals with negligible weights are skipped."""
        result = columns.copy()
        for lag in range(1, self.size):
            same = self.documents[lag:] == self.documents[:-lag]
            distances = (self.places[lag:] - self.places[:-lag]).astype(np.float64)
            weights = np.where(same, self.w_rel ** np.where(same, distances, 0.0), 0.0)[:, None]
            # Places increase within a document: no later diagonal has larger weights.
            if weights.max() < _NOTHING:
                break
            result[lag:] += weights * columns[:-lag]
            result[:-lag] += weights * columns[lag:]
        return result

    def diagonal(self) -> "Matrix":
        """Return the diagonal of W: ones."""
        return np.ones(self.size)


@dataclass(frozen=True, slots=True)
class Semantic:
    """Cosine similarity of the fragments' vectors, negative values set to 0 (FragRel, Equation 6).

    Attributes:
        vectors: `(n, dimension)`, unit vectors; a row of zeros for a fragment without a vector.
        is_printed: use `1 - cosine`, the equation as the paper prints it.
        is_sampled: estimate sums from `SAMPLE` fragments; the work then grows with n, not n².
    """

    vectors: "NDArray[np.float32]"
    is_printed: bool = False
    is_sampled: bool = False

    @property
    def size(self) -> int:
        """Number of fragments."""
        return int(self.vectors.shape[0])

    def times(self, columns: "Matrix") -> "Matrix":
        """Return the product of W and a matrix, in blocks; symmetric blocks are computed once."""
        if self.is_printed:
            thin = self.vectors.astype(np.float64)
            printed: Matrix = columns.sum(axis=0) - thin @ (thin.T @ columns)
            return printed
        if self.is_sampled:
            return self._sampled(columns)
        total = np.zeros_like(columns)
        columns_typed: NDArray[Any] = columns.astype(self._type)
        blocks = self._blocks()
        for n, one in enumerate(blocks):
            for other in blocks[n:]:
                block = self._block(one, other)
                total[one] += block @ columns_typed[other]
                if other != one:
                    total[other] += block.T @ columns_typed[one]
        return total

    def diagonal(self) -> "Matrix":
        """Return the diagonal of W: 1 for a fragment with a vector, else 0.

        With `is_printed` it is 0 for a fragment with a vector, else 1.
        """
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
        """Estimate the product from a sample; the diagonal's part is exact."""
        some = np.unique(np.linspace(0, self.size - 1, min(SAMPLE, self.size)).round())
        rows = some.astype(np.int64)
        share = self.size / rows.size
        columns_typed: NDArray[Any] = columns[rows].astype(self._type)
        total = np.concatenate([self._block(one, rows) @ columns_typed for one in self._blocks()])
        result: Matrix = share * total.astype(np.float64)
        diagonal_part = self.diagonal()[:, None] * columns
        result += diagonal_part
        result[rows] -= share * diagonal_part[rows]
        return result


@dataclass(frozen=True, slots=True)
class Links:
    """Weighted pairs of fragments; every other pair has weight 0.

    Attributes:
        size: number of fragments.
        heads: `(k,)`, rows of W.
        tails: `(k,)`, columns of W; the weights of a repeated pair add up.
        weights: `(k,)`, finite, at least 0.
        own: added to the diagonal: the weight between each fragment and itself.

    Raises:
        UsageError: a pair names a fragment that does not exist, or a weight is negative, infinite
            or not a number.
    """

    size: int
    heads: "NDArray[np.int64]"
    tails: "NDArray[np.int64]"
    weights: "Matrix"
    own: float = 0.0

    def __post_init__(self) -> None:
        """Check the fragment numbers and the weights."""
        for places in (self.heads, self.tails):
            if places.size and not 0 <= places.min() <= places.max() < self.size:
                range_in_words = f"{places.min()} to {places.max()}"
                raise UsageError(
                    f"pairs name fragments {range_in_words}; there are 0 to {self.size - 1}"
                )
        if not (np.isfinite(self.weights) & (self.weights >= 0)).all():
            raise UsageError("a weight is negative, infinite or not a number")

    @classmethod
    def both_ways(
        cls, size: int, pairs: "Sequence[tuple[int, int, float]]", *, own: float = 1.0
    ) -> "Links":
        """Return links in both directions.

        Args:
            size: number of fragments.
            pairs: two fragment numbers and a weight each.
            own: added to the diagonal.
        """
        table = np.array(pairs, dtype=np.float64).reshape(-1, 3)
        one, other = table[:, 0].astype(np.int64), table[:, 1].astype(np.int64)
        heads, tails = np.concatenate([one, other]), np.concatenate([other, one])
        return cls(size, heads, tails, np.tile(table[:, 2], 2), own)

    def times(self, columns: "Matrix") -> "Matrix":
        """Return the product of W and a matrix `(n, m)`."""
        result = self.own * columns
        for n in range(columns.shape[1]):
            weighted = self.weights * columns[self.tails, n]
            result[:, n] += np.bincount(self.heads, weighted, self.size)
        return result

    def diagonal(self) -> "Matrix":
        """Return the diagonal of W, `(n,)`."""
        selves = self.heads == self.tails
        result = np.zeros(self.size)
        np.add.at(result, self.heads[selves], self.weights[selves])
        return result + self.own


@dataclass(frozen=True, slots=True)
class Blend:
    """The mean of several relations over the same fragments."""

    parts: "Sequence[WeightMatrix]"

    @property
    def size(self) -> int:
        """Number of fragments."""
        return self.parts[0].size

    def times(self, columns: "Matrix") -> "Matrix":
        """Return the product of W and a matrix `(n, m)`."""
        return _mean([part.times(columns) for part in self.parts])

    def diagonal(self) -> "Matrix":
        """Return the mean of the parts' diagonals."""
        return _mean([part.diagonal() for part in self.parts])


def _mean(found: "Sequence[Matrix]") -> "Matrix":
    result: Matrix = np.mean(np.stack(found), axis=0)
    return result


# The code relation over a memory's fragments (Equation 8).
#
# Between files, the strength over directories factors: the strength between a fragment and its
# file, times the strength between the files. Pairs are stored only where syntax and calls add to
# that.


@dataclass(frozen=True, slots=True)
class Folders:
    """The tree of directories with files as leaves; a path weighs the product of its edges.

    Attributes:
        parents: `(nodes,)`, parent of each node; files come first, a root is its own parent.
        levels: node numbers by depth, roots first.
        files: number of files.
    """

    parents: "NDArray[np.int64]"
    levels: "Sequence[NDArray[np.int64]]"
    files: int

    @classmethod
    def of(cls, paths: Sequence[str]) -> "Folders":
        """Return the tree over the given file paths."""
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
        """Return, for each file, the sum of all files' rows, each times the weight of its path.

        Args:
            columns: `(files, m)`.
        """
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
    """The relation `code` (W of Equation 8).

    Attributes:
        folders: the tree of directories over the files.
        file_of: `(n,)`, number of each fragment's file.
        reach: `(n,)`, strength between each fragment and its file; 0 for a fragment that is not
            code.
        links: strength of pairs beyond the path over directories.
    """

    folders: Folders
    file_of: "NDArray[np.int64]"
    reach: "Matrix"
    links: Links

    @classmethod
    def over(cls, fragments: "Fragments", strengths: Strengths) -> "Code":
        """Return the relation over the fragments of a memory.

        A fragment that is not source code is related to itself only.
        """
        starts = np.searchsorted(fragments.document_of, np.arange(len(fragments.documents) + 1))
        paths = [info.id for info in fragments.documents]
        place = _places(dict(zip(paths, range(len(paths)), strict=True)), starts, strengths)
        is_known = place >= 0
        reach, alone = np.zeros(fragments.size), np.ones(fragments.size)
        reach[place[is_known]], alone[place[is_known]] = strengths.reach[is_known], 0.0
        there = is_known[strengths.heads] & is_known[strengths.tails]
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
        """Return the product of W and a matrix `(n, m)`."""
        tied = self.reach[:, None] * columns
        by_file = np.zeros((self.folders.files, columns.shape[1]))
        np.add.at(by_file, self.file_of, tied)
        far = self.folders.times(by_file)[self.file_of]
        result: Matrix = self.reach[:, None] * far + self.links.times(columns)
        return result

    def diagonal(self) -> "Matrix":
        """Return the diagonal of W, `(n,)`."""
        return self.reach**2 + self.links.diagonal()


def _places(
    numbers: Mapping[str, int], starts: "NDArray[np.int64]", strengths: Strengths
) -> "NDArray[np.int64]":
    """Return the place of each source file's fragments among a memory's fragments, else -1.

    It is -1 if the question leaves the file out, or if the file has changed since.
    """
    place = np.full(strengths.reach.size, -1, dtype=np.int64)
    after = np.cumsum(strengths.sizes)
    for path, size, end in zip(strengths.paths, strengths.sizes, after, strict=True):
        number = numbers.get(path)
        if number is not None and starts[number + 1] - starts[number] == size:
            place[end - size : end] = np.arange(starts[number], starts[number + 1])
    return place
