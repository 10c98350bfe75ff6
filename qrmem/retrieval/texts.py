"""Many texts as one run of bytes: read one by one, and found without a dictionary.

A dictionary of half a million names takes more time and room to make than a question to answer.
"""

import zlib
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, Self, overload

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.integer[Any]]

_REMEMBERED = 2**15
_LONE = "surrogatepass"
"""How half a surrogate pair is written, which a file's name may hold."""


class Texts(Sequence[str]):
    """Texts in order.

    Attributes:
        run: all of them end to end.
        starts: `(n + 1,)`, where each begins, and the end.
    """

    def __init__(self, run: "bytes | memoryview", starts: "Ints") -> None:
        self.run = memoryview(run)
        self.starts = starts
        self._starts: memoryview[int] = starts.data  # an item of it is a number at once

    @classmethod
    def of(cls, texts: Sequence[str]) -> Self:
        """Return some texts in this form."""
        runs = [text.encode("utf-8", _LONE) for text in texts]
        starts = np.fromiter(accumulate(map(len, runs), initial=0), np.int64, len(runs) + 1)
        return cls(b"".join(runs), starts)

    def __len__(self) -> int:
        return len(self._starts) - 1

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[str]: ...
    def __getitem__(self, place: int | slice) -> str | Sequence[str]:
        if isinstance(place, slice):
            return [self[one] for one in range(*place.indices(len(self)))]
        if place < 0:
            place += len(self)
        return str(self.run[self._starts[place] : self._starts[place + 1]], "utf-8", _LONE)

    def __iter__(self) -> Iterator[str]:
        ends = self.starts.tolist()
        for start, end in pairwise(ends):
            yield str(self.run[start:end], "utf-8", _LONE)


class Lookup(Mapping[str, int]):
    """The places of different texts, by what they say.

    Attributes:
        texts: in order of place.
        sums: `(n,)`, checksums of the texts, ascending.
        at: `(n,)`, the place of the text with each.
        place: returns the place of a text, -1 for one that isn't among them.
    """

    place: Callable[[str], int]

    def __init__(self, texts: Texts, sums: "Ints", at: "Ints") -> None:
        self.texts = texts
        self.sums = sums
        self.at = at
        self._sums: memoryview[int] = sums.data
        self._at: memoryview[int] = at.data
        # The same few thousand words begin most of what is looked up.
        self.place = lru_cache(_REMEMBERED)(self._place)

    @classmethod
    def of(cls, texts: Texts) -> Self:
        """Return the places of some texts."""
        ends = texts.starts.tolist()
        pairs = pairwise(ends)
        sums = np.array([zlib.crc32(texts.run[start:end]) for start, end in pairs], dtype=np.int64)
        order = np.argsort(sums, kind="stable")
        return cls(texts, sums[order], order)

    def columns(self, name: str) -> "dict[str, Ints]":
        """Return what makes it again with the texts."""
        return {f"{name} sums": self.sums, f"{name} places": self.at}

    def __len__(self) -> int:
        return len(self.texts)

    def __iter__(self) -> Iterator[str]:
        return iter(self.texts)

    def __getitem__(self, text: str) -> int:
        place = self.place(text)
        if place < 0:
            raise KeyError(text)
        return place

    def get(self, text: str, default: Any = None) -> Any:
        """Return the place of a text, or the default; quicker than asking twice."""
        place = self.place(text)
        return default if place < 0 else place

    def __contains__(self, text: object) -> bool:
        return isinstance(text, str) and self.place(text) >= 0

    def _place(self, text: str) -> int:
        """Find a text by its checksum; of several with one the text itself decides."""
        data = text.encode("utf-8", _LONE)
        wanted, sums = zlib.crc32(data), self._sums
        near = bisect_left(sums, wanted)
        while near < len(sums) and sums[near] == wanted:
            place = self._at[near]
            if self.texts[place] == text:
                return place
            near += 1
        return -1
