"""Reading the view: names, entities, facts, questions; one round trip each."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter

from qrmem.graphstore.neo4j.changes import by_frequency
from qrmem.graphstore.neo4j.connection import Row, Work
from qrmem.graphstore.neo4j.keys import in_order, numbered, short
from qrmem.graphstore.protocol import Around, EntityCount, NameFilter, NameRow
from qrmem.types import Entity, Fact, Question, Segment

_COUNTED = ("documents", "segments", "entities", "facts", "questions", "trails")


_ALL = 2**31
_STEP = 64
"""Blocks are asked for so many names, or a multiple: what is asked alike goes in one statement."""


async def merged_segments(work: Work, document_ids: Sequence[str]) -> Mapping[str, str]:
    """Return segment id to digest, in order."""
    rows = await work.each("view.merged", numbered(document_ids))
    return {id_: digest for _, _, id_, digest in sorted(rows)}


async def names(work: Work, wanted: NameFilter | None) -> list[NameRow]:
    """Return every name, or some, by key."""
    if wanted is None:
        return _names(await work.rows("view.names"))
    rows: dict[int, list[Row]] = defaultdict(list)
    rows[_STEP] = [["norm", f"{norm}|"] for norm in sorted(set(wanted.norms))]
    rows[_STEP] += [["entity", key] for key in sorted(set(map(short, wanted.entities)))]
    for block, limit in sorted(wanted.blocks.items()):
        rows[-(-limit // _STEP) * _STEP].append(["block", block])
    found: dict[str, Row] = {}
    for most, own in rows.items():
        found.update((row[0], row) for row in await work.each("view.names_where", own, most=most))
    return _names(found.values())


def _names(rows: Iterable[Row]) -> list[NameRow]:
    found = [
        NameRow(key, surface, count, entity, tuple(zip(forms, counts, strict=True)), name, type_)
        for key, surface, count, entity, forms, counts, name, type_ in rows
    ]
    return sorted(found, key=attrgetter("key"))


async def entities(work: Work, keys: Sequence[str]) -> list[Entity]:
    """Return entities in the order of the keys."""
    rows = await work.each("view.entities", sorted({short(key) for key in keys}))
    return in_order(keys, {row[0]: _entity(*row) for row in rows})


def _entity(
    key: str, name: str, type_: str, forms: Sequence[Row], mentions: Sequence[Row]
) -> Entity:
    counts: Counter[str] = Counter()
    for kept, numbers in forms:
        counts.update(dict(zip(kept, numbers, strict=True)))
    ordered = sorted(mentions)
    return Entity(
        key=key,
        name=name,
        type=type_,
        forms=tuple(by_frequency(counts)),
        segments=tuple(dict.fromkeys(segment for *_, segment, _ in ordered)),
        questions=tuple(dict.fromkeys(question for *_, question in ordered if question)),
    )


async def list_entities(work: Work, limit: int) -> list[EntityCount]:
    """Return entities by falling number of segments, then key.

    The database counts relationships first: an entity is rarely named twice in one segment, so
    that those in the most segments are among twice as many with the most relationships.
    """
    rows = await work.rows("view.list", candidates=2 * max(limit, 0) + 100)
    counts = [EntityCount(*row) for row in rows]
    return sorted(counts, key=lambda count: (-count.segments, count.key))[: max(limit, 0)]


async def entities_in(work: Work, segment_ids: Sequence[str]) -> Mapping[str, Sequence[str]]:
    """Return segment id to the keys of its entities, sorted."""
    rows = await work.gathered("view.entities_in", sorted({short(id_) for id_ in segment_ids}))
    found = {id_: tuple(sorted(keys)) for id_, keys in rows}
    return {id_: found[id_] for id_ in segment_ids if id_ in found}


async def segments_with(
    work: Work, keys: Sequence[str], most: int | None = None
) -> Mapping[str, Sequence[str]]:
    """Return entity key to the ids of its segments, in order, unless there are more than `most`."""
    wanted, limit = sorted({short(key) for key in keys}), _ALL if most is None else most
    batches = await work.each("view.segments_with", wanted, limit=limit + 1)
    rows = [row for (batch,) in batches for row in batch if len(row[1]) <= limit]
    found = {key: tuple(id_ for _, _, id_ in sorted(places)) for key, places in rows}
    return {key: found[key] for key in keys if key in found}


async def facts(work: Work, keys: Sequence[str]) -> list[Fact]:
    """Return the facts with an end in `keys`, in order."""
    rows = await work.each("view.facts", sorted({short(key) for key in keys}))
    unique = {(document, index, n): rest for document, index, n, *rest in rows}
    return [Fact(*unique[place]) for place in sorted(unique)]


async def around(work: Work, keys: Sequence[str], texts: bool) -> Around:
    """Return some entities' facts, names and segments, out of one statement."""
    wanted = sorted({short(key) for key in keys})
    names: dict[str, str] = {}
    stated: dict[tuple[str, int, int], Fact] = {}
    places: dict[str, tuple[str, ...]] = {}
    segments: dict[tuple[str, int], Segment] = {}
    for (rows,) in await work.each("view.around", wanted, texts=texts):
        for key, name, mentioned, told in rows:
            names[key] = name
            places[key] = tuple(id_ for _, _, id_, *_ in sorted(mentioned))
            for document, index, id_, *rest in mentioned if texts else ():
                segments[document, index] = Segment(id_, document, index, *rest)
            for document, index, n, end, called, is_head, *rest in told:
                names[end] = called
                ends = (key, end) if is_head else (end, key)
                stated[document, index, n] = Fact(*ends, *rest)
    return Around(
        names,
        [stated[place] for place in sorted(stated)],
        {key: places[key] for key in keys if key in places},
        [segments[place] for place in sorted(segments)],
    )


async def questions(work: Work, segment_ids: Sequence[str] | None) -> list[Question]:
    """Return accepted questions of the given segments, or all, in order."""
    if segment_ids is None:
        rows = await work.rows("view.questions")
    else:
        rows = await work.each("view.questions_of", sorted({short(id_) for id_ in segment_ids}))
    return [Question(*row[3:]) for row in sorted(rows)]


async def counts(work: Work) -> Mapping[str, int]:
    """Return how much there is of each kind."""
    (row,) = await work.rows("view.counts")
    return dict(zip(_COUNTED, row, strict=True))


async def fact_counts(work: Work, ids: Sequence[str] | None) -> Mapping[str, int]:
    """Return how many facts each document, or each of some, states."""
    if ids is None:
        rows = await work.rows("view.fact_counts")
    else:
        rows = await work.each("view.fact_counts_of", sorted(set(map(short, ids))))
    return {document_id: int(facts) for document_id, facts in rows}
