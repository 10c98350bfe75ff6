"""Write the view: add and delete rows, and delete names and entities that lose their last row."""

import sqlite3
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from qrmem.errors import StoreConflict
from qrmem.graphstore.checking import check_known, used_names, written_segments
from qrmem.graphstore.protocol import FactRow, MentionRow, ViewUpdate
from qrmem.graphstore.records import form_blocks
from qrmem.graphstore.sqlite import compression, full_text
from qrmem.graphstore.sqlite.lookup import (
    entity_numbers,
    execute_in,
    key_range,
    name_numbers,
    next_number,
    pick,
    required_namespace,
    rows_in,
    segment_numbers,
)
from qrmem.text.names import meant_name, normalise_name
from qrmem.text.names.blocks import blocks_of, form_block
from qrmem.types import MergeDecision, Question

_MENTIONS = (
    "SELECT m.name, m.forms, n.key, m.segment FROM mention m CROSS JOIN name n ON n.num = m.name"
    " WHERE m.segment IN ({})"
)
_VIEW_TABLES = ("mention", "fact", "question", "merged")


@dataclass(slots=True)
class TouchedRows:
    """Names and entities that a write has changed, for `settle`.

    Attributes:
        names: names that may have no mention left.
        entities: entities that may have no name left.
        forms: change in the count of each (name, surface form).
        stale: names whose mentions changed and which must be resolved again.
        fewer: names, each with a surface form that may be gone.
    """

    names: set[int] = field(default_factory=set)
    entities: set[int] = field(default_factory=set)
    forms: Counter[tuple[int, str]] = field(default_factory=Counter)
    stale: set[int] = field(default_factory=set)
    fewer: list[tuple[int, str]] = field(default_factory=list)


def apply(
    db: sqlite3.Connection,
    ns: str,
    revision: int,
    change: ViewUpdate,
) -> int:
    """Apply a change if the revision is still the expected one; return the new revision."""
    number = required_namespace(db, ns)
    (current,) = db.execute("SELECT revision FROM namespace WHERE num = ?", (number,)).fetchone()
    if current != revision:
        raise StoreConflict(f"namespace {ns!r} changed meanwhile; try again")
    touched = TouchedRows()
    segment_ids = written_segments(change)
    segments = segment_numbers(db, number, segment_ids.union(change.clear))
    check_known("segment", segment_ids, segments)
    put_decisions(db, number, change.decisions)
    names = _put_names(db, number, change, touched)
    clear(db, number, {segments[id_] for id_ in change.clear if id_ in segments}, touched)
    _put_mentions(db, number, change.mentions, segments, names, touched)
    _put_facts(db, change.facts, segments, names)
    _put_questions(db, change.questions, segments)
    full_text.add(
        db, number, {segments[id_]: segment_terms for id_, segment_terms in change.index.items()}
    )
    db.executemany(
        "INSERT OR REPLACE INTO merged VALUES (?, ?)",
        ((segments[id_], digest) for id_, digest in change.merged.items()),
    )
    settle(db, number, touched)
    edited = [(segments[made.segment_id], made) for made in change.edits]
    compression.put_contributions(db, edited)
    db.executemany(
        "DELETE FROM stale WHERE ns = ? AND name = ?", ((number, key) for key in change.resolved)
    )
    return raise_revision(db, number)


def put_decisions(db: sqlite3.Connection, ns: int, decisions: Iterable[MergeDecision]) -> None:
    """Store a user's decisions on pairs of names, and mark the names to be resolved again."""
    for decision in decisions:
        first, second = sorted((decision.first, decision.second))
        db.execute(
            "INSERT OR REPLACE INTO decision VALUES (?, ?, ?, ?)",
            (ns, first, second, decision.same),
        )
        db.executemany(
            "INSERT OR IGNORE INTO stale SELECT n.ns, n.key, e.key FROM name n CROSS JOIN entity e"
            " ON e.num = n.entity WHERE n.ns = ? AND n.key >= ? AND n.key < ?",
            ((ns, *key_range(meant_name(name))) for name in (first, second)),
        )


def clear_view(db: sqlite3.Connection, ns: str) -> None:
    """Delete everything that is derived from the facts."""
    row = db.execute("SELECT num, revision FROM namespace WHERE name = ?", (ns,)).fetchone()
    if row is not None:
        ids = [id_ for (id_,) in db.execute("SELECT id FROM segment WHERE ns = ?", row[:1])]
        apply(db, ns, row[1], ViewUpdate(clear=ids))


