"""A namespace as columns: what every search of one revision shares."""

import json
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING, NamedTuple, Protocol, Self, overload

import numpy as np

from qrmem.graphstore.protocol import Catalog
from qrmem.retrieval.bm25 import Occurrences
from qrmem.retrieval.packing import Packed
from qrmem.retrieval.ragged import Ragged
from qrmem.retrieval.texts import Lookup, Texts
from qrmem.text.words import terms

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from qrmem.graphstore.protocol import GraphStore, NamespaceInfo
    from qrmem.types import Scalar


class Described(Protocol):
    """What a search knows of a document."""

    @property
    def id(self) -> str:
        """Its id."""
        ...

    @property
    def title(self) -> str:
        """Its title, "" if it has none."""
        ...

    @property
    def metadata(self) -> "Mapping[str, Scalar]":
        """What its user says about it."""
        ...


class _Row(NamedTuple):
    id: str
    title: str
    metadata: "Mapping[str, Scalar]"


class Documents(Sequence[Described]):
    """Documents by id; metadata are read when they are asked for."""

    def __init__(self, ids: Sequence[str], titles: Sequence[str], metadata: Sequence[str]) -> None:
        self.ids = ids
        self.titles = titles
        self.metadata = metadata

    def __len__(self) -> int:
        return len(self.ids)

    @overload
    def __getitem__(self, place: int) -> Described: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Described]: ...
    def __getitem__(self, place: int | slice) -> Described | Sequence[Described]:
        if isinstance(place, slice):
            return [self[one] for one in range(*place.indices(len(self)))]
        text = self.metadata[place]
        return _Row(self.ids[place], self.titles[place], json.loads(text) if text else {})


class _Owners(Sequence[str]):
    """The document's id of each segment."""

    def __init__(self, ids: Sequence[str], document_of: "NDArray[np.int64]") -> None:
        self._ids = ids
        self._document_of = document_of

    def __len__(self) -> int:
        return self._document_of.size

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[str]: ...
    def __getitem__(self, place: int | slice) -> str | Sequence[str]:
        if isinstance(place, slice):
            return _Owners(self._ids, self._document_of[place])
        return self._ids[int(self._document_of[place])]


class TitleWords:
    """Which titles have a term, and how often.

    Attributes:
        terms: their numbers.
        rows: number of a term to places of documents, ascending.
        counts: how often it stands in each, along `rows.values`.
    """

    def __init__(self, terms: Lookup, rows: Ragged, counts: "NDArray[np.int64]") -> None:
        self.terms = terms
        self.rows = rows
        self.counts = counts

    @classmethod
    def of(cls, titles: Sequence[str]) -> "tuple[Self, NDArray[np.int64]]":
        """Return the terms of some titles, and how many each has."""
        found = [terms(title) for title in titles]
        lengths = np.array([len(words) for words in found], dtype=np.int64)
        known: defaultdict[str, int] = defaultdict(count().__next__)
        numbers = np.array([known[word] for words in found for word in words], dtype=np.int64)
        places = np.repeat(np.arange(lengths.size), lengths)
        pairs = np.sort(numbers * lengths.size + places)
        firsts = np.flatnonzero(np.diff(pairs, prepend=-1))
        counts = np.diff(firsts, append=pairs.size)
        pairs = pairs[firsts]
        number, place = np.divmod(pairs, max(lengths.size, 1))
        rows = Ragged.group(number, place, len(known))
        return cls(Lookup.of(Texts.of(list(known))), rows, counts), lengths

    def get(self, term: str) -> Occurrences | None:
        """Return where a term occurs: places of documents, ascending; `None` if nowhere."""
        number = self.terms.place(term)
        if number < 0:
            return None
        start, end = self.rows.starts[number : number + 2]
        return Occurrences(self.rows[number], self.counts[start:end])


