"""Databases of memories behind one protocol; `protocol` has its types."""

from qrmem.graphstore.address import missing_file, open_store, scratch_store, withdraw
from qrmem.graphstore.protocol import GraphStore, NamespaceInfo

__all__ = [
    "GraphStore",
    "NamespaceInfo",
    "missing_file",
    "open_store",
    "scratch_store",
    "withdraw",
]
