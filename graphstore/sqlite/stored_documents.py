"""Namespaces, documents and their segments."""

import json
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any

from qrmem.graphstore.checking import check_segment_ids, checked_documents, lost_import, not_new
from qrmem.graphstore.codec import dumps, loads
from qrmem.graphstore.protocol import NamespaceInfo
from qrmem.graphstore.sqlite import compression, full_text, removal, view_writes
from qrmem.graphstore.sqlite.lookup import (
    document_number,
    execute_in,
    in_order,
    namespace_number,
    pick,
    required_namespace,
    rows_in,
    rows_of_documents,
    segment_numbers,
)
from qrmem.types import Contribution, Document, DocumentInfo, Part, Segment
from qrmem.types.documents import RANGES, Where, conditions
from qrmem.types.turns import highest_turn

_SEGMENT = """
    SELECT s.id, d.id, s.idx, s.start, s."end", p.text, s.tokens, s.part
    FROM segment s CROSS JOIN passage p ON p.segment = s.num
    CROSS JOIN document d ON d.num = s.document
"""


_STATES = """
    SELECT s.document, coalesce(l.state, 'pending') AS state, count(*),
        sum((SELECT count(*) FROM fact f WHERE f.segment = s.num))
    FROM picked CROSS JOIN segment s ON s.document = picked.num
    LEFT JOIN ledger l ON l.segment = s.num GROUP BY s.document, state
"""
_BY_ID = "WHERE s.ns = ? AND s.id IN ({})"
_HIGHEST = "\U0010ffff"
"""Sorts after every text: the last code point, which no text has."""
_HAS_METADATA = "num IN (SELECT document FROM metadata m WHERE ns = ? AND name = ? AND value"
_IS = """
    AND EXISTS (
        SELECT 1 FROM document d CROSS JOIN json_each(d.metadata) j
        WHERE d.num = m.document AND j.key = m.name AND j.type IN"""
"""The index holds values, and items of lists, as texts; the document has their types."""


def namespaces(db: sqlite3.Connection) -> list[str]:
    """Return all names, sorted."""
    return [name for (name,) in db.execute("SELECT name FROM namespace ORDER BY name")]


def namespace(db: sqlite3.Connection, ns: str) -> NamespaceInfo | None:
    """Return the properties with which a namespace was made."""
    row = db.execute(
        "SELECT name, tokenizer, segment_tokens, embedder, dimension, revision, importing,"
        " single, turns FROM namespace WHERE name = ?",
        (ns,),
    ).fetchone()
    if row is None:
        return None
    *rest, single, turns = row
    return replace(NamespaceInfo(*rest), single=tuple(single.split()), turns=turns)


def create_namespace(db: sqlite3.Connection, ns: str, info: NamespaceInfo) -> NamespaceInfo:
    """Make a namespace unless it exists; return its properties."""
    db.execute(
        "INSERT INTO namespace"
        " (name, tokenizer, segment_tokens, embedder, dimension, importing, single, turns)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        (
            *(ns, info.tokenizer, info.segment_tokens, info.embedder, info.dimension),
            *(info.importing, " ".join(info.single), info.turns),
        ),
    )
    info_made = namespace(db, ns)
    assert info_made is not None
    return info_made


def set_single(db: sqlite3.Connection, ns: str, single: Collection[str]) -> None:
    """Record the relation types of which an entity has only one at a time."""
    number = required_namespace(db, ns)
    db.execute("UPDATE namespace SET single = ? WHERE num = ?", (" ".join(sorted(single)), number))


def finish_import(db: sqlite3.Connection, ns: str, token: str) -> None:
    """Mark the import of a namespace as complete."""
    changed = db.execute(
        "UPDATE namespace SET importing = '' WHERE name = ? AND importing = ? AND importing <> ''",
        (ns, token),
    )
    if not changed.rowcount:
        raise lost_import(ns)


def put_documents(
    db: sqlite3.Connection,
    ns: str,
    written: Sequence[tuple[Document, Sequence[Segment]]],
    *,
    rebuild: bool = False,
    only_new: bool = False,
    edits: Sequence[Contribution] = (),
) -> None:
    """Write documents and their segments; delete everything that depends on replaced segments."""
    number = required_namespace(db, ns)
    documents_checked = checked_documents(written)
    if only_new and (
        there := [id_ for id_, _, _ in documents_checked if document_number(db, number, id_)]
    ):
        raise not_new(there)
    if rebuild:
        delete_documents(db, ns, *(id_ for id_, _, _ in documents_checked))
    removal.drop_segments(db, number, _segments_gone(db, number, documents_checked))
    for id_, document, segments in documents_checked:
        _put(db, number, id_, document, segments)
    numbers = segment_numbers(db, number, {made.segment_id for made in edits})
    compression.put_contributions(db, [(numbers[made.segment_id], made) for made in edits])


