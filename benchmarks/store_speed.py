"""How fast the SQLite store is, beside a plain `executemany` of rows of the same size.

Run: `python benchmarks/store_speed.py [--segments 20000]`. Prints one line per measure; times are
of one run on one machine, ratios are what to compare. Rates count processor time, which a busy
machine changes less than wall time.
"""

import argparse
import asyncio
import random
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import numpy as np

from qrmem.config import Settings
from qrmem.graphstore import (
    Change,
    EntityRow,
    FactRow,
    GraphStore,
    IndexRow,
    MentionRow,
    NamespaceInfo,
    open_store,
)
from qrmem.types import Document, Segment

T = TypeVar("T")

MENTIONS, FACTS, TERMS, WORDS = 20, 8, 150, 50_000
DIMENSION = 384


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--segments", type=int, default=20_000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_measure(Path(folder), arguments.segments))


async def _measure(folder: Path, count: int) -> None:
    path = folder / "memory.db"
    store = await open_store(str(path), Settings())
    document, segments = _document(count)
    for ns in ("n", "view alone"):
        info = NamespaceInfo(ns, "builtin-v1", 600, "e", DIMENSION)
        await store.create_namespace(ns, info)
        wall, cpu, _ = await _timed(store.put_document(ns, document, segments))
    _say("put_document", wall, cpu, f"{count / cpu:,.0f} segments/s")
    change = _change(segments)
    await _writes(store, change, _plain_inserts(folder / "plain.db", change))
    matrix = np.random.default_rng(0).normal(size=(count, DIMENSION)).astype(np.float32)
    ids = [segment.id for segment in segments]
    wall, cpu, _ = await _timed(store.put_vectors("n", "segment", ids, matrix))
    _say("put_vectors", wall, cpu, f"{matrix.nbytes / 1e6 / cpu:,.0f} MB/s")
    await _reads(store, segments)
    await store.delete_namespace("view alone")
    await store.close()
    print(f"file: {path.stat().st_size / 1e6:,.0f} MB, {len(document.text) / 1e6:.0f} MB of text")
    wall, cpu, store = await _timed(open_store(str(path), Settings(), create=False))
    _say("open", wall, cpu, "an existing file")
    wall, cpu, _ = await _timed(store.delete_document("n", document.id or ""))
    _say("delete_document", wall, cpu, f"{count / cpu:,.0f} segments/s")
    await store.close()


async def _writes(store: GraphStore, change: Change, bound: float) -> None:
    rows = len(change.mentions) + len(change.facts) + len(change.names) + len(change.entities)
    wall, cpu, _ = await _timed(store.apply("view alone", 0, replace(change, index=())))
    ratio = f"{cpu / bound:.1f} x plain inserts ({bound:.2f} s)"
    _say("apply, without words", wall, cpu, f"{rows:,} rows, {rows / cpu:,.0f} rows/s, {ratio}")
    postings = sum(len(row.terms) for row in change.index)
    wall, cpu, _ = await _timed(store.apply("n", 0, change))
    total = rows + postings
    _say("apply, with words", wall, cpu, f"{total:,} rows and postings, {total / cpu:,.0f}/s")


