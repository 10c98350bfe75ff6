"""Queries for a person in Neo4j Browser; each one is bounded and shows names, not ids."""

from collections.abc import Mapping

from qrmem.graphstore.neo4j.keys import short
from qrmem.graphstore.neo4j.statements import statements

PARAMETERS: Mapping[str, str] = {
    "name": "part of an entity's name; empty: the one that occurs most",
    "document": "a document's id; empty: the first",
    "trail": "a trail's id; empty: the newest",
    "question": "a question asked at least twice; empty: the newest such",
}
"""What may be filled in, and what is shown if it is not."""


def browser_queries(ns: str) -> list[tuple[str, str, dict[str, str]]]:
    """Return title, Cypher and parameters of every saved query for a namespace.

    Only the parameters that a query uses go with it; all but `ns` may stay empty.
    """
    values = {"ns": short(ns)} | dict.fromkeys(PARAMETERS, "")
    return [
        (title, text, {name: value for name, value in values.items() if f"${name}" in text})
        for title, text in statements("browser").items()
    ]


def parameter_command(values: Mapping[str, str]) -> str:
    """Return the Browser's command that sets parameters, e.g. `:params {ns: "default"}`."""
    return ":params {" + ", ".join(f"{name}: {_quoted(v)}" for name, v in values.items()) + "}"


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
