"""Ready queries for Neo4j Browser; each one is bounded and shows names, not ids."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from qrmem.graphstore.neo4j.connection import statements
from qrmem.graphstore.neo4j.keys import short

PARAMETERS: Mapping[str, str] = {
    "name": "part of an entity's name; empty: the one that occurs most",
    "document": "a document's id; empty: the first",
    "from": "number of the first segment to show; empty: 0",
    "trail": "a trail's id; empty: the newest",
    "question": "a question asked at least twice; empty: the newest such",
}
"""Parameters of the queries, with their meaning and what an empty one shows."""

AS_ASKED = ":config autoComplete: false"
"""Keeps the Browser from drawing edges between the shown nodes that the query did not return."""


@dataclass(frozen=True, slots=True)
class SavedQuery:
    """A ready query.

    Attributes:
        text: Cypher.
        parameters: names of its parameters; all but `ns` may be empty.
    """

    title: str
    text: str
    parameters: Mapping[str, str]


def browser_queries(ns: str, **chosen: str) -> list[SavedQuery]:
    """Return every saved query for a namespace; `chosen` are values of `PARAMETERS`."""
    values = {"ns": short(ns)} | dict.fromkeys(PARAMETERS, "") | chosen
    return [
        SavedQuery(title, text, {name: v for name, v in values.items() if f"${name}" in text})
        for title, text in statements("browser").items()
    ]


def parameter_command(values: Mapping[str, str]) -> str:
    """Return the Browser's command that sets parameters, e.g. `:params {ns: "default"}`."""
    return ":params {" + ", ".join(f"{name}: {_quoted(v)}" for name, v in values.items()) + "}"


def browser_script(queries: Sequence[SavedQuery]) -> str:
    """Return two lines to run first, and the queries; each runs by itself."""
    values = {name: value for query in queries for name, value in query.parameters.items()}
    ordered = {name: values[name] for name in ("ns", *PARAMETERS) if name in values}
    parts = [f"{AS_ASKED}\n{parameter_command(ordered)}"]
    parts += [f"// {query.title}\n{query.text};" for query in queries]
    return "\n\n".join(parts)


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
