"""Memories in Neo4j: the one package that imports its driver."""

from qrmem.graphstore.neo4j.browser import browser_queries, parameter_command
from qrmem.graphstore.neo4j.opening import open_neo4j
from qrmem.graphstore.neo4j.store import Neo4jStore

__all__ = ["Neo4jStore", "browser_queries", "open_neo4j", "parameter_command"]
