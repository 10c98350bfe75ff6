"""Entity linking: names in the sentences of found segments lead to other segments."""

import asyncio
import math
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

import numpy as np

from qrmem.text.names import NameWords, longest_names, plain, possible_names, words_of
from qrmem.text.sentences import sentences
from qrmem.text.words import STOP_WORDS, terms

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from qrmem.graphstore.protocol import GraphStore, Titled
    from qrmem.retrieval.candidates import Neighbourhood
    from qrmem.types import Segment

HOMONYMS = 4
"""Maximum number of documents to which one title leads."""
RARE = 20
"""Maximum number of segments with a name that links them; a more frequent one is too vague."""
_AS_IT_IS = 0.25
"""Worth of a link if its sentence, or its target, has no word of the question."""
_KEPT = 10_000
"""Number of segments whose sentences are cached between searches."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of a segment.

    Attributes:
        terms: its terms for BM25.
        words: its words in the form in which names are compared.
        places: positions where a name may be.
        names: the known names in it, after the lookup.
    """

    text: str
    terms: frozenset[str]
    words: NameWords
    places: Sequence[tuple[int, int]]
    names: tuple[str, ...] = ()


class Texts:
    """The segments of a namespace; each is read and split into sentences once."""

    def __init__(self, store: "GraphStore", ns: str) -> None:
        self._store = store
        self._ns = ns
        self._read: OrderedDict[str, tuple[Segment, Sequence[Sentence]]] = OrderedDict()

    def of(self, store: "GraphStore") -> "Texts":
        """Return the same segments; missing ones will be read from another store."""
        other = copy(self)
        other._store = store
        return other

    async def read(self, ids: Iterable[str]) -> "Mapping[str, tuple[Segment, Sequence[Sentence]]]":
        """Return segments with their sentences; segments deleted meanwhile are left out."""
        ids_wanted = list(dict.fromkeys(ids))
        missing = [id_ for id_ in ids_wanted if id_ not in self._read]
        for segment in await self._store.segments(self._ns, missing) if missing else ():
            cut = [segment.text[start:end].strip() for start, end in sentences(segment.text)]
            self._read[segment.id] = segment, [_sentence(text) for text in cut]
        texts = {id_: self._read[id_] for id_ in ids_wanted if id_ in self._read}
        while len(self._read) > _KEPT:
            self._read.popitem(last=False)
        return texts


def _sentence(text: str) -> Sentence:
    words = words_of(text)
    places = list(possible_names(words, needs_capital=True, skip=STOP_WORDS))
    return Sentence(text, frozenset(terms(text)), words, places)


@dataclass(frozen=True, slots=True)
class Names:
    """The names in some segments, and the segments to which they lead.

    Attributes:
        read: segment id to its sentences, with the names in each.
        titled: names that are titles, with their documents.
        entities: names of entities, with the entities' keys.
        places: entity key to the ids of its segments, for rare ones.
    """

    read: Mapping[str, Sequence[Sentence]]
    titled: "Mapping[str, Sequence[Titled]]"
    entities: Mapping[str, Sequence[str]]
    places: Mapping[str, Sequence[str]]

    def targets(self, name: str) -> list[tuple[str, float, bool]]:
        """Return a name's target segments, its certainty, and whether it is their title."""
        titled_documents = self.titled.get(name, ())
        targets = [
            (id_, one.sure / math.sqrt(len(titled_documents)), True)
            for one in titled_documents[:HOMONYMS]
            for id_ in one.segments
        ]
        for key in self.entities.get(name, ()):
            ids = self.places.get(key, ())
            if len(ids) >= 2:
                targets += [(id_, 1 / math.log2(1 + len(ids)), False) for id_ in ids]
        return targets


async def names_in(near: "Neighbourhood", texts: Texts, ids: Sequence[str]) -> Names:
    """Read segments, find the names in them, and look up the targets of these names.

    Names in the question lead to nothing new and are left out. Titles and entities are searched
    separately, because one may be part of the other.
    """
    read = {id_: cut for id_, (_, cut) in (await texts.read(ids)).items()}
    forms = {
        sentence.words.joined(*place)
        for cut in read.values()
        for sentence in cut
        for place in sentence.places
    } - near.question.names
    titled, mentions = await asyncio.gather(
        near.store.titled(near.ns, sorted(forms)), near.store.mentions(near.ns, list(read), RARE)
    )
    entities: dict[str, dict[str, None]] = {}
    names_by_segment: dict[str, set[str]] = {}
    for id_, pairs in mentions.named.items():
        for form, key in pairs:
            name = plain(form)
            if name and name not in near.question.names:
                entities.setdefault(name, {})[key] = None
                names_by_segment.setdefault(id_, set()).add(name)
    return Names(
        {
            id_: [
                _with_names(sentence, titled, names_by_segment.get(id_, set())) for sentence in cut
            ]
            for id_, cut in read.items()
        },
        titled,
        {name: list(segment_ids) for name, segment_ids in entities.items()},
        mentions.places,
    )


