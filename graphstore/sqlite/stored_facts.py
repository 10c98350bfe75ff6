"""Facts extracted from segments, the state of each segment, and the user's decisions on names."""

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import Any

from qrmem.errors import NotFound
from qrmem.graphstore.codec import dumps, loads
from qrmem.graphstore.protocol import MERGED, Unmerged
from qrmem.graphstore.sqlite import compression, stored_documents, view_writes
from qrmem.graphstore.sqlite.lookup import (
    key_range,
    namespace_number,
    required_namespace,
    rows_of_documents,
    segment_numbers,
)
from qrmem.graphstore.sqlite.runs import add_calls
from qrmem.text.dates import said_at
from qrmem.text.names import meant_name
from qrmem.types import CallRecord, Contribution, LedgerRow, MergeDecision

_LEDGER = """
    SELECT s.id, coalesce(l.state, 'pending'), coalesce(l.reason, ''), coalesce(l.reasoner, ''),
        coalesce(g.digest, '')
    FROM document d CROSS JOIN segment s ON s.document = d.num
    LEFT JOIN ledger l ON l.segment = s.num LEFT JOIN merged g ON g.segment = s.num
"""


def record(
    db: sqlite3.Connection,
    ns: str,
    rows: Sequence[tuple[LedgerRow, Contribution | None]],
    calls: Sequence[CallRecord] = (),
    *,
    summaries: Mapping[str, str] = {},
) -> None:
    """Write ledger rows, contributions of the segments, calls and summaries."""
    number = required_namespace(db, ns)
    ids = {row.segment_id for row, _ in rows}
    numbers = segment_numbers(db, number, ids)
    if missing := sorted(ids - numbers.keys()):
        raise NotFound(f"segment {missing[0]!r} is not in the memory; was its document deleted?")
    db.executemany(
        "INSERT OR REPLACE INTO ledger VALUES (?, ?, ?, ?)",
        ((numbers[r.segment_id], r.state, r.reason, r.reasoner) for r, _ in rows),
    )
    contribution_rows = [(numbers[c.segment_id], c) for _, c in rows if c]
    texts = compression.texts(db, {segment for segment, _ in contribution_rows})
    db.executemany(
        "INSERT INTO contribution (segment, kind, asked, body) VALUES (?, ?, ?, ?)"
        " ON CONFLICT DO UPDATE SET body = excluded.body",
        (
            (
                segment,
                c.kind,
                compression.asked_kept(c.asked),
                compression.packed(dumps(c), texts[segment]),
            )
            for segment, c in contribution_rows
        ),
    )
    add_calls(db, number, calls)
    db.executemany(
        "UPDATE document SET summary = ? WHERE ns = ? AND id = ?",
        ((summary, number, id_) for id_, summary in summaries.items()),
    )


def ledger(db: sqlite3.Connection, ns: str, *document_ids: str) -> list[LedgerRow]:
    """Return the ledger rows of some documents, or of all; a segment without one is `pending`."""
    sql = _LEDGER + "WHERE d.num = ? ORDER BY s.idx"
    rows: Iterable[tuple[Any, ...]] = rows_of_documents(db, ns, document_ids, sql)
    if not document_ids:
        sql = _LEDGER + "WHERE d.ns = ? ORDER BY d.id, s.idx"
        rows = db.execute(sql, (namespace_number(db, ns),))
    return [LedgerRow(*row) for row in rows]


def contributions(
    db: sqlite3.Connection,
    ns: str,
    *document_ids: str,
    kinds: Sequence[str] = ("extraction", "supplement"),
) -> list[Contribution]:
    """Return some documents' contributions by segment, then kind, then `asked`."""
    sql = (
        "SELECT s.document, s.idx, c.kind, c.body, p.text FROM segment s"
        " CROSS JOIN contribution c ON c.segment = s.num"
        " CROSS JOIN passage p ON p.segment = s.num WHERE s.document = ? ORDER BY s.idx"
    )
    rows = rows_of_documents(db, ns, document_ids, sql)
    result = [
        (place, loads(compression.unpacked(body, text), Contribution))
        for *place, kind, body, text in rows
        if kind in kinds
    ]
    return [
        contribution
        for _, passes in groupby(result, key=itemgetter(0))
        for contribution in sorted(
            (contribution for _, contribution in passes), key=attrgetter("kind", "asked")
        )
    ]


def unmerged(db: sqlite3.Connection, ns: str, *document_ids: str) -> Unmerged:
    """Return the unmerged segments of some documents, and what else a merge needs."""
    info = stored_documents.namespace(db, ns)
    stale = db.execute(
        "SELECT name, entity FROM stale WHERE ns = ? ORDER BY name", (namespace_number(db, ns),)
    )
    rows = ledger(db, ns, *document_ids) if document_ids else []
    dated = rows_of_documents(
        db, ns, document_ids, "SELECT id, metadata FROM document WHERE num = ?"
    )
    return Unmerged(
        revision=info.revision if info else 0,
        segments=stored_documents.segments(db, ns, documents=document_ids),
        contributions=contributions(db, ns, *document_ids, kinds=MERGED),
        merged={row.segment_id: row.merged for row in rows if row.merged},
        stale=dict(stale.fetchall()),
        decisions=_decisions(db, ns),
        said_at={id_: at for id_, text in dated if (at := said_at(json.loads(text)))},
    )


def override_merge(db: sqlite3.Connection, ns: str, decision: MergeDecision) -> None:
    """Store a user's decision on two names, and mark both to be resolved again."""
    number = required_namespace(db, ns)
    first, second = sorted((decision.first, decision.second))
    db.execute(
        "INSERT OR REPLACE INTO decision VALUES (?, ?, ?, ?)",
        (number, first, second, decision.same),
    )
    db.executemany(
        "INSERT OR IGNORE INTO stale SELECT n.ns, n.key, e.key FROM name n CROSS JOIN entity e"
        " ON e.num = n.entity WHERE n.ns = ? AND n.key >= ? AND n.key < ?",
        ((number, *key_range(meant_name(name))) for name in (first, second)),
    )
    view_writes.raise_revision(db, number)


def _decisions(db: sqlite3.Connection, ns: str) -> list[MergeDecision]:
    """Return the user's decisions, sorted by names."""
    rows = db.execute(
        "SELECT first, second, same FROM decision WHERE ns = ? ORDER BY first, second",
        (namespace_number(db, ns),),
    )
    return [MergeDecision(first, second, bool(same)) for first, second, same in rows]
