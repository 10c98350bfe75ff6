"""Databases of memories behind one protocol."""

from qrmem.graphstore.opening import missing_file, open_store, withdraw
from qrmem.graphstore.protocol import (
    Change,
    EntityCount,
    EntityRow,
    Entry,
    FactRow,
    GraphStore,
    IndexRow,
    Kept,
    MentionRow,
    NameRow,
    NamespaceInfo,
    Titled,
    VectorKind,
    Vectors,
    Vocabulary,
    relation_key,
)

__all__ = [
    "Change",
    "EntityCount",
    "EntityRow",
    "Entry",
    "FactRow",
    "GraphStore",
    "IndexRow",
    "Kept",
    "MentionRow",
    "NameRow",
    "NamespaceInfo",
    "Titled",
    "VectorKind",
    "Vectors",
    "Vocabulary",
    "missing_file",
    "open_store",
    "relation_key",
    "withdraw",
]
