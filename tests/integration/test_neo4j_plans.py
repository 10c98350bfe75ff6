"""Every statement of the store is planned by an index: nothing scans a whole database."""

import re

import pytest
from servers.neo4j_server import Server

from qrmem.graphstore import open_store
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
SCANS = ("AllNodesScan", "NodeByLabelScan", "RelationshipTypeScan", "AllRelationshipsScan")
ALL = [(file, name) for file in FILES for name in statements(file)]


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
def test_nothing_needs_a_plugin_and_merge_rests_on_a_constraint(file: str, name: str) -> None:
    text = statements(file)[name]
    assert not re.search(r"\b(apoc|gds)\.", text, re.IGNORECASE)
    for merged in re.findall(r"MERGE \((\w*):\w+ (\{[^}]*\})", text):
        assert re.match(r"\{ns: [^,]+, key: [^,}]+\}", merged[1]), merged


@pytest.mark.parametrize("title", statements("browser"))
def test_every_saved_query_is_bounded(title: str) -> None:
    assert "LIMIT" in statements("browser")[title].splitlines()[-1]
