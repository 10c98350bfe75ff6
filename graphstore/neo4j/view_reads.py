"""Reading the view: names, entities, facts, questions; one round trip each."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter, itemgetter

from qrmem.graphstore.neo4j.connection import Row, Work
from qrmem.graphstore.neo4j.keys import in_order, short
from qrmem.graphstore.protocol import (
    Around,
    EntityCount,
    Mentions,
    NameFilter,
    NameRow,
)
from qrmem.graphstore.records import by_frequency
from qrmem.graphstore.relations import relation_id
from qrmem.types import Entity, Fact, Property, Question, Relation, Segment
from qrmem.types.turns import scope_of

_COUNTED = ("documents", "segments", "entities", "facts", "questions", "trails")


_STEP = 40
"""Limits of blocks are rounded up to a multiple of this, so that equal limits share a statement.

Resolving a name needs 33 names of a block, and one more for each changed name in it.
"""


async def names(work: Work, wanted: NameFilter | None = None) -> list[NameRow]:
    """Return every name, or some, by key."""
    if wanted is None:
        return _names(await work.rows("view_reads.names"))
    rows: dict[int, list[Row]] = defaultdict(list)
    rows[_STEP] = [["norm", f"{norm}|"] for norm in sorted(set(wanted.norms))]
    rows[_STEP] += [["entity", key] for key in sorted(set(map(short, wanted.entities)))]
    for block, limit in sorted(wanted.blocks.items()):
        rows[-(-limit // _STEP) * _STEP].append(["block", block])
    name_rows: dict[str, Row] = {}
    for most, rows_by_name in rows.items():
        these = await work.gathered("view_reads.names_where", rows_by_name, most=most)
        name_rows.update((row[0], row) for row in these)
    return _names(name_rows.values())


def _names(rows: Iterable[Row]) -> list[NameRow]:
    result = [
        NameRow(key, entity, tuple(zip(forms, counts, strict=True)), name, type_, said)
        for key, entity, forms, counts, name, type_, said in rows
    ]
    return sorted(result, key=attrgetter("key"))


async def places(work: Work, keys: Collection[str]) -> dict[str, Counter[str]]:
    """Return where some names occur."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    rows = await work.gathered("view_reads.places", sorted(map(short, keys)))
    for key, document, count in rows:
        found[key][scope_of(document)] += count
    return found


async def entities(work: Work, keys: Sequence[str]) -> list[Entity]:
    """Return entities in the order of the keys."""
    rows = await work.each("view_reads.entities", sorted({short(key) for key in keys}))
    return in_order(keys, {row[0]: _entity(*row) for row in rows})


def _entity(
    key: str, name: str, type_: str, forms: Sequence[Row], mentions: Sequence[Row]
) -> Entity:
    counts: Counter[str] = Counter()
    for form, numbers in forms:
        counts.update(dict(zip(form, numbers, strict=True)))
    ordered = sorted(mentions, key=itemgetter(0, 1, 2))
    return Entity(
        key=key,
        name=name,
        type=type_,
        forms=by_frequency(counts),
        segments=tuple(dict.fromkeys(segment for *_, segment, _, _ in ordered)),
        questions=tuple(dict.fromkeys(question for *_, question, _ in ordered if question)),
        properties=tuple(
            Property(name, value, segment)
            for *_, segment, _, properties in ordered
            for name, value in properties
        ),
    )


async def list_entities(work: Work, limit: int = 100) -> list[EntityCount]:
    """Return entities by descending number of segments, then by key.

    The database counts relationships first. An entity is rarely named twice in one segment, so the
    entities in the most segments are among twice as many with the most relationships.
    """
    rows = await work.rows("view_reads.list", candidates=2 * max(limit, 0) + 100)
    counts = [EntityCount(*row) for row in rows]
    return sorted(counts, key=lambda count: (-count.segments, count.key))[: max(limit, 0)]


async def types(work: Work) -> list[str]:
    """Return the types that entities and statements have, sorted."""
    return sorted(type_ for (type_,) in await work.rows("view_reads.types"))


