"""Reading the view: names, entities, facts, questions."""

import json
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter

from qrmem.graphstore.protocol import (
    Around,
    EntityCount,
    Mentions,
    NameFilter,
    NameRow,
)
from qrmem.graphstore.records import by_frequency
from qrmem.graphstore.sqlite import compression, stored_documents
from qrmem.graphstore.sqlite.lookup import (
    entity_numbers,
    in_order,
    key_range,
    namespace_number,
    pick,
    rows_in,
    segment_numbers,
)
from qrmem.types import Entity, Fact, Property, Question
from qrmem.types.turns import scope_of

# CROSS JOIN fixes the order of joins: from the few picked rows outwards, whatever ANALYZE found.
_OF_ENTITIES = """
    FROM picked CROSS JOIN name n ON n.entity = picked.num
    CROSS JOIN mention m ON m.name = n.num CROSS JOIN segment s ON s.num = m.segment
    CROSS JOIN document d ON d.num = s.document
"""


def names(db: sqlite3.Connection, ns: str, wanted: NameFilter | None = None) -> list[NameRow]:
    """Return every name, or some, by key."""
    number = namespace_number(db, ns)
    blocks: Mapping[int, Collection[int]] = {}
    if wanted is None:
        every = db.execute("SELECT num FROM name WHERE ns = ?", (number,)).fetchall()
        pick(db, (num for (num,) in every))
    else:
        blocks = _matching_names(db, number, wanted)
        pick(db, blocks)
    forms: defaultdict[int, dict[str, int]] = defaultdict(dict)
    for num, form, count in db.execute(
        "SELECT f.name, f.form, f.count FROM picked CROSS JOIN form f ON f.name = picked.num"
    ):
        forms[num][form] = count
    said = {
        num
        for (num,) in db.execute(
            "SELECT num FROM picked WHERE EXISTS"
            " (SELECT 1 FROM mention m WHERE m.name = picked.num AND m.said = 1)"
        )
    }
    rows = db.execute(
        "SELECT n.num, n.key, e.key, e.name, e.type FROM picked"
        " CROSS JOIN name n ON n.num = picked.num CROSS JOIN entity e ON e.num = n.entity"
    )
    result = [
        NameRow(key, entity, by_frequency(forms[num]), name, type_, num in said, blocks.get(num))
        for num, key, entity, name, type_ in rows
    ]
    return sorted(result, key=attrgetter("key"))


def _matching_names(
    db: sqlite3.Connection, ns: int, wanted: NameFilter
) -> dict[int, tuple[int, ...]]:
    """Return the numbers of the names that pass a filter, with the requested blocks of each."""
    found: dict[int, tuple[int, ...]] = {}
    sql = "SELECT name FROM name_block WHERE ns = ? AND block = ? LIMIT ?"
    for block, most in wanted.blocks.items():
        alone = (block,)  # shared by most names of the block
        for (name,) in db.execute(sql, (ns, block, most)):
            found[name] = found[name] + alone if name in found else alone
    sql = "SELECT num FROM name WHERE ns = ? AND key >= ? AND key < ?"
    for norm in set(wanted.norms):
        for (num,) in db.execute(sql, (ns, *key_range(norm))):
            found.setdefault(num, ())
    entities = entity_numbers(db, ns, wanted.entities).values()
    for (num,) in rows_in(db, "SELECT num FROM name WHERE entity IN ({})", entities):
        found.setdefault(num, ())
    return found


