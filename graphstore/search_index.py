"""What a store's own indexes can do: terms, titles, names and vectors."""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from qrmem.graphstore.records import Entry, Titled, VectorKind, Vectors, Vocabulary

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class SearchIndex(Protocol):
    """The database's own indexes over terms, titles, names and vectors.

    Terms are words as `qrmem.text.words.terms` gives them; titles count as part of each segment's
    text. An index proposes candidates; what ranks them is computed from what `entries`,
    `vocabulary` and `nearest` say, which is exact.
    """

    async def vocabulary(self, ns: str, terms: Sequence[str]) -> Vocabulary:
        """Return how many segments have each term."""
        ...

    async def matching(
        self,
        ns: str,
        groups: Sequence[Sequence[str]],
        limit: int,
        documents: Collection[str] | None = None,
    ) -> Sequence[str]:
        """Return the ids of segments with a term of every group, best first by the index's score.

        Args:
            groups: lists of terms; nothing is found for none, nor for an empty one.
            limit: upper bound on their number.
            documents: ids of the only documents to look at; `None`: all.
        """
        ...

    async def nearest(
        self,
        ns: str,
        vector: "NDArray[np.float32]",
        limit: int,
        *,
        documents: Collection[str] | None = None,
        among: Sequence[str] | None = None,
    ) -> Mapping[str, float]:
        """Return the cosines of the segments nearest to a vector, nearest first.

        A segment's is that of its nearest window; segments without a vector are left out.

        Args:
            vector: `(dimension,)`, unit length.
            limit: upper bound on their number.
            documents: ids of the only documents to look at; `None`: all.
            among: ids of the only segments to look at; `None`: all.
        """
        ...

    async def entries(self, ns: str, segment_ids: Sequence[str]) -> Sequence[Entry]:
        """Return what is indexed of segments, in the order of the ids."""
        ...

    async def indexed(self, ns: str) -> Sequence[str]:
        """Return the ids of all indexed segments, in order."""
        ...

    async def titled(
        self, ns: str, names: Sequence[str], first: int = 3
    ) -> Mapping[str, Sequence[Titled]]:
        """Return the documents that names are titles of, surest first, by id where equal.

        A name that more than `MOST_TITLED` documents go by means none of them and is left out.

        Args:
            names: as `qrmem.text.naming.plain` gives them; unknown ones are left out.
            first: segments of each document to return.
        """
        ...

    async def named_in(
        self, ns: str, segment_ids: Sequence[str]
    ) -> Mapping[str, Sequence[tuple[str, str]]]:
        """Return segment id to pairs of a surface form in it and the key of its entity."""
        ...

    async def shared_entities(
        self, ns: str, segment_ids: Sequence[str], most: int
    ) -> "Mapping[str, tuple[Sequence[str], int]]":
        """Return the entities that two or more of some segments have.

        Args:
            most: leave out entities that stand in more segments of the namespace.

        Returns:
            Entity key to the ids of the segments among those given, and the number of all.
        """
        ...

    async def put_vectors(
        self, ns: str, kind: VectorKind, owners: Sequence[str], matrix: "NDArray[np.float32]"
    ) -> None:
        """Add rows; rows that an owner had before this call are replaced.

        The vectors of a segment go with it; those of relations go, all of them, whenever a segment
        goes, and are made again when they are needed.

        Args:
            owners: one per row, ids of segments (unknown ones are passed over), or what the caller
                calls the text of a relation; a segment has as many rows as windows.

        Raises:
            EmbedderMismatch: the rows are not as long as the namespace's vectors.
        """
        ...

    async def vectors(
        self, ns: str, kind: VectorKind, owners: Sequence[str] | None = None
    ) -> Vectors:
        """Return the rows of the given owners, or all.

        Segments in order, relations by owner; the rows of one owner as they were put.
        """
        ...

    async def owners(self, ns: str, kind: VectorKind) -> Sequence[str]:
        """Return who has vectors, in the order of `vectors`."""
        ...
