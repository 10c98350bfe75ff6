"""Memories in Neo4j: the one package that imports its driver."""

from qrmem.graphstore.neo4j.opening import open_neo4j
from qrmem.graphstore.neo4j.store import Neo4jStore

__all__ = ["Neo4jStore", "open_neo4j"]
