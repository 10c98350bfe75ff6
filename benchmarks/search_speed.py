"""How long a search takes, without the encoder, beside BM25 and a matrix product alone.

    QRMEM_DATA=… python -m benchmarks search_speed [--kept FOLDER] [--segments 12000]

Beside the search stand words and meaning alone, over the same candidates, and the search right
after a passage was added. A memory beyond the sets' passages is made by `benchmarks.multiplied`.
Vectors are drawn at random: their values don't change how long a search takes. Each question is
new.
"""

import argparse
import asyncio
import hashlib
import json
import resource
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from benchmarks import multihop, multiplied
from benchmarks.frame import Figure
from benchmarks.multihop import Corpus
from benchmarks.search_memories import NAMESPACE, built
from qrmem.config import Settings
from qrmem.graphstore import Change, GraphStore, IndexRow, open_store
from qrmem.retrieval import Searcher, SearchSettings
from qrmem.text.words import terms
from qrmem.types import Document, Segment

_QUESTIONS = 200
_ADDED = 20
_DIMENSION = 384
_BATCH = 2048


class DrawnEmbedder:
    """A unit vector per text, drawn with the text's hash as seed."""

    name = "drawn"
    dimension = _DIMENSION

    def windows(self, text: str) -> Sequence[str]:
        """Return the text whole."""
        return [text]

    async def embed(
        self, texts: Sequence[str], *, kind: Literal["passage", "query"] = "passage"
    ) -> NDArray[np.float32]:
        """Draw the vectors."""
        rows = []
        for text in texts:
            seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])
            rows.append(np.random.default_rng(seed).standard_normal(_DIMENSION))
        matrix = np.array(rows, dtype=np.float32)
        unit: NDArray[np.float32] = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
        return unit


def corpus_of(size: int) -> Corpus:
    """Return passages of the sets, one after the other, and questions that are asked of them."""
    data = multihop.folder()
    parts = [multihop.load(name, data) for name in ("hotpotqa", "2wikimultihopqa", "musique-fit")]
    passages = [passage for part in parts for passage in part.passages][:size]
    asked = [question for part in parts for question in part.measured]
    step = max(1, len(asked) // _QUESTIONS)
    return Corpus(f"speed-{size}", tuple(passages), (), tuple(asked[::step][:_QUESTIONS]))


async def _prepared(folder: Path, size: int) -> Path:
    """Make the memory unless it is there, with vectors and with what a first search needs."""
    corpus = corpus_of(size)
    path = folder / f"speed-{size}.db"
    if size <= len(corpus.passages):
        async with built(corpus, folder, embedded=False) as memory:
            await _embed(memory.store)
        return path
    if not path.exists():
        async with built(corpus_of(12_000), folder, embedded=False) as real:
            store = await open_store(str(path), Settings())
            await multiplied.fill(store, real.store, NAMESPACE, size)
            await store.close()
    store = await open_store(str(path), Settings())
    await _embed(store)
    await store.close()
    return path


async def _embed(store: GraphStore) -> None:
    embedder = DrawnEmbedder()
    info = await store.namespace(NAMESPACE)
    assert info is not None
    if info.embedder != embedder.name:
        segments = await store.indexed(NAMESPACE)
        await store.set_embedder(NAMESPACE, embedder.name, embedder.dimension)
        for at in range(0, len(segments), _BATCH):
            batch = segments[at : at + _BATCH]
            await store.put_vectors(NAMESPACE, "segment", batch, await embedder.embed(batch))
    await Searcher(store, NAMESPACE, embedder).search("anything")


class Clock:
    """Milliseconds that questions took, by the wall and of the processors."""

    def __init__(self) -> None:
        self.wall: list[float] = []
        self.busy: list[float] = []

    def __enter__(self) -> None:
        self._began = time.perf_counter(), time.process_time()

    def __exit__(self, *_: object) -> None:
        self.wall.append(1000 * (time.perf_counter() - self._began[0]))
        self.busy.append(1000 * (time.process_time() - self._began[1]))


async def _timed(searcher: Searcher, questions: Sequence[str]) -> Clock:
    """Time questions, after a first one that isn't counted."""
    await searcher.search(questions[0])
    clock = Clock()
    for question in questions[1:]:
        with clock:
            await searcher.search(question)
    return clock


async def _after_an_add(store: GraphStore, searcher: Searcher, questions: Sequence[str]) -> Clock:
    """Time the question that follows each of some new passages."""
    clock = Clock()
    for n, question in enumerate(questions):
        id_, text = f"added {n}", f"{question} Nobody knew it."
        segment = Segment(id_, id_, 0, 0, len(text), text, len(text.split()))
        await store.put_documents(NAMESPACE, [(Document(text, id=id_), [segment])])
        info = await store.namespace(NAMESPACE)
        assert info is not None
        counts = Counter(terms(text))
        row = IndexRow(id_, counts.total(), counts)
        await store.apply(NAMESPACE, info.revision, Change(index=[row]))
        vectors = await DrawnEmbedder().embed([text])
        await store.put_vectors(NAMESPACE, "segment", [id_], vectors)
        with clock:
            await searcher.search(question)
    for n in range(len(questions)):
        await store.delete_document(NAMESPACE, f"added {n}")
    return clock


async def _measure(path: Path, size: int) -> list[Figure]:
    """Open a memory that another process made, and ask."""
    questions = [question.text for question in corpus_of(size).measured]
    embedder = DrawnEmbedder()
    began, busy = time.perf_counter(), time.process_time()
    store = await open_store(str(path), Settings())
    searcher = Searcher(store, NAMESPACE, embedder)
    await searcher.search(questions[0])
    opening, busy = time.perf_counter() - began, time.process_time() - busy
    whole = await _timed(searcher, questions)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    after = await _after_an_add(store, searcher, questions[:_ADDED])
    alone = Searcher(store, NAMESPACE, embedder, SearchSettings(graph=False, names=0))
    base = await _timed(alone, questions)
    count = len(await store.indexed(NAMESPACE))
    await store.close()
    found = [
        Figure(f"{count} segments: opened and first search answered", opening, "s", at_most=1),
        Figure(f"{count} segments: of the processor", busy, "s"),
        Figure(f"{count} segments: peak memory", 1024 * peak, "MB"),
    ]
    for name, clock in (
        ("words and meaning alone", base),
        ("search", whole),
        ("search right after a passage was added", after),
    ):
        middle, late = np.percentile(clock.wall, [50, 95])
        found.append(Figure(f"{count} segments, {name}: median", float(middle), "ms"))
        found.append(Figure(f"{count} segments, {name}: p95", float(late), "ms"))
        processor = float(np.median(clock.busy))
        found.append(Figure(f"{count} segments, {name}: median of the processor", processor, "ms"))
    return found


def options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this benchmark."""
    parser.add_argument("--kept", type=Path, default=Path("build/benchmarks"))
    parser.add_argument("--segments", type=int, default=12_000)
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)


def measure(chosen: argparse.Namespace) -> Iterator[Figure]:
    """Make the memory in this process, and yield what another one measures on it."""
    if chosen.measure:
        yield from asyncio.run(_measure(chosen.measure, chosen.segments))
        return
    chosen.kept.mkdir(parents=True, exist_ok=True)
    made = asyncio.run(_prepared(chosen.kept, chosen.segments))
    command = [sys.executable, "-m", "benchmarks", "search_speed", "--json"]
    command += ["--segments", str(chosen.segments), "--measure", str(made)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    for row in json.loads(done.stdout)["figures"]:
        row.pop("met")
        yield Figure(**row)
