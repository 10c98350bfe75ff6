"""Lines for `export` and `import`."""

from qrmem.cli.output import safe
from qrmem.types import Archived, ExtractionReport


def archived_lines(archived: Archived, what: str) -> list[str]:
    """Say what is in an archive."""
    return [
        f"{what} {safe(archived.path)}: {archived.documents:,} documents,"
        f" {archived.segments:,} segments, {archived.entities:,} entities",
        f"checksum:  {archived.checksum}",
    ]


def extraction_lines(report: ExtractionReport) -> list[str]:
    """Say what came of extractions that were made elsewhere."""
    lines = [
        f"documents: {report.documents:,} new, {report.attached:,} that were there",
        f"segments:  {report.segments:,} have gained something",
        f"placed:    {report.entities:,} names, {report.triples:,} triples",
    ]
    if report.absent_entities or report.absent_triples:
        lines.append(
            f"left out:  {report.absent_entities:,} names and {report.absent_triples:,} triples do"
            " not occur in the text of their passage"
        )
    if report.malformed:
        lines.append(f"left out:  {report.malformed:,} records are no triple or no name")
    return lines + [f"left out:  {what}" for what in report.left_out]
