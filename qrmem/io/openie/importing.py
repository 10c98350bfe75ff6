"""From a file of extractions to a memory, as contributions of a reasoner called `openie`."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from os import PathLike

from qrmem.errors import StoreConflict
from qrmem.graph.merging import Similar, merge_documents
from qrmem.graphstore.protocol import GraphStore, NamespaceInfo
from qrmem.io.openie.placing import Placed, place, united
from qrmem.io.openie.planning import Job, planned
from qrmem.io.openie.reading import read_openie
from qrmem.types import (
    Contribution,
    Embedder,
    Event,
    ExtractionReport,
    LedgerRow,
    Listener,
    Segment,
    Tokenizer,
)

REASONER = "openie"
"""What the ledger says of segments that were read elsewhere."""

_ROWS = 256
"""Segments that are committed together."""

_DOCUMENTS = 1024
"""Documents that are merged together: a merge looks at every name of the namespace."""

_READ = ("extracted", "ok", "partial")
"""States of segments that somebody has read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deps:
    """What an import works with.

    Attributes:
        info: what the namespace was, or is to be, made with.
    """

    store: GraphStore
    info: NamespaceInfo
    cutter: Tokenizer
    embedder: Embedder | None
    similar: Callable[[], Awaitable[Similar | None]]
    listener: Listener


async def import_openie(deps: Deps, path: str | PathLike[str]) -> ExtractionReport:
    """Bring what was extracted elsewhere into a namespace; run again, it goes on where it stopped.

    A passage whose text the file carries becomes a document, unless it is one; others are found by
    the id of a document or a segment. Where a segment was read before, what is new is added to it.

    Raises:
        BadImport: the file is not in its form, speaks of a passage that is not there, or of a
            document that is there with another text; nothing is written.
    """
    extraction = await asyncio.to_thread(read_openie, path)
    jobs = await planned(deps.store, deps.info, deps.cutter, extraction, str(path))
    work = _Work(deps)
    await work.make_namespace()
    for job in jobs:
        await work.take(job)
    await work.end()
    return ExtractionReport(
        documents=sum(job.document is not None for job in jobs),
        attached=sum(job.document is None for job in jobs),
        segments=work.segments,
        entities=work.sums.entities,
        triples=work.sums.triples,
        absent_entities=work.sums.absent_entities,
        absent_triples=work.sums.absent_triples,
        malformed=extraction.malformed,
        left_out=tuple(extraction.left_out),
    )


class _Work:
    """What was written so far, and what waits to be."""

    def __init__(self, deps: Deps) -> None:
        self.sums = Placed([])
        self.segments = 0
        self._deps = deps
        self._store, self._ns = deps.store, deps.info.name
        self._rows: list[tuple[LedgerRow, Contribution | None]] = []
        self._unmerged: list[str] = []
        self._ids: list[str] = []

    async def make_namespace(self) -> None:
        """Make the namespace, if it is not there."""
        info = self._deps.info
        made = await self._store.create_namespace(self._ns, info)
        if replace(made, revision=info.revision) != info:
            raise StoreConflict(
                f"namespace {self._ns!r} was made meanwhile with other settings; run it again"
            )

    async def take(self, job: Job) -> None:
        """Write a document if it is new, and what was extracted from it."""
        if job.document is not None:
            await self._store.put_documents(self._ns, [(job.document, job.segments)])
        segments = job.segments or await self._store.segments(self._ns, documents=[job.document_id])
        rows = {r.segment_id: r for r in await self._store.ledger(self._ns, job.document_id)}
        found = await self._store.contributions(self._ns, job.document_id, kinds=("extraction",))
        before = {made.segment_id: made for made in found}
        added = self._placed(job, segments)
        for segment in segments:
            row, made = rows[segment.id], before.get(segment.id)
            if segment.id in added or (job.is_carried and row.state not in _READ):
                self._record(
                    row, made, added.get(segment.id, Contribution(segment.id, "extraction"))
                )
        self._unmerged.append(job.document_id)
        self._ids += [segment.id for segment in segments]
        self._deps.listener(Event("document", {"id": job.document_id, "segments": len(segments)}))
        await self._commit(_ROWS, _DOCUMENTS)
        self._deps.listener(Event("segment", {"count": len(segments)}))

    def _placed(self, job: Job, segments: Sequence[Segment]) -> dict[str, Contribution]:
        """Return what each segment gains, and count."""
        added: dict[str, Contribution] = {}
        for passage, segment_id in job.passages:
            done = place([s for s in segments if segment_id in ("", s.id)], passage)
            self.sums.entities += done.entities
            self.sums.triples += done.triples
            self.sums.absent_entities += done.absent_entities
            self.sums.absent_triples += done.absent_triples
            for made in done.contributions:
                first = added.get(made.segment_id)
                added[made.segment_id] = united(first, made) if first else made
        return added

    def _record(self, row: LedgerRow, before: Contribution | None, added: Contribution) -> None:
        """Note what a segment is after this, unless it is so already."""
        made = united(before, added) if before and row.state in _READ else added
        if row.state not in _READ:
            row = LedgerRow(row.segment_id, "ok", "", REASONER)
        elif made == before:
            return
        elif REASONER not in row.reasoner.split(" + "):
            row = replace(row, reasoner=f"{row.reasoner} + {REASONER}")
        self.segments += 1
        self._rows.append((row, made))

    async def _commit(self, rows: int, documents: int) -> None:
        """Write and merge what waits, if there is as much of it."""
        if len(self._rows) >= rows:
            await self._store.record(self._ns, self._rows)
            self._rows = []
        if len(self._unmerged) >= documents and not self._rows:
            self._deps.listener(Event("phase", {"phase": "merging"}))
            await merge_documents(
                self._store, self._ns, self._unmerged, similar=await self._deps.similar()
            )
            self._unmerged = []

    async def end(self) -> None:
        """Write, merge and embed the rest."""
        await self._commit(1, 1)
        if self._deps.embedder is not None:
            from qrmem.agents.embedding import embed_segments

            await embed_segments(
                self._store,
                self._ns,
                self._deps.embedder,
                self._ids,
                listener=self._deps.listener,
            )
