"""What was read out of segments, how far each one is, and the user's word on names."""

import json
import sqlite3
from collections.abc import Sequence

from qrmem.errors import NotFound
from qrmem.graphstore.codec import dumps, loads
from qrmem.graphstore.sqlite.lookup import (
    document_number,
    namespace_number,
    required_namespace,
    segment_numbers,
)
from qrmem.graphstore.sqlite.runs import add_calls
from qrmem.ports import CallRecord
from qrmem.records import Contribution, LedgerRow, MergeDecision


def record(
    db: sqlite3.Connection,
    ns: str,
    rows: Sequence[tuple[LedgerRow, Contribution | None]],
    calls: Sequence[CallRecord] = (),
) -> None:
    """Write ledger rows, what the segments added and what it cost."""
    number = required_namespace(db, ns)
    ids = {row.segment_id for row, _ in rows} | {c.segment_id for _, c in rows if c}
    numbers = segment_numbers(db, number, ids)
    if missing := sorted(ids - numbers.keys()):
        raise NotFound(f"segment {missing[0]!r} is not in the memory; was its document deleted?")
    db.executemany(
        "INSERT OR REPLACE INTO ledger VALUES (?, ?, ?, ?)",
        ((numbers[r.segment_id], r.state, r.reason, r.reasoner) for r, _ in rows),
    )
    db.executemany(
        "INSERT INTO contribution (segment, kind, asked, body) VALUES (?, ?, ?, ?)"
        " ON CONFLICT DO UPDATE SET body = excluded.body",
        ((numbers[c.segment_id], c.kind, json.dumps(c.asked), dumps(c)) for _, c in rows if c),
    )
    add_calls(db, number, calls)


def ledger(db: sqlite3.Connection, ns: str, document_id: str | None) -> list[LedgerRow]:
    """Return the ledger rows of one document, or of all; what has none yet is `pending`."""
    number = namespace_number(db, ns)
    where, value = "d.ns = ?", number
    if document_id is not None:
        where, value = "d.num = ?", document_number(db, number, document_id)
    rows = db.execute(
        "SELECT s.id, coalesce(l.state, 'pending'), coalesce(l.reason, ''),"
        " coalesce(l.reasoner, '') FROM document d CROSS JOIN segment s ON s.document = d.num"
        f" LEFT JOIN ledger l ON l.segment = s.num WHERE {where} ORDER BY d.id, s.idx",
        (value,),
    )
    return [LedgerRow(*row) for row in rows]


def contributions(
    db: sqlite3.Connection, ns: str, document_id: str, kinds: Sequence[str]
) -> list[Contribution]:
    """Return a document's contributions by segment index, then kind, then `asked`."""
    doc = document_number(db, namespace_number(db, ns), document_id)
    rows = db.execute(
        "SELECT s.idx, c.kind, c.body FROM segment s CROSS JOIN contribution c"
        " ON c.segment = s.num WHERE s.document = ?",
        (doc,),
    )
    found = [(idx, loads(body, Contribution)) for idx, kind, body in rows if kind in kinds]
    return [c for _, c in sorted(found, key=lambda pair: (pair[0], pair[1].kind, pair[1].asked))]


def decide(db: sqlite3.Connection, ns: str, decision: MergeDecision) -> None:
    """Keep a user's word on two names."""
    first, second = sorted((decision.first, decision.second))
    db.execute(
        "INSERT OR REPLACE INTO decision VALUES (?, ?, ?, ?)",
        (required_namespace(db, ns), first, second, decision.same),
    )


def decisions(db: sqlite3.Connection, ns: str) -> list[MergeDecision]:
    """Return the user's words, sorted by names."""
    rows = db.execute(
        "SELECT first, second, same FROM decision WHERE ns = ? ORDER BY first, second",
        (namespace_number(db, ns),),
    )
    return [MergeDecision(first, second, bool(same)) for first, second, same in rows]
