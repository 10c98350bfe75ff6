"""Costs of a memory of many short passages: build, add one, search, recall, open, disk.

    python -m benchmarks scale [--sizes 10000 100000] [--written N] [--vectors] [--workers N]
        [--at-once N] [--memory URI]

Passages are those of HotpotQA, then of 2WikiMultihopQA and MuSiQue (`QRMEM_DATA`), without a chat
model; beyond some 17,000 they come again under other ids. Questions of HotpotQA say what is found:
the share of their passages among the first 10 hits, as long as no passage came twice. `--written N`
then writes what was read into the store again and again, under other ids, up to N passages. Reading
a million takes hours, and what looks at a memory does not see who read it. Copies add no new names.
`--vectors` puts a random unit vector of 384 dimensions to each segment and looks for the nearest
ones: exact, among all of them and among half of the documents. `--at-once N` searches one by one,
then N at once, by the clock. `--workers N` has 2,000 passages read by one process and by N, and
nothing else done: processor time of the workers and of the driver, and how many times as fast N are
where each process has a core to itself. That is the time of the slowest: a worker with its share,
or the driver. `passages/s` is by the clock, all other times say what they are. Processor times of
workers are read from `/proc`, so this needs Linux.
"""

import argparse
import asyncio
import os
import resource
import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import cycle
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np

import qrmem
from benchmarks.everyday import CORPORA, IN_A_FILE, Passages, fresh, size_of, steps
from benchmarks.frame import Figure
from benchmarks.large_memory import write_copies
from benchmarks.multihop import folder, load
from qrmem.agents.executor import ByWorkers, HowRead
from qrmem.config import Settings
from qrmem.graph.segmenting import cut
from qrmem.graphstore import GraphStore, open_store
from qrmem.llm.parallel import in_batches
from qrmem.llm.tokenizers import open_tokenizer
from qrmem.types import Job, JobResult, Reading
from qrmem.workers import open_crew

DIMENSION = 384
ASKED, NEAREST = 100, 10
READ, WARM = 2_000, 400
"""Number of passages that workers read, and of those before the measurement."""


