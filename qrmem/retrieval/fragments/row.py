"""What the fragments of one source file are related to, as it is computed and kept."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from qrmem.retrieval.fragments.packing import pack, unpack

if TYPE_CHECKING:
    from numpy.typing import NDArray

_KINDS = (np.float32, np.int32, np.int32, np.int32, np.float32)


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """What the fragments of one file are related to, beyond the tree of directories.

    Attributes:
        reach: how strongly each fragment is tied to its file, mean over its nodes.
        paths: of the files related.
        counts: how many links there are to each of these; the links are in that order.
        heads: fragments of the file.
        tails: fragments of the files related.
        weights: what Equation 8 gives more than the way over the directories.
    """

    reach: "NDArray[np.float32]"
    paths: Sequence[str]
    counts: "NDArray[np.int32]"
    heads: "NDArray[np.int32]"
    tails: "NDArray[np.int32]"
    weights: "NDArray[np.float32]"

    @property
    def files(self) -> "NDArray[np.int64]":
        """For each link, the place in `paths`."""
        return np.repeat(np.arange(len(self.paths)), self.counts)

    def completed(self, without: Collection[str], others: Sequence["Row"]) -> "Row":
        """Return this row without the links to some files, and with links from others' mirrors."""
        stays = np.array([path not in without for path in self.paths], dtype=bool)
        keeps = np.repeat(stays, self.counts)
        counts = [self.counts[stays], *(other.counts for other in others)]
        heads = [self.heads[keeps], *(other.heads for other in others)]
        tails = [self.tails[keeps], *(other.tails for other in others)]
        weights = [self.weights[keeps], *(other.weights for other in others)]
        kept = (path for path, is_kept in zip(self.paths, stays, strict=True) if is_kept)
        return Row(
            reach=self.reach,
            paths=[*kept, *chain.from_iterable(other.paths for other in others)],
            counts=np.concatenate(counts),
            heads=np.concatenate(heads),
            tails=np.concatenate(tails),
            weights=np.concatenate(weights),
        )

    def mirrors(self, path: str, wanted: Collection[str]) -> "dict[str, Row]":
        """Return what this row of `path` says of some files as those would say it.

        The relation is its own mirror image.
        """
        ends = np.cumsum(self.counts).tolist()
        found = {}
        for other, count, end in zip(self.paths, self.counts.tolist(), ends, strict=True):
            if other in wanted:
                part = slice(end - count, end)
                found[other] = Row(
                    reach=self.reach[:0],
                    paths=[path],
                    counts=np.array([count], dtype=np.int32),
                    heads=self.tails[part],
                    tails=self.heads[part],
                    weights=self.weights[part],
                )
        return found

    def packed(self) -> str:
        """Return it as text; `unpacked` makes it again."""
        return pack(
            list(self.paths), [self.reach, self.counts, self.heads, self.tails, self.weights]
        )

    @classmethod
    def unpacked(cls, packed: str) -> "Row":
        """Return what was packed."""
        paths, (reach, counts, heads, tails, weights) = unpack(packed, _KINDS)
        return cls(reach, paths, counts, heads, tails, weights)
