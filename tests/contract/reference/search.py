"""The search of the reference store: each search reads every segment."""

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from contract.reference.space import Space

from qrmem.graphstore.protocol import FIRST_TITLED, MOST_TITLED, Entry, Titled, Vocabulary
from qrmem.text.names import forms_of
from qrmem.text.words import terms

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_K1, _B = 1.2, 0.75


def entries(space: Space, segment_ids: Sequence[str]) -> list[Entry]:
    """Return what is indexed of segments, in the order of the ids."""
    known = _indexed(space)
    return [known[id_] for id_ in segment_ids if id_ in known]


def _indexed(space: Space) -> Mapping[str, Entry]:
    """Return what is indexed of each segment, in order; worked out once a revision."""
    if space.entries is None or space.entries[0] != space.info.revision:
        space.entries = space.info.revision, _entries(space)
    return space.entries[1]


def _entries(space: Space) -> dict[str, Entry]:
    found = {}
    for id_ in space.in_order(space.rows.index):
        segment, own = space.segments[id_], Counter(space.rows.index[id_])
        document = space.documents[segment.document_id]
        words = [*terms(document.title), *own.elements()]
        found[id_] = Entry(
            id_, segment.document_id, segment.index, document.title, document.metadata, words
        )
    return found


def vocabulary(space: Space, wanted: Sequence[str]) -> Vocabulary:
    """Return how many segments have each term."""
    bags = [entry.terms for entry in _indexed(space).values()]
    frequencies = {term: sum(term in bag for bag in bags) for term in wanted}
    known = {term: count for term, count in frequencies.items() if count}
    return Vocabulary(len(bags), sum(map(len, bags)), known)


def matching(
    space: Space,
    groups: Sequence[Sequence[str]],
    limit: int,
    documents: Collection[str] | None = None,
    *,
    among: Collection[str] | None = None,
) -> list[str]:
    """Return the segments with a term of every group, best first by BM25."""
    wanted = list(dict.fromkeys(term for group in groups for term in group))
    known = vocabulary(space, wanted)
    scores: dict[str, float] = {}
    for entry in _indexed(space).values():
        if documents is not None and entry.document_id not in documents:
            continue
        if among is not None and entry.id not in among:
            continue
        counts = Counter(entry.terms)
        if groups and all(any(counts[term] for term in group) for group in groups):
            scores[entry.id] = _bm25(counts, wanted, known)
    return sorted(scores, key=lambda id_: (-round(scores[id_], 9), space.place(id_)))[:limit]


def matching_each(
    space: Space,
    queries: Sequence[Sequence[Sequence[str]]],
    limit: int,
    documents: Collection[str] | None = None,
    *,
    among: Collection[str] | None = None,
) -> list[list[str]]:
    """Return the result of `matching` for each query."""
    return [matching(space, groups, limit, documents, among=among) for groups in queries]


def _bm25(counts: Counter[str], wanted: Sequence[str], known: Vocabulary) -> float:
    norm = _K1 * (1 - _B + _B * counts.total() / known.mean_length)
    return sum(
        math.log1p((known.segments - known.frequencies[term] + 0.5) / (known.frequencies[term] + 1))
        * counts[term]
        * (_K1 + 1)
        / (counts[term] + norm)
        for term in wanted
        if counts[term]
    )


def nearest(
    space: Space,
    vector: "NDArray[np.float32]",
    limit: int,
    *,
    documents: Collection[str] | None = None,
    among: Sequence[str] | None = None,
) -> dict[str, float]:
    """Return the cosines of the segments nearest to a vector, nearest first."""
    scores = {}
    for kind, id_ in space.vectors:
        if kind != "segment" or (among is not None and id_ not in among):
            continue
        if documents is None or space.segments[id_].document_id in documents:
            scores[id_] = float((space.vectors[kind, id_] @ vector).max())
    chosen = sorted(scores, key=lambda id_: (-round(scores[id_], 6), space.place(id_)))[:limit]
    return {id_: scores[id_] for id_ in chosen}


def titled(space: Space, names: Sequence[str]) -> dict[str, list[Titled]]:
    """Return the documents that names are titles of."""
    wanted = set(names)
    found: defaultdict[str, list[Titled]] = defaultdict(list)
    for id_, document in sorted(space.documents.items()):
        segments = [place for place in space.of_document[id_] if place in space.rows.index]
        if segments:
            for form, sure in forms_of(document.title, document.text).items():
                if form in wanted:
                    found[form].append(Titled(id_, sure, segments[:FIRST_TITLED]))
    return {
        form: sorted(meant, key=lambda one: -one.sure)
        for form, meant in found.items()
        if len(meant) <= MOST_TITLED
    }
