"""A merged relation shows its description, the resolved questions and its statements.

On both stores, everywhere: the graph of Neo4j, `show`, GraphML and an archive (QRMeM, section 2.1).
"""

import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from played import reply, said_in, schema_of
from servers import answering
from servers.neo4j_server import Server
from servers.openai_server import OpenAIServer

import qrmem
from qrmem.cli.lines import entity_lines

FILLER = "Nothing else was said of it in that long and quiet time. " * 30
YEARS = (1831, 1832)
TEXT = " ".join(f"Ada Holm paid Bo Lind in {year}. {FILLER}" for year in YEARS)
OTHER = "In 1840 Ada Holm met Bo Lind again, and Bo Lind sang. " + FILLER
EDGE = (
    "MATCH (a:Entity {ns: 'm', name: 'Ada Holm'})-[r]->(b:Entity {name: 'Bo Lind'})"
    " RETURN type(r), r.description, r.questions, r.statements"
)
BEHIND = (
    "MATCH (a:Entity {ns: 'm', name: 'Ada Holm'})<-[:FROM]-(f:Statement)-[:TO]->(b:Entity)"
    " MATCH (s:Segment)-[:STATES]->(f) RETURN f.description, s.text CONTAINS '1831' ORDER BY f.n"
)
Opened = Callable[..., AbstractAsyncContextManager[qrmem.Memory]]


def told(request: Mapping[str, Any]) -> str:
    if schema_of(request) == "relations":
        years = sorted(set(re.findall(r"18\d\d", said_in(request))))
        return reply(relations=[f"Ada Holm|paid in {year}|Bo Lind" for year in years])
    if schema_of(request) == "fold":
        return reply(questions=["How often?"], description="paid twice")
    return answering.answer(request)


@pytest.fixture(params=["sqlite", pytest.param("neo4j", marks=pytest.mark.neo4j)])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Opened:
    """Return what opens a memory whose model merges relations: on SQLite, then on Neo4j."""
    if request.param == "neo4j":
        server: Server = request.getfixturevalue("neo4j")
        server.clear()
        location, settings = server.uri, server.settings
    else:
        location, settings = str(tmp_path / "m.db"), qrmem.Settings()

    @asynccontextmanager
    async def open_memory(namespace: str = "m") -> AsyncIterator[qrmem.Memory]:
        async with OpenAIServer(answer=told) as scripted:
            given = settings.with_(model="gpt-4o-mini", base_url=scripted.url, mode="paper")
            given = given.with_(embedder="none", segment_tokens=150, namespace=namespace)
            async with qrmem.open(location, settings=given) as memory:
                yield memory

    return open_memory


async def test_relations_merged_by_a_model_are_shown_and_deleted_with_their_document(
    opened: Opened, tmp_path: Path
) -> None:
    async with opened() as memory:
        await memory.add({"id": "d", "text": TEXT})
        before = await memory.entity("Ada Holm")
        (relation,) = before.relations
        assert relation.description == "paid twice"
        assert relation.questions == ("How often?",)
        assert {"paid in 1831", "paid in 1832"} <= {f.description for f in relation.facts}
        lines = entity_lines(before, 10)
        assert f"  → Bo Lind ({len(relation.facts)}): paid twice" in lines
        assert "      settled: How often?" in lines
        await memory.graphml(str(tmp_path / "g.graphml"))
        written = (tmp_path / "g.graphml").read_text()
        assert ">paid twice<" in written
        assert ">How often?<" in written
        await memory.add({"id": "other", "text": OTHER})
        (relation,) = (await memory.entity("Ada Holm")).relations
        assert relation.description.startswith("paid twice; ")
        assert "paid in 1840" in relation.description
        await memory.delete("other")
        assert await memory.entity("Ada Holm") == before
        assert (await memory.repair()).differences == ()


async def test_an_archive_brings_merged_relations_back(opened: Opened, tmp_path: Path) -> None:
    first, second = tmp_path / "first.zip", tmp_path / "second.zip"
    async with opened() as memory:
        await memory.add({"id": "d", "text": TEXT})
        before = (await memory.entity("Ada Holm")).relations
        await memory.export(str(first))
    async with opened("other") as memory:
        await memory.load(str(first))
        assert (await memory.entity("Ada Holm")).relations == before
        await memory.export(str(second))
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.neo4j
async def test_the_graph_has_one_edge_for_a_pair_and_its_statements_beside_it(
    neo4j: Server,
) -> None:
    neo4j.clear()
    async with OpenAIServer(answer=told) as scripted:
        given = neo4j.settings.with_(model="gpt-4o-mini", base_url=scripted.url, mode="paper")
        given = given.with_(embedder="none", segment_tokens=150, namespace="m")
        async with qrmem.open(neo4j.uri, settings=given) as memory:
            await memory.add({"id": "d", "text": TEXT})
            (relation,) = (await memory.entity("Ada Holm")).relations
            edge = ["RELATES", "paid twice", ["How often?"], len(relation.facts)]
            assert neo4j.query(EDGE) == [edge]
            stated = neo4j.query(BEHIND)
            assert len(stated) == len(relation.facts)
            assert ["paid in 1831", True] in stated
            assert ["paid in 1832", False] in stated
            neo4j.query(EDGE.partition(" RETURN")[0] + " SET r.description = 'by hand'")
            (difference,) = (await memory.repair()).differences
            assert "1 merged relation" in difference
            assert neo4j.query(EDGE) == [edge]
            neo4j.query(EDGE.partition(" RETURN")[0] + " DELETE r")
            assert (await memory.repair()).differences
            assert neo4j.query(EDGE) == [edge]
            await memory.delete("d")
            assert neo4j.query("MATCH (:Entity)-[r]->() RETURN count(r)") == [[0]]
            assert neo4j.query("MATCH (f:Statement) RETURN count(f)") == [[0]]
