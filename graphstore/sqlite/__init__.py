"""The default store: one SQLite file for all namespaces."""

from qrmem.graphstore.sqlite.connection import OpenMode
from qrmem.graphstore.sqlite.store import SqliteStore

__all__ = ["OpenMode", "SqliteStore"]
