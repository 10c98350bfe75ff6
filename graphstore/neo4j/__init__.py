"""Memories in Neo4j: the one package that imports its driver."""

from qrmem.graphstore.neo4j.browser import (
    AS_ASKED,
    SavedQuery,
    browser_queries,
    browser_script,
    parameter_command,
)
from qrmem.graphstore.neo4j.store import Neo4jStore, open_neo4j

__all__ = [
    "AS_ASKED",
    "Neo4jStore",
    "SavedQuery",
    "browser_queries",
    "browser_script",
    "open_neo4j",
    "parameter_command",
]
