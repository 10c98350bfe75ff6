"""One novel to SQLite and to Neo4j with the local reasoner: times, answers, what a question asks.

    python -m benchmarks.neo4j_novel NOVEL [--archive] [--ask "…"]

Reads the same text into a new file and into a new namespace of the server, in that order, asks both
the same questions with the same strategy and compares the answers, their citations and their
trails. While Neo4j is asked, the queries of each step are counted at the driver and timed. With
`--archive` the memory in the file is exported, imported into Neo4j, exported from there and the
bytes compared.

The server is the one of `NEO4J_URI`, `NEO4J_USERNAME`, `NEO4J_PASSWORD`; what is written is
removed.
"""

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import qrmem
from benchmarks.neo4j_writes import queries
from qrmem.config import Settings
from qrmem.graphstore import open_store
from qrmem.graphstore.neo4j.connection import Connection

NS = "benchmark novel"
QUESTIONS = (
    "Who is the friend whom the stranger's host writes letters to?",
    "Where did the creature learn to speak?",
    "What happened on the wedding night?",
)


@asynccontextmanager
async def memory(address: str) -> AsyncIterator[qrmem.Memory]:
    """Yield a memory without models."""
    settings = Settings.from_env().with_(memory=address, namespace=NS, embedder="none", model="")
    async with qrmem.open(settings=settings) as opened:
        yield opened


async def forgotten(address: str) -> None:
    """Remove what a run left."""
    store = await open_store(address, Settings.from_env())
    await store.delete_namespace(NS)
    await store.close()


async def added(to: qrmem.Memory, novel: Path) -> float:
    """Read the novel; return the seconds."""
    begun = time.perf_counter()
    report = await to.add(novel)
    took = time.perf_counter() - begun
    print(f"  {report.read} segments in {took:.1f} s, {report.read / took:.0f} a second")
    return took


async def asked(of: qrmem.Memory, question: str) -> qrmem.Answer:
    """Answer a question; print what each of its steps asked the database."""
    spent: list[float] = []
    begun = time.perf_counter()
    with queries() as sent, timed(spent):
        answer = await of.ask(question)
    took = time.perf_counter() - begun
    if sent:
        steps = len(answer.trail.steps)
        print(
            f"  {steps} steps in {took:.2f} s: {len(sent)} queries, of which"
            f" {sum('startNode' in text for text in sent)} walked the graph; a read took"
            f" {1000 * statistics.median(spent):.1f} ms (median), all {sum(spent):.2f} s"
        )
    return answer


@contextmanager
def timed(spent: list[float]) -> Iterator[None]:
    """Collect the seconds of each read from Neo4j."""
    read = Connection.read

    async def measured(self: Any, *args: Any, **values: Any) -> Any:
        begun = time.perf_counter()
        try:
            return await read(self, *args, **values)
        finally:
            spent.append(time.perf_counter() - begun)

    Connection.read = measured  # type: ignore[method-assign]
    try:
        yield
    finally:
        Connection.read = read  # type: ignore[method-assign]


def told(answer: qrmem.Answer) -> object:
    """Return what two answers to one question have to share."""
    steps = [replace(step, seconds=0.0) for step in answer.trail.steps]
    return answer.text, answer.status, answer.citations, steps


async def archived(file: str, server: str, folder: Path) -> None:
    """Move the memory by its archive and compare the bytes."""
    async with memory(file) as opened:
        begun = time.perf_counter()
        await opened.export(folder / "file.qrmem")
        print(f"export from the file: {time.perf_counter() - begun:.1f} s")
    size = (folder / "file.qrmem").stat().st_size / 1e6
    await forgotten(server)
    async with memory(server) as opened:
        begun = time.perf_counter()
        await opened.load(folder / "file.qrmem")
        took = time.perf_counter() - begun
        print(f"import of {size:.1f} MB into Neo4j: {took:.1f} s, {size / took:.2f} MB/s")
        begun = time.perf_counter()
        await opened.export(folder / "neo4j.qrmem")
        print(f"export from Neo4j: {time.perf_counter() - begun:.1f} s")
    one, other = ((folder / f"{name}.qrmem").read_bytes() for name in ("file", "neo4j"))
    print("the archives are", "the same" if one == other else "DIFFERENT")


async def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("novel", type=Path)
    parser.add_argument("--archive", action="store_true")
    parser.add_argument("--ask", action="append", metavar="QUESTION")
    options = parser.parse_args()
    server = Settings.from_env().memory
    with tempfile.TemporaryDirectory() as folder:
        file = f"{folder}/novel.db"
        print("SQLite:")
        async with memory(file) as opened:
            in_file = await added(opened, options.novel)
            expected = [await asked(opened, question) for question in options.ask or QUESTIONS]
        print("Neo4j:")
        await forgotten(server)
        async with memory(server) as opened:
            in_server = await added(opened, options.novel)
            found = [await asked(opened, question) for question in options.ask or QUESTIONS]
        same = sum(told(a) == told(b) for a, b in zip(expected, found, strict=True))
        print(f"ratio Neo4j / SQLite: {in_server / in_file:.2f}")
        print(f"answers, citations and trails alike: {same} of {len(found)}")
        if options.archive:
            await archived(file, server, Path(folder))
        await forgotten(server)


if __name__ == "__main__":
    asyncio.run(main())
