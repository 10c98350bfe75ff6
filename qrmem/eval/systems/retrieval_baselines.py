"""Search, and the retrieval baselines: BM25, dense, DOS-RAG, fragments."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from qrmem.eval.harness import Harness
from qrmem.eval.items import Build, Context, Item, Prediction
from qrmem.eval.memories import OpenMemory
from qrmem.eval.registry import system
from qrmem.eval.systems.passage_reader import answer_from, fitting, ranking
from qrmem.graph.segmenting import longbench_words
from qrmem.graphstore.records import Vocabulary
from qrmem.retrieval.fragments import FragmentSettings
from qrmem.retrieval.fragments.gathering import within_words
from qrmem.retrieval.scoring import query_terms, saturated, weighted
from qrmem.text.sentences import sentences
from qrmem.text.words import terms
from qrmem.types import Passage, Segment

DEPTH = 50
"""Number of ranked segments that are stored for the retrieval metrics."""


@system(
    "dos-rag",
    "retrieve what fits, read it in document order",
    "DOS RAG",
    ranker="dense",
    k=0,
    order="document",
)
@system(
    "dense", "dense, the best k passages (k=0: as many as fit)", "QRMeM's baseline", ranker="dense"
)
@system(
    "bm25", "BM25, the best k passages (k=0: as many as fit)", "QRMeM's baseline", ranker="bm25"
)
@system("search", "our search, then one reading", "ours", ranker="search")
@dataclass(frozen=True, slots=True, kw_only=True)
class Retrieved:
    """Ranks segments and reads the first of them.

    Attributes:
        ranker: `bm25`, `dense` or `search`.
        k: number of segments to read; 0 for as many as fit ("Max").
        order: their order in the prompt: best first, or as in the document (DOS-RAG).
        memory: `local`, or the build mode of the memory for `search`.
    """

    ranker: Literal["bm25", "dense", "search"]
    k: int = 3
    order: Literal["score", "document"] = "score"
    memory: Literal["local", "compact", "paper"] = "local"

    @property
    def needs(self) -> frozenset[str]:
        """Its requirements."""
        return frozenset({"embedder"} if self.ranker == "dense" else ())

    ranks = True

    async def __call__(self, item: Item, context: Context, harness: Harness) -> Prediction:
        """Answer one item."""
        reader = self.memory if harness.model else "local"
        async with harness.memory(context, Build(reader=reader)) as memory:
            ranked, scores = await self._ranked(memory, _query(item))
            prediction = ranking(memory, ranked)
            if harness.retrieve:
                return prediction
            segments = ranked[: self.k] if self.k else ranked
            if self.order == "document":
                segments = in_document_order(within_window(segments, item, harness, memory))
            read = memory.passages(segments)
            return await answer_from(
                harness, item, read, found=prediction, context=context, scores=scores
            )

    async def _ranked(
        self, memory: OpenMemory, question: str
    ) -> tuple[list[Segment], Mapping[str, float]]:
        if self.ranker == "search":
            hits = await memory.searcher.search(question, k=DEPTH)
            scores = {hit.segment_id: hit.score for hit in hits}
        else:
            by = "bm25" if self.ranker == "bm25" else "cosine"
            scores = await memory.searcher.ranking(question, by, DEPTH)
        return await memory.segments(scores), scores


def _query(item: Item) -> str:
    return " ".join((item.question, *item.choices))


def within_window(
    ranked: Sequence[Segment], item: Item, harness: Harness, memory: OpenMemory
) -> list[Segment]:
    """Return the best segments that fit the window together, which DOS-RAG sorts."""
    reasoner = harness.reasoner
    passages_kept = fitting(reasoner, memory.passages(ranked), reasoner.room(harness.asked(item)))
    return [passage.segment for passage in passages_kept]


def in_document_order(segments: Sequence[Segment]) -> list[Segment]:
    """Return segments by document and position."""
    return sorted(segments, key=lambda segment: (segment.document_id, segment.index))


@system("bm25-sentences", "BM25 over single sentences: as many as fit", "ours")
@dataclass(frozen=True, slots=True, kw_only=True)
class RankedSentences:
    """Ranks the sentences of a text by BM25 and reads the first of them, without a memory."""

    async def __call__(self, item: Item, context: Context, harness: Harness) -> Prediction:
        """Answer one item."""
        every = [one for passage in harness.texts(context) for one in _sentences(passage)]
        scores = bm25_of_texts(_query(item), [passage.segment.text for passage in every])
        best = sorted((n for n, score in enumerate(scores) if score > 0), key=lambda n: -scores[n])
        return await answer_from(harness, item, [every[n] for n in best], context=context)


def _sentences(passage: Passage) -> Iterator[Passage]:
    segment = passage.segment
    for start, end in sentences(segment.text):
        text = segment.text[start:end].rstrip()
        first = segment.start + start
        one = replace(segment, id=f"{segment.id}:{first}", start=first, end=first + len(text))
        yield replace(passage, segment=replace(one, text=text))


def bm25_of_texts(query: str, texts: Sequence[str]) -> Sequence[float]:
    """Return the BM25 scores of texts for a query, with these texts as the corpus."""
    bags = [terms(text) for text in texts]
    spread = Counter(term for bag in bags for term in set(bag))
    vocabulary = Vocabulary(len(bags), sum(map(len, bags)), spread)
    weights = weighted(query_terms(query), vocabulary)
    counts = saturated(bags, list(weights), vocabulary.mean_length)
    scores: list[float] = (counts @ list(weights.values())).tolist()
    return scores


@system("fragment", "fragments picked for their surroundings", "FragRel")
@dataclass(frozen=True, slots=True, kw_only=True)
class Fragmented:
    """Reads the best fragments by FragRel.

    Attributes:
        relation: `semantic` is A-FragRel in the paper, `structure` B-FragRel.
        alpha: 0 is retrieval of independent fragments (No-FragRel).
        size: words of a fragment, counted like LongBench (C500, C800); 0 uses segments.
        words: maximum number of words to read (the paper's context limit); 0 fills the window.
        top: maximum number of fragments; 0 for no limit.
        order: their order in the prompt: as in the text, or best first (Equation 11).
    """

    relation: Literal["structure", "semantic"] = "structure"
    w_rel: float = 0.3
    alpha: float = 0.5
    score: Literal["auto", "cosine", "bm25", "jaccard"] = "auto"
    size: int = 0
    words: int = 0
    top: int = 0
    order: Literal["position", "score"] = "position"

    def __post_init__(self) -> None:
        self._settings()

    @property
    def needs(self) -> frozenset[str]:
        """`embedder`, if the score or the relation uses cosines."""
        wants = self.score == "cosine" or (self.relation == "semantic" and self.alpha > 0)
        return frozenset({"embedder"} if wants else ())

    ranks = True

    async def __call__(self, item: Item, context: Context, harness: Harness) -> Prediction:
        """Answer one item."""
        async with harness.memory(context, Build(words=self.size)) as memory:
            question = "\n".join((item.question, *item.choices))
            ranked, scores = await self._ranked(memory, question)
            prediction = ranking(memory, ranked[:DEPTH])
            if harness.retrieve:
                return prediction
            segments = within_window(self._choose(ranked), item, harness, memory)
            if self.order == "position":
                segments = in_document_order(segments)
            read = memory.passages(segments)
            return await answer_from(
                harness, item, read, found=prediction, context=context, scores=scores
            )

    async def _ranked(
        self, memory: OpenMemory, question: str
    ) -> tuple[list[Segment], Mapping[str, float]]:
        assessed = await memory.fragments.assess(question, settings=self._settings())
        if assessed is None:
            return [], {}
        best = assessed.best(assessed.fragments.size)
        return await memory.segments(best), best

    def _settings(self) -> FragmentSettings:
        return FragmentSettings(
            # A relation without weight is not computed.
            relation=self.relation if self.alpha else "structure",
            w_rel=self.w_rel,
            alpha=self.alpha,
            score=self.score,
        )

    def _choose(self, ranked: Sequence[Segment]) -> Sequence[Segment]:
        segments = ranked[: self.top] if self.top else ranked
        if self.words:
            counts = [len(longbench_words(segment.text)) for segment in segments]
            segments = segments[: within_words(counts, self.words)]
        return segments