def _segments_gone(
    db: sqlite3.Connection, ns: int, checked: Sequence[tuple[str, Document, Sequence[Segment]]]
) -> dict[str, int]:
    """Return the segments that some documents lose by this write, as id to number."""
    number_of: dict[str, int] = {}
    for id_, _, segments in checked:
        new = {segment.id for segment in segments}
        sql = "SELECT id, num FROM segment WHERE document = ?"
        old = db.execute(sql, (document_number(db, ns, id_),))
        number_of |= {segment: num for segment, num in old if segment not in new}
    return number_of


def _put(
    db: sqlite3.Connection, number: int, id_: str, document: Document, segments: Sequence[Segment]
) -> None:
    is_known = document_number(db, number, id_) > 0
    doc = _upsert(db, number, document, segments)
    db.execute("DELETE FROM metadata WHERE document = ?", (doc,))
    db.executemany(
        "INSERT INTO metadata VALUES (?, ?, ?, ?)",
        (
            (number, name, str(item), doc)
            for name, value in document.metadata.items()
            for item in (dict.fromkeys(value) if isinstance(value, list) else [value])
        ),
    )
    new = {segment.id for segment in segments}
    sql = "SELECT id FROM segment WHERE ns = ? AND document <> ? AND id IN ({})"
    check_segment_ids(
        id_, sorted(segment_id for (segment_id,) in rows_in(db, sql, new, number, doc))
    )
    _put_segments(db, number, doc, segments)
    full_text.entitle(db, number, doc, document.title, document.text)
    if is_known:
        view_writes.raise_revision(db, number)


def _upsert(
    db: sqlite3.Connection, ns: int, document: Document, segments: Sequence[Segment]
) -> int:
    text = document.text
    is_covered = "".join(segment.text for segment in segments) == text
    row = db.execute(
        "INSERT INTO document (ns, id, title, metadata, parts, characters, digest, text)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (ns, id) DO UPDATE SET"
        " title = excluded.title, metadata = excluded.metadata, parts = excluded.parts,"
        " characters = excluded.characters, digest = excluded.digest, text = excluded.text"
        " RETURNING num",
        (
            ns,
            document.id,
            document.title,
            dumps(document.metadata),
            dumps(document.parts),
            len(text),
            bytes.fromhex(document.digest),
            None if is_covered else text,
        ),
    ).fetchall()
    return int(row[0][0])


def _put_segments(db: sqlite3.Connection, ns: int, doc: int, segments: Sequence[Segment]) -> None:
    db.executemany(
        'INSERT INTO segment (ns, document, id, idx, start, "end", tokens, part)'
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (ns, id) DO UPDATE SET idx = excluded.idx,"
        ' start = excluded.start, "end" = excluded."end", tokens = excluded.tokens,'
        " part = excluded.part",
        ((ns, doc, s.id, s.index, s.start, s.end, s.tokens, s.part) for s in segments),
    )
    numbers = dict(db.execute("SELECT id, num FROM segment WHERE document = ?", (doc,)))
    text_of = {numbers[s.id]: s.text for s in segments}
    before = compression.texts(db, text_of)
    compression.change_texts(
        db, {n: text_of[n] for n, text in before.items() if text != text_of[n]}
    )
    new = [(number, text) for number, text in text_of.items() if number not in before]
    db.executemany("INSERT INTO passage VALUES (?, ?)", new)


def document(db: sqlite3.Connection, ns: str, document_id: str) -> Document | None:
    """Return a document with its text."""
    doc = document_number(db, namespace_number(db, ns), document_id)
    row = db.execute(
        "SELECT title, metadata, parts, text FROM document WHERE num = ?", (doc,)
    ).fetchone()
    if row is None:
        return None
    title, metadata, parts, text = row
    return Document(
        text=_joined(db, doc) if text is None else text,
        title=title,
        id=document_id,
        metadata=json.loads(metadata),
        parts=loads(parts, tuple[Part, ...]),
    )


def _joined(db: sqlite3.Connection, doc: int) -> str:
    rows = db.execute(
        "SELECT p.text FROM segment s CROSS JOIN passage p ON p.segment = s.num"
        " WHERE s.document = ? ORDER BY s.idx",
        (doc,),
    )
    return "".join(text for (text,) in rows)


def documents(
    db: sqlite3.Connection,
    ns: str,
    ids: Collection[str] | None = None,
) -> list[DocumentInfo]:
    """Return the descriptions of all documents, or of some, by id."""
    pick(db, _numbers(db, namespace_number(db, ns), ids))
    states: defaultdict[int, dict[str, int]] = defaultdict(dict)
    facts: Counter[int] = Counter()
    for num, state, count, facts_count in db.execute(_STATES):
        states[num][state] = count
        facts[num] += facts_count
    rows = db.execute(
        "SELECT num, id, title, metadata, characters, summary, lower(hex(digest))"
        " FROM picked CROSS JOIN document USING (num)"
    ).fetchall()
    metadata_of = json.loads(f"[{','.join(row[3] for row in rows)}]")  # one call for all
    infos = [
        DocumentInfo(
            id=id_,
            title=title,
            metadata=metadata,
            characters=characters,
            segments=sum(states[num].values()),
            states=states[num],
            summary=summary,
            digest=digest,
            facts=facts[num],
        )
        for (num, id_, title, _, characters, summary, digest), metadata in zip(
            rows, metadata_of, strict=True
        )
    ]
    return sorted(infos, key=attrgetter("id"))


