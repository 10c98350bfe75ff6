"""Facts extracted from segments, the state of each segment, and the user's decisions on names."""

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import Any

from qrmem.errors import NotFound
from qrmem.graphstore.codec import loads
from qrmem.graphstore.protocol import MERGED, Unmerged, UserEdit
from qrmem.graphstore.sqlite import compression, stored_documents, view_writes
from qrmem.graphstore.sqlite.lookup import (
    namespace_number,
    required_namespace,
    rows_of_documents,
    segment_numbers,
)
from qrmem.graphstore.sqlite.runs import add_calls
from qrmem.text.dates import said_at
from qrmem.types import CallRecord, Contribution, LedgerRow, MergeDecision
from qrmem.types.turns import user_of

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
    compression.put_contributions(db, [(numbers[c.segment_id], c) for _, c in rows if c])
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


def edits(db: sqlite3.Connection, ns: str) -> list[UserEdit]:
    """Return the user's edits of all statements, by document, segment and `asked`."""
    rows = db.execute(
        "SELECT d.id, s.idx, d.metadata, c.body, p.text FROM contribution c"
        " INDEXED BY contribution_edit CROSS JOIN segment s ON s.num = c.segment"
        " CROSS JOIN passage p ON p.segment = s.num CROSS JOIN document d ON d.num = s.document"
        " WHERE c.kind = 'edit' AND s.ns = ?",
        (namespace_number(db, ns),),
    )
    placed_edits = [
        ((document_id, index), UserEdit(user_of(json.loads(metadata)), made))
        for document_id, index, metadata, body, text in rows
        for made in [loads(compression.unpacked(body, text), Contribution)]
    ]
    placed_edits.sort(key=lambda pair: (pair[0], pair[1].made.asked))
    return [edit for _, edit in placed_edits]


def unmerged(db: sqlite3.Connection, ns: str, *document_ids: str) -> Unmerged:
    """Return the unmerged segments of some documents, and what else a merge needs."""
    info = stored_documents.namespace(db, ns)
    stale = db.execute(
        "SELECT name, entity FROM stale WHERE ns = ? ORDER BY name", (namespace_number(db, ns),)
    )
    rows = ledger(db, ns, *document_ids) if document_ids else []
    described = {
        id_: json.loads(text)
        for id_, text in rows_of_documents(
            db, ns, document_ids, "SELECT id, metadata FROM document WHERE num = ?"
        )
    }
    return Unmerged(
        revision=info.revision if info else 0,
        segments=stored_documents.segments(db, ns, documents=document_ids),
        contributions=contributions(db, ns, *document_ids, kinds=MERGED),
        merged={row.segment_id: row.merged for row in rows if row.merged},
        stale=dict(stale.fetchall()),
        decisions=_decisions(db, ns),
        edits=edits(db, ns),
        said_at={id_: at for id_, given in described.items() if (at := said_at(given))},
        users={id_: user for id_, given in described.items() if (user := user_of(given))},
    )


def override_merge(db: sqlite3.Connection, ns: str, decision: MergeDecision) -> None:
    """Store a user's decision on two names, and mark both to be resolved again."""
    number = required_namespace(db, ns)
    view_writes.put_decisions(db, number, [decision])
    view_writes.raise_revision(db, number)


def _decisions(db: sqlite3.Connection, ns: str) -> list[MergeDecision]:
    """Return the user's decisions, sorted by names."""
    rows = db.execute(
        "SELECT first, second, same FROM decision WHERE ns = ? ORDER BY first, second",
        (namespace_number(db, ns),),
    )
    return [MergeDecision(first, second, bool(same)) for first, second, same in rows]