async def _reads(store: GraphStore, segments: list[Segment]) -> None:
    common, mixed = [f"w{n}" for n in range(10)], [f"w{n * n * 97}" for n in range(10)]
    few = [f"name {n}" for n in range(0, 100, 10)]
    picked = [segment.id for segment in segments[:: max(1, len(segments) // 20)]]
    reads: dict[str, Callable[[], Awaitable[object]]] = {
        "namespace": lambda: store.namespace("n"),
        "catalog": lambda: store.catalog("n"),
        "postings, 10 most common terms": lambda: store.postings("n", common),
        "postings, 10 mixed terms": lambda: store.postings("n", mixed),
        "vectors, all": lambda: store.vectors("n", "segment"),
        "vectors, 20 segments": lambda: store.vectors("n", "segment", picked),
        "segments, 20": lambda: store.segments("n", picked),
        "entities_in, 20 segments": lambda: store.entities_in("n", picked),
        "entities, 10 common": lambda: store.entities("n", few),
        "facts, 10 common entities": lambda: store.facts("n", few),
        "list_entities, 100": lambda: store.list_entities("n"),
        "names, all": lambda: store.names("n"),
        "documents": lambda: store.documents("n"),
        "counts": lambda: store.counts("n"),
    }
    for name, read in reads.items():
        times = [(await _timed(read()))[:2] for _ in range(5)]
        wall, cpu = (statistics.median(column) for column in zip(*times, strict=True))
        _say(name, wall, cpu, "median of 5")


async def _timed(awaitable: Awaitable[T]) -> tuple[float, float, T]:
    """Return wall seconds, the process's processor seconds, and the result."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = await awaitable
    return time.perf_counter() - wall, time.process_time() - cpu, result


def _say(what: str, wall: float, cpu: float, more: str) -> None:
    print(f"{what:<32} {wall * 1000:>9.1f} ms, {cpu * 1000:>9.1f} ms of processor: {more}")


def _document(count: int) -> tuple[Document, list[Segment]]:
    line = "The quick brown fox jumps over the lazy dog. " * 53
    texts = [f"{n:>8} {line}" for n in range(count)]
    size = len(texts[0])
    segments = [
        Segment(f"{n:016x}", "book", n, n * size, (n + 1) * size, text, 600)
        for n, text in enumerate(texts)
    ]
    return Document("".join(texts), id="book"), segments


def _change(segments: list[Segment]) -> Change:
    """Return rows whose names and terms are as uneven as those of a text."""
    chance = random.Random(0)
    names = [f"name {n}" for n in range(len(segments) * 2)]
    mentions, facts, index = [], [], []
    for segment in segments:
        here = list({names[_skewed(chance, len(names))] for _ in range(MENTIONS * 2)})[:MENTIONS]
        mentions += [MentionRow(segment.id, name, ((name, 1),)) for name in here]
        facts += [
            FactRow(segment.id, n, here[n], here[n + 1], f"{here[n]} is seen with {here[n + 1]}")
            for n in range(FACTS)
        ]
        terms = {f"w{_skewed(chance, WORDS)}": 1 + chance.randrange(3) for _ in range(TERMS)}
        index.append(IndexRow(segment.id, sum(terms.values()), terms))
    used = sorted({row.name for row in mentions})
    return Change(
        mentions=mentions,
        facts=facts,
        index=index,
        names={name: name for name in used},
        entities=[EntityRow(name, name, "PERSON") for name in used],
        merged={segment.id: segment.id for segment in segments},
    )


def _skewed(chance: random.Random, size: int) -> int:
    return int(size * chance.random() ** 4)


def _plain_inserts(path: Path, change: Change) -> float:
    """Return the seconds of one transaction that writes the view rows, without any index."""
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = NORMAL")
    db.execute("CREATE TABLE mention (segment TEXT, name TEXT, form TEXT, count INTEGER)")
    db.execute("CREATE TABLE fact (segment TEXT, n INTEGER, head TEXT, tail TEXT, text TEXT)")
    db.execute("CREATE TABLE name (key TEXT, entity TEXT)")
    db.execute("CREATE TABLE entity (key TEXT, name TEXT, type TEXT)")
    start = time.process_time()
    db.execute("BEGIN")
    mentions = ((m.segment_id, m.name, m.forms[0][0], m.forms[0][1]) for m in change.mentions)
    db.executemany("INSERT INTO mention VALUES (?, ?, ?, ?)", mentions)
    facts = ((f.segment_id, f.n, f.head, f.tail, f.description) for f in change.facts)
    db.executemany("INSERT INTO fact VALUES (?, ?, ?, ?, ?)", facts)
    db.executemany("INSERT INTO name VALUES (?, ?)", change.names.items())
    entities = ((e.key, e.name, e.type) for e in change.entities)
    db.executemany("INSERT INTO entity VALUES (?, ?, ?)", entities)
    db.execute("COMMIT")
    seconds = time.process_time() - start
    db.close()
    return seconds


if __name__ == "__main__":
    main()
