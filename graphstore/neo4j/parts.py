"""A change too large for one transaction, cut into parts that hold whole segments.

A server keeps all that a transaction writes in memory. What is new can be written in parts: each
raises the revision, so that nobody comes in between unseen, and each brings the digests of its own
segments, so that whoever stops half-way leaves a memory that the next merge completes. Facts that
speak of a name which a later part brings come last, in parts of their own, with all the facts of
their segment. A change that clears anything is left whole: a name may lose its last mention in one
part and find one in the next.

A name is written once, in the part that mentions it first, as the whole change leaves it; what is
found half-way is counted again (`recounting`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from qrmem.graphstore.neo4j.keys import short
from qrmem.graphstore.neo4j.tallies import Tallies, counted
from qrmem.graphstore.protocol import Change, EntityRow, FactRow, IndexRow, MentionRow
from qrmem.types import Question

PART_ROWS = 5_000
"""Mentions, facts and questions of a part, about; some 15 MB of the server's memory. Parts twice as
large cost the server a fifth more processor time a row, smaller ones nothing less."""


@dataclass(frozen=True, slots=True)
class Part:
    """What one transaction writes.

    Attributes:
        counted: how often the whole change mentions the names that this part brings first.
        is_first: whether no part came before.
        is_last: whether none follows.
    """

    change: Change
    counted: Tallies
    is_first: bool = True
    is_last: bool = True


@dataclass(slots=True)
class _Rows:
    mentions: list[MentionRow] = field(default_factory=list)
    facts: list[FactRow] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)
    index: list[IndexRow] = field(default_factory=list)
    merged: dict[str, str] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    entities: dict[str, EntityRow] = field(default_factory=dict)
    counted: Tallies = field(default_factory=Tallies)

    def change(self) -> Change:
        return Change(
            mentions=self.mentions,
            facts=self.facts,
            questions=self.questions,
            index=self.index,
            names=self.names,
            entities=list(self.entities.values()),
            merged=self.merged,
        )


def parts(change: Change, rows: int = PART_ROWS) -> Sequence[Part]:
    """Return changes that do the same one after the other; the change itself if it is small."""
    size = len(change.mentions) + len(change.facts) + len(change.questions)
    if change.clear or size <= rows:
        return [Part(change, counted(change.mentions))]
    place = _places(change, rows)
    made = [_Rows() for _ in range(max(place.values()) + 1)]
    first = _first_parts(change, place)
    for mention in change.mentions:
        made[place[mention.segment_id]].mentions.append(mention)
    for question in change.questions:
        made[place[question.segment_id]].questions.append(question)
    for row in change.index:
        made[place[row.segment_id]].index.append(row)
    _put_names(change, first, made)
    late = _put_facts(change, place, first, made, rows)
    for segment, digest in change.merged.items():
        made[late.get(segment, place[segment])].merged[segment] = digest
    last = len(made) - 1
    return [
        Part(part.change(), part.counted, is_first=n == 0, is_last=n == last)
        for n, part in enumerate(made)
    ]


def _places(change: Change, rows: int) -> dict[str, int]:
    """Return the part of each segment: as many segments in a part as have about `rows` rows."""
    sizes: dict[str, int] = dict.fromkeys(change.merged, 0)
    for segment in _segments(change):
        sizes[segment] = sizes.get(segment, 0) + 1
    return _filled(sizes, rows)


def _filled(sizes: dict[str, int], rows: int) -> dict[str, int]:
    found, part, size = {}, 0, 0
    for segment, weight in sizes.items():
        if size and size + weight > rows:
            part, size = part + 1, 0
        found[segment] = part
        size += weight
    return found


def _segments(change: Change) -> Iterator[str]:
    for rows in (change.mentions, change.facts, change.questions, change.index):
        for row in rows:
            yield row.segment_id


def _first_parts(change: Change, place: dict[str, int]) -> dict[str, int]:
    """Return the first part that mentions each name; 0 for names that are mentioned elsewhere."""
    found: dict[str, int] = {}
    for mention in change.mentions:
        part = place[mention.segment_id]
        found[mention.name] = min(found.get(mention.name, part), part)
    return dict.fromkeys(change.names, 0) | found


def _put_facts(
    change: Change, place: dict[str, int], first: dict[str, int], made: list[_Rows], rows: int
) -> dict[str, int]:
    """Put facts into their segments' parts, or into further ones if a name comes too late.

    Returns:
        The further part of each segment that has one: its digest has to wait.
    """
    sizes: dict[str, int] = {}
    waiting: set[str] = set()
    for fact in change.facts:
        at = fact.segment_id
        sizes[at] = sizes.get(at, 0) + 1
        if max(first.get(fact.head, 0), first.get(fact.tail, 0)) > place[at]:
            waiting.add(at)
    found = _filled({at: size for at, size in sizes.items() if at in waiting}, rows)
    late = {at: len(made) + part for at, part in found.items()}
    made += [_Rows() for _ in set(found.values())]
    for fact in change.facts:
        made[late.get(fact.segment_id, place[fact.segment_id])].facts.append(fact)
    return late


def _put_names(change: Change, first: dict[str, int], made: list[_Rows]) -> None:
    """Put names where they are mentioned first, entities where their first name is."""
    rows = {row.key: row for row in change.entities}
    given: dict[str, int] = {}
    for name, entity in change.names.items():
        made[first[name]].names[name] = entity
        given[entity] = min(given.get(entity, first[name]), first[name])
    for key, row in rows.items():
        made[given.get(key, 0)].entities[key] = row
    whole = counted(change.mentions)
    for name, part in first.items():
        if short(name) in whole.mentions:
            whole.give(short(name), made[part].counted)
