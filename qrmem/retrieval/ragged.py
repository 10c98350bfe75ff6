"""Lists of numbers of different lengths, as two columns."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from qrmem.retrieval.texts import Ints


@dataclass(frozen=True, slots=True)
class Ragged:
    """Lists of numbers end to end: list `i` is `values[starts[i]:starts[i + 1]]`.

    The columns may be of 32 bits, as they were packed: what is read of them is of 64.
    """

    starts: "Ints"
    values: "Ints"

    def __getitem__(self, place: int) -> "NDArray[np.int64]":
        return _wide(self.values[self.starts[place] : self.starts[place + 1]])

    def gathered(
        self, places: "NDArray[np.int64]"
    ) -> "tuple[NDArray[np.int64], NDArray[np.int64]]":
        """Return the values of some lists end to end, and how many each list has."""
        sizes = self.sizes_of(places)
        ends = np.cumsum(sizes)
        steps = np.arange(ends[-1] if ends.size else 0) - np.repeat(ends - sizes, sizes)
        return _wide(self.values[np.repeat(self.starts[places], sizes) + steps]), sizes

    def sizes_of(self, places: "NDArray[np.int64]") -> "NDArray[np.int64]":
        """Return the lengths of some lists."""
        return _wide(self.starts[places + 1] - self.starts[places])

    @property
    def sizes(self) -> "NDArray[np.int64]":
        """Length of each list."""
        return _wide(self.starts[1:] - self.starts[:-1])

    def firsts(self, places: "NDArray[np.int64]") -> "NDArray[np.int64]":
        """Return the first value of some lists, none of them empty."""
        return _wide(self.values[self.starts[places]])

    @classmethod
    def group(cls, keys: "NDArray[np.int64]", values: "NDArray[np.int64]", size: int) -> "Ragged":
        """Group values by key in `range(size)`, in the order in which they came."""
        order = np.argsort(keys, kind="stable")
        starts = np.zeros(size + 1, dtype=np.int64)
        np.cumsum(np.bincount(keys, minlength=size), out=starts[1:])
        return cls(starts, values[order])


def _wide(values: "Ints") -> "NDArray[np.int64]":
    return values.astype(np.int64, copy=False)