async def segments_of_types(work: Work, types: Collection[str]) -> list[str]:
    """Return the segments that name an entity, or state something, of some types."""
    ((ids,),) = await work.rows("view_reads.segments_of_types", types=sorted(types))
    return list(ids)


async def mentions(work: Work, segment_ids: Sequence[str], most: int = 0) -> Mentions:
    """Return the entities that some segments name, and the other segments of the rare ones."""
    names_by_segment: dict[str, list[tuple[str, str]]] = {}
    places: dict[str, tuple[str, ...]] = {}
    keys = sorted({short(id_) for id_ in segment_ids})
    for id_, entities in await work.each("view_reads.mentions", keys, most=most):
        names_by_segment[id_] = [
            (form, key) for key, lists, _ in entities for list_forms in lists for form in list_forms
        ]
        places |= {key: tuple(ids) for key, _, ids in entities if ids}
    return Mentions(names_by_segment, places)


async def shared_entities(
    work: Work, segment_ids: Sequence[str], most: int
) -> dict[str, tuple[Sequence[str], int]]:
    """Return entities that some segments share, with these segments and the number of all."""
    keys = sorted({short(id_) for id_ in segment_ids})
    ((rows,),) = await work.rows("view_reads.shared", keys=keys, most=most)
    return {key: (among, spread) for key, among, spread in rows}


async def around(work: Work, keys: Sequence[str], *, texts: bool = False) -> Around:
    """Return some entities' facts, names and segments, with one statement."""
    wanted_keys = sorted({short(key) for key in keys})
    names: dict[str, str] = {}
    facts_by_place: dict[tuple[str, int, int], Fact] = {}
    places: dict[str, tuple[str, ...]] = {}
    segments: dict[tuple[str, int], Segment] = {}
    for (rows,) in await work.each("view_reads.around", wanted_keys, texts=texts):
        for key, name, mentioned, fact_rows in rows:
            names[key] = name
            places[key] = tuple(id_ for _, _, id_, *_ in sorted(mentioned))
            for document, index, id_, *rest in mentioned if texts else ():
                segments[document, index] = Segment(id_, document, index, *rest)
            for document, index, n, end, other_name, is_head, *words, type_, own in fact_rows:
                names[end] = other_name
                ends = (key, end) if is_head else (end, key)
                properties = tuple((name, value) for name, value in own)
                fact = replace(Fact(*ends, *words), type=type_, properties=properties)
                facts_by_place[document, index, n] = fact
    return Around(
        names,
        [facts_by_place[place] for place in sorted(facts_by_place)],
        {key: places[key] for key in keys if key in places},
        [segments[place] for place in sorted(segments)],
    )


async def relations(work: Work, keys: Sequence[str]) -> list[Relation]:
    """Return the relations with an end in some entities, read from the edges."""
    wanted_keys = sorted({short(key) for key in keys})
    facts_by_pair: dict[tuple[str, str, str], list[Fact]] = defaultdict(list)
    for fact in (await around(work, keys)).facts:
        facts_by_pair[fact.head, fact.tail, fact.type].append(fact)
    relations_by_pair: dict[tuple[str, str, str], Relation] = {}
    for end, other, is_head, type_, fact_values, questions in await work.gathered(
        "view_reads.relations", wanted_keys
    ):
        head, tail = (end, other) if is_head else (other, end)
        place = head, tail, type_
        relations_by_pair[place] = Relation(
            relation_id(*place),
            *place[:2],
            fact_values,
            tuple(facts_by_pair[place]),
            type_,
            tuple(questions),
        )
    return sorted(relations_by_pair.values(), key=attrgetter("key"))


async def questions(work: Work, segment_ids: Sequence[str] | None = None) -> list[Question]:
    """Return accepted questions of the given segments, or all, in order."""
    if segment_ids is None:
        rows = await work.rows("view_reads.questions")
    else:
        rows = await work.each(
            "view_reads.questions_of", sorted({short(id_) for id_ in segment_ids})
        )
    return [Question(*row[3:]) for row in sorted(rows)]


async def counts(work: Work) -> Mapping[str, int]:
    """Return the number of items of each kind."""
    (row,) = await work.rows("view_reads.counts")
    return dict(zip(_COUNTED, row, strict=True))
