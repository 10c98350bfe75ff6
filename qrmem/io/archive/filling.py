"""A namespace while the lines of an archive fill it."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from qrmem.graphstore.checking import lost_import
from qrmem.graphstore.protocol import GraphStore, Kept, NamespaceInfo, VectorKind
from qrmem.io.archive.graph import Graph
from qrmem.io.archive.lines import OF_A_DOCUMENT, DocumentLine, EntityLine, SegmentLine, VectorLine
from qrmem.io.archive.vectors import decoded
from qrmem.types import (
    CallRecord,
    Contribution,
    Document,
    Event,
    LedgerRow,
    Listener,
    MergeDecision,
    Segment,
    Trail,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_ROWS = 256
"""Contributions, vectors or calls that are committed together."""


class Filling:
    """Takes the lines in their order; `end` writes what is still waiting.

    Attributes:
        documents: ids of the documents that were written.
        segments: how many were.
        graph: what the archive says about it.
    """

    def __init__(
        self,
        store: GraphStore,
        info: NamespaceInfo,
        listener: Listener,
        count: Callable[[str], int] | None = None,
    ) -> None:
        """Begin to fill a namespace.

        Args:
            count: counts the tokens of segments anew.
        """
        self.documents: list[str] = []
        self.segments = 0
        self.graph: Graph = Graph()
        self._store = store
        self._ns, self._info = info.name, info
        self._listener = listener
        self._count = count
        self._document: DocumentLine | None = None
        self._lines: list[SegmentLine] = []
        self._states: dict[str, LedgerRow] = {}
        self._rows: list[tuple[LedgerRow, Contribution | None]] = []
        self._vectors: list[tuple[str, NDArray[np.float32]]] = []
        self._calls: list[CallRecord] = []
        self._has_graph = False
        self._takers: Mapping[str, Callable[[Any], Awaitable[None]]] = {
            "document": self._take_document,
            "segment": self._take_segment,
            "contribution": self._take_contribution,
            "vector": self._take_vector,
            "decision": self._take_decision,
            "entity": self._take_entity,
            "fold": self._take_kept,
            "trail": self._take_trail,
            "call": self._take_call,
            "reply": self._take_kept,
            "relation": self._take_vector,
        }

    async def take(self, kind: str, value: Any) -> None:
        """Take the next line."""
        if kind != "segment":
            await self._put_document()
        if kind not in (*OF_A_DOCUMENT, "decision", "entity"):
            await self._make_graph()
        await self._takers[kind](value)

    async def end(self) -> None:
        """Write what is left."""
        await self._put_document()
        await self._make_graph()
        await self._flush("relation")

    # --- documents --------------------------------------------------------------------------------

    async def _take_document(self, line: DocumentLine) -> None:
        self._document, self._lines, self._states = line, [], {}

    async def _take_segment(self, line: SegmentLine) -> None:
        self._lines.append(line)
        self._states[line.id] = LedgerRow(line.id, line.state, line.reason, line.reasoner)
        self.graph.add_segment(line)

    async def _put_document(self) -> None:
        """Write the document above with its segments, once all of them are there."""
        line, self._document = self._document, None
        if line is None:
            return
        document = Document(line.text, line.title, line.id, line.metadata, line.parts)
        segments = [_segment(line, index, each) for index, each in enumerate(self._lines)]
        if self._count is not None:
            segments = [replace(each, tokens=self._count(each.text)) for each in segments]
        await self._store.put_document(self._ns, document, segments)
        if line.summary:
            await self._store.set_summary(self._ns, line.id, line.summary)
        known = [row for row in self._states.values() if row.state != "pending"]
        self._rows += [(row, None) for row in known]
        self.documents.append(line.id)
        self.segments += len(segments)
        for kind, count in (("document", "segments"), ("segment", "count")):
            self._listener(Event(kind, {"id": line.id, count: len(segments)}))

    async def _take_contribution(self, made: Contribution) -> None:
        self._rows.append((self._states[made.segment_id], made))
        if len(self._rows) >= _ROWS:
            await self._flush("segment")

    async def _take_vector(self, line: VectorLine) -> None:
        if not self._info.dimension:
            return
        self._vectors.append((line.owner, decoded(line, self._info.dimension)))
        if len(self._vectors) >= _ROWS:
            await self._flush("relation" if self._has_graph else "segment")

    async def _flush(self, kind: VectorKind) -> None:
        """Commit what is waiting; the vectors are of one kind."""
        import numpy as np

        info = await self._store.namespace(self._ns)
        if info is None or info.importing != self._info.importing:
            raise lost_import(self._ns)
        rows, vectors, calls = self._rows, self._vectors, self._calls
        self._rows, self._vectors, self._calls = [], [], []
        if rows:
            await self._store.record_all(self._ns, rows)
        if vectors:
            owners = [owner for owner, matrix in vectors for _ in matrix]
            matrix = np.concatenate([matrix for _, matrix in vectors])
            await self._store.put_vectors(self._ns, kind, owners, matrix)
        if calls:
            await self._store.put_calls(self._ns, calls)

    # --- the graph and the runs ----------------------------------------------------------------

    async def _take_decision(self, decision: MergeDecision) -> None:
        await self._store.decide(self._ns, decision)

    async def _take_entity(self, line: EntityLine) -> None:
        self.graph.add_entity(line)

    async def _make_graph(self) -> None:
        """Make the view, once all documents and entities are there."""
        if self._has_graph:
            return
        await self._flush("segment")
        self._has_graph = True
        self._listener(Event("phase", {"phase": "merging"}))
        await self.graph.apply(self._store, self._ns, self.documents)

    async def _take_kept(self, kept: Kept) -> None:
        await self._store.put_cached(self._ns, kept.key, kept.value, segments=kept.segments)

    async def _take_trail(self, trail: Trail) -> None:
        await self._store.put_trail(self._ns, trail)

    async def _take_call(self, call: CallRecord) -> None:
        self._calls.append(call)
        if len(self._calls) >= _ROWS:
            await self._flush("relation")


def _segment(document: DocumentLine, index: int, line: SegmentLine) -> Segment:
    return Segment(
        id=line.id,
        document_id=document.id,
        index=index,
        start=line.start,
        end=line.end,
        text=document.text[line.start : line.end],
        tokens=line.tokens,
        part=line.part,
    )
