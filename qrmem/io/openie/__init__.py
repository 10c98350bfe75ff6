"""Import of extractions by other programs (`qrmem import --openie`)."""

from qrmem.io.openie.triple_import import Deps, import_openie

__all__ = ["Deps", "import_openie"]
