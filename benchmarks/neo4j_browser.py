"""Every saved query for Neo4j Browser on a large memory: how long a person waits.

    python -m benchmarks.neo4j_browser [--thousands 100]

The memory has the nodes and edges of `benchmarks.neo4j_writes`, one fact in ten said in two
segments, one name in ten merged into another's entity, a question for each segment, and 50 trails.
The server is the one of `NEO4J_URI`, `NEO4J_USERNAME`, `NEO4J_PASSWORD`; everything is written to a
namespace of its own and removed.
"""

import argparse
import asyncio
import time
from collections.abc import Iterator
from dataclasses import replace

from neo4j import AsyncDriver, AsyncGraphDatabase

from benchmarks.neo4j_writes import Graph, make
from qrmem.config import Settings
from qrmem.graphstore import Change, GraphStore, NamespaceInfo, open_store
from qrmem.graphstore.neo4j import browser_queries
from qrmem.types import Document, Question, ScoredEdge, ScoredSegment, Step, Trail, Usage

NS = "benchmark browser"
TRAILS = 50
WAIT = 1.0
"""Seconds that a query may take."""


async def fill(store: GraphStore, graph: Graph) -> None:
    """Write the memory."""
    await store.create_namespace(NS, NamespaceInfo(NS, "none", 600))
    await store.put_document(NS, Document("." * len(graph.segments), id="d"), graph.segments)
    keys = [entity.key for entity in graph.entities]
    twice = [
        replace(fact, n=len(graph.facts) + n, segment_id=graph.segments[n % len(graph.segments)].id)
        for n, fact in enumerate(graph.facts[::10])
    ]
    change = Change(
        mentions=graph.mentions,
        facts=[*graph.facts, *twice],
        entities=graph.entities,
        names={key: keys[n - 1] if n % 10 == 1 else key for n, key in enumerate(keys)},
        questions=[Question(f"What of {s.id}?", s.id) for s in graph.segments],
    )
    await store.apply(NS, 0, change)
    for trail in _trails(graph):
        await store.put_trail(NS, trail)


def _trails(graph: Graph) -> Iterator[Trail]:
    for n in range(TRAILS):
        steps = [
            Step(
                n=k + 1,
                action="read" if k % 2 else "expand",
                entities=tuple(entity.name for entity in graph.entities[n : n + 20]),
                edges=tuple(
                    ScoredEdge("", _name(fact.head), _name(fact.tail), fact.description, 0.5, i < 3)
                    for i, fact in enumerate(graph.facts[n + k : n + k + 20])
                ),
                read=tuple(
                    ScoredSegment(segment.id, 0.5, 500) for segment in graph.segments[n : n + 8]
                ),
            )
            for k in range(10)
        ]
        yield Trail(
            id=f"trail {n}",
            question=f"Question {n // 2}?",
            strategy="reflection",
            window=4096,
            status="answered",
            answer="So it is.",
            steps=tuple(steps),
            usage=Usage(),
            created=f"2026-01-01T00:{n // 60:02}:{n % 60:02}Z",
        )


def _name(key: str) -> str:
    return key.partition("|")[0].title()


async def measure(driver: AsyncDriver) -> float:
    """Print each query's rows and its time, the first planning left out; return the longest."""
    longest = 0.0
    for query in browser_queries(NS):
        values = dict(query.parameters)
        await driver.execute_query(query.text, values)
        times = []
        for _ in range(3):
            start = time.perf_counter()
            records, _, _ = await driver.execute_query(query.text, values)
            times.append(time.perf_counter() - start)
        middle = sorted(times)[1]
        longest = max(longest, middle)
        print(f"{1000 * middle:7.0f} ms {len(records):4} rows  {query.title}")
    return longest


async def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--thousands", type=int, default=100, help="thousand nodes")
    graph = make(parser.parse_args().thousands)
    settings = Settings.from_env()
    store = await open_store(settings.memory, settings)
    auth = (settings.neo4j_user, settings.neo4j_password.reveal())
    try:
        await fill(store, graph)
        async with AsyncGraphDatabase.driver(settings.memory, auth=auth) as driver:
            longest = await measure(driver)
        nodes = graph.nodes + 2 * len(graph.segments)
        print(
            f"{nodes:,} nodes, {graph.edges:,} edges: the longest takes {longest:.2f} s"
            f" (at most {WAIT:g})"
        )
    finally:
        if await store.namespace(NS) is not None:
            await store.delete_namespace(NS)
        await store.close()


if __name__ == "__main__":
    asyncio.run(main())
