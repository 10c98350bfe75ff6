"""`repair` finds and restores facts that another program changed, in both stores."""

import sqlite3
from collections.abc import Mapping
from pathlib import Path

import pytest
from servers.neo4j_server import Server

import qrmem

DOCUMENTS: list[Mapping[str, object]] = [
    {"id": "a", "text": "Captain Ahab lost a leg to Moby Dick.", "metadata": {"at": "1851-01-02"}},
    {"id": "b", "text": "Thomas Nickerson wrote to Owen Chase. Herman Melville read it in Oslo."},
]
IN_A_FILE = {
    "an end of validity": "UPDATE fact SET valid_until = '1851-05'",
    "a statement": "INSERT INTO fact SELECT segment, n + 900, head, tail, start, length, 'forged',"
    " question, said_at, valid_from, valid_until, type, properties FROM fact LIMIT 1",
    "a head that is nowhere": "UPDATE fact SET head = 999999 WHERE n = 0",
    "a statement without ends": "INSERT INTO fact SELECT segment, n + 900, 999999, 999999, start,"
    " length, 'forged', question, said_at, valid_from, valid_until, type, properties FROM fact"
    " LIMIT 1",
    "a deleted entity": "DELETE FROM entity WHERE num = (SELECT head FROM fact LIMIT 1)",
    "a deleted name": "DELETE FROM name WHERE num = (SELECT head FROM fact LIMIT 1)",
}
IN_A_SERVER = {
    "an end of validity": "MATCH (f:Statement {ns: 'forged'}) SET f.valid_until = '1851-05'",
    "an edge's end of validity": "MATCH ()-[r:RELATES {ns: 'forged'}]->()"
    " SET r.valid_until = '1851-05'",
    "a statement": "MATCH (s:Segment {ns: 'forged'})-[:STATES]->(f) WITH s, f LIMIT 1"
    " MATCH (h)<-[:FROM]-(f)-[:TO]->(t) CREATE (s)-[:STATES]->(g:Statement {ns: 'forged',"
    " key: 'forged', n: 900, description: 'forged'}), (g)-[:FROM]->(h), (g)-[:TO]->(t)",
    "a lost end": "MATCH (:Statement {ns: 'forged'})-[r:FROM]->() DELETE r",
    "a lost segment": "MATCH (:Statement {ns: 'forged'})<-[r:STATES]-() DELETE r",
    "a statement without ends": "CREATE (:Statement {ns: 'forged', key: 'forged', n: 900})",
    "a deleted edge": "MATCH ()-[r:RELATES {ns: 'forged'}]->() DELETE r",
}


async def _seen(memory: qrmem.Memory) -> object:
    counts = (await memory.status()).counts
    return await memory.entities(), await memory.facts(), dict(counts)


@pytest.mark.parametrize("what", IN_A_FILE)
async def test_a_file(tmp_path: Path, what: str) -> None:
    where = str(tmp_path / "m.db")
    async with qrmem.open(where, embedder="none") as memory:
        await memory.add(DOCUMENTS)
        before = await _seen(memory)
    with sqlite3.connect(where) as db:
        assert db.execute(IN_A_FILE[what]).rowcount
    db.close()
    async with qrmem.open(where, embedder="none") as memory:
        assert (await memory.repair()).differences
        assert (await memory.repair()).differences == ()
        assert await _seen(memory) == before


@pytest.mark.neo4j
@pytest.mark.parametrize("what", IN_A_SERVER)
async def test_a_server(neo4j: Server, what: str) -> None:
    neo4j.clear()
    settings = neo4j.settings.with_(namespace="forged", embedder="none")
    edges = "MATCH (h)-[r:RELATES]->(t) RETURN h.key, t.key, properties(r) ORDER BY h.key, t.key"
    async with qrmem.open(settings=settings) as memory:
        await memory.add(DOCUMENTS)
        before, drawn = await _seen(memory), neo4j.query(edges)
        assert drawn
        neo4j.query(IN_A_SERVER[what])
        assert (await memory.repair()).differences
        assert (await memory.repair()).differences == ()
        assert await _seen(memory) == before
        assert neo4j.query(edges) == drawn
