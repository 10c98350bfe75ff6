"""Writing the view: a change's rows in, old rows out, and what vanishes with them."""

import json
import sqlite3
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from qrmem.errors import StoreConflict
from qrmem.graphstore.protocol import Change, EntityRow, FactRow, MentionRow
from qrmem.graphstore.sqlite import relations, words
from qrmem.graphstore.sqlite.lookup import (
    entity_numbers,
    execute_in,
    name_numbers,
    next_number,
    pick,
    required_namespace,
    rows_in,
    segment_numbers,
)
from qrmem.records import Question

_VIEW_TABLES = ("mention", "fact", "question", "merged")


@dataclass(slots=True)
class Touched:
    """What a write has touched and `settle` looks at.

    Attributes:
        forms: how much more or less often a (name, surface form) occurs now.
        relations: keys of relations whose facts were written, removed or got another end.
    """

    names: set[int] = field(default_factory=set)
    entities: set[int] = field(default_factory=set)
    forms: Counter[tuple[int, str]] = field(default_factory=Counter)
    relations: set[str] = field(default_factory=set)


def apply(db: sqlite3.Connection, ns: str, revision: int, change: Change) -> int:
    """Apply a change if nobody else did since; return the new revision."""
    number = required_namespace(db, ns)
    (found,) = db.execute("SELECT revision FROM namespace WHERE num = ?", (number,)).fetchone()
    if found != revision:
        raise StoreConflict(
            f"namespace {ns!r} is at revision {found}, not {revision}: somebody else changed it"
        )
    segments = _segments(db, number, change)
    touched = Touched()
    cleared = {segments[id_] for id_ in change.clear if id_ in segments}
    clear(db, number, cleared, touched)
    entities = _put_entities(db, number, change, touched)
    names = _put_names(db, number, change, entities, touched)
    _put_mentions(db, change.mentions, segments, names, touched)
    _put_facts(db, change.facts, segments, names)
    _put_questions(db, change.questions, segments)
    words.add(db, number, [(segments[row.segment_id], row) for row in change.index])
    db.executemany(
        "INSERT OR REPLACE INTO merged VALUES (?, ?)",
        ((segments[id_], digest) for id_, digest in change.merged.items()),
    )
    if relations.have_vectors(db, number):
        touched.relations |= relations.of_segments(
            db, {segments[f.segment_id] for f in change.facts}
        )
    settle(db, number, touched)
    return raise_revision(db, number)


def raise_revision(db: sqlite3.Connection, ns: int) -> int:
    """Count a change of the view; return the new revision."""
    rows = db.execute(
        "UPDATE namespace SET revision = revision + 1 WHERE num = ? RETURNING revision", (ns,)
    )
    return int(rows.fetchall()[0][0])


def clear(db: sqlite3.Connection, ns: int, segments: Collection[int], touched: Touched) -> None:
    """Drop the view rows of some segments; `settle` has to follow."""
    if not segments:
        return
    if relations.have_vectors(db, ns):
        touched.relations |= relations.of_segments(db, segments)
    rows = rows_in(db, "SELECT name, forms FROM mention WHERE segment IN ({})", segments)
    for name, forms in rows:
        _uncount(touched, name, forms)
    for table in _VIEW_TABLES:
        execute_in(db, f"DELETE FROM {table} WHERE segment IN ({{}})", segments)
    words.drop(db, ns, segments)


def settle(db: sqlite3.Connection, ns: int, touched: Touched) -> list[tuple[str, str]]:
    """Bring names and entities in line with their mentions.

    Returns:
        Key and name of the entities that vanished.
    """
    _count_forms(db, touched)
    _drop_names(db, ns, touched)
    _set_surfaces(db, touched.names)
    if touched.relations:
        relations.drop_vectors(db, ns, touched.relations)
    pick(db, touched.entities)
    gone = db.execute(
        "SELECT entity.num, entity.key, entity.name FROM picked CROSS JOIN entity USING (num)"
        " WHERE NOT EXISTS (SELECT 1 FROM name WHERE name.entity = picked.num)"
    ).fetchall()
    execute_in(db, "DELETE FROM entity WHERE num IN ({})", [num for num, _, _ in gone])
    return [(key, name) for _, key, name in gone]


def _segments(db: sqlite3.Connection, ns: int, change: Change) -> dict[str, int]:
    written = {row.segment_id for rows in (change.mentions, change.facts) for row in rows}
    written |= {row.segment_id for row in change.index}
    written |= {question.segment_id for question in change.questions} | change.merged.keys()
    segments = segment_numbers(db, ns, written.union(change.clear))
    _check(written, segments, "segment")
    return segments


def _check(wanted: Iterable[str], known: Mapping[str, int], what: str) -> None:
    missing = sorted(set(wanted) - known.keys())
    if missing:
        raise ValueError(f"a change speaks of a {what} that is not there: {missing[0]!r}")


def _put_entities(
    db: sqlite3.Connection, ns: int, change: Change, touched: Touched
) -> dict[str, int]:
    rows: Sequence[EntityRow] = change.entities
    db.executemany(
        "INSERT INTO entity (ns, key, name, type) VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE"
        " SET name = excluded.name, type = excluded.type",
        ((ns, row.key, row.name, row.type) for row in rows),
    )
    entities = entity_numbers(db, ns, {row.key for row in rows}.union(change.names.values()))
    _check(change.names.values(), entities, "entity")
    touched.entities.update(entities.values())
    return entities


