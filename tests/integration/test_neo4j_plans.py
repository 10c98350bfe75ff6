"""Every statement of the store is planned by an index: nothing scans a whole database."""

import re

import pytest
from servers.neo4j_server import Server

from qrmem.graphstore import open_store
from qrmem.graphstore.neo4j.schema import LABELS
from qrmem.graphstore.neo4j.statements import statements

pytestmark = pytest.mark.neo4j

FILES = (
    "namespaces",
    "schema",
    "documents",
    "facts",
    "changes",
    "view",
    "words",
    "vectors",
    "runs",
    "removal",
    "browser",
)
WHOLE_LABEL = {"namespaces.all"}
SCANS = ("NodesScan", "LabelScan", "TypeScan", "RelationshipsScan", "IndexScan")
CLAUSES = "CALL|CREATE|DELETE|DETACH|MATCH|MERGE|OPTIONAL|REMOVE|RETURN|SET|UNWIND|USING|WHERE|WITH"
ALL = [(file, name) for file in FILES for name in statements(file)]
OURS = [(file, name) for file, name in ALL if file not in ("browser", "schema")]


def _operators(plan: dict[str, object]) -> list[str]:
    children = plan.get("children", [])
    assert isinstance(children, list)
    found = [str(plan["operatorType"])]
    return found + [operator for child in children for operator in _operators(child)]


async def test_no_statement_scans_the_database(neo4j: Server) -> None:
    await (await open_store(neo4j.uri, neo4j.settings)).close()
    scanning = {}
    for file, name in ALL:
        text = statements(file)[name]
        if text.startswith("CALL db."):
            continue
        operators = _operators(neo4j.plan(text))
        if any(scan in operator for scan in SCANS for operator in operators):
            scanning[f"{file}.{name}"] = operators
    assert scanning.keys() == WHOLE_LABEL, scanning


@pytest.mark.parametrize(("file", "name"), ALL)
def test_nothing_needs_a_plugin(file: str, name: str) -> None:
    assert not re.search(r"\b(apoc|gds)\.", statements(file)[name], re.IGNORECASE)


@pytest.mark.parametrize(("file", "name"), ALL)
def test_every_node_that_is_sought_has_a_label(file: str, name: str) -> None:
    assert not _without_label(statements(file)[name])


@pytest.mark.parametrize(("file", "name"), OURS)
def test_every_node_that_is_sought_by_key_is_sought_by_its_index(file: str, name: str) -> None:
    """Statistics lag behind; without a hint a planner that believes a label empty scans it."""
    text = statements(file)[name]
    by_key = re.findall(r"\bMATCH \((\w+):(\w+) \{ns: ", text)
    in_range = [(v, _label(text, v)) for v in re.findall(r"\b(\w+)\.ns = \$ns", text)]
    for variable, label in [*by_key, *in_range]:
        assert re.search(rf"USING INDEX SEEK {variable}:{label}\(ns, \w+\)", text), variable


def _label(text: str, variable: str) -> str:
    found = re.search(rf"[(\[]{variable}:(\w+)", text)
    assert found, variable
    return found[1]


def test_a_node_without_a_label_would_be_seen() -> None:
    assert _without_label("MATCH (a:A {ns: $ns})-[:X]->(b)\nWHERE b.n = 1 RETURN b") == ["b"]
    assert _without_label("MATCH (a:A)\nOPTIONAL MATCH (a)-->()\nRETURN count(a)") == [""]


def _without_label(text: str) -> list[str]:
    """Return the variables of nodes that are matched without a label and not known before."""
    known = {*re.findall(r"\((\w+):\w", text), *re.findall(r"\bAS (\w+)", text)}
    sought = re.findall(rf"\bMATCH\s(.+?)(?=\b(?:{CLAUSES})\b|$)", text, re.DOTALL)
    nodes = [node for pattern in sought for node in re.findall(r"(?<!\w)\((\w*)(:?)", pattern)]
    return [variable for variable, label in nodes if not label and variable not in known]


@pytest.mark.parametrize(("file", "name"), ALL)
def test_what_is_merged_rests_on_a_constraint(file: str, name: str) -> None:
    text = statements(file)[name]
    bound = re.findall(r"\b(?:MATCH|MERGE) \((\w+):", text)
    for merged in re.findall(r"\bMERGE (.+)", text):
        node = re.fullmatch(r"\(\w+:(\w+) \{ns: [^,]+, key: [^,}]+\}\).*", merged)
        edge = re.fullmatch(r"\((\w+)\)-\[:\w+\]->\((\w+)\)", merged)
        assert node or edge, merged
        assert node is None or node[1] in ("QrmemSchema", *LABELS)
        assert edge is None or {edge[1], edge[2]} <= set(bound)


@pytest.mark.parametrize("title", statements("browser"))
def test_every_saved_query_is_bounded(title: str) -> None:
    assert "LIMIT" in statements("browser")[title].splitlines()[-1]
