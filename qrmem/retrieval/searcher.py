"""Ranked segments for a question, with no chat model."""

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from qrmem.errors import EmbedderMismatch, require_count, require_text
from qrmem.retrieval import definitions, scoring
from qrmem.retrieval.candidates import Neighbourhood, understood
from qrmem.retrieval.exploring import Exploration, explore
from qrmem.retrieval.linking import Texts
from qrmem.retrieval.ranking import ranked, reason
from qrmem.text.boilerplate import boilerplate
from qrmem.text.code.languages import CODE_KEY
from qrmem.text.words import searched
from qrmem.types import Hit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from qrmem.graphstore.protocol import Entry, GraphStore, NamespaceInfo, Vocabulary
    from qrmem.llm.reranking import Reranker
    from qrmem.types import Embedder, Segment


@dataclass(frozen=True, slots=True)
class Findings:
    """All that a search found out before it made its list.

    Attributes:
        near: the segments that were looked at, `n` of them.
        explored: what following names added; `None` where there was no segment to start from.
        scores: `(n,)`, what the segments are ranked by.
        defined: ids of segments of source code that define what the question names, with the name.
    """

    near: Neighbourhood
    explored: Exploration | None
    scores: "NDArray[np.float64]"
    defined: Mapping[str, str]

    def best(self, k: int) -> list[int]:
        """Return the rows of the k best segments, best first."""
        return [int(row) for row in self.near.best(self.scores, k)]


