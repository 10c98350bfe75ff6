"""Writing a graph to Neo4j through the store, beside the plainest Cypher that does the same.

    python -m benchmarks.neo4j_writes [--scale 1 10] [--repeat 3]

Both sides write the same nodes and edges, with the same properties, constraints and indexes, to
the same server, in turns; the plain side is one labelled `UNWIND` with `MERGE` for each kind of
node and edge, 5,000 rows at a time. Row by row is shown for context. Then the database's time of
one step of a strategy: the facts at 20 entities with the names of their other ends, and the
entities' segments with their texts; how many queries it sends is counted at the driver.

The server is the one of `NEO4J_URI`, `NEO4J_USERNAME`, `NEO4J_PASSWORD`; everything is written to
namespaces of its own and removed.
"""

import argparse
import asyncio
import random
import statistics
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from neo4j import AsyncDriver, AsyncGraphDatabase, AsyncManagedTransaction

from qrmem.config import Settings
from qrmem.graphstore import (
    Change,
    EntityRow,
    FactRow,
    GraphStore,
    MentionRow,
    NamespaceInfo,
    open_store,
)
from qrmem.types import Document, Segment

ROWS = 5_000
STEP_ENTITIES = 20
Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Graph:
    """What is written: `size` thousand nodes, twice as many edges.

    A tenth of the nodes are segments; the others are entities and, one each, their names. Edges are
    those of the names, two mentions an entity, and facts for the rest.
    """

    segments: tuple[Segment, ...]
    mentions: tuple[MentionRow, ...]
    facts: tuple[FactRow, ...]
    entities: tuple[EntityRow, ...]

    @property
    def nodes(self) -> int:
        """Nodes besides the segments, which lie there before."""
        return 2 * len(self.entities)

    @property
    def edges(self) -> int:
        """Edges of names, mentions and facts."""
        return len(self.entities) + len(self.mentions) + len(self.facts)


def make(thousands: int) -> Graph:
    """Return a graph of some thousand nodes and twice as many edges."""
    rng = random.Random(7)
    count = thousands * 500
    segments = tuple(Segment(f"s{n:07d}", "d", n, n, n + 1, ".", 1) for n in range(thousands * 50))
    entities = tuple(EntityRow(f"entity {n}|PERSON", f"Entity {n}", "PERSON") for n in range(count))
    mentions = []
    for n, entity in enumerate(entities):
        for at in {n % len(segments), rng.randrange(len(segments))}:
            mentions.append(MentionRow(segments[at].id, entity.key, ((entity.name, 1),)))
    facts = []
    for n in range(thousands * 2_000 - count - len(mentions)):
        head, tail = rng.sample(entities, 2)
        words = f"{head.name} wrote to {tail.name} about matter {n}"
        segment = segments[rng.randrange(len(segments))]
        facts.append(FactRow(segment.id, n, head.key, tail.key, words))
    return Graph(segments, tuple(mentions), tuple(facts), entities)


async def through_store(store: GraphStore, ns: str, graph: Graph) -> float:
    """Write the graph as one change; return the seconds it took."""
    await store.create_namespace(ns, NamespaceInfo(ns, "none", 600))
    await store.put_document(ns, Document("." * len(graph.segments), id="d"), graph.segments)
    change = Change(
        mentions=graph.mentions,
        facts=graph.facts,
        entities=graph.entities,
        names={entity.key: entity.key for entity in graph.entities},
    )
    start = time.perf_counter()
    await store.apply(ns, 0, change)
    return time.perf_counter() - start


# --- the plain side ------------------------------------------------------------------------------

_NODES = {
    "entities": "UNWIND $rows AS row MERGE (e:Entity {ns: $ns, key: row.key})"
    " SET e.name = row.name, e.type = row.type, e.mentions = row.mentions",
    "names": "UNWIND $rows AS row MERGE (n:Name {ns: $ns, key: row.key})"
    " SET n.surface = row.surface, n.count = row.count, n.forms = row.forms,"
    " n.mentions = row.mentions",
}
_EDGES = {
    "naming": "UNWIND $rows AS row MATCH (n:Name {ns: $ns, key: row.key})"
    " MATCH (e:Entity {ns: $ns, key: row.key}) MERGE (n)-[:NAMES]->(e)",
    "mentions": "UNWIND $rows AS row MATCH (s:Segment {ns: $ns, key: row.segment})"
    " MATCH (e:Entity {ns: $ns, key: row.name}) MERGE (s)-[m:MENTIONS {name: row.name}]->(e)"
    " SET m.forms = row.forms, m.question = row.question",
    "facts": "UNWIND $rows AS row MATCH (h:Entity {ns: $ns, key: row.head})"
    " MATCH (t:Entity {ns: $ns, key: row.tail})"
    " MERGE (h)-[r:RELATES {ns: $ns, segment: row.segment, n: row.n}]->(t)"
    " SET r.head = row.head, r.tail = row.tail, r.description = row.description,"
    " r.question = row.question",
}


def plain_rows(graph: Graph) -> dict[str, Rows]:
    """Return the rows of the plain statements."""
    forms = {row.name: f'[["{row.forms[0][0]}",2]]' for row in graph.mentions}
    return {
        "entities": [
            {"key": e.key, "name": e.name, "type": e.type, "mentions": 2} for e in graph.entities
        ],
        "names": [
            {"key": e.key, "surface": e.name, "count": 2, "forms": forms[e.key], "mentions": 2}
            for e in graph.entities
        ],
        "naming": [{"key": e.key} for e in graph.entities],
        "mentions": [
            {
                "segment": m.segment_id,
                "name": m.name,
                "forms": f'[["{m.forms[0][0]}",1]]',
                "question": "",
            }
            for m in graph.mentions
        ],
        "facts": [
            {
                "segment": f.segment_id,
                "n": f.n,
                "head": f.head,
                "tail": f.tail,
                "description": f.description,
                "question": "",
            }
            for f in graph.facts
        ],
    }


