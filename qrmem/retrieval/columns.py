"""A namespace as columns: what every search of one revision shares."""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from qrmem.retrieval.bm25 import Occurrences
from qrmem.retrieval.ragged import Ragged
from qrmem.text.words import terms

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from qrmem.graphstore.protocol import Catalog, GraphStore, NamespaceInfo
    from qrmem.records import DocumentInfo, Scalar


@dataclass(frozen=True, slots=True)
class Columns:
    """All indexed segments of one revision of a namespace.

    Attributes:
        row_of: segment id to its row.
        documents: those that have segments, by id.
        document_of: `(n,)`, each segment's place in `documents`.
        ranks: `(n,)`, each segment's place in (document id, index) order; breaks ties.
        rows_of_document: place in `documents` to rows, in order.
        title_words: term to places in `documents` whose title has it, and how often.
        lengths: `(n,)`, length in terms, the title's included.
        matrix: vectors, a segment's windows next to each other.
        matrix_rows: `(m,)` ascending, the segment that each vector belongs to.
    """

    catalog: "Catalog"
    row_of: Mapping[str, int]
    documents: "Sequence[DocumentInfo]"
    document_of: "NDArray[np.int64]"
    ranks: "NDArray[np.int64]"
    rows_of_document: Ragged
    title_words: Mapping[str, Occurrences]
    lengths: "NDArray[np.int64]"
    matrix: "NDArray[np.float32]"
    matrix_rows: "NDArray[np.int64]"

    @property
    def size(self) -> int:
        """Number of segments."""
        return len(self.catalog.segment_ids)

    @property
    def embedded(self) -> int:
        """Number of segments with a vector."""
        return int(np.unique(self.matrix_rows).size)

    def title(self, row: int) -> str:
        """Return the title of a segment's document."""
        return self.documents[int(self.document_of[row])].title

    def allowed(
        self, documents: Collection[str] | None, where: "Mapping[str, Scalar] | None"
    ) -> "NDArray[np.bool_]":
        """Return which segments a search may find.

        Args:
            documents: their documents' ids, or `None` for all.
            where: metadata that their documents have, value for value.
        """
        if documents is None and not where:
            return np.ones(self.size, dtype=bool)
        wanted = None if documents is None else frozenset(documents)
        chosen = [
            (wanted is None or info.id in wanted)
            and all(info.metadata.get(name) == value for name, value in (where or {}).items())
            for info in self.documents
        ]
        return np.array(chosen, dtype=bool)[self.document_of]


async def load(store: "GraphStore", ns: str, info: "NamespaceInfo") -> Columns:
    """Read a namespace's columns."""
    catalog = await store.catalog(ns)
    present = set(catalog.document_ids)
    documents = [found for found in await store.documents(ns) if found.id in present]
    place = {found.id: number for number, found in enumerate(documents)}
    document_of = np.array([place[name] for name in catalog.document_ids], dtype=np.int64)
    row_of = {name: row for row, name in enumerate(catalog.segment_ids)}
    title_words, title_lengths = _title_words([found.title for found in documents])
    matrix, matrix_rows = await _vectors(store, ns, info, row_of)
    ranks = _ranks(document_of, catalog.indexes)
    return Columns(
        catalog=catalog,
        row_of=row_of,
        documents=documents,
        document_of=document_of,
        ranks=ranks,
        rows_of_document=_rows_of_document(document_of, ranks, len(documents)),
        title_words=title_words,
        lengths=catalog.lengths + title_lengths[document_of] if row_of else catalog.lengths,
        matrix=matrix,
        matrix_rows=matrix_rows,
    )


def _ranks(document_of: "NDArray[np.int64]", indexes: "NDArray[np.int64]") -> "NDArray[np.int64]":
    ranks = np.empty(document_of.size, dtype=np.int64)
    ranks[np.lexsort((indexes, document_of))] = np.arange(document_of.size)
    return ranks


def _rows_of_document(
    document_of: "NDArray[np.int64]", ranks: "NDArray[np.int64]", size: int
) -> Ragged:
    ordered = np.argsort(ranks)
    return Ragged.group(document_of[ordered], ordered, size)


def _title_words(titles: Sequence[str]) -> "tuple[dict[str, Occurrences], NDArray[np.int64]]":
    found: dict[str, list[tuple[int, int]]] = defaultdict(list)
    lengths = np.zeros(len(titles), dtype=np.int64)
    for number, title in enumerate(titles):
        counts = Counter(terms(title))
        lengths[number] = counts.total()
        for term, count in counts.items():
            found[term].append((number, count))
    columns = {term: np.array(pairs, dtype=np.int64) for term, pairs in found.items()}
    return {term: Occurrences(pair[:, 0], pair[:, 1]) for term, pair in columns.items()}, lengths


async def _vectors(
    store: "GraphStore", ns: str, info: "NamespaceInfo", row_of: Mapping[str, int]
) -> "tuple[NDArray[np.float32], NDArray[np.int64]]":
    if not info.dimension:
        return np.zeros((0, 0), dtype=np.float32), np.zeros(0, dtype=np.int64)
    found = await store.vectors(ns, "segment")
    rows = np.array([row_of.get(owner, -1) for owner in found.owners], dtype=np.int64)
    order = np.argsort(rows, kind="stable")
    order = order[rows[order] >= 0]
    if np.array_equal(order, np.arange(rows.size)):
        return found.matrix, rows
    return found.matrix[order], rows[order]
