"""The links of a namespace as columns: which names mean which documents and which segments."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

import numpy as np

from qrmem.retrieval.packing import Packed
from qrmem.retrieval.ragged import Ragged
from qrmem.retrieval.spotting import Names, NameTable, each_word, plain, title_forms
from qrmem.text.words import terms

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from qrmem.graphstore.protocol import GraphStore
    from qrmem.retrieval.columns import Columns

FIRST_SEGMENTS = 3
"""Segments of a document that its title leads to: the first ones say what it is about."""

HOMONYMS = 4
"""Documents of one title that it leads to."""

RARE = 20
"""Segments that a name may stand in and still link them; a commoner one says too little."""


@dataclass(frozen=True, slots=True)
class Targets:
    """Where a name leads.

    Attributes:
        rows: of segments.
        sure: how surely it leads there.
        entitled: whether it is the title of the segment's document.
    """

    rows: "NDArray[np.int64]"
    sure: "NDArray[np.float64]"
    entitled: "NDArray[np.bool_]"


NOWHERE = Targets(np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0, dtype=bool))


@dataclass(frozen=True, slots=True)
class Titled:
    """The documents that names are titles of.

    Attributes:
        documents: number of a name to places of documents, surest first where it matters.
        sure: how surely each is meant, along `documents.values`.
    """

    documents: Ragged
    sure: "NDArray[np.float64]"

    @classmethod
    def of(cls, found: "dict[int, dict[int, float]]", size: int) -> Self:
        """Return them for `size` names, given as name to documents with how surely each."""
        pairs = [(name, document) for name, meant in found.items() for document in meant]
        sure = np.array([share for meant in found.values() for share in meant.values()])
        names, documents = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
        order = np.argsort(names, kind="stable")
        return cls(Ragged.group(names, documents, size), sure[order])

    def by(self, name: int) -> list[tuple[int, float]]:
        """Return the documents that a name may mean, with how surely it does."""
        start, end = self.documents.starts[name : name + 2].tolist()
        documents = self.documents.values[start:end].tolist()
        return list(zip(documents, self.sure[start:end].tolist(), strict=True))


@dataclass(frozen=True, slots=True)
class Graph:
    """Names, what they mean, and where they stand.

    Attributes:
        table: all names: titles with their short forms, and entities' names.
        titled: the documents that they are titles of.
        entities_of_name: name to numbers of entities.
        mentions: row of a segment to the numbers of its entities.
        mentioned: number of an entity to the rows of its segments.
        rows_of_document: place of a document to the rows of its segments, in order.
        kinds: which names are a title, and which are an entity's: `kinds[0][name]`.
    """

    table: NameTable
    titled: Titled
    entities_of_name: Ragged
    mentions: Ragged
    mentioned: Ragged
    rows_of_document: Ragged
    kinds: tuple[bytes, bytes] = field(init=False)
    _reached: dict[int, Targets] = field(default_factory=dict)
    _terms: dict[int, tuple[str, ...]] = field(default_factory=dict)
    _in_titles: "dict[int, NDArray[np.int64]]" = field(default_factory=dict)

    def __post_init__(self) -> None:
        of_titles, of_entities = self.titled.documents.sizes > 0, self.entities_of_name.sizes > 0
        object.__setattr__(self, "kinds", (of_titles.tobytes(), of_entities.tobytes()))

    def terms(self, name: int) -> tuple[str, ...]:
        """Return a name's words as BM25 counts them; worked out when first needed."""
        found = self._terms.get(name)
        if found is None:
            found = self._terms[name] = tuple(dict.fromkeys(terms(self.table.names[name])))
        return found

    def titles_with(self, columns: "Columns", name: int) -> "NDArray[np.int64]":
        """Return the documents whose title has all words of a name; kept once worked out."""
        found = self._in_titles.get(name)
        if found is None:
            places = [columns.title_words.get(term) for term in self.terms(name)]
            known = [where.rows for where in places if where is not None]
            found = np.zeros(0, dtype=np.int64)
            if known and len(known) == len(places):
                found = known[0]
                for rows in known[1:]:
                    found = np.intersect1d(found, rows, assume_unique=True)
            self._in_titles[name] = found
        return found

    def reached(self, name: int) -> Targets:
        """Return the segments that a name leads to; worked out when first needed."""
        found = self._reached.get(name)
        if found is None:
            found = self._reached[name] = self._leads_to(name)
        return found

    def _leads_to(self, name: int) -> Targets:
        meant = self.titled.by(name)
        parts = [
            (self.rows_of_document[document][:FIRST_SEGMENTS], sure / math.sqrt(len(meant)), True)
            for document, sure in meant[:HOMONYMS]
        ]
        for entity in self.entities_of_name[name].tolist():
            rows = self.mentioned[entity]
            if 2 <= rows.size <= RARE:
                parts.append((rows, 1 / math.log2(1 + rows.size), False))
        if not parts:
            return NOWHERE
        return Targets(
            np.concatenate([rows for rows, _, _ in parts]),
            np.concatenate([np.full(rows.size, sure) for rows, sure, _ in parts]),
            np.concatenate([np.full(rows.size, entitled) for rows, _, entitled in parts]),
        )

    def packed(self) -> Packed:
        """Return it for `unpacked`."""
        names, firsts, lengths = self.table.packed()
        return Packed(
            {
                "lengths": lengths,
                **names.columns("name"),
                **firsts.columns("first"),
                "titled starts": self.titled.documents.starts,
                "titled": self.titled.documents.values,
                "sure": self.titled.sure,
                "entities starts": self.entities_of_name.starts,
                "entities": self.entities_of_name.values,
                "mentions starts": self.mentions.starts,
                "mentions": self.mentions.values,
                "mentioned starts": self.mentioned.starts,
                "mentioned": self.mentioned.values,
            },
            {"names": names.texts, "firsts": firsts.texts},
        )

    @classmethod
    def unpacked(cls, packed: Packed, columns: "Columns") -> Self:
        """Return the graph that was packed, over the columns that it was made for."""

        def lists(name: str) -> Ragged:
            return Ragged(packed.narrow(f"{name} starts"), packed.narrow(name))

        names, firsts = packed.lookup("name", "names"), packed.lookup("first", "firsts")
        return cls(
            table=NameTable(names.texts, names, firsts, packed.narrow("lengths").data),
            titled=Titled(lists("titled"), packed.floats("sure")),
            entities_of_name=lists("entities"),
            mentions=lists("mentions"),
            mentioned=lists("mentioned"),
            rows_of_document=columns.rows_of_document,
        )

    @classmethod
    async def read(cls, store: "GraphStore", ns: str, columns: "Columns") -> Self:
        """Read a namespace's names and mentions."""
        table = Names()
        titled = _titles(table, columns.documents.titles)
        await _leads(store, ns, columns, table, titled)
        found = await store.name_columns(ns)
        meant = np.array([table.add(plain(s)) for s in found.surfaces], dtype=np.int64)
        by_name = _pairs(meant, found.entity_of)
        rows, known = columns.rows_at(found.numbers)
        rows, numbers = rows[known], found.entities[known]
        size = int(found.entity_of.max(initial=-1)) + 1
        return cls(
            table=table.table(),
            titled=Titled.of(titled, len(table)),
            entities_of_name=Ragged.group(by_name[0], by_name[1], len(table)),
            mentions=Ragged.group(rows, numbers, columns.size),
            mentioned=Ragged.group(numbers, rows, size),
            rows_of_document=columns.rows_of_document,
        )


