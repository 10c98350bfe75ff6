"""A change too large for one transaction, cut into parts that hold whole segments.

A server keeps all that a transaction writes in memory. What is new can be written in parts: each
raises the revision, so that nobody comes in between unseen, and each brings the digests of its own
segments, so that whoever stops half-way leaves a memory that the next merge completes. Facts that
speak of a name which a later part brings come last, in parts of their own. A change that clears
anything is left whole: a name may lose its last mention in one part and find one in the next.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from qrmem.graphstore.protocol import Change, EntityRow, FactRow, IndexRow, MentionRow
from qrmem.records import Question

PART_ROWS = 10_000
"""Mentions, facts and questions of a part, about; some 30 MB of the server's memory. Larger parts
cost the server more processor time a row."""


@dataclass(slots=True)
class _Part:
    mentions: list[MentionRow] = field(default_factory=list)
    facts: list[FactRow] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)
    index: list[IndexRow] = field(default_factory=list)
    merged: dict[str, str] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    entities: dict[str, EntityRow] = field(default_factory=dict)

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


def parts(change: Change, rows: int = PART_ROWS) -> Sequence[Change]:
    """Return changes that do the same one after the other; the change itself if it is small."""
    size = len(change.mentions) + len(change.facts) + len(change.questions)
    if change.clear or size <= rows:
        return [change]
    place = _places(change, rows)
    made = [_Part() for _ in range(max(place.values()) + 1)]
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
    return [part.change() for part in made]


def _places(change: Change, rows: int) -> dict[str, int]:
    """Return the part of each segment: as many segments in a part as have about `rows` rows."""
    sizes: dict[str, int] = dict.fromkeys(change.merged, 0)
    for segment in _segments(change):
        sizes[segment] = sizes.get(segment, 0) + 1
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
    change: Change, place: dict[str, int], first: dict[str, int], made: list[_Part], rows: int
) -> dict[str, int]:
    """Put facts into their segments' parts, or into further ones if a name comes too late.

    Returns:
        Segments with a fact in a further part, and the last of these: their digest has to wait.
    """
    late, full = {}, 0
    for fact in change.facts:
        at = place[fact.segment_id]
        if max(first.get(fact.head, 0), first.get(fact.tail, 0)) > at:
            if full % rows == 0:
                made.append(_Part())
            full += 1
            at = late[fact.segment_id] = len(made) - 1
        made[at].facts.append(fact)
    return late


def _put_names(change: Change, first: dict[str, int], made: list[_Part]) -> None:
    """Put names where they are mentioned first, entities where their first name is."""
    rows = {row.key: row for row in change.entities}
    given: dict[str, int] = {}
    for name, entity in change.names.items():
        made[first[name]].names[name] = entity
        given[entity] = min(given.get(entity, first[name]), first[name])
    for key, row in rows.items():
        made[given.get(key, 0)].entities[key] = row
