"""The default store: one SQLite file for all namespaces."""

from qrmem.graphstore.sqlite.connection import Opening
from qrmem.graphstore.sqlite.store import SqliteStore

__all__ = ["Opening", "SqliteStore"]
