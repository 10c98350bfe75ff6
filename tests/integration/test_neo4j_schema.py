"""Constraints, versions and what a memory was made with, in a real Neo4j."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from contract.suite.samples import INFO
from neo4j import GraphDatabase
from servers.neo4j_server import Server

import qrmem
from qrmem.errors import EmbedderMismatch, MissingError
from qrmem.graphstore import open_store
from qrmem.graphstore.neo4j import browser_queries
from qrmem.graphstore.neo4j.connection import statements
from qrmem.graphstore.neo4j.database_schema import LABELS, RELATES, SHOWN, TYPES, VERSION

pytestmark = pytest.mark.neo4j

KEPT_VERSION = "MATCH (v:QrmemSchema) RETURN v.version"


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
    assert {state for (state,) in states} == {"ONLINE"}
    assert neo4j.query(KEPT_VERSION) == [[VERSION]]


async def test_the_server_knows_all_that_ready_queries_ask_for(neo4j: Server) -> None:
    """A query for what the server does not know gets a warning, in Neo4j Browser, too."""
    _drop_schema(neo4j)
    await (await open_store(neo4j.uri, neo4j.settings)).close()
    auth = (neo4j.user, neo4j.password)
    with GraphDatabase.driver(neo4j.uri, auth=auth if neo4j.password else None) as driver:
        for query in browser_queries("n"):
            summary = driver.execute_query(f"EXPLAIN {query.text}", dict(query.parameters)).summary
            told = [status.status_description for status in summary.gql_status_objects]
            assert not [words for words in told if "does not exist" in words], query.title


def test_the_schema_names_all_that_statements_use() -> None:
    files = (
        "browser",
        "view_writes",
        "stored_documents",
        "stored_facts",
        "runs",
        "vectors",
        "view_reads",
        "full_text",
    )
    texts = [text for file in files for text in statements(file).values()]
    found = [re.findall(r"-\[\w*:([A-Z_|]+)", text) for text in texts]
    assert {name for names in found for each in names for name in each.split("|")} == {*TYPES} - {
        RELATES
    }, "a relation's type is a value"
    labels = {name for text in texts for name in re.findall(r"[(:]\w*:([A-Z][A-Za-z]+)", text)}
    assert labels <= {*LABELS, "TreeNode", *TYPES}
    assert {"Document", "TreeNode"} <= labels
    shown = {name for text in texts[: len(statements("browser"))] for name in _properties(text)}
    assert shown <= set(SHOWN)


def _properties(text: str) -> set[str]:
    named = re.findall(r"\b[a-z]\w*\.([a-z_]+)\b", text)
    return {*named, *re.findall(r"[{,] ?([a-z_]+):", text)}


READABLE = {
    "Document": {"title", "text", "summary", "characters"},
    "Segment": {"text", "document", "index", "part", "tokens", "state", "reason", "reasoner"},
    "Entity": {"name", "type"},
    "Name": {"surface", "count", "forms", "counts", "mentions"},
    "Statement": {"description", "question", "type", "n", "segment"},
    "Question": {"text", "kind", "n"},
    "Trail": {"question", "strategy", "status", "answer", "created", "arrival"},
    "Step": {"action", "entities", "n", "reason", "tokens", "verdict"},
    "TreeNode": {"level", "summary", "surprise"},
}


async def test_labels_that_only_qrmem_reads_share_one_prefix(neo4j: Server) -> None:
    """A person who clicks on a node sees what a person can read, and `qrmem_…` after it."""
    neo4j.clear()
    async with qrmem.open(settings=neo4j.settings.with_(namespace="n")) as memory:
        await memory.add(
            {"id": "a", "text": "Ann Lee met Bob Ray in Oslo. Bob Ray left.", "metadata": {"y": 1}}
        )
        await memory.build_tree()
        await memory.ask("Whom did Ann Lee meet?")
    found = neo4j.query(
        "MATCH (n {ns: 'n'}) UNWIND labels(n) AS label UNWIND keys(n) AS name"
        " WITH DISTINCT label, name WHERE NOT label STARTS WITH 'Qrmem'"
        " AND NOT label IN ['Person', 'Place'] RETURN label, name"
    )
    seen = set()
    for label, name in ((str(label), str(name)) for label, name in found):
        seen.add(label)
        assert name in READABLE[label] | {"ns", "key"} or name.startswith(("qrmem_", "meta_"))
    assert seen >= READABLE.keys() - {"Question"}, "rules make no questions"


@pytest.mark.parametrize(("version", "whose"), [(1, "an older"), (99, "a newer")])
async def test_a_database_of_another_version_is_refused_in_one_line(
    neo4j: Server, version: int, whose: str
) -> None:
    await (await open_store(neo4j.uri, neo4j.settings)).close()
    neo4j.query("MATCH (v:QrmemSchema) SET v.version = $n", n=version)
    try:
        with pytest.raises(MissingError, match=f"made by {whose} qrmem; export"):
            await open_store(neo4j.uri, neo4j.settings)
        assert neo4j.query(KEPT_VERSION) == [[version]]
    finally:
        neo4j.query("MATCH (v:QrmemSchema) SET v.version = $n", n=VERSION)


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