async def plainly(driver: AsyncDriver, ns: str, graph: Graph, size: int = ROWS) -> float:
    """Write the same with `UNWIND` and `MERGE`, a transaction for each batch."""
    await driver.execute_query(
        "UNWIND $keys AS key CREATE (:Segment {ns: $ns, key: key})",
        {"ns": ns, "keys": [segment.id for segment in graph.segments]},
    )
    rows = plain_rows(graph)
    start = time.perf_counter()
    for kind, text in (_NODES | _EDGES).items():
        for at in range(0, len(rows[kind]), size):
            await driver.execute_query(text, {"ns": ns, "rows": rows[kind][at : at + size]})
    return time.perf_counter() - start


async def remove(driver: AsyncDriver, store: GraphStore, ns: str) -> None:
    """Remove what one side wrote."""
    await store.delete_namespace(ns)
    for label in ("Segment", "Entity", "Name"):
        async with driver.session() as session:
            result = await session.run(
                f"MATCH (n:{label}) WHERE n.ns = $ns AND n.key IS NOT NULL"
                " CALL (n) { DETACH DELETE n } IN TRANSACTIONS OF 5000 ROWS",
                ns=ns,
            )
            await result.consume()


# --- measuring -----------------------------------------------------------------------------------


async def compare(
    driver: AsyncDriver, store: GraphStore, graph: Graph, repeat: int
) -> tuple[float, float]:
    """Print both sides' median and the ratio; return the store's median and the plain one's."""
    ours: list[float] = []
    plain: list[float] = []
    sides: Sequence[tuple[list[float], Callable[[str], Awaitable[float]]]] = (
        (plain, lambda ns: plainly(driver, ns, graph)),
        (ours, lambda ns: through_store(store, ns, graph)),
    )
    for turn in range(repeat + 1):  # the first turn warms the server up and is not counted
        for seconds, side in sides if turn % 2 else reversed(sides):
            ns = f"benchmark {turn} {id(seconds)}"
            took = await side(ns)
            await remove(driver, store, ns)
            if turn:
                seconds.append(took)
    ratio = statistics.median(ours) / statistics.median(plain)
    print(
        f"{graph.nodes:,} nodes, {graph.edges:,} edges: store {statistics.median(ours):.2f} s,"
        f" plain UNWIND + MERGE {statistics.median(plain):.2f} s, ratio {ratio:.2f} (at most 1.3)"
    )
    return statistics.median(ours), statistics.median(plain)


async def step(store: GraphStore, graph: Graph) -> None:
    """Print the database's time for one step of a strategy, and how many queries it is."""
    ns = "benchmark step"
    text = "The harbour lay still that night. " * 70
    await through_store(
        store,
        ns,
        replace(
            graph,
            segments=tuple(replace(segment, text=text, tokens=560) for segment in graph.segments),
        ),
    )
    rng = random.Random(11)
    times: list[float] = []
    with queries() as sent:
        for turn in range(60):
            keys = [entity.key for entity in rng.sample(graph.entities, STEP_ENTITIES)]
            start = time.perf_counter()
            found = await store.around(ns, keys, texts=True)
            if turn >= 10:
                times.append(1000 * (time.perf_counter() - start))
    print(
        f"one step on {graph.nodes:,} nodes: {STEP_ENTITIES} entities, {len(found.facts)} facts"
        f" with ends, {len(found.segments)} segments with texts: median"
        f" {statistics.median(times):.1f} ms (under 20), {len(sent) / 60:g} queries a step"
    )
    await store.delete_namespace(ns)


@contextmanager
def queries() -> Iterator[list[str]]:
    """Collect the queries that go through the driver."""
    sent: list[str] = []
    run = AsyncManagedTransaction.run

    async def counted(self: Any, query: Any, *args: Any, **values: Any) -> Any:
        sent.append(str(query))
        return await run(self, query, *args, **values)

    AsyncManagedTransaction.run = counted  # type: ignore[method-assign]
    try:
        yield sent
    finally:
        AsyncManagedTransaction.run = run  # type: ignore[method-assign]


async def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=int, nargs="+", default=[10, 100], help="thousand nodes")
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    settings = Settings.from_env()
    store = await open_store(settings.memory, settings)
    auth = (settings.neo4j_user, settings.neo4j_password.reveal())
    async with AsyncGraphDatabase.driver(
        settings.memory, auth=auth, notifications_min_severity="OFF"
    ) as driver:
        took = {}
        for scale in options.scale:
            took[scale] = await compare(driver, store, make(scale), options.repeat)
        row_by_row = make(1)
        ns = "benchmark rows"
        seconds = await plainly(driver, ns, row_by_row, size=1)
        await remove(driver, store, ns)
        print(f"row by row, {row_by_row.nodes:,} nodes: {seconds:.2f} s (for context)")
        if len(took) > 1:
            first, *_, last = sorted(took)
            ours, plain = (
                large / small / (last / first)
                for large, small in zip(took[last], took[first], strict=True)
            )
            print(
                f"growth from {first}k to {last}k: store {ours:.2f} of linear (at most 1.2),"
                f" plain {plain:.2f}"
            )
        await step(store, make(max(took)))
    await store.close()


if __name__ == "__main__":
    asyncio.run(main())
