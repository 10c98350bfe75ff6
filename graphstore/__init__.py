"""Databases of memories behind one protocol."""

from qrmem.graphstore.opening import missing_file, open_store, withdraw
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
    "missing_file",
    "open_store",
    "relation_key",
    "withdraw",
]
