"""No statement of the SQLite store scans a table that grows with the memory.

The store never runs ANALYZE: joins are ordered by CROSS JOIN, and plans do not hang on statistics.
"""

import json
import random
import re
import sqlite3
from pathlib import Path

import numpy as np
from contract.suite.samples import INFO, change, text

from qrmem.graphstore.protocol import NameFilter, ViewUpdate
from qrmem.graphstore.sqlite import (
    full_text,
    runs,
    stored_documents,
    stored_facts,
    vectors,
    view_reads,
    view_writes,
)
from qrmem.graphstore.sqlite.connection import OpenMode, connect
from qrmem.types import LedgerRow

SMALL = ("sqlite_master", "picked", "namespace", "k", "(subquery-1)")
"""What may be walked through: what was picked, the list of namespaces, what was just computed."""
_LENGTHS = re.compile(r"SELECT group_concat\(length\) FROM json_each\(.(\[.*?\])")


def test_statements_find_their_rows_by_index(tmp_path: Path) -> None:
    db, _ = connect(tmp_path / "a.db", OpenMode())
    ids = _fill(db)
    seen: list[str] = []
    db.set_trace_callback(seen.append)
    _use(db, ids)
    db.set_trace_callback(None)
    statements = {
        s for s in seen if s.lstrip()[:6].upper() in ("SELECT", "DELETE", "UPDATE", "INSERT")
    }
    assert len(statements) > 30
    walked = {
        f"{row[3]}: {statement}"
        for statement in statements
        for row in db.execute(f"EXPLAIN QUERY PLAN {statement}")
        if row[3].startswith("SCAN ")
        and row[3].split()[1] not in SMALL
        and not row[3].endswith("USING INDEX contribution_edit")  # what users edited by hand
        and not re.search(r"VIRTUAL TABLE INDEX (?:[1-9]|0:.)", row[3])
    }
    assert not walked
    db.close()


def test_the_last_documents_are_found_without_reading_the_others(tmp_path: Path) -> None:
    db, _ = connect(tmp_path / "a.db", OpenMode())
    stored_documents.create_namespace(db, "n", INFO)
    stored_documents.put_documents(db, "n", [text(f"turn-{n:04}", "A word.") for n in range(2000)])
    steps: list[int] = []

    def counted() -> int:
        steps.append(1)
        return 0

    db.set_progress_handler(counted, 1)
    assert stored_documents.document_ids(db, "n", prefix="turn-", last=1) == ["turn-1999"]
    assert not stored_documents.document_ids(db, "n", prefix="fact-", last=1)
    db.set_progress_handler(None, 0)
    assert len(steps) < 1000
    db.close()


def _fill(db: sqlite3.Connection) -> list[str]:
    stored_documents.create_namespace(db, "n", INFO)
    document, segments = text("d", *[f"Ann{n % 9} met Bob{n % 7} why? " for n in range(200)])
    stored_documents.put_documents(db, "n", [(document, segments)])
    view_writes.apply(db, "n", 0, change(segments))
    rows = np.ones((200, 3), dtype=np.float32)
    ids = [segment.id for segment in segments]
    vectors.put(db, "n", "segment", ids, rows)
    vectors.put(db, "n", "relation", [f"r{n}" for n in range(200)], rows)
    return ids


def _use(db: sqlite3.Connection, ids: list[str]) -> None:
    few = ids[:3]
    stored_documents.namespace(db, "n")
    stored_documents.documents(db, "n")
    stored_documents.documents(db, "n", ["d"])
    stored_documents.document_ids(db, "n", where={"kind": "x"}, prefix="d", last=1)
    for condition in ({">=": 1}, {"<": "b"}, {"in": ["a", 1]}, {"has": "x"}):
        stored_documents.document_ids(db, "n", where={"kind": condition})
    stored_documents.document(db, "n", "d")
    stored_documents.segments(db, "n", few)
    stored_documents.segments(db, "n", documents=["d"])
    stored_facts.ledger(db, "n")
    stored_facts.ledger(db, "n", "d")
    stored_facts.contributions(db, "n", "d", kinds=("extraction",))
    stored_facts.record(db, "n", [(LedgerRow(ids[0], "ok"), None)])
    view_reads.names(db, "n", None)
    view_reads.names(db, "n", NameFilter(norms=["ann"], entities=["Ann1"], blocks={1: 5}))
    stored_facts.unmerged(db, "n", "d")
    view_reads.entities(db, "n", ["Ann1", "Bob1"])
    view_reads.types(db, "n")
    view_reads.segments_of_types(db, "n", ["PERSON"])
    view_reads.mentions(db, "n", few, 3)
    view_reads.around(db, "n", ["Ann1", "Bob1"], texts=True)
    view_reads.questions(db, "n", few)
    view_reads.questions(db, "n", None)
    view_reads.list_entities(db, "n", 10)
    view_reads.counts(db, "n")
    full_text.vocabulary(db, "n", ["met", "ann1"])
    full_text.matching(db, "n", [["met", "ann1"]], 10, None)
    full_text.matching(db, "n", [["met", "ann1"]], 10, ["d"], among=few)
    full_text.entries(db, "n", few)
    full_text.titled(db, "n", ["ann"])
    vectors.read(db, "n", "segment", few)
    vectors.read(db, "n", "relation", ["r1", "r2"])
    vectors.owners(db, "n", "segment")
    vectors.owners(db, "n", "segment", few)
    vectors.owners(db, "n", "relation")
    copies = vectors.Copies(None, may_write=False)
    copies.nearest(db, "n", np.ones(3, dtype=np.float32), 2, ["d"], few)
    runs.trails(db, "n", 1)
    runs.calls(db, "n")
    runs.put_cache_entry(db, "n", "reply", "k", {}, segments=[ids[0]])
    runs.cache_entries(db, "n", "reply", ["k"])
    view_writes.apply(db, "n", 1, ViewUpdate(clear=few, names={"Ann1": "Ann2"}))
    stored_documents.put_documents(db, "n", [text("d", "Ann1 met Bob1 why? ")])


def test_few_of_many_segments_are_the_first_of_all_and_cost_less(tmp_path: Path) -> None:
    db, _ = connect(tmp_path / "a.db", OpenMode())
    stored_documents.create_namespace(db, "n", INFO)
    draw = random.Random(7)
    vocabulary = [f"w{n}" for n in range(60) for _ in range(1 + 60 // (n + 1))]  # few are common
    said = [" ".join(draw.choices(vocabulary, k=draw.randint(1, 60))) for _ in range(800)]
    kept = [text(f"d{n:03}", one) for n, one in enumerate(said)]
    stored_documents.put_documents(db, "n", kept)
    view_writes.apply(db, "n", 0, change([segment for _, found in kept for segment in found]))
    seen: list[str] = []
    for asked in (["w0", "w40"], ["w0", "w1", "w2", "w59"], ["w5"], ["w0", "none"]):
        every = full_text.matching(db, "n", [asked], 1000)
        assert len(every) > 100 or asked == ["w5"]
        for limit in (1, 7, 50, 200):
            db.set_trace_callback(seen.append)
            assert full_text.matching(db, "n", [asked], limit) == every[:limit]
            db.set_trace_callback(None)
    read = [len(json.loads(found[1])) for one in seen if (found := _LENGTHS.search(one))]
    assert max(read) < 800
    assert min(read) <= 4
    db.close()