class Searcher:
    """Searches one namespace. Nothing but the sentences of segments is kept between searches.

    Attributes:
        store: where the namespace is.
        ns: the namespace.
        embedder: what its vectors were made by, if it has any.
        reranker: reads the first candidates again; one run's.
    """

    reranker: "Reranker | None" = None

    def __init__(self, store: "GraphStore", ns: str, embedder: "Embedder | None" = None) -> None:
        self.store = store
        self.ns = ns
        self.embedder = embedder
        self._texts = Texts(store, ns)
        self._turns = asyncio.Lock()
        self._looked_up: dict[tuple[str, ...], Vocabulary] | None = None
        self._only: frozenset[str] | None = None

    def within(self, segments: "Collection[str] | None") -> "Searcher":
        """Return a searcher that finds no other segments than these; `None`: all."""
        if segments is None:
            return self
        other = copy(self)
        other._only = frozenset(segments)
        return other

    def on_account(
        self, embedder: "Embedder | None", reranker: "Reranker | None" = None
    ) -> "Searcher":
        """Return a searcher for one run.

        Args:
            embedder: the namespace's own, its use counted in the budget of the run.
            reranker: the run's.
        """
        other = self.reranked_by(reranker)
        other.embedder = embedder if self.embedder is not None else None
        other._looked_up = {}
        return other

    def reranked_by(self, reranker: "Reranker | None") -> "Searcher":
        """Return the same searcher with another reranker, of one run."""
        other = copy(self)
        other.reranker = reranker
        return other

    @asynccontextmanager
    async def _now(self) -> "AsyncIterator[Searcher]":
        """Yield a searcher of the memory as it is now, whatever is written meanwhile.

        Where the store is read in this process, searches take turns: Python runs one thread at a
        time, and several that read a file take twice as long to hand that over at each row.
        """
        turn = self._turns if self.store.has_snapshots else nullcontext()
        async with turn, self.store.snapshot() as store:
            other = copy(self)
            other.store, other._texts = store, self._texts.of(store)
            yield other

    async def vocabulary(self, wanted: Sequence[str]) -> "Vocabulary":
        """Return how many segments have each term.

        One run looks the same terms up once: Neo4j goes through all segments with each of them.
        """
        if self._looked_up is None:
            return await self.store.vocabulary(self.ns, wanted)
        key = tuple(wanted)
        if key not in self._looked_up:
            self._looked_up[key] = await self.store.vocabulary(self.ns, wanted)
        return self._looked_up[key]

    async def search(
        self,
        question: str,
        *,
        k: int = 10,
        documents: Collection[str] | None = None,
        is_reranked: bool = True,
    ) -> list[Hit]:
        """Return the segments that fit a question best.

        Args:
            question: in any language; of a very long one the first words count.
            k: upper bound on the number of hits.
            documents: search these documents only.
            is_reranked: whether the reranker, if there is one, reads the first hits again.

        Returns:
            Best first, ties by (document id, segment index); empty if nothing fits. Tables of
            contents, title pages, indexes and licences come after everything else.

        Raises:
            UsageError: the query is empty, or `k` is below 1.
            EmbedderMismatch: the memory was embedded by another model.
        """
        require_text(question, "the query")
        require_count(k, "k")
        vector = await self._checked_vector(question)
        reranker = self.reranker if is_reranked else None
        most = k if reranker is None else max(k, reranker.depth)
        async with self._now() as now:
            findings = await now._find(question, vector, documents, most)
            hits = [] if findings is None else await now._hits(most, findings)
        # The store need not wait for a server.
        return hits if reranker is None else (await _reranked(reranker, question, hits))[:k]

    async def findings(
        self,
        question: str,
        *,
        documents: Collection[str] | None = None,
        at_least: int = 0,
    ) -> Findings | None:
        """Return what a search finds out, or `None` if there is no such namespace.

        Args:
            question: in any language.
            documents: search these documents only.
            at_least: hits that are wanted; as many candidates are taken.
        """
        vector = await self._checked_vector(question)
        async with self._now() as now:
            return await now._find(question, vector, documents, at_least)

    async def _find(
        self,
        question: str,
        vector: "NDArray[np.float32] | None",
        documents: Collection[str] | None,
        at_least: int,
    ) -> Findings | None:
        if await self.store.namespace(self.ns) is None:
            return None
        question = searched(question)
        neighbourhood = await self._neighbourhood(question, vector, documents, at_least)
        defined = await definitions.find(neighbourhood, question, self._texts)
        explored = await explore(neighbourhood, self._texts) if neighbourhood.size else None
        scores = neighbourhood.direct if explored is None else ranked(explored)
        return Findings(
            neighbourhood, explored, _put_first(scores, neighbourhood.rows(defined)), defined
        )

    async def vector(
        self, text: str, info: "NamespaceInfo | None" = None
    ) -> "NDArray[np.float32] | None":
        """Return a query's vector, `None` where the memory has none."""
        if self.embedder is None:
            return None
        info = info or await self.store.namespace(self.ns)
        if info is None or not info.dimension:
            return None
        return await scoring.embed_query(self.embedder, text, info.dimension)

    async def _checked_vector(self, question: str) -> "NDArray[np.float32] | None":
        info = await self.store.namespace(self.ns)
        if info is None:
            return None
        self._check(info)
        return await self.vector(question, info)

    def _check(self, info: "NamespaceInfo") -> None:
        """Refuse another model; its dimension is checked when there is a vector of it."""
        if self.embedder is not None and info.dimension and self.embedder.name != info.embedder:
            raise EmbedderMismatch(
                f"the memory was embedded by {info.embedder}, not by {self.embedder.name}; "
                "`qrmem reembed` changes it"
            )

    async def ranking(
        self,
        question: str,
        by: str,
        k: int,
        documents: Collection[str] | None = None,
    ) -> dict[str, float]:
        """Return the k best segments by one score alone, best first.

        Args:
            question: in any language.
            by: "bm25" or "cosine".
            k: upper bound on their number.
            documents: ids of the only documents to look at; `None`: all.
        """
        if by == "cosine":
            vector = await self.vector(question)
            if vector is None:
                return {}
            return dict(await self.store.nearest(self.ns, vector, k, documents=documents))
        neighbourhood = await self._neighbourhood(question, None, documents, k)
        scores = neighbourhood.bm25
        return {
            neighbourhood.entries[row].id: float(scores[row])
            for row in neighbourhood.best(scores, k).tolist()
        }

    async def near(
        self, question: str, k: int, documents: Collection[str] | None = None
    ) -> Neighbourhood:
        """Return the segments nearest to a question by its words, and by its meaning.

        Args:
            question: in any language.
            k: how many of each, at most.
            documents: ids of the only documents to look at; `None`: all.
        """
        vector = await self.vector(question)
        async with self._now() as now:
            return await now._neighbourhood(question, vector, documents, k)

    async def _neighbourhood(
        self,
        question: str,
        vector: "NDArray[np.float32] | None",
        documents: Collection[str] | None,
        at_least: int,
    ) -> Neighbourhood:
        understood_question = await understood(
            self.store,
            self.ns,
            searched(question),
            vector=vector,
            documents=None if documents is None else frozenset(documents),
            segments=self._only,
        )
        neighbourhood = Neighbourhood(self.store, self.ns, understood_question, at_least)
        await neighbourhood.start()
        return neighbourhood

    async def score(self, query: str, segment_ids: Sequence[str]) -> dict[str, float]:
        """Return the cosine of some segments, or BM25 without an embedder.

        Segments that the memory doesn't hold are left out.
        """
        ids = list(dict.fromkeys(segment_ids))
        vector = await self.vector(query)
        if vector is not None:
            similarities = await self.store.nearest(self.ns, vector, len(ids), among=ids)
            known_ids = [entry.id for entry in await self.store.entries(self.ns, ids)]
            return {id_: similarities.get(id_, 0.0) for id_ in known_ids}
        query_weights = scoring.query_terms(searched(query))
        vocabulary = await self.vocabulary(list(query_weights))
        weights = scoring.weighted(query_weights, vocabulary)
        entries = await self.store.entries(self.ns, ids)
        bags = (entry.terms for entry in entries)
        counts = scoring.saturated(bags, list(weights), vocabulary.mean_length)
        scores = counts @ np.array(list(weights.values()))
        return {entry.id: float(one) for entry, one in zip(entries, scores, strict=True)}

    async def _hits(self, k: int, found: Findings) -> list[Hit]:
        neighbourhood = found.near
        rows = {neighbourhood.entries[row].id: row for row in found.best(2 * k)}
        read = await self.store.segments(self.ns, list(rows))
        segments = {segment.id: segment for segment in read}  # without those deleted since
        kinds = {id_: _kind(one, neighbourhood.entries[rows[id_]]) for id_, one in segments.items()}
        ordered = sorted((id_ for id_ in rows if id_ in segments), key=lambda id_: kinds[id_] != "")
        hits: list[Hit] = []
        for id_ in ordered[:k]:
            row = rows[id_]
            reason_in_words, over = await reason(neighbourhood, found.explored, self._texts, row)
            name = found.defined.get(id_)
            hit = Hit(
                document_id=segments[id_].document_id,
                title=neighbourhood.entries[row].title,
                segment_id=id_,
                text=segments[id_].text,
                score=min([round(float(found.scores[row]), 4), *(hit.score for hit in hits[-1:])]),
                via=(f'defines "{name}"; ' if name else "") + reason_in_words,
                part=segments[id_].part,
                over=tuple(neighbourhood.entries[source].id for source in over),
                boilerplate=kinds[id_],
            )
            hits.append(hit)
        return hits