def _put_names(
    db: sqlite3.Connection, ns: int, change: Change, entities: Mapping[str, int], touched: Touched
) -> dict[str, int]:
    keys = set(change.names)
    keys.update(row.name for row in change.mentions)
    keys.update(end for row in change.facts for end in (row.head, row.tail))
    names = name_numbers(db, ns, keys)
    _check(keys - change.names.keys(), names, "name")
    new = sorted(change.names.keys() - names.keys())
    names |= dict(zip(new, range(next_number(db, "name"), 1 << 62), strict=False))
    _touch_moved(db, ns, {names[key]: entities[e] for key, e in change.names.items()}, touched)
    db.executemany(
        "INSERT INTO name (num, ns, key, entity) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (num) DO UPDATE SET entity = excluded.entity",
        ((names[key], ns, key, entities[entity]) for key, entity in change.names.items()),
    )
    touched.names.update(names[key] for key in change.names)
    return names


def _touch_moved(
    db: sqlite3.Connection, ns: int, target: Mapping[int, int], touched: Touched
) -> None:
    rows = rows_in(db, "SELECT num, entity FROM name WHERE num IN ({})", target)
    moved = {num: entity for num, entity in rows if entity != target[num]}
    touched.entities.update(moved.values())
    if moved and relations.have_vectors(db, ns):
        touched.relations |= relations.of_names(db, moved)
        touched.relations |= relations.of_names(db, moved, instead=target)


def _put_mentions(
    db: sqlite3.Connection,
    rows: Sequence[MentionRow],
    segments: Mapping[str, int],
    names: Mapping[str, int],
    touched: Touched,
) -> None:
    by_place = {(segments[row.segment_id], names[row.name]): row for row in rows}
    _uncount_overwritten(db, by_place.keys(), touched)
    touched.names.update(name for _, name in by_place)
    forms = touched.forms
    texts: dict[tuple[tuple[str, int], ...], str] = {}
    ready = []
    for place in sorted(by_place):
        row = by_place[place]
        for form, count in row.forms:
            forms[place[1], form] += count
        text = texts.get(row.forms)
        if text is None:
            text = texts[row.forms] = json.dumps(row.forms, separators=(",", ":"))
        ready.append((*place, text, row.question))
    db.executemany("INSERT OR REPLACE INTO mention VALUES (?, ?, ?, ?)", ready)


def _uncount_overwritten(
    db: sqlite3.Connection, places: Collection[tuple[int, int]], touched: Touched
) -> None:
    segments = {segment for segment, _ in places}
    sql = "SELECT segment, name, forms FROM mention WHERE segment IN ({})"
    for segment, name, forms in rows_in(db, sql, segments):
        if (segment, name) in places:
            _uncount(touched, name, forms)


def _uncount(touched: Touched, name: int, forms: str) -> None:
    touched.names.add(name)
    for form, count in json.loads(forms):
        touched.forms[name, form] -= count


def _put_facts(
    db: sqlite3.Connection,
    rows: Sequence[FactRow],
    segments: Mapping[str, int],
    names: Mapping[str, int],
) -> None:
    db.executemany(
        "INSERT OR REPLACE INTO fact VALUES (?, ?, ?, ?, ?, ?)",
        sorted(
            (segments[f.segment_id], f.n, names[f.head], names[f.tail], f.description, f.question)
            for f in rows
        ),
    )


def _put_questions(
    db: sqlite3.Connection, rows: Sequence[Question], segments: Mapping[str, int]
) -> None:
    taken: dict[int, dict[str, int]] = {segments[q.segment_id]: {} for q in rows}
    sql = "SELECT segment, n, text FROM question WHERE segment IN ({})"
    for segment, n, text in sorted(rows_in(db, sql, taken)):
        taken[segment][text] = n
    ready = []
    for question in rows:
        segment = segments[question.segment_id]
        n = taken[segment].setdefault(question.text, len(taken[segment]))
        ready.append((segment, n, question.text, question.kind))
    db.executemany("INSERT OR REPLACE INTO question VALUES (?, ?, ?, ?)", ready)


def _count_forms(db: sqlite3.Connection, touched: Touched) -> None:
    changed = [(name, form, n) for (name, form), n in touched.forms.items() if n]
    db.executemany(
        "INSERT INTO form VALUES (?, ?, ?)"
        " ON CONFLICT DO UPDATE SET count = count + excluded.count",
        sorted(changed),
    )
    fewer = [(name, form) for name, form, n in changed if n < 0]
    db.executemany("DELETE FROM form WHERE name = ? AND form = ? AND count <= 0", fewer)


def _drop_names(db: sqlite3.Connection, ns: int, touched: Touched) -> None:
    """Drop touched names without a mention, and the facts that need them."""
    pick(db, touched.names)
    gone = dict(
        db.execute(
            "SELECT name.num, name.entity FROM picked CROSS JOIN name USING (num)"
            " WHERE NOT EXISTS (SELECT 1 FROM mention WHERE mention.name = picked.num)"
        )
    )
    if gone and relations.have_vectors(db, ns):
        touched.relations |= relations.of_names(db, gone)
    touched.entities.update(gone.values())
    touched.names -= gone.keys()
    for sql in (
        "DELETE FROM fact WHERE head IN ({})",
        "DELETE FROM fact WHERE tail IN ({})",
        "DELETE FROM form WHERE name IN ({})",
        "DELETE FROM name WHERE num IN ({})",
    ):
        execute_in(db, sql, gone)


def _set_surfaces(db: sqlite3.Connection, names: Collection[int]) -> None:
    pick(db, names)
    best: dict[int, tuple[int, int, str]] = {}
    totals: Counter[int] = Counter()
    rows = db.execute("SELECT name, form, count FROM picked CROSS JOIN form ON form.name = num")
    for name, form, count in rows:
        totals[name] += count
        rank = (-count, -len(form), form)
        if name not in best or rank < best[name]:
            best[name] = rank
    db.executemany(
        "UPDATE name SET surface = ?, count = ? WHERE num = ?",
        ((best[n][2] if n in best else "", totals[n], n) for n in names),
    )
