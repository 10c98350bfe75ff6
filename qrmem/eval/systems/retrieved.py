"""Search with no chat model, and the retrieval baselines: BM25, dense, DOS-RAG (B03, B04)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from qrmem.eval.bench import Bench, Tally, passages
from qrmem.eval.memories import Build, Shelf
from qrmem.eval.records import Context, Found, Item
from qrmem.eval.systems.reading import answer_from, fitting
from qrmem.retrieval import dense, fusion, lexical
from qrmem.types import Segment

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

DEPTH = 50
"""Segments of a ranking that are kept for the retrieval metrics."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrieved:
    """Ranks segments, reads the first of them.

    Attributes:
        ranker: `bm25`, `dense` or `search`.
        k: segments read; 0: as many as fit ("Max").
        order: in which they are read: best first, or as in the document (DOS-RAG).
        memory: `local`, or the build whose graph `search` follows.
    """

    ranker: Literal["bm25", "dense", "search"]
    k: int = 3
    order: Literal["score", "document"] = "score"
    memory: Literal["local", "compact", "paper"] = "local"

    @property
    def needs(self) -> frozenset[str]:
        """What has to be there."""
        return frozenset({"embedder"} if self.ranker == "dense" else ())

    @property
    def ranks(self) -> bool:
        """Always."""
        return True

    async def __call__(self, item: Item, context: Context, bench: Bench) -> Found:
        """Answer one item."""
        reader = self.memory if bench.model else "local"
        async with bench.memory(context, Build(reader=reader)) as shelf:
            ranked = await self._ranked(shelf, _query(item))
            found = Found(
                ranked=tuple(dict.fromkeys(segment.document_id for segment in ranked)),
                segments=tuple(segment.id for segment in ranked),
                memory=shelf.key,
            )
            if bench.retrieve:
                return found
            read = await self._answered(item, context, bench, shelf, ranked)
            return replace(read, ranked=found.ranked, segments=found.segments, memory=found.memory)

    async def _answered(
        self,
        item: Item,
        context: Context,
        bench: Bench,
        shelf: Shelf,
        ranked: Sequence[Segment],
    ) -> Found:
        chosen = list(ranked[: self.k] if self.k else ranked)
        if self.order == "document":
            chosen = in_document_order(within_window(chosen, item, bench, shelf))
        return await answer_from(bench, item, passages(shelf, chosen), context=context)

    async def _ranked(self, shelf: Shelf, question: str) -> list[Segment]:
        if self.ranker == "search":
            hits = await shelf.searcher.search(question, k=DEPTH)
            ids = [hit.segment_id for hit in hits]
        else:
            ids = await ranking(shelf, question, self.ranker, DEPTH)
        found = {segment.id: segment for segment in await shelf.store.segments(shelf.ns, ids)}
        return [found[id] for id in ids]


async def ranking(
    shelf: Shelf, question: str, ranker: Literal["bm25", "dense"], k: int
) -> list[str]:
    """Return the ids of the k best segments by BM25 or cosine alone, best first."""
    columns = await shelf.searcher.columns()
    if columns is None or not columns.size:
        return []
    scores: NDArray[np.float64]
    if ranker == "dense":
        embedder = shelf.tools.embedder
        assert embedder is not None
        vector = await dense.embed_query(embedder, question, columns.matrix.shape[1])
        scores = dense.cosines(columns.matrix, columns.matrix_rows, vector, columns.size)
    else:
        settings = shelf.searcher.settings
        wanted = lexical.query_terms(question, settings.max_terms)
        found = await lexical.find(shelf.store, shelf.ns, columns, wanted)
        scores = lexical.scores(columns, settings, wanted, found)
    rows = fusion.best(scores, columns.ranks, min(k, columns.size))
    return [columns.catalog.segment_ids[row] for row in rows]


def _query(item: Item) -> str:
    return " ".join((item.question, *item.choices))


def within_window(
    ranked: Sequence[Segment], item: Item, bench: Bench, shelf: Shelf
) -> list[Segment]:
    """Return the best segments that fit the window together: what DOS-RAG puts in order."""
    reasoner = bench.reader(Tally(bench.listener)).reasoner
    kept = fitting(reasoner, passages(shelf, list(ranked)), reasoner.room(bench.asked(item)))
    return [passage.segment for passage in kept]


def in_document_order(segments: Sequence[Segment]) -> list[Segment]:
    """Return segments by document and place in it."""
    return sorted(segments, key=lambda segment: (segment.document_id, segment.index))
