"""Which documents are done: every segment read, merged, and embedded if it is to be."""

from qrmem.graphstore.protocol import GraphStore
from qrmem.types import DocumentInfo


class Completeness:
    """What an `add` finds done when it begins."""

    def __init__(self, store: GraphStore, ns: str, *, is_embedded: bool) -> None:
        """Look at nothing yet.

        Args:
            is_embedded: whether segments are to have vectors.
        """
        self._store = store
        self._ns = ns
        self._is_embedded = is_embedded
        self._is_whole: bool | None = None
        self._infos: dict[str, DocumentInfo] = {}
        self._owners: frozenset[str] = frozenset()

    async def of(self, document_id: str) -> bool:
        """Whether a document is done.

        The namespace is looked at as a whole first: an `add` that finds nothing new asks about each
        of its documents.
        """
        return await self._look() or await self._is_done(document_id)

    async def found(self, document_id: str) -> DocumentInfo | None:
        """Return a document as it was when the namespace was looked at."""
        await self._look()
        return self._infos.get(document_id)

    def segments(self, document_id: str) -> int:
        """Return how many segments a document has that was found done."""
        return self._infos[document_id].segments

    async def _look(self) -> bool:
        if self._is_whole is None:
            self._is_whole = await self._looked()
        return self._is_whole

    async def _looked(self) -> bool:
        infos = await self._store.documents(self._ns)
        if self._is_embedded:
            self._owners = frozenset(await self._store.owners(self._ns, "segment"))
        self._infos = {info.id: info for info in infos}
        segments = sum(info.segments for info in infos)
        if self._is_embedded and len(self._owners) < segments:
            return False
        if any(set(info.states) - {"ok"} for info in infos):
            return False
        merged = await self._store.merged_segments(self._ns, *self._infos)
        return len(merged) == segments

    async def _is_done(self, document_id: str) -> bool:
        ledger = await self._store.ledger(self._ns, document_id)
        merged = await self._store.merged_segments(self._ns, document_id)
        return all(
            row.state == "ok"
            and row.segment_id in merged
            and (not self._is_embedded or row.segment_id in self._owners)
            for row in ledger
        )
