"""Search in a real Neo4j: exact, within the namespace, whatever is asked, and as in a file."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from contract.suite.samples import indexed
from fakes import HashEmbedder
from numpy.typing import NDArray
from servers.neo4j_server import Server

import qrmem
from qrmem.agents.embedding import embed_segments
from qrmem.graphstore import GraphStore, NamespaceInfo, open_store
from qrmem.graphstore.neo4j.connection import Connection
from qrmem.graphstore.protocol import ViewUpdate
from qrmem.retrieval import Searcher
from qrmem.types import Document, Segment, Strategy

pytestmark = pytest.mark.neo4j

Matrix = NDArray[np.float32]

SAMPLE = Path(__file__).parents[2] / "qrmem" / "sample"
QUERIES = 50
DIMENSION = 128
WINDOWS = 4
ODD_QUESTIONS = (
    'C++ (AND) ~"',
    "Nell && Tam || !key^2 [a TO b] {x} harb*r k?y /Skarrow/ \\",
    "text:* OR _exists_:key",
    "`Nell`; MATCH (n) DETACH DELETE n //",
    "' OR 1=1 RETURN $ns, $rows",
    '"}) DETACH DELETE n //',
    "key " * 3_000,
    "N" * 10_000,
)


class Given:
    """An embedder of the texts "0", "1", …, whose vectors are given."""

    name = "given"
    dimension = DIMENSION

    def __init__(self, vectors: Matrix) -> None:
        self._vectors = vectors

    def windows(self, text: str) -> Sequence[str]:
        return [text]

    async def embed(
        self, texts: Sequence[str], *, kind: Literal["passage", "query"] = "passage"
    ) -> Matrix:
        return self._vectors[[int(text) for text in texts]]


def _units(rows: NDArray[np.float64]) -> Matrix:
    units: Matrix = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return units


async def _fill(store: GraphStore, ns: str, vectors: Matrix) -> list[str]:
    """Make a namespace of segments, each with some of the vectors; return the segments' ids."""
    count = len(vectors) // WINDOWS
    segments = [Segment(f"{ns}{n:05d}", "d", n, n, n + 1, ".", 1) for n in range(count)]
    await store.create_namespace(ns, NamespaceInfo(ns, "builtin-v1", 600, "given", DIMENSION))
    await store.put_documents(ns, [(Document("." * len(segments), id="d"), segments)])
    await store.apply(ns, 0, ViewUpdate(index={s.id: {"word": 1} for s in segments}))
    ids = [segment.id for segment in segments]
    await store.put_vectors(ns, "segment", [id_ for id_ in ids for _ in range(WINDOWS)], vectors)
    return ids


@pytest.mark.parametrize("size", [2_000, 12_000])
async def test_the_ten_nearest_are_the_exact_ones_whatever_else_lies_nearer(
    neo4j: Server, size: int
) -> None:
    neo4j.clear()
    rng = np.random.default_rng(size)
    vectors = _units(rng.standard_normal((size, DIMENSION)))
    queries = _units(rng.standard_normal((QUERIES, DIMENSION)))
    nearer = np.repeat(queries, 60, axis=0) + 0.01 * rng.standard_normal((60 * QUERIES, DIMENSION))
    store = await open_store(neo4j.uri, neo4j.settings)
    await _fill(store, "other", _units(nearer))
    ids = await _fill(store, "n", vectors)
    searcher = Searcher(store, "n", Given(queries))
    likeness = queries.astype(float) @ vectors.T.astype(float)
    exact = np.argsort(-likeness.reshape(QUERIES, -1, WINDOWS).max(axis=2), axis=1)[:, :10]
    found = 0
    for query, expected in enumerate(exact):
        nearest = await searcher.ranking(str(query), "cosine", 10)
        found += len(nearest.keys() & {ids[at] for at in expected})
    await store.close()
    assert found >= 0.995 * 10 * QUERIES


def _questions() -> list[str]:
    asked = json.loads((SAMPLE / "questions.json").read_text(encoding="utf-8"))["questions"]
    return [*(question["text"] for question in asked), *ODD_QUESTIONS]