def document_ids(
    db: sqlite3.Connection,
    ns: str,
    *,
    where: Where | None = None,
    between: tuple[str, str, str] | None = None,
    prefix: str = "",
    last: int | None = None,
) -> list[str]:
    """Return the ids of the documents that fit all conditions, sorted."""
    fits: list[str] = ["ns = ?"]
    values: list[Any] = [namespace_number(db, ns)]
    for name, of in conditions(where).items():
        for sql, parameters in _fitting(of):
            fits.append(f"{_HAS_METADATA} {sql})")
            values += [values[0], name, *parameters]
    if between:
        fits.append(f"{_HAS_METADATA} >= ? AND value < ?)")
        values += [values[0], *between]
    if prefix:
        fits.append("id >= ? AND id < ?")
        values += [prefix, prefix + _HIGHEST]
    values.append(-1 if last is None else last)  # -1 means no limit in SQLite
    sql = f"SELECT id FROM document WHERE {' AND '.join(fits)} ORDER BY id DESC LIMIT ?"
    return sorted(id_ for (id_,) in db.execute(sql, values))


def _fitting(wanted: Mapping[str, Any]) -> Iterator[tuple[str, list[Any]]]:
    """Yield the SQL conditions on the values of a property, with their parameters."""
    if "=" in wanted:
        yield "= ?", [str(wanted["="])]
    if "in" in wanted:
        yield "IN (SELECT value FROM json_each(?))", [json.dumps([str(v) for v in wanted["in"]])]
    if "has" in wanted:
        yield f"= ? {_IS} ('array'))", [str(wanted["has"])]
    if bounds := {name: value for name, value in wanted.items() if name in RANGES}:
        yield _within(bounds)


def _within(bounds: Mapping[str, Any]) -> tuple[str, list[Any]]:
    bounds_given = list(bounds.values())
    if isinstance(bounds_given[0], str):
        order = " AND value ".join(f"{name} ?" for name in bounds)
        return f"{order} {_IS} ('text', 'array'))", bounds_given
    # Numbers are texts in the index: the values of this key are compared one by one.
    order = " ".join(f"AND j.value {name} ?" for name in bounds)
    return f">= '-' AND value < ':' {_IS} ('integer', 'real') {order})", bounds_given


def _numbers(db: sqlite3.Connection, ns: int, ids: Collection[str] | None) -> list[int]:
    """Return the numbers of all documents, or of some."""
    sql = "SELECT num FROM document WHERE ns = ?"
    if ids is None:
        rows: Iterable[tuple[Any, ...]] = db.execute(sql, (ns,))
    else:
        rows = rows_in(db, f"{sql} AND id IN ({{}})", set(ids), ns)
    return [num for (num,) in rows]


def states(db: sqlite3.Connection, ns: str) -> dict[str, int]:
    """Return how many segments there are in each state."""
    rows = db.execute(
        "SELECT coalesce(l.state, 'pending') AS state, count(*) FROM segment s"
        " LEFT JOIN ledger l ON l.segment = s.num WHERE s.ns = ? GROUP BY state",
        (namespace_number(db, ns),),
    )
    return dict(rows.fetchall())


def delete_documents(db: sqlite3.Connection, ns: str, *document_ids: str) -> None:
    """Remove documents with everything that depends on them; unknown ids are ignored."""
    number = namespace_number(db, ns)
    documents = _numbers(db, number, document_ids)
    sql = "SELECT id, metadata FROM document WHERE num IN ({})"
    given = rows_in(db, sql, documents)
    turns = highest_turn((id_, json.loads(metadata)) for id_, metadata in given)
    db.execute("UPDATE namespace SET turns = max(turns, ?) WHERE num = ?", (turns, number))
    sql = "SELECT id, num FROM segment WHERE document IN ({})"
    removal.drop_segments(db, number, dict(rows_in(db, sql, documents)))
    execute_in(db, "DELETE FROM document WHERE num IN ({})", documents)
    if documents:
        view_writes.raise_revision(db, number)


def segments(
    db: sqlite3.Connection, ns: str, ids: Sequence[str] = (), *, documents: Sequence[str] = ()
) -> list[Segment]:
    """Return segments in the order of the ids, then those of some documents in order."""
    rows = rows_in(db, _SEGMENT + _BY_ID, set(ids), namespace_number(db, ns)) if ids else ()
    result = in_order(ids, {row[0]: Segment(*row) for row in rows})
    sql = _SEGMENT + "WHERE s.document = ? ORDER BY s.idx"
    return result + [Segment(*row) for row in rows_of_documents(db, ns, documents, sql)]
