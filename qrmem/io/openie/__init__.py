"""Extractions that were made elsewhere, brought into a memory (`qrmem import --openie`)."""

from qrmem.io.openie.importing import Deps, import_openie

__all__ = ["Deps", "import_openie"]