def _pairs(
    names: "NDArray[np.int64]", entities: "NDArray[np.int64]"
) -> "tuple[NDArray[np.int64], NDArray[np.int64]]":
    """Return the pairs that have a name (-1: none), each once, in the order in which they come."""
    size = int(entities.max(initial=0)) + 1
    _, firsts = np.unique(names * size + entities, return_index=True)
    kept = np.sort(firsts[names[firsts] >= 0])
    return names[kept], entities[kept]


def _titles(table: Names, titles: Iterable[str]) -> dict[int, dict[int, float]]:
    titled: dict[int, dict[int, float]] = {}
    for document, title in enumerate(titles):
        for form, weight in title_forms(title):
            _entitle(table, titled, form, document, weight)
    return titled


def _entitle(
    table: Names,
    titled: dict[int, dict[int, float]],
    form: str,
    document: int,
    weight: float,
) -> None:
    name = table.add(form)
    if name >= 0:
        titled.setdefault(name, {}).setdefault(document, weight)


async def _leads(
    store: "GraphStore",
    ns: str,
    columns: "Columns",
    table: Names,
    titled: dict[int, dict[int, float]],
) -> None:
    """Add the name that a document's text opens with, where it is its title's subject."""
    firsts = columns.rows_of_document.firsts(np.arange(len(columns.documents)))
    ids = [columns.catalog.segment_ids[row] for row in firsts]
    place = {name: document for document, name in enumerate(ids)}
    for segment in await store.segments(ns, ids):
        document = place[segment.id]
        form = lead_name(segment.text, columns.documents.titles[document])
        if form:
            _entitle(table, titled, form, document, 0.7)


def lead_name(text: str, title: str) -> str:
    """Return the name that a text opens with, if it shares a word with the title; else ""."""
    words: list[str] = []
    last = 0
    for word, start, end, marked in each_word(text[:120]):
        gap = text[last:start] if words else ""
        if len(gap) > 2 or not _PARTING.isdisjoint(gap) or len(words) == _LONGEST_LEAD:
            break
        if not (marked or word in _JOINING):
            break
        words.append(word)
        last = end
    while words and words[-1] in _JOINING:
        words.pop()
    if words and words[0] in {"the", "a", "an"}:
        words = words[1:]
    own = set(plain(title).split(" "))
    return " ".join(words) if own & set(words) - _JOINING else ""


_LONGEST_LEAD = 8
_PARTING = frozenset("(,;:[")
_JOINING_WORDS = "of the de la le du da di von van der den and y for in on at to a an"
_JOINING = frozenset(_JOINING_WORDS.split())
