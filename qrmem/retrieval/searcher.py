"""Ranks segments for a question, without a chat model."""

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from qrmem.errors import EmbedderMismatch, require_count, require_text
from qrmem.retrieval import definitions, scoring
from qrmem.retrieval.candidates import Neighbourhood, understood
from qrmem.retrieval.exploring import Exploration, explore, follow_ups, with_meaning
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

_AT_ONCE = 8
"""Maximum number of snapshots at once."""


@dataclass(frozen=True, slots=True)
class Findings:
    """The results of a search before they are cut to a list.

    Attributes:
        near: the `n` segments that were considered.
        explored: results of following names; `None` if there was no segment to start from.
        scores: `(n,)`, the scores that rank the segments.
        defined: ids of source code segments that define an identifier of the question, with it.
    """

    near: Neighbourhood
    explored: Exploration | None
    scores: "NDArray[np.float64]"
    defined: Mapping[str, str]

    def best(self, k: int) -> list[int]:
        """Return the rows of the k best segments, best first."""
        return [int(row) for row in self.near.best(self.scores, k)]


class Searcher:
    """Searches one namespace. Only the sentences of segments are cached between searches.

    Attributes:
        store: store of the namespace.
        ns: the namespace.
        embedder: the embedder that made its vectors, if it has any.
        reranker: reorders the first candidates; belongs to one run.
    """

    reranker: "Reranker | None" = None

    def __init__(self, store: "GraphStore", ns: str, embedder: "Embedder | None" = None) -> None:
        self.store = store
        self.ns = ns
        self.embedder = embedder
        self._texts = Texts(store, ns)
        self._turns, self._places = asyncio.Lock(), asyncio.Semaphore(_AT_ONCE)
        self._looked_up: dict[tuple[str, ...], Vocabulary] | None = None
        self._only: frozenset[str] | None = None

    def within(self, segments: "Collection[str] | None") -> "Searcher":
        """Return a searcher that finds only these segments; `None`: all."""
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
            embedder: embedder of the namespace, whose use counts in the budget of the run.
            reranker: reranker of the run.
        """
        other = self.reranked_by(reranker)
        other.embedder = embedder if self.embedder is not None else None
        other._looked_up = {}
        return other

    def reranked_by(self, reranker: "Reranker | None") -> "Searcher":
        """Return the same searcher with the reranker of a run."""
        other = copy(self)
        other.reranker = reranker
        return other

    @asynccontextmanager
    async def _now(self) -> "AsyncIterator[Searcher]":
        """Yield a searcher of a snapshot of the memory, which later writes do not change.

        Each snapshot of a file has its own connection and thread, so their number is limited.
        """
        place = self._places if self.store.has_snapshots else nullcontext()
        async with place, self.store.snapshot() as store:
            other = copy(self)
            other.store, other._texts = store, self._texts.of(store)
            yield other

    def _turn(self) -> "AbstractAsyncContextManager[object]":
        """Return the lock for reading; a search that waits for its embedder does not hold it.

        If the store is read in this process, searches take turns. Python runs one thread at a time,
        and several threads that read a file take twice as long, because they switch at each row.
        """
        return self._turns if self.store.has_snapshots else nullcontext()

    async def vocabulary(self, wanted: Sequence[str]) -> "Vocabulary":
        """Return how many segments have each term.

        A run looks up each term once: Neo4j goes through all segments that have the term.
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
            async with now._turn():
                hits = [] if findings is None else await now._hits(most, findings)
        # Outside of the snapshot: the store need not wait for the reranker's server.
        return hits if reranker is None else (await _reranked(reranker, question, hits))[:k]

    async def findings(
        self,
        question: str,
        *,
        documents: Collection[str] | None = None,
        at_least: int = 0,
    ) -> Findings | None:
        """Return the results of a search before they are cut, or `None` without such a namespace.

        Args:
            question: in any language.
            documents: search these documents only.
            at_least: number of wanted hits; at least so many candidates are taken.
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
        question = searched(question)
        async with self._turn():
            if await self.store.namespace(self.ns) is None:
                return None
            neighbourhood = await self._neighbourhood(question, vector, documents, at_least)
            defined = await definitions.find(neighbourhood, question, self._texts)
            explored = await explore(neighbourhood, self._texts) if neighbourhood.size else None
        if explored is not None and vector is not None:
            explored = await self._followed_up(explored)
        scores = neighbourhood.direct if explored is None else ranked(explored)
        return Findings(
            neighbourhood, explored, _put_first(scores, neighbourhood.rows(defined)), defined
        )

    async def _followed_up(self, explored: Exploration) -> Exploration:
        """Return an exploration whose follow-up queries the embedder has read, too."""
        queries = follow_ups(explored)
        if self.embedder is None or not queries:
            return explored
        matrix = await scoring.embed_texts(self.embedder, [*queries.values()], kind="query")
        async with self._turn():
            return await with_meaning(explored, dict(zip(queries, matrix, strict=True)))

    async def vector(
        self, text: str, info: "NamespaceInfo | None" = None
    ) -> "NDArray[np.float32] | None":
        """Return a query's vector; `None` if the memory has no vectors."""
        if self.embedder is None:
            return None
        info = info or await self.store.namespace(self.ns)
        if info is None or not info.dimension:
            return None
        return await scoring.embed_query(self.embedder, text, info.dimension)

    async def _checked_vector(self, question: str) -> "NDArray[np.float32] | None":
        info = None if self.embedder is None else await self.store.namespace(self.ns)
        if info is None:
            return None
        self._check(info)
        return await self.vector(question, info)

    def _check(self, info: "NamespaceInfo") -> None:
        """Refuse another model; its dimension is checked with its first vector."""
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
        """Return the k best segments by a single score, best first.

        Args:
            question: in any language.
            by: "bm25" or "cosine".
            k: upper bound on their number.
            documents: ids of the only documents to search; `None`: all.
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
        """Return the segments nearest to a question by words and by meaning.

        Args:
            question: in any language.
            k: how many of each, at most.
            documents: ids of the only documents to search; `None`: all.
        """
        vector = await self.vector(question)
        async with self._now() as now, now._turn():
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
        # Without segments that were deleted since.
        segments = {segment.id: segment for segment in read}
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
    """Return hits; a reranker, if there is one, orders the first of them.

    Reranked hits get scores by their rank, from 1 down to more than 0.5. Later hits get half of
    their own scores.
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
    """Return the kind of a segment that is not worth reading, else ""; in code only a licence."""
    kind = boilerplate(segment.text, segment.index)
    return kind if kind == "licence" or CODE_KEY not in entry.metadata else ""


def _put_first(scores: "NDArray[np.float64]", rows: "NDArray[np.int64]") -> "NDArray[np.float64]":
    """Put segments that define an identifier of the question first; their order stays."""
    if not rows.size:
        return scores
    result = scores / 2
    result[rows] += 0.5
    return scoring.normalised(result)
