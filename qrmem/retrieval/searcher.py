"""Ranked segments for a question, with no chat model."""

import asyncio
from collections.abc import Collection, Mapping
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from qrmem.errors import EmbedderMismatch, UsageError
from qrmem.retrieval import definitions, fusion
from qrmem.retrieval import direct as direct_of
from qrmem.retrieval.exploring import Memory, explore
from qrmem.retrieval.features import Evidence, combined
from qrmem.retrieval.keeping import Keeper
from qrmem.retrieval.reasons import reason
from qrmem.retrieval.settings import SearchSettings
from qrmem.retrieval.weights import WITH_EMBEDDER, WITHOUT_EMBEDDER
from qrmem.types import Hit, Scalar

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from qrmem.graphstore.protocol import GraphStore, NamespaceInfo
    from qrmem.retrieval.columns import Columns
    from qrmem.retrieval.direct import Direct
    from qrmem.types import Embedder


_TIE = 1e-4
"""Scores that are shown with four digits and differ by less are equal."""


@dataclass(frozen=True, slots=True)
class Findings:
    """All that a search found out before it made its list.

    Attributes:
        direct: what the question says about each segment by itself.
        evidence: what following names added; `None` where that is switched off.
        scores: `(n,)`, what the segments are ranked by.
        defined: rows of source code that define what the question names, with the name.
    """

    direct: "Direct"
    evidence: Evidence | None
    scores: "NDArray[np.float64]"
    defined: "Mapping[int, str]"


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
        self._memory: Memory | None = None
        self._keeper = Keeper(store, ns)
        self._loading = asyncio.Lock()
        self._loaded: tuple[int, str] = (-1, "")
        self._is_settled = False

    @property
    def store(self) -> "GraphStore":
        """Where the namespace is."""
        return self._store

    @property
    def ns(self) -> str:
        """The namespace."""
        return self._ns

    @property
    def embedder(self) -> "Embedder | None":
        """What the namespace's vectors were made by."""
        return self._embedder

    @property
    def settings(self) -> SearchSettings:
        """How it weighs its parts."""
        return self._settings

    async def on_account(self, embedder: "Embedder | None") -> "Searcher":
        """Return a searcher for one run: it stays with the memory as it is now.

        It asks the store no more how the memory stands.

        Args:
            embedder: the namespace's own, its use counted on the account of the run.
        """
        memory = await self._open()
        other = copy(self)
        other._is_settled = True
        other._embedder = embedder if self._embedder is not None else None
        if memory is None:
            other._columns = other._memory = None
        return other

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
        found = await self.findings(question, documents=documents, where=where)
        if found is None or self._memory is None:
            return []
        ranks = self._memory.columns.ranks
        rows = [row for row in fusion.best(found.scores, ranks, k) if found.scores[row] > 0]
        return await self._hits(self._memory, rows, found)

    async def findings(
        self,
        question: str,
        *,
        documents: Collection[str] | None = None,
        where: Mapping[str, Scalar] | None = None,
    ) -> Findings | None:
        """Return what a search finds out about every segment, or `None` if there is none."""
        memory = await self._open()
        if memory is None or not memory.columns.size:
            return None
        allowed = memory.columns.allowed(documents, where)
        direct = await direct_of.score(
            self._store,
            self._ns,
            memory.columns,
            memory.graph,
            question,
            embedder=self._embedder,
            allowed=allowed,
            settings=self._settings,
        )
        defined = await self._defined(memory, question, allowed)
        if not self._settings.graph:
            return Findings(direct, None, _put_first(direct.scores, defined), defined)
        evidence = await explore(memory, direct, allowed, self._settings)
        scores = _put_first(self._ranked(direct, evidence), defined)
        return Findings(direct, evidence, scores, defined)

    async def _defined(
        self, memory: Memory, question: str, allowed: "NDArray[np.bool_]"
    ) -> dict[int, str]:
        found = await definitions.find(
            self._store, self._ns, memory.columns, memory.graph, question
        )
        return {row: name for row, name in found.items() if allowed[row]}

    def _ranked(self, direct: "Direct", evidence: Evidence) -> "NDArray[np.float64]":
        """Put the candidates before all others, which keep the order of their direct scores."""
        weights = self._settings.features
        if weights is None:
            weights = WITH_EMBEDDER if direct.is_dense else WITHOUT_EMBEDDER
        if not evidence.rows.size or not weights:
            return direct.scores
        sums = combined(evidence, weights)
        # Half the slope of a logistic curve, so that far lower sums still differ after rounding.
        likely = 2 / (1 + np.exp((sums.max() - sums) / 2))
        scores = direct.scores * float(likely.min()) * 0.99
        scores[evidence.rows] = likely
        return _led(scores, direct, evidence.rows)

    async def columns(self) -> "Columns | None":
        """Return the columns of the present revision, or `None` if there is no namespace."""
        if self._is_settled:
            return self._columns
        async with self._loading:
            info = await self._store.namespace(self._ns)
            return None if info is None else await self._current(info)

    async def _open(self) -> Memory | None:
        if self._is_settled:
            return self._memory
        async with self._loading:
            info = await self._store.namespace(self._ns)
            if info is None:
                return None
            columns = await self._current(info)
            if self._memory is None or self._memory.columns is not columns:
                graph = await self._keeper.graph(columns)
                self._memory = Memory(self._store, self._ns, columns, graph)
            return self._memory

    async def _current(self, info: "NamespaceInfo") -> "Columns":
        """Return the columns; read again if the revision moved or vectors were still missing."""
        self._check(info)
        seen = (info.revision, info.embedder)
        known = self._columns
        if known is None or self._loaded != seen or await self._has_new_vectors(info, known):
            bare = await self._keeper.columns(info.revision)
            known = self._columns = await bare.with_vectors(self._store, self._ns, info)
            self._loaded = seen
        return known

    async def _has_new_vectors(self, info: "NamespaceInfo", known: "Columns") -> bool:
        """Return whether vectors came since; they don't move the revision."""
        if not info.dimension or known.embedded == known.size:
            return False
        owners = await self._store.owners(self._ns, "segment")
        return len(known.row_of.keys() & set(owners)) != known.embedded

    def _check(self, info: "NamespaceInfo") -> None:
        """Refuse another model; its dimension is checked when there is a vector of it."""
        if self._embedder is not None and info.dimension and self._embedder.name != info.embedder:
            raise EmbedderMismatch(
                f"the memory was embedded by {info.embedder}, not by {self._embedder.name}; "
                "`qrmem reembed` changes it"
            )

    async def _hits(self, memory: Memory, rows: list[int], found: Findings) -> list[Hit]:
        known = memory.columns.catalog.segment_ids
        ids = [known[row] for row in rows]
        segments = {found.id: found for found in await self._store.segments(self._ns, ids)}
        hits = []
        for row, name in zip(rows, ids, strict=True):
            if name not in segments:  # deleted since the columns were read
                continue
            told, over = await reason(memory, found.evidence, found.direct, row)
            hit = Hit(
                document_id=segments[name].document_id,
                title=memory.columns.title(row),
                segment_id=name,
                text=segments[name].text,
                score=round(float(found.scores[row]), 4),
                via=_defining(found, row) + told,
                part=segments[name].part,
                over=tuple(known[source] for source in over),
            )
            hits.append(hit)
        return hits


def _led(
    scores: "NDArray[np.float64]", direct: "Direct", rows: "NDArray[np.int64]"
) -> "NDArray[np.float64]":
    """Let nothing lead that has no word of the question, where something has one.

    A link is only as good as where it starts. In a small memory everything is linked with
    everything, and what was fitted on large ones would let a neighbour lead.
    """
    own = (direct.lexical[rows] > 0) | (direct.named[rows] > 0)
    if own.any() and not own.all():
        ahead = rows[own][np.argmax(scores[rows[own]])]
        if scores[rows[~own]].max() > scores[ahead] - _TIE:
            top = scores[rows].max()
            scores *= 1 - 2 * _TIE
            scores[ahead] = top
    return scores


def _put_first(
    scores: "NDArray[np.float64]", defined: "Mapping[int, str]"
) -> "NDArray[np.float64]":
    """Put what defines a name of the question before everything else; among them, as before."""
    if not defined:
        return scores
    result = scores / 2
    rows = list(defined)
    result[rows] += 0.5
    return fusion.normalised(result)


def _defining(found: Findings, row: int) -> str:
    return f'defines "{found.defined[row]}"; ' if row in found.defined else ""