def places(db: sqlite3.Connection, ns: str, keys: Collection[str]) -> dict[str, Counter[str]]:
    """Return where some names occur."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    sql = (
        "SELECT n.key, d.id, m.forms FROM name n CROSS JOIN mention m ON m.name = n.num"
        " CROSS JOIN segment s ON s.num = m.segment CROSS JOIN document d ON d.num = s.document"
        " WHERE n.ns = ? AND n.key IN ({})"
    )
    for key, document, forms in rows_in(db, sql, keys, namespace_number(db, ns)):
        count = sum(n for _, n in compression.forms_told(forms, key))
        found[key][scope_of(document)] += count
    return found


def entities(db: sqlite3.Connection, ns: str, keys: Sequence[str]) -> list[Entity]:
    """Return entities in the order of the keys."""
    numbers = entity_numbers(db, namespace_number(db, ns), keys)
    pick(db, numbers.values())
    forms: defaultdict[int, dict[str, int]] = defaultdict(dict)
    for num, form, count in db.execute(
        "SELECT picked.num, f.form, sum(f.count) FROM picked CROSS JOIN name n"
        " ON n.entity = picked.num CROSS JOIN form f ON f.name = n.num GROUP BY 1, 2"
    ):
        forms[num][form] = count
    segments: dict[int, dict[str, None]] = {num: {} for num in numbers.values()}
    questions: dict[int, dict[str, None]] = {num: {} for num in numbers.values()}
    properties_of: dict[int, list[Property]] = {num: [] for num in numbers.values()}
    rows = db.execute(
        "SELECT picked.num, s.id, m.question, m.properties"
        f" {_OF_ENTITIES} ORDER BY d.id, s.idx, n.key"
    )
    for num, segment, question, properties in rows:
        segments[num][segment] = None
        if question:
            questions[num][question] = None
        for name, value in compression.properties_told(properties):
            properties_of[num].append(Property(name, value, segment))
    result = {
        key: Entity(
            key,
            name,
            type_,
            by_frequency(forms[num]),
            tuple(segments[num]),
            tuple(questions[num]),
            tuple(properties_of[num]),
        )
        for num, key, name, type_ in db.execute(
            "SELECT num, key, name, type FROM picked CROSS JOIN entity USING (num)"
        )
    }
    return in_order(keys, result)


def list_entities(db: sqlite3.Connection, ns: str, limit: int = 100) -> list[EntityCount]:
    """Return entities by descending number of segments, then by key."""
    # Two names may share a segment; an entity with one name, as most have, needs no DISTINCT.
    rows = db.execute(
        """
        SELECT e.key, e.name, e.type, CASE
            WHEN (SELECT count(*) FROM name n WHERE n.entity = e.num) = 1 THEN (
                SELECT count(*) FROM name n CROSS JOIN mention m ON m.name = n.num
                WHERE n.entity = e.num)
            ELSE (
                SELECT count(DISTINCT m.segment) FROM name n CROSS JOIN mention m ON m.name = n.num
                WHERE n.entity = e.num)
            END AS segments
        FROM entity e WHERE e.ns = ? ORDER BY segments DESC, e.key LIMIT ?
        """,
        (namespace_number(db, ns), max(limit, 0)),
    )
    return [EntityCount(*row) for row in rows]


_TYPES = """
    SELECT e.type FROM entity e WHERE e.ns = ?1
    UNION SELECT f.type FROM segment s CROSS JOIN fact f ON f.segment = s.num WHERE s.ns = ?1
"""
_OF_TYPES = """
    SELECT s.id FROM entity e CROSS JOIN name n ON n.entity = e.num
    CROSS JOIN mention m ON m.name = n.num CROSS JOIN segment s ON s.num = m.segment
    WHERE e.ns = ?1 AND e.type IN (SELECT value FROM json_each(?2))
    UNION SELECT s.id FROM segment s CROSS JOIN fact f ON f.segment = s.num
    WHERE s.ns = ?1 AND f.type IN (SELECT value FROM json_each(?2))
"""


def types(db: sqlite3.Connection, ns: str) -> list[str]:
    """Return the types that entities and statements have, sorted."""
    return sorted(type_ for (type_,) in db.execute(_TYPES, (namespace_number(db, ns),)) if type_)


def segments_of_types(db: sqlite3.Connection, ns: str, types: Collection[str]) -> list[str]:
    """Return the segments that name an entity, or state something, of some types."""
    parameters = (namespace_number(db, ns), json.dumps(sorted(types)))
    return [id_ for (id_,) in db.execute(_OF_TYPES, parameters)]


def mentions(
    db: sqlite3.Connection, ns: str, segment_ids: Sequence[str], most: int = 0
) -> Mentions:
    """Return the entities that some segments name, and the other segments of the rare ones."""
    ids = {n: id_ for id_, n in segment_numbers(db, namespace_number(db, ns), segment_ids).items()}
    pick(db, ids)
    names_by_segment: dict[str, list[tuple[str, str]]] = {id_: [] for id_ in ids.values()}
    entities: dict[int, str] = {}
    rows = db.execute(
        "SELECT m.segment, m.forms, n.key, e.num, e.key FROM picked CROSS JOIN mention m"
        " ON m.segment = picked.num CROSS JOIN name n ON n.num = m.name"
        " CROSS JOIN entity e ON e.num = n.entity"
    )
    for segment, forms, name, entity, key in rows:
        names_by_segment[ids[segment]] += [
            (form, key) for form, _ in compression.forms_told(forms, name)
        ]
        entities[entity] = key
    spread = _spread(db, entities, most) if most else {}
    return Mentions(
        names_by_segment, _places(db, {n: entities[n] for n in spread if spread[n] <= most})
    )


def _places(db: sqlite3.Connection, entities: Mapping[int, str]) -> dict[str, tuple[str, ...]]:
    """Return the segments of entities, given as number to key, in order."""
    pick(db, entities)
    segments_by_entity: dict[str, dict[str, None]] = {key: {} for key in entities.values()}
    for num, segment in db.execute(f"SELECT picked.num, s.id {_OF_ENTITIES} ORDER BY d.id, s.idx"):
        segments_by_entity[entities[num]][segment] = None
    return {key: tuple(segments) for key, segments in segments_by_entity.items()}


def shared_entities(
    db: sqlite3.Connection, ns: str, segment_ids: Sequence[str], most: int
) -> dict[str, tuple[Sequence[str], int]]:
    """Return entities that some segments share, with these segments and the number of all."""
    numbers = segment_numbers(db, namespace_number(db, ns), segment_ids)
    ids = {num: id_ for id_, num in numbers.items()}
    pick(db, ids)
    rows = db.execute(
        "SELECT n.entity, json_group_array(DISTINCT m.segment) FROM picked CROSS JOIN mention m"
        " ON m.segment = picked.num CROSS JOIN name n ON n.num = m.name GROUP BY n.entity"
        " HAVING count(DISTINCT m.segment) BETWEEN 2 AND ?",
        (most,),
    )
    among = {entity: json.loads(segments) for entity, segments in rows}
    spread = _spread(db, among, most)
    rare = [entity for entity in among if spread[entity] <= most]
    keys = dict(rows_in(db, "SELECT num, key FROM entity WHERE num IN ({})", rare))
    return {key: ([ids[n] for n in among[num]], spread[num]) for num, key in keys.items()}


def _spread(db: sqlite3.Connection, entities: Iterable[int], most: int) -> dict[int, int]:
    """Return the number of segments of each entity, counted up to `most` + 1."""
    pick(db, entities)
    rows = db.execute(
        "SELECT num, (SELECT count(*) FROM (SELECT DISTINCT m.segment FROM name n"
        " CROSS JOIN mention m ON m.name = n.num WHERE n.entity = picked.num LIMIT ?)) FROM picked",
        (most + 1,),
    )
    return dict(rows.fetchall())


def around(db: sqlite3.Connection, ns: str, keys: Sequence[str], *, texts: bool = False) -> Around:
    """Return some entities' facts, names and segments."""
    numbers = entity_numbers(db, namespace_number(db, ns), keys)
    facts = _facts(db, numbers.values())
    places = _places(db, {numbers[key]: key for key in keys if key in numbers})
    ends = {end for fact in facts for end in (fact.head, fact.tail)}
    pick(db, entity_numbers(db, namespace_number(db, ns), ends | places.keys()).values())
    names = dict(db.execute("SELECT key, name FROM picked CROSS JOIN entity USING (num)"))
    if not texts:
        return Around(names, facts, places)
    segments_found = stored_documents.segments(
        db, ns, sorted({id_ for ids in places.values() for id_ in ids})
    )
    segments_found.sort(key=lambda segment: (segment.document_id, segment.index))
    return Around(names, facts, places, segments_found)


