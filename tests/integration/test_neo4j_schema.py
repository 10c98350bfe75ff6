"""Constraints, versions and what a memory was made with, in a real Neo4j."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from servers.neo4j_server import Server

import qrmem
from qrmem.errors import EmbedderMismatch
from qrmem.graphstore import SCHEMA_VERSION, open_store
from qrmem.graphstore.neo4j import schema
from qrmem.graphstore.neo4j.connection import Connection
from qrmem.graphstore.neo4j.schema import LABELS, MIGRATIONS
from qrmem.graphstore.testing.samples import INFO, add, contents, text

pytestmark = pytest.mark.neo4j

VERSION = "MATCH (v:QrmemSchema) RETURN v.version"


def _drop_schema(server: Server) -> None:
    server.query("MATCH (v:QrmemSchema) DELETE v")
    for shown, kind in (("CONSTRAINTS", "CONSTRAINT"), ("INDEXES", "INDEX")):
        ours = f"SHOW {shown} YIELD name WHERE name STARTS WITH 'qrmem_' RETURN name"
        for (name,) in server.query(ours):
            server.query(f"DROP {kind} {name}")


async def test_every_label_has_its_constraint_and_all_is_online(neo4j: Server) -> None:
    await (await open_store(neo4j.uri, neo4j.settings)).close()
    found = neo4j.query(
        "SHOW CONSTRAINTS YIELD name, type, labelsOrTypes, properties"
        " WHERE name STARTS WITH 'qrmem_' RETURN labelsOrTypes[0], type, properties"
    )
    assert sorted(found) == sorted(
        [label, "UNIQUENESS", ["ns", "key"]] for label in ("QrmemSchema", *LABELS)
    )
    states = neo4j.query(
        "SHOW INDEXES YIELD name, state WHERE name STARTS WITH 'qrmem_' RETURN state"
    )
    assert len(states) == len(found) + 1
    assert {state for (state,) in states} == {"ONLINE"}
    assert neo4j.query(VERSION) == [[SCHEMA_VERSION]]
    assert len(MIGRATIONS) == SCHEMA_VERSION


@pytest.mark.parametrize("version", range(SCHEMA_VERSION))
async def test_a_memory_of_an_older_version_is_migrated_and_kept(
    neo4j: Server, version: int
) -> None:
    neo4j.clear()
    store = await open_store(neo4j.uri, neo4j.settings)
    await add(store, "n", text("d", "Ann met Bob why? "))
    before = await contents(store, "n")
    await store.close()
    _drop_schema(neo4j)
    for migration in MIGRATIONS[:version]:
        for statement in migration:
            neo4j.query(statement)
    if version:
        neo4j.query("CREATE (:QrmemSchema {ns: '', key: 'schema', version: $n})", n=version)
    store = await open_store(neo4j.uri, neo4j.settings)
    assert await contents(store, "n") == before
    await store.close()
    assert neo4j.query(VERSION) == [[SCHEMA_VERSION]]


async def test_an_older_client_that_comes_late_does_not_take_the_version_back(
    neo4j: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    await (await open_store(neo4j.uri, neo4j.settings)).close()
    neo4j.query("MATCH (v:QrmemSchema) SET v.version = 0")
    run_again = schema._run_again

    async def overtaken(connection: Connection, statement: str) -> None:
        await run_again(connection, statement)
        neo4j.query("MATCH (v:QrmemSchema) SET v.version = 99")

    monkeypatch.setattr(schema, "_run_again", overtaken)
    await (await open_store(neo4j.uri, neo4j.settings)).close()
    found = neo4j.query(VERSION)
    neo4j.query("MATCH (v:QrmemSchema) SET v.version = $n", n=SCHEMA_VERSION)
    assert found == [[99]]


async def test_another_embedder_is_refused_when_a_memory_is_opened(neo4j: Server) -> None:
    neo4j.clear()
    store = await open_store(neo4j.uri, neo4j.settings)
    await store.create_namespace("n", INFO)
    await store.close()
    settings = neo4j.settings.with_(namespace="n", embedder="local")
    with pytest.raises(EmbedderMismatch, match="reembed") as caught:
        await qrmem.open(settings=settings)
    assert caught.value.exit_code == 3


def test_a_user_sees_no_notifications(neo4j: Server, tmp_path: Path) -> None:
    """In an empty database every label, type and property is one that the server does not know."""
    neo4j.clear()
    _drop_schema(neo4j)
    (tmp_path / "a.txt").write_text("Ann Lee met Bob Ray in Oslo. Bob Ray left.", encoding="utf-8")
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    variables = {
        "NEO4J_URI": neo4j.uri,
        "NEO4J_USERNAME": neo4j.user,
        "NEO4J_PASSWORD": neo4j.password,
        "QRMEM_EMBEDDER": "none",
    }
    commands = (["add", "a.txt"], ["ask", "Whom did Ann Lee meet?"], ["search", "Oslo"], ["status"])
    for command in commands:
        done = subprocess.run(
            [sys.executable, "-W", "error", "-m", "qrmem", *command, "--quiet"],
            cwd=tmp_path,
            env=kept | variables,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, ""), command
