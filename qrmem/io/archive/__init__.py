"""One file that holds a namespace: documents, what was read out of them, graph and vectors."""

from qrmem.io.archive.exporting import export_archive
from qrmem.io.archive.importing import import_archive

__all__ = ["export_archive", "import_archive"]
