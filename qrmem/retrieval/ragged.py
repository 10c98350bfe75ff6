"""Lists of numbers of different lengths, as two columns."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Ragged:
    """Lists of numbers end to end: list `i` is `values[starts[i]:starts[i + 1]]`."""

    starts: "NDArray[np.int64]"
    values: "NDArray[np.int64]"

    def __getitem__(self, place: int) -> "NDArray[np.int64]":
        return self.values[self.starts[place] : self.starts[place + 1]]

    def gathered(
        self, places: "NDArray[np.int64]"
    ) -> "tuple[NDArray[np.int64], NDArray[np.int64]]":
        """Return the values of some lists end to end, and how many each list has."""
        sizes = self.sizes_of(places)
        ends = np.cumsum(sizes)
        steps = np.arange(ends[-1] if ends.size else 0) - np.repeat(ends - sizes, sizes)
        return self.values[np.repeat(self.starts[places], sizes) + steps], sizes

    def sizes_of(self, places: "NDArray[np.int64]") -> "NDArray[np.int64]":
        """Return the lengths of some lists."""
        lengths: NDArray[np.int64] = self.starts[places + 1] - self.starts[places]
        return lengths

    @property
    def sizes(self) -> "NDArray[np.int64]":
        """Length of each list."""
        lengths: NDArray[np.int64] = self.starts[1:] - self.starts[:-1]
        return lengths

    @classmethod
    def group(cls, keys: "NDArray[np.int64]", values: "NDArray[np.int64]", size: int) -> "Ragged":
        """Group values by key in `range(size)`, in the order in which they came."""
        order = np.argsort(keys, kind="stable")
        starts = np.zeros(size + 1, dtype=np.int64)
        np.cumsum(np.bincount(keys, minlength=size), out=starts[1:])
        return cls(starts, values[order])
