"""What an `add` finds stored of the documents that it is given: looked up a few at a time."""

from collections.abc import Sequence

from qrmem.graphstore.protocol import GraphStore
from qrmem.types import DocumentInfo


class IngestState:
    """Which documents are there, with which text, and which are done.

    A document is done when every segment is read, merged, and embedded if it is to be.
    """

    def __init__(self, store: GraphStore, ns: str, *, is_embedded: bool) -> None:
        """Look at nothing yet.

        Args:
            is_embedded: whether segments are to have vectors.
        """
        self._store = store
        self._ns = ns
        self._is_embedded = is_embedded
        self._infos: dict[str, DocumentInfo] = {}
        self._digests: dict[str, str] = {}
        self._done: set[str] = set()

    async def look(self, document_ids: Sequence[str]) -> None:
        """Look some documents up; those looked up before are forgotten."""
        self._infos, self._digests, self._done = {}, {}, set()
        self._digests.update(await self._store.document_texts(self._ns, document_ids))
        if not self._digests:
            return
        infos = await self._store.documents(self._ns, list(self._digests))
        self._infos.update((info.id, info) for info in infos)
        read = [info.id for info in infos if not set(info.states) - {"ok"}]
        merged = await self._store.merged_segments(self._ns, *read)
        segments: dict[str, list[str]] = {document_id: [] for document_id in read}
        for row in await self._store.segments_of(self._ns, *read):
            segments[row.document_id].append(row.id)
        embedded = set(merged)
        if self._is_embedded and merged:
            embedded = set((await self._store.vectors(self._ns, "segment", list(merged))).owners)
        self._done.update(id_ for id_, own in segments.items() if embedded.issuperset(own))

    def info(self, document_id: str) -> DocumentInfo | None:
        """Return a document as it was found; `None` if it was not."""
        return self._infos.get(document_id)

    def digest(self, document_id: str) -> str | None:
        """Return the sha256 of a document's text as it was found; `None` if it was not."""
        return self._digests.get(document_id)

    def is_done(self, document_id: str) -> bool:
        """Whether nothing of a document is left to do."""
        return document_id in self._done
