"""The graph of an archive: rows are made anew from the facts, names stand for what it says."""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from qrmem.errors import BadImport
from qrmem.graph.view import Read, Rows, readings, rows_of
from qrmem.graphstore.checking import used_names
from qrmem.graphstore.protocol import Change, EntityRow, GraphStore
from qrmem.io.archive.lines import EntityLine, SegmentLine
from qrmem.types import Contribution

_SEGMENTS = 4096
"""Segments whose rows are applied together."""

_BREATH = 100
"""Segments after which other tasks get their turn."""


@dataclass(slots=True)
class Graph:
    """What was read of it so far.

    Attributes:
        stale: documents of segments whose contributions are no longer those that the graph was
            made from; their rows are left out.
    """

    stale: dict[str, None] = field(default_factory=dict)
    _entities: dict[str, EntityRow] = field(default_factory=dict)
    _names: dict[str, str] = field(default_factory=dict)
    _accepted: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _digests: dict[str, str] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """How many entities there are."""
        return len(self._entities)

    def add_segment(self, line: SegmentLine) -> None:
        """Take what the graph holds of a segment."""
        if line.merged:
            self._digests[line.id] = line.merged
            self._accepted[line.id] = line.questions

    def add_entity(self, line: EntityLine) -> None:
        """Take an entity and its names."""
        self._entities[line.key] = EntityRow(line.key, line.name, line.type)
        self._names |= dict.fromkeys(line.names, line.key)

    async def apply(self, store: GraphStore, ns: str, document_ids: Iterable[str]) -> None:
        """Make the view of documents that are in the store.

        Raises:
            BadImport: the archive lacks a name that its contributions give.
        """
        info = await store.namespace(ns)
        revision, rows = info.revision if info else 0, Rows()
        for document_id in document_ids:
            segments, contributions = await asyncio.gather(
                store.segments_of(ns, document_id), store.contributions(ns, document_id)
            )
            for n, read in enumerate(self._merged(readings(segments, contributions, self._decide))):
                rows.add(rows_of(read))
                if len(rows.merged) >= _SEGMENTS:
                    revision, rows = await store.apply(ns, revision, self._change(rows)), Rows()
                if n % _BREATH == _BREATH - 1:
                    await asyncio.sleep(0)
        if rows.merged:
            await store.apply(ns, revision, self._change(rows))

    def _decide(self, extractions: Sequence[Contribution]) -> Sequence[tuple[str, ...]]:
        return [self._accepted.get(made.segment_id, ()) for made in extractions]

    def _merged(self, reads: Iterable[Read]) -> Iterator[Read]:
        """Yield the readings that the archive's graph was made from."""
        for read in reads:
            digest = self._digests.get(read.segment.id)
            if digest == read.digest:
                yield read
            elif digest:
                self.stale[read.segment.document_id] = None

    def _change(self, rows: Rows) -> Change:
        change = Change(mentions=rows.mentions, facts=rows.facts)
        used = sorted(used_names(change))
        for name in used:
            if name not in self._names:
                raise BadImport(f"the archive's graph lacks the name {name[:80]!r}; it is not kept")
        names = {name: self._names[name] for name in used}
        return Change(
            mentions=rows.mentions,
            facts=rows.facts,
            questions=rows.questions,
            index=rows.index,
            names=names,
            entities=[self._entities[key] for key in sorted(set(names.values()))],
            merged=rows.merged,
            resolved=used,
        )