def _facts(db: sqlite3.Connection, entities: Iterable[int]) -> list[Fact]:
    """Return the facts with an end in some entities, in order."""
    pick(db, entities)
    rows = db.execute(
        """
        SELECT he.key, te.key, f.start, f.length, f.description, s.id, f.question, f.said_at,
            f.valid_from, f.valid_until, f.n, f.type, f.properties, s.num
        FROM (
            SELECT f.segment, f.n FROM picked CROSS JOIN name n ON n.entity = picked.num
            CROSS JOIN fact f INDEXED BY fact_head ON f.head = n.num
            UNION
            SELECT f.segment, f.n FROM picked CROSS JOIN name n ON n.entity = picked.num
            CROSS JOIN fact f INDEXED BY fact_tail ON f.tail = n.num
        ) k
        CROSS JOIN fact f ON f.segment = k.segment AND f.n = k.n
        CROSS JOIN name h ON h.num = f.head CROSS JOIN entity he ON he.num = h.entity
        CROSS JOIN name t ON t.num = f.tail CROSS JOIN entity te ON te.num = t.entity
        CROSS JOIN segment s ON s.num = f.segment CROSS JOIN document d ON d.num = s.document
        ORDER BY d.id, s.idx, f.n
        """
    ).fetchall()
    texts = compression.texts(db, {row[-1] for row in rows})
    lines = {segment: compression.on_one_line(text) for segment, text in texts.items()}
    return [
        replace(
            Fact(head, tail, compression.told((start, length, rest), lines[segment]), *others),
            properties=compression.properties_told(properties),
        )
        for head, tail, start, length, rest, *others, properties, segment in rows
    ]


def questions(
    db: sqlite3.Connection, ns: str, segment_ids: Sequence[str] | None = None
) -> list[Question]:
    """Return accepted questions of the given segments, or all, in order."""
    number = namespace_number(db, ns)
    values: tuple[int, ...]
    if segment_ids is None:
        start, values = "FROM segment s", (number,)
        end = "WHERE s.ns = ?"
    else:
        pick(db, segment_numbers(db, number, segment_ids).values())
        start, values = "FROM picked CROSS JOIN segment s ON s.num = picked.num", ()
        end = ""
    rows = db.execute(
        f"SELECT q.text, s.id, q.kind {start} CROSS JOIN question q ON q.segment = s.num"
        f" CROSS JOIN document d ON d.num = s.document {end} ORDER BY d.id, s.idx, q.n",
        values,
    )
    return [Question(*row) for row in rows]


def counts(db: sqlite3.Connection, ns: str) -> Mapping[str, int]:
    """Return the number of items of each kind."""
    number = namespace_number(db, ns)
    result = {}
    for kind in ("document", "segment", "entity", "fact", "question", "trail"):
        where = "WHERE ns = ?"
        if kind in ("fact", "question"):
            where = "WHERE segment IN (SELECT num FROM segment WHERE ns = ?)"
        (count,) = db.execute(f"SELECT count(*) FROM {kind} {where}", (number,)).fetchone()
        result["entities" if kind == "entity" else kind + "s"] = count
    return result