def raise_revision(db: sqlite3.Connection, ns: int) -> int:
    """Raise the revision of the view; return the new one."""
    rows = db.execute(
        "UPDATE namespace SET revision = revision + 1 WHERE num = ? RETURNING revision", (ns,)
    )
    return int(rows.fetchall()[0][0])


def clear(db: sqlite3.Connection, ns: int, segments: Collection[int], touched: TouchedRows) -> None:
    """Delete the view rows of some segments; call `settle` afterwards."""
    if not segments:
        return
    _uncount(rows_in(db, _MENTIONS, segments), touched)
    for table in _VIEW_TABLES:
        execute_in(db, f"DELETE FROM {table} WHERE segment IN ({{}})", segments)
    full_text.drop(db, ns, segments)


def settle(db: sqlite3.Connection, ns: int, touched: TouchedRows) -> list[tuple[str, str]]:
    """Update names and entities to match their mentions.

    Returns:
        Key and name of the entities that vanished.
    """
    _count_forms(db, touched)
    _mark_stale(db, ns, touched)
    _drop_names(db, ns, touched)
    pick(db, touched.entities)
    entities_gone = db.execute(
        "SELECT entity.num, entity.key, entity.name FROM picked CROSS JOIN entity USING (num)"
        " WHERE NOT EXISTS (SELECT 1 FROM name WHERE name.entity = picked.num)"
    ).fetchall()
    execute_in(db, "DELETE FROM entity WHERE num IN ({})", [num for num, _, _ in entities_gone])
    return [(key, name) for _, key, name in entities_gone]


def _put_names(
    db: sqlite3.Connection, ns: int, change: ViewUpdate, touched: TouchedRows
) -> dict[str, int]:
    """Write names and entities; return the numbers of these names and of the names in the rows."""
    names_used = used_names(change)
    number_of = name_numbers(db, ns, names_used.union(change.names))
    check_known("name", names_used, number_of.keys() | change.names.keys())
    entities = _put_entities(db, ns, change)
    numbers = number_of | _numbered(change.names.keys() - number_of.keys(), next_number(db, "name"))
    moved = rows_in(
        db,
        "SELECT entity FROM name WHERE num IN ({})",
        [number_of[key] for key in change.names if key in number_of],
    )
    touched.entities.update(entities.values(), (entity for (entity,) in moved))
    touched.names.update(numbers[key] for key in change.names)
    db.executemany(
        "INSERT INTO name (num, ns, key, entity) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (num) DO UPDATE SET entity = excluded.entity",
        ((numbers[key], ns, key, entities[entity]) for key, entity in change.names.items()),
    )
    db.executemany(
        "INSERT OR IGNORE INTO name_block VALUES (?, ?, ?)",
        (
            (ns, block, numbers[key])
            for key in change.names
            if key not in number_of
            for block in blocks_of(key)
        ),
    )
    return numbers


def _numbered(keys: Iterable[str], first: int) -> dict[str, int]:
    return {key: number for number, key in enumerate(sorted(keys), first)}


def _put_entities(db: sqlite3.Connection, ns: int, change: ViewUpdate) -> dict[str, int]:
    """Write entities; return the numbers of these and of the entities of the names."""
    new = {row.key for row in change.entities}
    numbers = entity_numbers(db, ns, new.union(change.names.values()))
    check_known("entity", change.names.values(), numbers.keys() | new)
    numbers |= _numbered(new - numbers.keys(), next_number(db, "entity"))
    db.executemany(
        "INSERT INTO entity (num, ns, key, name, type) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT (num) DO UPDATE SET name = excluded.name, type = excluded.type",
        ((numbers[row.key], ns, row.key, row.name, row.type) for row in change.entities),
    )
    return numbers


def _put_mentions(
    db: sqlite3.Connection,
    ns: int,
    rows: Sequence[MentionRow],
    segments: Mapping[str, int],
    names: Mapping[str, int],
    touched: TouchedRows,
) -> None:
    by_place = {(segments[row.segment_id], names[row.name]): row for row in rows}
    _uncount_overwritten(db, by_place.keys(), touched)
    mentioned = {name for _, name in by_place}
    touched.names |= mentioned
    touched.stale |= mentioned
    ready = []
    for place in sorted(by_place):
        row = by_place[place]
        for form, count in row.forms:
            touched.forms[place[1], form] += count
        ready.append(
            (
                *place,
                compression.forms_kept(row.forms, row.name),
                row.question,
                compression.properties_kept(row.properties),
                int(row.said),
            )
        )
    db.executemany("INSERT OR REPLACE INTO mention VALUES (?, ?, ?, ?, ?, ?)", ready)
    db.executemany(
        "INSERT OR IGNORE INTO name_block VALUES (?, ?, ?)",
        ((ns, block, names[row.name]) for row in by_place.values() for block in form_blocks(row)),
    )