async def _reranked(reranker: "Reranker", question: str, hits: list[Hit]) -> list[Hit]:
    """Return hits with the first of them in the order of a reranker, if it gives one.

    Those have scores by their place, from 1 down to more than 0.5; what follows, half of its own.
    """
    first = [hit for hit in hits[: reranker.depth] if not hit.boilerplate]
    texts = ["\n".join(filter(None, (hit.title, hit.text))) for hit in first]
    order = await reranker.ranked(searched(question), texts)
    if order is None:
        return hits
    read = []
    for n, (place, score) in enumerate(order):
        hit = first[place]
        via = hit.via if score is None else f"{hit.via}; reranked: {score:.3g}"
        read.append(replace(hit, score=round(1 - n / (2 * len(order)), 4), via=via))
    rest = (replace(hit, score=round(hit.score / 2, 4)) for hit in hits[len(first) :])
    return [*read, *rest]


def _kind(segment: "Segment", entry: "Entry") -> str:
    """Return what a segment is if it is no text to read; of code, only a licence is none."""
    kind = boilerplate(segment.text, segment.index)
    return kind if kind == "licence" or CODE_KEY not in entry.metadata else ""


def _put_first(scores: "NDArray[np.float64]", rows: "NDArray[np.int64]") -> "NDArray[np.float64]":
    """Put what defines a name of the question before everything else; among them, as before."""
    if not rows.size:
        return scores
    result = scores / 2
    result[rows] += 0.5
    return scoring.normalised(result)