async def test_searches_rank_as_in_a_file(neo4j: Server, tmp_path: Path) -> None:
    neo4j.clear()
    embedder = HashEmbedder()
    found = []
    for uri in (str(tmp_path / "memory.db"), neo4j.uri):
        settings = neo4j.settings.with_(memory=uri, namespace="n", embedder="none")
        async with qrmem.open(settings=settings) as memory:
            await memory.add(SAMPLE / "harbour.md")
        store = await open_store(uri, settings)
        searcher = Searcher(store, "n")
        plain = [await searcher.search(question) for question in _questions()]
        await store.set_embedder("n", embedder.name, embedder.dimension)
        ids = await indexed(store, "n")
        assert await embed_segments(store, "n", embedder, ids) == len(ids)
        searcher = Searcher(store, "n", embedder)
        found.append(plain + [await searcher.search(question) for question in _questions()])
        await store.close()
    answerable = [bool(hits) for hits in found[0][: len(_questions())]]
    assert sum(answerable) >= 10  # of the sample's questions some are about what is not in it
    hits = same = moved = 0
    for in_file, in_neo4j in zip(*found, strict=True):
        assert len(in_neo4j) == len(in_file)
        expected = {hit.segment_id: hit for hit in in_file}
        common = [hit for hit in in_neo4j if hit.segment_id in expected]
        hits, same = hits + len(in_file), same + len(common)
        for hit in common:
            assert hit.via == expected[hit.segment_id].via
            moved += abs(hit.score - expected[hit.segment_id].score) > 0.005
    assert same >= 0.99 * hits
    # What either index proposes last to a follow-up query may differ, which moves the score of what
    # only such a query finds.
    assert moved <= 0.01 * hits


@pytest.mark.parametrize("strategy", ["reflection", "graph-expansion", "entity-trial"])
async def test_answers_are_those_of_a_file(
    neo4j: Server, tmp_path: Path, strategy: Strategy
) -> None:
    neo4j.clear()
    found = []
    for uri in (str(tmp_path / "memory.db"), neo4j.uri):
        settings = neo4j.settings.with_(memory=uri, embedder="none")
        async with qrmem.open(settings=settings) as memory:
            await memory.add(SAMPLE / "harbour.md")
            answers = [await memory.ask(q, strategy=strategy) for q in _questions()[::3]]
        steps = [[replace(step, seconds=0) for step in answer.trail.steps] for answer in answers]
        found.append([steps, *((a.text, a.status, a.citations) for a in answers)])
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("strategy", "most"), [("reflection", 2), ("graph-expansion", 3), ("entity-trial", 2)]
)
async def test_a_step_asks_once_for_the_graph_and_seldom_for_anything_else(
    neo4j: Server, monkeypatch: pytest.MonkeyPatch, strategy: Strategy, most: int
) -> None:
    neo4j.clear()
    reads: list[str] = []
    read = Connection.read

    async def counted(self: Connection, work: Any, ns: str, *args: Any, **kwargs: Any) -> Any:
        reads.append(work.__name__)
        return await read(self, work, ns, *args, **kwargs)

    settings = neo4j.settings.with_(embedder="none")
    async with qrmem.open(settings=settings) as memory:
        await memory.add(SAMPLE / "harbour.md")
        await memory.search("warm")
        monkeypatch.setattr(Connection, "read", counted)
        answer = await memory.ask("How much did the elephant weigh?", strategy=strategy)
    steps = answer.trail.steps
    assert len(steps) > 1
    moves = sum(step.action in ("expand", "elaborate", "revise") for step in steps)
    assert reads.count("around") <= moves + 1, Counter(reads)
    started = reads.index("around") + 1
    # How the memory stands 3; a search at most 23, whatever the memory's size: what the question
    # finds by itself 5, each of two hops 5, the follow-up queries of four passages 6, shared names
    # and texts; then the hits' entities, and what lies around these. An index of the namespace kept
    # in the process would save most of them, at the price of reading the namespace.
    assert started <= 28, Counter(reads)
    # A step looks around its entities and at the words of its passages; a choice among all
    # entities lists them too.
    assert len(reads) - started <= most * (len(steps) - 1), Counter(reads)