def options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this benchmark."""
    parser.add_argument("--sizes", nargs="*", type=int, default=[10_000, 100_000])
    parser.add_argument("--written", type=int, default=0, help="then write copies; 0: none")
    parser.add_argument("--memory", default="", help="a store's URI; a new file if none is given")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--vectors", action="store_true", help="search vectors, too")
    parser.add_argument("--at-once", type=int, default=0, help="searches; 0: leave it out")
    parser.add_argument("--workers", type=int, default=0, help="read by so many; 0: leave it out")


class Ordered(Passages):
    """The passages in order, with the documents of each.

    Attributes:
        ids: text to the ids of its documents.
    """

    def __init__(self) -> None:
        super().__init__()
        self.corpora = [load(name, folder()) for name in CORPORA]
        every = dict.fromkeys(each for corpus in self.corpora for each in corpus.passages)
        self._rest = cycle([each for each in every if each[1]])
        self.ids: dict[str, list[str]] = {}

    def document(self, id: str, *, common: bool = False) -> qrmem.Document:
        """Return the next passage as a document."""
        made = super().document(id, common=common)
        self.ids.setdefault(made.text, []).append(id)
        return made


def measure(chosen: argparse.Namespace) -> Iterator[Figure]:
    """Yield the costs of each size, then the gain of workers."""
    with tempfile.TemporaryDirectory() as place:
        where, writer, size = chosen.memory or str(Path(place) / "scale.db"), Ordered(), 0
        for wanted in chosen.sizes:
            yield from _built(where, writer, size, wanted)
            size = wanted
            if max(map(len, writer.ids.values())) == 1:
                yield from asyncio.run(_recall(where, writer, size))
            yield from _used(where, writer, size, chosen)
        if size < chosen.written:
            yield from _written(where, writer, size, chosen.written)
            yield from _used(where, writer, chosen.written, chosen)
    if chosen.workers:
        yield from _read(chosen.workers)


def _used(where: str, writer: Ordered, size: int, chosen: argparse.Namespace) -> Iterator[Figure]:
    """Yield what it costs to use a memory of a size."""
    for what, value in asyncio.run(steps(where, writer, chosen.rounds)).items():
        yield Figure(f"{what}, {size} passages", value, "ms")
    yield from fresh(where, writer, size, IN_A_FILE)
    if not chosen.memory:
        yield size_of(where, writer, size)
    if chosen.at_once:
        yield from asyncio.run(_at_once(where, writer, size, chosen.at_once))
    if chosen.vectors:
        for what, value in asyncio.run(_nearest(where)).items():
            yield Figure(f"{what}, {size} passages", value, "ms")


def _built(where: str, writer: Ordered, size: int, wanted: int) -> Iterator[Figure]:
    began, used = time.perf_counter(), time.process_time()
    asyncio.run(_grow(where, writer, size, wanted))
    count = wanted - size
    cost = (time.process_time() - used) / count * 1000
    yield Figure(f"build up to {wanted}, processor a passage", cost, "ms")
    yield Figure(f"build up to {wanted}", count / (time.perf_counter() - began), "passages/s")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    yield Figure(f"peak memory, {wanted} passages", peak, "MB")


async def _grow(where: str, writer: Ordered, size: int, wanted: int) -> None:
    async with qrmem.open(where, settings=Settings.from_env().with_(embedder="none")) as memory:
        await memory.add(writer.document(f"p{n:07}") for n in range(size, wanted))


def _written(where: str, writer: Ordered, size: int, wanted: int) -> Iterator[Figure]:
    began = time.perf_counter()
    writer.written += asyncio.run(_copy(where, wanted - size))
    cost = (time.perf_counter() - began) / (wanted - size) * 1000
    yield Figure(f"written up to {wanted}, a passage", cost, "ms")


async def _copy(where: str, count: int) -> int:
    store = await open_store(where, Settings.from_env())
    try:
        (ns,) = await store.namespaces()
        return await write_copies(store, ns, await store.document_ids(ns, prefix="p"), count)
    finally:
        await store.close()


async def _recall(where: str, writer: Ordered, size: int) -> list[Figure]:
    corpus = writer.corpora[0]
    shares: list[float] = []
    async with qrmem.open(where, settings=Settings.from_env().with_(embedder="none")) as memory:
        for asked in corpus.measured:
            gold = [writer.ids.get(corpus.passages[n][1], [""])[0] for n in asked.gold]
            if all(gold) and len(shares) < ASKED:
                hits = await memory.search(asked.text, k=NEAREST)
                shares.append(len({hit.document_id for hit in hits} & set(gold)) / len(gold))
    name = f"recall at {NEAREST} of {len(shares)} questions, {size} passages"
    return [Figure(name, 100 * sum(shares) / len(shares), "%")] if shares else []


async def _at_once(where: str, writer: Ordered, size: int, most: int) -> list[Figure]:
    """Return the best wall time of a search among simultaneous ones, in ms."""
    questions = [writer.question() for _ in range(5 * most)]
    best = {1: float("inf"), most: float("inf")}
    async with qrmem.open(where, settings=Settings.from_env().with_(embedder="none")) as memory:
        for count in [1, most] * 4:
            left, began = iter(questions), time.perf_counter()

            async def client(left: Iterator[str] = left) -> None:
                for question in left:
                    await memory.search(question)

            await asyncio.gather(*(client() for _ in range(count)))
            best[count] = min(best[count], (time.perf_counter() - began) / len(questions) * 1000)
    name = f"search, {most} at once to one alone, {size} passages"
    return [
        Figure(f"search alone, {size} passages", best[1], "ms"),
        Figure(f"search, {most} at once, {size} passages", best[most], "ms"),
        Figure(name, best[most] / best[1], at_most=1.2),
    ]


# --- vectors -------------------------------------------------------------------------------------


async def _nearest(where: str) -> dict[str, float]:
    """Return the median processor times of the search for the nearest vectors, in ms."""
    store = await open_store(where, Settings.from_env())
    try:
        (ns,) = await store.namespaces()
        draw = np.random.default_rng(1)
        await _give_vectors(store, ns, draw)
        half = sorted(await store.document_ids(ns))[::2]
        await store.nearest(ns, _unit(draw, 1)[0], NEAREST)  # creates the copy
        found = {}
        for what, documents in (("nearest vectors", None), ("nearest among half", half)):
            times = []
            for _ in range(7):
                used = time.process_time()
                await store.nearest(ns, _unit(draw, 1)[0], NEAREST, documents=documents)
                times.append((time.process_time() - used) * 1000)
            found[what] = median(times)
        return found
    finally:
        await store.set_embedder(ns, "none", 0)
        await store.close()


async def _give_vectors(store: GraphStore, ns: str, draw: np.random.Generator) -> None:
    await store.set_embedder(ns, "random", DIMENSION)
    for ids in in_batches(sorted(await store.document_ids(ns)), 10_000):
        segments = [segment.id for segment in await store.segments(ns, documents=ids)]
        await store.put_vectors(ns, "segment", segments, _unit(draw, len(segments)))


def _unit(draw: np.random.Generator, count: int) -> "np.typing.NDArray[np.float32]":
    made = draw.standard_normal((count, DIMENSION), dtype=np.float32)
    made /= np.linalg.norm(made, axis=1, keepdims=True)
    return made


# --- workers -------------------------------------------------------------------------------------


def _read(workers: int) -> Iterator[Figure]:
    counter = open_tokenizer("builtin")
    passages = load(CORPORA[0], folder()).passages[:READ]
    documents = [qrmem.Document(text, title) for title, text in passages if text]
    jobs = [
        Job(segment, Reading(document.title))
        for n, document in enumerate(documents)
        for segment in cut(f"p{n}", document, counter, 600)
    ]
    alone, together = (asyncio.run(_costs(count, jobs)) for count in (1, workers))
    for count, cost in ((1, alone), (workers, together)):
        yield Figure(f"{count} reading, processor of workers a segment", cost.workers, "ms")
        yield Figure(f"{count} reading, processor of the driver a segment", cost.driver, "ms")
    ratio = alone.slowest(1) / together.slowest(workers)
    yield Figure(f"{workers} workers to one, a core each", ratio, at_least=0.85 * workers)


class Cost(NamedTuple):
    """Processor time of a segment in ms: of all workers together, and of the driver."""

    workers: float
    driver: float

    def slowest(self, count: int) -> float:
        """Return the time of a segment if each process has its own core."""
        return max(self.workers / count, self.driver)


async def _costs(workers: int, jobs: Sequence[Job]) -> Cost:
    crew = await open_crew(f"processes:{workers}")
    assert crew is not None
    reader = ByWorkers(crew, HowRead("builtin"), lambda: None)
    read: list[JobResult] = []

    async def done(results: Sequence[JobResult]) -> None:
        read.extend(results)

    try:
        first, jobs = jobs[:WARM], jobs[WARM:]  # other texts, since read ones are cached
        await reader.map("extract", [[job] for job in first], done)  # starts all workers
        read.clear()
        began, used = _of_children(), time.process_time()
        await reader.map("extract", [[job] for job in jobs], done)
        driver, children = time.process_time() - used, _of_children() - began
        assert len(read) == len(jobs)
        assert not any(one.error for one in read)
        return Cost(children / len(jobs) * 1000, driver / len(jobs) * 1000)
    finally:
        await crew.close()


def _of_children() -> float:
    """Return the processor seconds of all processes that this one started."""
    ticks = 0
    for task in Path("/proc/self/task").iterdir():
        for pid in (task / "children").read_text().split():
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")
