"""Archives: one file with a namespace's documents, contributions, graph and vectors."""

from qrmem.io.archive.exporting import export_archive
from qrmem.io.archive.importing import import_archive

__all__ = ["export_archive", "import_archive"]
