"""Databases of memories behind one protocol."""

from qrmem.graphstore.opening import open_store
from qrmem.graphstore.protocol import (
    SCHEMA_VERSION,
    Catalog,
    Change,
    EntityCount,
    EntityRow,
    FactRow,
    GraphStore,
    IndexRow,
    Kept,
    MentionRow,
    NameRow,
    NamespaceInfo,
    Postings,
    VectorKind,
    Vectors,
    relation_key,
)

__all__ = [
    "SCHEMA_VERSION",
    "Catalog",
    "Change",
    "EntityCount",
    "EntityRow",
    "FactRow",
    "GraphStore",
    "IndexRow",
    "Kept",
    "MentionRow",
    "NameRow",
    "NamespaceInfo",
    "Postings",
    "VectorKind",
    "Vectors",
    "open_store",
    "relation_key",
]
