"""The statements that an everyday step runs are answered by an index, in any database.

Each is planned in an empty database, where the planner knows nothing of how much there is.
"""

import re

import pytest
from servers.neo4j_server import Server

from qrmem.graphstore import open_store
from qrmem.graphstore.neo4j.connection import statements

pytestmark = pytest.mark.neo4j

EVERYDAY = {
    "keeping a document": (
        "stored_documents.put",
        "stored_documents.put_segments",
        "stored_documents.chain",
    ),
    "looking at a document": (
        "stored_documents.some",
        "stored_documents.segments_of",
        "stored_facts.read",
    ),
    "recording what was read": (
        "stored_facts.lock",
        "stored_facts.put_ledger",
        "stored_facts.put_contributions",
    ),
    "changing the view": tuple(f"view_writes.{name}" for name in statements("view_writes")),
    "looking around entities": (
        "view_reads.around",
        "view_reads.entities",
        "view_reads.mentions",
        "view_reads.shared",
    ),
    "looking for titles": ("full_text.titled",),
    "recording a run": (
        "runs.put_trail",
        "runs.entity_keys",
        "runs.trails",
        "runs.drop_cache_entries",
    ),
}


@pytest.mark.parametrize("step", EVERYDAY)
async def test_nothing_is_scanned(neo4j: Server, step: str) -> None:
    neo4j.clear()
    await (await open_store(neo4j.uri, neo4j.settings)).close()
    for name in EVERYDAY[step]:
        file, _, part = name.partition(".")
        operators = _operators(neo4j.plan(statements(file)[part]))
        assert not [operator for operator in operators if "Scan" in operator], name


@pytest.mark.parametrize("name", ["stored_documents.ids", "runs.trails", "runs.trails_after"])
async def test_the_last_are_found_without_reading_the_others(neo4j: Server, name: str) -> None:
    neo4j.clear()
    await (await open_store(neo4j.uri, neo4j.settings)).close()
    file, _, part = name.partition(".")
    operators = " ".join(_operators(neo4j.plan(statements(file)[part])))
    assert "Limit" in operators
    assert not re.search("Top|Sort|Scan", operators)


def _operators(plan: dict[str, object]) -> list[str]:
    children = plan.get("children", [])
    assert isinstance(children, list)
    found = [str(plan["operatorType"])]
    return found + [operator for child in children for operator in _operators(child)]


def test_nothing_needs_a_plugin() -> None:
    texts = [
        text
        for file in ("view_writes", "view_reads", "browser")
        for text in statements(file).values()
    ]
    assert not [text for text in texts if re.search(r"\b(apoc|gds)\.", text, re.IGNORECASE)]


def test_all_values_but_the_namespace_are_in_one_map() -> None:
    """The server plans a statement again for lists of another size, unless they are in a map."""
    stored = (
        "stored_documents",
        "stored_facts",
        "view_reads",
        "view_writes",
        "full_text",
        "vectors",
    )
    files = (*stored, "namespaces", "runs", "database_schema")
    texts = [text for file in files for text in statements(file).values()]
    assert {name for text in texts for name in re.findall(r"\$(?!any\()(\w+)", text)} == {
        "ns",
        "all",
    }
