"""Ranked segments for a question, with no chat model."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from qrmem.errors import EmbedderMismatch, UsageError
from qrmem.records import Hit, Scalar
from qrmem.retrieval import columns as loading
from qrmem.retrieval import dense, fusion, lexical
from qrmem.retrieval.columns import Columns
from qrmem.retrieval.settings import SearchSettings

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from qrmem.graphstore.protocol import GraphStore
    from qrmem.ports import Embedder
    from qrmem.retrieval.bm25 import Occurrences


@dataclass(frozen=True, slots=True)
class Direct:
    """What a question says about every segment by itself, before any link is followed.

    Attributes:
        terms: the question's words with their counts.
        found: where they occur.
        lexical: `(n,)`, BM25.
        dense: `(n,)`, cosine; all 0 without an embedder.
    """

    terms: Mapping[str, float]
    found: "Mapping[str, Occurrences]"
    lexical: "NDArray[np.float64]"
    dense: "NDArray[np.float64]"


class Searcher:
    """Searches one namespace; keeps its columns until the namespace's revision changes."""

    def __init__(
        self,
        store: "GraphStore",
        ns: str,
        embedder: "Embedder | None" = None,
        settings: SearchSettings | None = None,
    ) -> None:
        self._store = store
        self._ns = ns
        self._embedder = embedder
        self._settings = settings or SearchSettings()
        self._columns: Columns | None = None
        self._loaded: tuple[int, str] = (-1, "")
        self._loading = asyncio.Lock()

    @property
    def settings(self) -> SearchSettings:
        """How it weighs its parts."""
        return self._settings

    async def search(
        self,
        question: str,
        *,
        k: int = 10,
        documents: Collection[str] | None = None,
        where: Mapping[str, Scalar] | None = None,
    ) -> list[Hit]:
        """Return the segments that fit a question best.

        Args:
            question: in any language; of a very long one the first words count.
            k: upper bound on the number of hits.
            documents: search these documents only.
            where: search documents with this metadata only.

        Returns:
            Best first, ties by (document id, segment index); empty if nothing fits.

        Raises:
            UsageError: the question is empty, or `k` is below 1.
            EmbedderMismatch: the memory was embedded by another model.
        """
        if not question.strip():
            raise UsageError("the question is empty")
        if k < 1:
            raise UsageError(f"k must be at least 1, not {k}")
        columns = await self.columns()
        if columns is None or not columns.size:
            return []
        allowed = columns.allowed(documents, where)
        if not allowed.any():
            return []
        direct = await self._direct(columns, question, allowed)
        scores = self._fused(direct, columns.size)
        rows = [row for row in fusion.best(scores, columns.ranks, k) if scores[row] > 0]
        return await self._hits(columns, rows, scores, direct)

    async def columns(self) -> Columns | None:
        """Return the columns of the present revision, or `None` if there is no namespace."""
        async with self._loading:
            info = await self._store.namespace(self._ns)
            if info is None:
                return None
            self._check(info.embedder, info.dimension)
            current = (info.revision, info.embedder)
            complete = self._columns is not None and (
                self._columns.is_embedded or not info.dimension
            )
            if self._loaded != current or not complete:
                self._columns = await loading.load(self._store, self._ns, info)
                self._loaded = current
            return self._columns

    def _check(self, recorded: str, dimension: int) -> None:
        embedder = self._embedder
        if embedder is None or not dimension:
            return
        if embedder.name != recorded or embedder.dimension != dimension:
            raise EmbedderMismatch(
                f"the memory was embedded by {recorded} ({dimension} dimensions), not by "
                f"{embedder.name} ({embedder.dimension}); `qrmem reembed` changes it"
            )

    async def _direct(
        self, columns: Columns, question: str, allowed: "NDArray[np.bool_]"
    ) -> Direct:
        wanted = lexical.query_terms(question, self._settings.max_terms)
        found = await lexical.find(self._store, self._ns, columns, wanted)
        by_words = lexical.scores(columns, self._settings, wanted, found)
        by_sense = np.zeros(columns.size)
        if self._embedder is not None and columns.matrix_rows.size:
            query = await dense.embed_query(self._embedder, question, columns.matrix.shape[1])
            by_sense = dense.cosines(columns.matrix, columns.matrix_rows, query, columns.size)
        return Direct(wanted, found, by_words * allowed, by_sense * allowed)

    def _fused(self, direct: Direct, size: int) -> "NDArray[np.float64]":
        chosen = self._settings
        return fusion.fused([(chosen.lexical, direct.lexical), (chosen.dense, direct.dense)], size)

    async def _hits(
        self,
        columns: Columns,
        rows: Sequence[int],
        scores: "NDArray[np.float64]",
        direct: Direct,
    ) -> list[Hit]:
        ids = [columns.catalog.segment_ids[row] for row in rows]
        texts = {segment.id: segment for segment in await self._store.segments(self._ns, ids)}
        hits = []
        for row, name in zip(rows, ids, strict=True):
            segment = texts.get(name)
            if segment is None:  # deleted since the columns were read
                continue
            hits.append(
                Hit(
                    document_id=segment.document_id,
                    title=columns.title(row),
                    segment_id=name,
                    text=segment.text,
                    score=round(float(scores[row]), 4),
                    via=_reason(direct, row),
                    part=segment.part,
                )
            )
        return hits


def _reason(direct: Direct, row: int) -> str:
    shared = [term for term, at in direct.found.items() if _holds(at.rows, row)]
    parts = [f"shares the words {', '.join(shared[:6])}"] if shared else []
    if direct.dense[row] > 0:
        parts.append(f"is near in meaning ({direct.dense[row]:.2f})")
    return " and ".join(parts)


def _holds(rows: "NDArray[np.int64]", row: int) -> bool:
    at = int(np.searchsorted(rows, row))
    return at < rows.size and int(rows[at]) == row
