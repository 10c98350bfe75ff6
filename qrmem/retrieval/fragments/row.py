"""What the fragments of one source file are related to, as it is computed and kept."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
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

    def mirrored(self, path: str, other: str, its: "Row") -> "Row":
        """Return this row of `path` with the links to `other` taken from that file's own row.

        The relation is its own mirror image.
        """
        keeps = np.ones(self.files.size, dtype=bool)
        if other in self.paths:
            keeps = self.files != self.paths.index(other)
        mine = np.zeros(its.files.size, dtype=bool)
        if path in its.paths:
            mine = its.files == its.paths.index(path)
        paths = [*dict.fromkeys([*self.paths, other])]
        place = np.full(int(mine.sum()), paths.index(other), dtype=np.int32)
        return replace(
            self,
            heads=np.concatenate([self.heads[keeps], its.tails[mine]]),
            paths=paths,
            files=np.concatenate([self.files[keeps], place]),
            tails=np.concatenate([self.tails[keeps], its.heads[mine]]),
            weights=np.concatenate([self.weights[keeps], its.weights[mine]]),
        )

    def packed(self) -> str:
        """Return it as text; `unpacked` makes it again."""
        return pack(
            list(self.paths), [self.reach, self.heads, self.files, self.tails, self.weights]
        )

    @classmethod
    def unpacked(cls, packed: str) -> "Row":
        """Return what was packed."""
        paths, (reach, heads, files, tails, weights) = unpack(packed, _KINDS)
        return cls(reach, heads, paths, files, tails, weights)
