"""The links of a namespace as columns: which names mean which documents and which segments."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from qrmem.retrieval.ragged import Ragged
from qrmem.retrieval.spotting import NameTable, plain, title_forms, words_of
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
class Graph:
    """Names, what they mean, and where they stand.

    Attributes:
        table: all names: titles with their short forms, and entities' names.
        titled: name to places of documents, with how surely it means each.
        entities_of_name: name to numbers of entities.
        entity_keys: keys of the entities, by number.
        entity_names: their names.
        mentions: row of a segment to the numbers of its entities.
        mentioned: number of an entity to the rows of its segments.
        rows_of_document: place of a document to the rows of its segments, in order.
    """

    table: NameTable
    titled: Mapping[int, Mapping[int, float]]
    entities_of_name: Mapping[int, Sequence[int]]
    entity_keys: Sequence[str]
    entity_names: Sequence[str]
    mentions: Ragged
    mentioned: Ragged
    rows_of_document: Ragged
    _reached: dict[int, Targets]
    _terms: dict[int, tuple[str, ...]]
    _in_titles: "dict[int, NDArray[np.int64]]"

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
        meant = self.titled.get(name, {})
        parts = [
            (self.rows_of_document[document][:FIRST_SEGMENTS], sure / math.sqrt(len(meant)), True)
            for document, sure in islice(meant.items(), HOMONYMS)
        ]
        for entity in self.entities_of_name.get(name, ()):
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


async def load(store: "GraphStore", ns: str, columns: "Columns") -> Graph:
    """Read a namespace's names and mentions."""
    table = NameTable()
    titled = _titles(table, [found.title for found in columns.documents])
    await _leads(store, ns, columns, table, titled)
    keys: dict[str, int] = {}
    names: list[str] = []
    entities_of_name: dict[int, list[int]] = {}
    for row in await store.names(ns):
        number = keys.setdefault(row.entity, len(keys))
        if number == len(names):
            names.append(row.surface)
        name = table.add(plain(row.surface))
        if name >= 0 and number not in entities_of_name.setdefault(name, []):
            entities_of_name[name].append(number)
    found = await store.entities_in(ns, columns.catalog.segment_ids)
    pairs = np.array(
        [
            (columns.row_of[segment], keys[entity])
            for segment, entities in found.items()
            if segment in columns.row_of
            for entity in entities
            if entity in keys
        ],
        dtype=np.int64,
    ).reshape(-1, 2)
    return Graph(
        table=table,
        titled=titled,
        entities_of_name=entities_of_name,
        entity_keys=list(keys),
        entity_names=names,
        mentions=Ragged.group(pairs[:, 0], pairs[:, 1], columns.size),
        mentioned=Ragged.group(pairs[:, 1], pairs[:, 0], len(keys)),
        rows_of_document=columns.rows_of_document,
        _reached={},
        _terms={},
        _in_titles={},
    )


def _titles(table: NameTable, titles: Iterable[str]) -> dict[int, dict[int, float]]:
    titled: dict[int, dict[int, float]] = {}
    for document, title in enumerate(titles):
        for form, weight in title_forms(title):
            _entitle(table, titled, form, document, weight)
    return titled


def _entitle(
    table: NameTable,
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
    table: NameTable,
    titled: dict[int, dict[int, float]],
) -> None:
    """Add the name that a document's text opens with, where it is its title's subject."""
    firsts = columns.rows_of_document.values[columns.rows_of_document.starts[:-1]]
    ids = [columns.catalog.segment_ids[row] for row in firsts]
    place = {name: document for document, name in enumerate(ids)}
    for segment in await store.segments(ns, ids):
        document = place[segment.id]
        form = lead_name(segment.text, columns.documents[document].title)
        if form:
            _entitle(table, titled, form, document, 0.7)


def lead_name(text: str, title: str) -> str:
    """Return the name that a text opens with, if it shares a word with the title; else ""."""
    opening = words_of(text[:120])
    end = 0
    while end < len(opening.words) and end < 8:
        joined = end and opening.starts[end] - opening.ends[end - 1] <= 2
        gap = text[opening.ends[end - 1] : opening.starts[end]] if end else ""
        small = opening.words[end] in _JOINING
        if end and (not joined or any(mark in gap for mark in "(,;:[")):
            break
        if not (opening.marked[end] or small):
            break
        end += 1
    while end and opening.words[end - 1] in _JOINING:
        end -= 1
    words = list(opening.words[:end])
    if words and words[0] in {"the", "a", "an"}:
        words = words[1:]
    own = set(words_of(title).words)
    return " ".join(words) if own & set(words) - _JOINING else ""


_JOINING_WORDS = "of the de la le du da di von van der den and y for in on at to a an"
_JOINING = frozenset(_JOINING_WORDS.split())
