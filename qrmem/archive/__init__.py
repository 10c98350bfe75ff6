"""One file that holds a namespace: documents, what was read out of them, graph and vectors."""

from qrmem.archive.exporting import export_archive
from qrmem.archive.importing import import_archive

__all__ = ["export_archive", "import_archive"]