def _with_names(sentence: Sentence, titled: "Mapping[str, object]", entities: set[str]) -> Sentence:
    names_found = dict.fromkeys(
        name
        for known_names in (titled.keys(), entities)
        for name in longest_names(sentence.words, sentence.places, known_names)
    )
    return replace(sentence, names=tuple(names_found))


@dataclass(frozen=True, slots=True)
class TitleLinks:
    """Links as columns of equal length.

    Attributes:
        sources: rows of the segments that were read.
        targets: rows of the segments to which the links lead.
        names: the names of the links.
        sentences: which sentence of the source has the name.
        worth: the sentence's share of the question, times the certainty of the name.
        entitled: whether the name is the target's title, not only in its text.
        scores: scores of the links; see `weigh`.
    """

    sources: "NDArray[np.int64]"
    targets: "NDArray[np.int64]"
    names: "NDArray[np.str_]"
    sentences: "NDArray[np.int64]"
    worth: "NDArray[np.float64]"
    entitled: "NDArray[np.bool_]"
    scores: "NDArray[np.float64]"

    def __len__(self) -> int:
        return int(self.sources.size)

    def chosen(self, places: "NDArray[np.int64] | NDArray[np.bool_]") -> "TitleLinks":
        """Return some of the links."""
        return TitleLinks(*(getattr(self, column.name)[places] for column in fields(self)))

    def best(self, limit: int) -> "TitleLinks":
        """Return the links with the highest scores, best first; ties by row."""
        return self.chosen(np.lexsort((self.targets, -np.round(self.scores, 6)))[:limit])

    def scores_of(self, rows: "NDArray[np.int64]") -> "NDArray[np.float64]":
        """Return the best score of a link to each of some rows, 0 where none leads."""
        score_of = dict(sorted(zip(self.targets.tolist(), self.scores.tolist(), strict=True)))
        return np.array([score_of.get(row, 0.0) for row in rows.tolist()])


async def follow(near: "Neighbourhood", names: Names) -> TitleLinks:
    """Return the links out of segments that were read, and add their targets.

    Links within a document by its own title are left out.
    """
    question = near.question
    link_rows = []
    for id_, cut in names.read.items():
        for number, sentence in enumerate(cut):
            worth = _AS_IT_IS + question.share(sentence.terms)
            for name in sentence.names:
                link_rows += [
                    (id_, target, name, number, worth * sure, entitled)
                    for target, sure, entitled in names.targets(name)
                    if target != id_
                ]
    await near.add(target for _, target, *_ in link_rows)
    rows = [
        (source, target, *rest)
        for source_id, target_id, *rest in link_rows
        if (target := near.row_of.get(target_id)) is not None
        and (source := near.row_of.get(source_id)) is not None
        and not (rest[3] and _same_document(near, source, target))
    ]
    sources, targets, words, numbers, worths, titles = (
        zip(*rows, strict=True) if rows else ((),) * 6
    )
    return TitleLinks(
        np.array(sources, dtype=np.int64),
        np.array(targets, dtype=np.int64),
        np.array(words, dtype=np.str_),
        np.array(numbers, dtype=np.int64),
        np.array(worths, dtype=np.float64),
        np.array(titles, dtype=bool),
        np.zeros(len(rows)),
    )


def _same_document(near: "Neighbourhood", one: int, other: int) -> bool:
    return near.entries[one].document_id == near.entries[other].document_id


def weigh(
    near: "Neighbourhood",
    links: TitleLinks,
    weight: Mapping[int, float],
    covered: "Mapping[int, NDArray[np.float64]]",
) -> TitleLinks:
    """Score links and keep the best one to each target, separately for titles and names in texts.

    The score is the worth of the source, times that of the sentence, times the share of the
    question's words that the target has and the path to it lacks.

    Args:
        near: the segments.
        links: all links out of the sources.
        weight: row of a source to its worth.
        covered: row of a source to the question's terms that the path to it covers, `(t,)`.
    """
    if not len(links):
        return links
    sources, by_source = np.unique(links.sources, return_inverse=True)
    targets, by_target = np.unique(links.targets, return_inverse=True)
    missing = 1 - np.minimum([covered[int(row)] for row in sources], 1)
    top = float(near.bm25.max(initial=0.0)) or 1.0
    rest = (near.profiles[targets] * near.weights) @ missing.T / top
    weight_needed = _AS_IT_IS + rest[by_target, by_source] + 0.5 * near.dense[links.targets]
    start = np.array([weight[int(row)] for row in sources])[by_source]
    scored = replace(links, scores=start * links.worth * weight_needed)
    order = np.lexsort((links.sources, -scored.scores, links.targets, links.entitled))
    ordered = scored.chosen(order)
    first = np.ones(order.size, dtype=bool)
    first[1:] = (ordered.targets[1:] != ordered.targets[:-1]) | (
        ordered.entitled[1:] != ordered.entitled[:-1]
    )
    return ordered.chosen(first)
