"""What an `add` would find to read: compared and cut as it does, on a copy."""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from qrmem.graphstore.memory import MemoryStore
from qrmem.graphstore.protocol import GraphStore
from qrmem.ingest import Adder
from qrmem.ingest_state import IngestState
from qrmem.planning.stage import silent
from qrmem.sources import Source
from qrmem.types import AddReport, Document, Segment

SAMPLE = 48_000
"""Tokens of segments that are rehearsed at most; of a larger text so many represent the whole."""
LEAST = 1_200
"""Tokens of a document that stand for it at least, if it has so many."""
HALF_DONE = 0.5
"""What is left of a segment that was read and not yet read again with its questions."""


@dataclass(frozen=True, slots=True)
class Part:
    """A document to be read, or what stands for it.

    Attributes:
        work: tokens to read, those of segments that are half done counted as a half.
        waiting: the segments.
    """

    document: Document
    work: float
    waiting: tuple[Segment, ...]


class Surveyor(Adder):
    """Goes through a source as `Adder` does, and reads nothing until it is told to."""

    def __init__(
        self, stored: GraphStore, shadow: MemoryStore, ns: str, tools: Any, **options: Any
    ) -> None:
        """Look at a source.

        Args:
            stored: the real memory; only read.
            shadow: takes a copy of what the source concerns.
        """
        super().__init__(shadow, ns, tools, listener=silent, **options)
        self._stored = stored
        is_embedded = self._tools.embedder is not None
        self._state = IngestState(stored, ns, is_embedded=is_embedded)
        self._copied: set[str] = set()
        self._batches: list[tuple[list[str], list[str]]] = []

    async def survey(
        self, source: Source, glob: str | None, follow_links: bool
    ) -> tuple[AddReport, list[Part]]:
        """Return what is new, and the documents of which something is to be read."""
        report = await self.add(source, glob, follow_links=follow_links)
        found = [await self._part(name) for batch, _ in self._batches for name in batch]
        return report, [part for part in found if part.work]

    async def read(self) -> None:
        """Read all that was found."""
        for batch, source in self._batches:
            self._tally.batch, self._tally.source = batch, source
            await super()._read_in()

    async def _read_in(self) -> None:
        self._batches.append((list(self._tally.batch), list(self._tally.source)))

    async def _write(self, document: Document) -> None:
        name = document.id or ""
        stored = self._state.digest(name)
        if stored is not None and name not in self._copied:
            digest = hashlib.sha256(document.text.encode()).hexdigest()
            is_known = digest == stored and self._state.is_done(name)
            if self._update or self._rebuild or not is_known:
                await _copied(self._stored, self._store, self._ns, name, self._tools.info)
            self._copied.add(name)
        await super()._write(document)

    async def _part(self, document_id: str) -> Part:
        document = await self._store.document(self._ns, document_id)
        assert document is not None
        segments = await self._store.segments_of(self._ns, document_id)
        states = {r.segment_id: r.state for r in await self._store.ledger(self._ns, document_id)}
        waiting = tuple(segment for segment in segments if states[segment.id] != "ok")
        work = (s.tokens * (HALF_DONE if states[s.id] == "extracted" else 1) for s in waiting)
        return Part(document, sum(work), waiting)


async def _copied(
    stored: GraphStore, shadow: GraphStore, ns: str, document_id: str, info: Any
) -> None:
    """Copy a document with all that was read of it."""
    document = await stored.document(ns, document_id)
    assert document is not None
    await shadow.create_namespace(ns, info)
    await shadow.put_document(ns, document, await stored.segments_of(ns, document_id))
    for known in await stored.documents(ns, [document_id]):
        if known.summary:
            await shadow.set_summary(ns, document_id, known.summary)
    rows = {row.segment_id: row for row in await stored.ledger(ns, document_id)}
    made = await stored.contributions(ns, document_id)
    await shadow.record_all(ns, [(rows[found.segment_id], found) for found in made])


def sampled(parts: Sequence[Part], most: int) -> list[Part]:
    """Return documents that stand for all, each cut down to segments evenly chosen.

    Args:
        most: tokens of all of them together, about.
    """
    share = max(LEAST, most // len(parts))
    shown = sum(min(part.work, share) for part in parts)
    step = max(1, math.ceil(shown / most))
    return [_shortened(part, share) for part in parts[::step]]


def _shortened(part: Part, most: int) -> Part:
    count = len(part.waiting)
    few = min(count, max(1, round(count * most / part.work)))
    chosen = tuple(part.waiting[n * count // few] for n in range(few))
    text = "\n\n".join(segment.text for segment in chosen)
    document = Document(text, title=part.document.title, id=part.document.id)
    return Part(document, sum(segment.tokens for segment in chosen), chosen)


__all__ = ["SAMPLE", "Part", "Surveyor", "sampled"]