@dataclass(frozen=True)
class Columns:
    """All indexed segments of one revision of a namespace.

    Attributes:
        documents: those that have segments, by id.
        document_of: `(n,)`, each segment's place in `documents`.
        ranks: `(n,)`, each segment's place in (document id, index) order; breaks ties.
        rows_of_document: place in `documents` to rows, in order.
        title_words: which titles have a term.
        lengths: `(n,)`, length in terms, the title's included.
        row_of: segment id to its row.
        matrix: vectors, a segment's windows next to each other.
        matrix_rows: `(m,)`, the segment that each vector belongs to.
    """

    catalog: Catalog
    documents: Documents
    document_of: "NDArray[np.int64]"
    ranks: "NDArray[np.int64]"
    rows_of_document: Ragged
    title_words: TitleWords
    lengths: "NDArray[np.int64]"
    row_of: Lookup
    matrix: "NDArray[np.float32]"
    matrix_rows: "NDArray[np.int64]"

    @property
    def size(self) -> int:
        """Number of segments."""
        return len(self.catalog.segment_ids)

    @cached_property
    def embedded(self) -> int:
        """Number of segments with a vector."""
        return int(np.unique(self.matrix_rows).size)

    def rows_at(
        self, numbers: "NDArray[np.int64]"
    ) -> "tuple[NDArray[np.int64], NDArray[np.bool_]]":
        """Return the rows of segments given by the store's ordinals, and which of them are here."""
        known = self.catalog.numbers
        rows = np.searchsorted(known, numbers)
        if not known.size:
            return rows, np.zeros(numbers.size, dtype=bool)
        return rows, known[np.minimum(rows, known.size - 1)] == numbers

    def title(self, row: int) -> str:
        """Return the title of a segment's document."""
        return self.documents.titles[int(self.document_of[row])]

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
        ids = self.documents.ids
        wanted = frozenset(ids if documents is None else documents)
        chosen = [
            id_ in wanted and (not where or _has(self.documents[place].metadata, where))
            for place, id_ in enumerate(ids)
        ]
        return np.array(chosen, dtype=bool)[self.document_of]

    def packed(self) -> Packed:
        """Return all but the vectors, for `unpacked`."""
        return Packed(
            {
                "numbers": self.catalog.numbers,
                "indexes": self.catalog.indexes,
                "catalog lengths": self.catalog.lengths,
                "document_of": self.document_of,
                "lengths": self.lengths,
                "title starts": self.title_words.rows.starts,
                "title rows": self.title_words.rows.values,
                "title counts": self.title_words.counts,
                **self.row_of.columns("segment"),
                **self.title_words.terms.columns("title term"),
            },
            {
                "segments": self.row_of.texts,
                "documents": Texts.of(self.documents.ids),
                "titles": Texts.of(self.documents.titles),
                "metadata": Texts.of(self.documents.metadata),
                "title terms": self.title_words.terms.texts,
            },
        )

    @classmethod
    def unpacked(cls, packed: Packed, revision: int) -> Self:
        """Return the columns that were packed, without vectors."""
        texts, ints = packed.texts, packed.ints
        document_of = ints("document_of")
        documents = Documents(texts["documents"], texts["titles"], texts["metadata"])
        catalog = Catalog(
            revision=revision,
            numbers=ints("numbers"),
            segment_ids=texts["segments"],
            document_ids=_Owners(documents.ids, document_of),
            indexes=ints("indexes"),
            lengths=ints("catalog lengths"),
        )
        words = TitleWords(
            packed.lookup("title term", "title terms"),
            Ragged(packed.narrow("title starts"), packed.narrow("title rows")),
            ints("title counts"),
        )
        row_of = packed.lookup("segment", "segments")
        return cls._of(catalog, documents, document_of, words, ints("lengths"), row_of)

    @classmethod
    def _of(
        cls,
        catalog: Catalog,
        documents: Documents,
        document_of: "NDArray[np.int64]",
        title_words: TitleWords,
        lengths: "NDArray[np.int64]",
        row_of: Lookup,
    ) -> Self:
        ranks = _ranks(document_of, catalog.indexes)
        return cls(
            catalog=catalog,
            documents=documents,
            document_of=document_of,
            ranks=ranks,
            rows_of_document=_rows_of_document(document_of, ranks, len(documents)),
            title_words=title_words,
            lengths=lengths,
            row_of=row_of,
            matrix=np.zeros((0, 0), dtype=np.float32),
            matrix_rows=np.zeros(0, dtype=np.int64),
        )

    @classmethod
    async def read(cls, store: "GraphStore", ns: str) -> Self:
        """Read a namespace's columns, without vectors."""
        catalog = await store.catalog(ns)
        present = set(catalog.document_ids)
        found = [info for info in await store.documents(ns) if info.id in present]
        documents = Documents(
            [info.id for info in found],
            [info.title for info in found],
            [json.dumps(dict(info.metadata)) if info.metadata else "" for info in found],
        )
        place = {name: number for number, name in enumerate(documents.ids)}
        document_of = np.array([place[name] for name in catalog.document_ids], dtype=np.int64)
        words, of_titles = TitleWords.of(documents.titles)
        lengths = catalog.lengths + of_titles[document_of] if present else catalog.lengths
        row_of = Lookup.of(Texts.of(catalog.segment_ids))
        return cls._of(catalog, documents, document_of, words, lengths, row_of)

    async def with_vectors(self, store: "GraphStore", ns: str, info: "NamespaceInfo") -> Self:
        """Return them with the vectors that there are now."""
        if not info.dimension:
            return self
        found = await store.numbered_vectors(ns)
        rows, known = self.rows_at(found.numbers)
        if known.all():
            return replace(self, matrix=found.matrix, matrix_rows=rows)
        return replace(self, matrix=found.matrix[known], matrix_rows=rows[known])


def _has(metadata: "Mapping[str, Scalar]", where: "Mapping[str, Scalar]") -> bool:
    return all(metadata.get(name) == value for name, value in where.items())


def _ranks(document_of: "NDArray[np.int64]", indexes: "NDArray[np.int64]") -> "NDArray[np.int64]":
    ranks = np.empty(document_of.size, dtype=np.int64)
    ranks[np.lexsort((indexes, document_of))] = np.arange(document_of.size)
    return ranks


def _rows_of_document(
    document_of: "NDArray[np.int64]", ranks: "NDArray[np.int64]", size: int
) -> Ragged:
    ordered = np.argsort(ranks)
    return Ragged.group(document_of[ordered], ordered, size)
