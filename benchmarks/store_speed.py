"""How fast the SQLite store is, beside a plain `executemany` of rows of the same size.

Run: `python benchmarks/store_speed.py [--segments 20000]`. Prints one line per measure; times are
of one run on one machine, ratios are what to compare.
"""

import argparse
import asyncio
import random
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
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
from qrmem.records import Document, Segment

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
    info = NamespaceInfo("n", "builtin-v1", 600, "e", DIMENSION)
    await store.create_namespace("n", info)
    document, segments = _document(count)
    seconds, _ = await _timed(store.put_document("n", document, segments))
    _say("put_document", seconds, f"{count / seconds:,.0f} segments/s")
    change = _change(segments)
    rows = len(change.mentions) + len(change.facts) + len(change.names) + len(change.entities)
    bound = _plain_inserts(folder / "plain.db", change)
    seconds, _ = await _timed(store.apply("n", 0, change))
    postings = sum(len(row.terms) for row in change.index)
    _say(
        "apply",
        seconds,
        f"{rows:,} view rows and {postings:,} postings, {rows / seconds:,.0f} view rows/s; "
        f"{seconds / bound:.1f} x the plain inserts of the view rows alone ({bound:.2f} s)",
    )
    matrix = np.random.default_rng(0).normal(size=(count, DIMENSION)).astype(np.float32)
    ids = [segment.id for segment in segments]
    seconds, _ = await _timed(store.put_vectors("n", "segment", ids, matrix))
    _say("put_vectors", seconds, f"{matrix.nbytes / 1e6 / seconds:,.0f} MB/s")
    await _reads(store, segments)
    _say(
        "file",
        0.0,
        f"{path.stat().st_size / 1e6:,.0f} MB for {len(document.text) / 1e6:.0f} MB of text",
    )
    await store.close()
    seconds, store = await _timed(open_store(str(path), Settings(), create=False))
    _say("open", seconds, "an existing file")
    seconds, _ = await _timed(store.delete_document("n", document.id or ""))
    _say("delete_document", seconds, f"{count / seconds:,.0f} segments/s")
    await store.close()


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
        times = [(await _timed(read()))[0] for _ in range(5)]
        _say(name, statistics.median(times), "median of 5")


async def _timed(awaitable: Awaitable[T]) -> tuple[float, T]:
    start = time.perf_counter()
    result = await awaitable
    return time.perf_counter() - start, result


def _say(what: str, seconds: float, more: str) -> None:
    print(f"{what:<34} {seconds * 1000:>10.1f} ms  {more}")


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
    start = time.perf_counter()
    db.execute("BEGIN")
    mentions = ((m.segment_id, m.name, m.forms[0][0], m.forms[0][1]) for m in change.mentions)
    db.executemany("INSERT INTO mention VALUES (?, ?, ?, ?)", mentions)
    facts = ((f.segment_id, f.n, f.head, f.tail, f.description) for f in change.facts)
    db.executemany("INSERT INTO fact VALUES (?, ?, ?, ?, ?)", facts)
    db.executemany("INSERT INTO name VALUES (?, ?)", change.names.items())
    entities = ((e.key, e.name, e.type) for e in change.entities)
    db.executemany("INSERT INTO entity VALUES (?, ?, ?)", entities)
    db.execute("COMMIT")
    seconds = time.perf_counter() - start
    db.close()
    return seconds


if __name__ == "__main__":
    main()