def _uncount_overwritten(
    db: sqlite3.Connection, places: Collection[tuple[int, int]], touched: TouchedRows
) -> None:
    rows = rows_in(db, _MENTIONS, {segment for segment, _ in places})
    _uncount((row for row in rows if (row[3], row[0]) in places), touched)


def _uncount(rows: Iterable[tuple[Any, ...]], touched: TouchedRows) -> None:
    """Subtract the forms of mentions, given as rows of `_MENTIONS`."""
    for name, forms, key, _ in rows:
        touched.names.add(name)
        touched.stale.add(name)
        for form, count in compression.forms_told(forms, key):
            touched.forms[name, form] -= count


def _put_facts(
    db: sqlite3.Connection,
    rows: Sequence[FactRow],
    segments: Mapping[str, int],
    names: Mapping[str, int],
) -> None:
    texts = compression.texts(db, {segments[row.segment_id] for row in rows})
    lines = {segment: compression.on_one_line(text) for segment, text in texts.items()}
    ready = []
    for row in rows:
        segment = segments[row.segment_id]
        place = compression.place_of(row.description, lines[segment])
        ends, times = (names[row.head], names[row.tail]), (row.said_at, row.valid_from)
        typed = row.valid_until, row.type, compression.properties_kept(row.properties)
        ready.append((segment, row.n, *ends, *place, row.question, *times, *typed))
    sql = f"INSERT OR REPLACE INTO fact VALUES ({', '.join('?' * 13)})"
    db.executemany(sql, ready)


def _put_questions(
    db: sqlite3.Connection, rows: Sequence[Question], segments: Mapping[str, int]
) -> None:
    numbers_taken: dict[int, dict[str, int]] = {segments[q.segment_id]: {} for q in rows}
    sql = "SELECT segment, n, text FROM question WHERE segment IN ({})"
    for segment, n, text in sorted(rows_in(db, sql, numbers_taken)):
        numbers_taken[segment][text] = n
    ready = []
    for question in rows:
        segment = segments[question.segment_id]
        n = numbers_taken[segment].setdefault(question.text, len(numbers_taken[segment]))
        ready.append((segment, n, question.text, question.kind))
    db.executemany("INSERT OR REPLACE INTO question VALUES (?, ?, ?, ?)", ready)


def _count_forms(db: sqlite3.Connection, touched: TouchedRows) -> None:
    changed = [(name, form, n) for (name, form), n in touched.forms.items() if n]
    touched.forms.clear()
    db.executemany(
        "INSERT INTO form VALUES (?, ?, ?)"
        " ON CONFLICT DO UPDATE SET count = count + excluded.count",
        sorted(changed),
    )
    fewer = [(name, form) for name, form, n in changed if n < 0]
    db.executemany("DELETE FROM form WHERE name = ? AND form = ? AND count <= 0", fewer)
    touched.fewer += fewer


def _mark_stale(db: sqlite3.Connection, ns: int, touched: TouchedRows) -> None:
    pick(db, touched.stale)
    db.execute(
        "INSERT OR IGNORE INTO stale SELECT ?, name.key, entity.key FROM picked"
        " CROSS JOIN name USING (num) CROSS JOIN entity ON entity.num = name.entity",
        (ns,),
    )


def _drop_names(db: sqlite3.Connection, ns: int, touched: TouchedRows) -> None:
    """Delete touched names without a mention, and the facts that use them."""
    pick(db, touched.names)
    names_lost = db.execute(
        "SELECT name.num, name.key, name.entity FROM picked CROSS JOIN name USING (num)"
        " WHERE NOT EXISTS (SELECT 1 FROM mention WHERE mention.name = picked.num)"
    ).fetchall()
    numbers = [number for number, _, _ in names_lost]
    touched.entities.update(entity for _, _, entity in names_lost)
    db.executemany(
        "DELETE FROM name_block WHERE ns = ? AND block = ? AND name = ?",
        ((ns, block, number) for number, key, _ in names_lost for block in blocks_of(key)),
    )
    gone = set(numbers)
    db.executemany(
        "DELETE FROM name_block WHERE ns = ? AND block = ? AND name = ?",
        (
            (ns, form_block(normalise_name(form)), number)
            for number, form in touched.fewer
            if number in gone
        ),
    )
    for sql in (
        "DELETE FROM fact WHERE head IN ({})",
        "DELETE FROM fact WHERE tail IN ({})",
        "DELETE FROM form WHERE name IN ({})",
        "DELETE FROM name WHERE num IN ({})",
    ):
        execute_in(db, sql, numbers)
