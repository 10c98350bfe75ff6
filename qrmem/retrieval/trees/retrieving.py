"""Searches a tree: all texts in one table, or one level after the other (RAPTOR).

The table has raw segments, summaries and surprises (ILM-TR, Figure 2). They are ranked by cosine.
Without an embedder, or if another embedder made the tree's vectors, they are ranked by TF-IDF.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from rapidfuzz.distance import LCSseq

from qrmem.graphstore.protocol import GraphStore
from qrmem.retrieval.trees.nodes import StoredNode, StoredTree, texts_of
from qrmem.text.sentences import sentences
from qrmem.text.words import terms, tokens
from qrmem.types import Embedder, Segment
from qrmem.types.answers import NodeKind

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]


TOP, TOP_LAYER, TOKENS = 10, 5, 3500
"""Maximum entries of a search, in all or by level, and their tokens (RAPTOR's defaults)."""
LEAVES = 50
"""Number of segments that the database proposes for a query."""


@dataclass(frozen=True, slots=True)
class TableEntry:
    """A text of the table.

    Attributes:
        key: key of its node; id of a raw segment.
        level: 0 for a raw segment.
        segments: ids of the raw segments below.
    """

    key: str
    kind: NodeKind
    level: int
    text: str
    segments: tuple[str, ...]
    score: float = 0.0


class TreeTable:
    """The texts of some trees, ready to be ranked."""

    def __init__(
        self,
        store: GraphStore,
        ns: str,
        trees: Sequence[StoredTree],
        embedder: Embedder | None,
        *,
        surprising: bool = True,
    ) -> None:
        """Take trees.

        Args:
            embedder: embedder of the namespace.
            surprising: whether surprises are in the table (an ablation leaves them out).
        """
        self._store = store
        self._ns = ns
        self._trees = trees
        self._embedder = embedder
        nodes = [stored_node for tree in trees for stored_node in tree.nodes.values()]
        self._entries = [entry for node in nodes for entry in _entries(node, surprising)]
        self._is_dense = embedder is not None and all(
            tree.made.get("embedder") == embedder.name for tree in trees
        )
        self._vectors = [
            row
            for node in nodes
            if node.vectors is not None
            for row in (node.vectors if surprising else node.vectors[:1])
        ]

    async def collapsed(self, query: str) -> list[TableEntry]:
        """Return all entries with a positive score for a query, best first."""
        entries = [*await self._above(query), *await self._leaves(query)]
        entries = [entry for entry in entries if entry.score > 0]
        return sorted(entries, key=lambda entry: (-round(entry.score, 4), entry.level, entry.key))

    async def layered(self, query: str) -> list[list[TableEntry]]:
        """Return the best of the top level, then the best below these, down to segments."""
        above = {e.key: e for e in await self._above(query) if e.kind == "summary"}
        covers = {key: n.node.covers for tree in self._trees for key, n in tree.nodes.items()}
        level = [root for tree in self._trees for root in tree.tree.roots]
        layers = []
        while level:
            leaves = await self._these(query, [key for key in level if key not in covers])
            entries_known = [*(above[key] for key in level if key in above), *leaves]
            best = sorted(entries_known, key=lambda entry: (-round(entry.score, 4), entry.key))[
                :TOP_LAYER
            ]
            layers.append([entry for entry in best if entry.score > 0])
            below = (child for entry in best for child in covers.get(entry.key, ()))
            level = list(dict.fromkeys(below))
        return layers

    async def _these(self, query: str, ids: Sequence[str]) -> list[TableEntry]:
        """Return given segments with their scores."""
        segments = await self._store.segments(self._ns, list(ids)) if ids else ()
        if self._is_dense and self._embedder is not None and segments:
            (vector,) = await self._embedder.embed([query], kind="query")
            similarities = await self._store.nearest(self._ns, vector, len(ids), among=list(ids))
            return [
                _leaf(s.id, s.text, similarities[s.id]) for s in segments if s.id in similarities
            ]
        leaves = [_leaf(segment.id, segment.text) for segment in segments]
        return _scored(leaves, tf_idf(query, [leaf.text for leaf in leaves]))

    async def _above(self, query: str) -> list[TableEntry]:
        """Return summaries and surprises with their scores."""
        if not self._is_dense:
            texts = [entry.text for entry in self._entries]
            return _scored(self._entries, tf_idf(query, texts))
        import numpy as np

        assert self._embedder is not None
        (vector,) = await self._embedder.embed([query], kind="query")
        matrix = np.stack(self._vectors) if self._vectors else np.zeros((0, len(vector)))
        return _scored(self._entries, [float(score) for score in matrix @ vector])

    async def _leaves(self, query: str) -> list[TableEntry]:
        """Return raw segments with their scores."""
        documents = sorted(tree.tree.document_id for tree in self._trees)
        if self._is_dense and self._embedder is not None:
            (vector,) = await self._embedder.embed([query], kind="query")
            similarities = await self._store.nearest(self._ns, vector, LEAVES, documents=documents)
            segments = await self._store.segments(self._ns, list(similarities))
            return [_leaf(s.id, s.text, similarities[s.id]) for s in segments]
        query_terms = sorted(set(terms(query)))
        (ids,) = await self._store.matching_each(self._ns, [[query_terms]], LEAVES, documents)
        segments = await self._store.segments(self._ns, list(ids))
        leaves = [_leaf(segment.id, segment.text) for segment in segments]
        return _scored(leaves, tf_idf(query, [leaf.text for leaf in leaves]))


def within(entries: Sequence[TableEntry], sizes: Mapping[str, int], room: int) -> list[TableEntry]:
    """Return the first entries, up to the first one that would exceed the room.

    Args:
        sizes: tokens by text.
    """
    entries_kept: list[TableEntry] = []
    for entry in entries:
        room -= sizes[entry.text]
        if room < 0:
            break
        entries_kept.append(entry)
    return entries_kept


def tf_idf(query: str, texts: Sequence[str]) -> list[float]:
    """Return the TF-IDF cosines of texts with a query; rarity comes from these texts."""
    bags = [Counter(terms(text)) for text in texts]
    spread = Counter(term for bag in bags for term in bag)
    weight = {term: math.log((1 + len(bags)) / (1 + n)) + 1 for term, n in spread.items()}
    query_counts = Counter(term for term in terms(query) if term in weight)
    return [_cosine(query_counts, bag, weight) for bag in bags]


def _cosine(asked: Counter[str], bag: Counter[str], weight: Mapping[str, float]) -> float:
    def size(one: Counter[str]) -> float:
        return math.sqrt(sum(((1 + math.log(n)) * weight[t]) ** 2 for t, n in one.items()))

    shared = sum(
        (1 + math.log(n)) * (1 + math.log(bag[t])) * weight[t] ** 2
        for t, n in asked.items()
        if t in bag
    )
    return shared / (size(asked) * size(bag)) if shared else 0.0


def _entries(stored: StoredNode, surprising: bool) -> list[TableEntry]:
    """Return a node's entries: its summary, then its surprises, in the order of its vectors."""
    node = stored.node
    summary, *block = texts_of(node.summary, node.surprises)
    entries = [TableEntry(node.key, "summary", node.level, summary, node.segments)]
    for text in block if surprising else ():
        entries.append(TableEntry(node.key, "surprise", node.level, text, node.segments))
    return entries


def _leaf(id: str, text: str, score: float = 0.0) -> TableEntry:
    return TableEntry(id, "segment", 0, text, (id,), score)


def _scored(entries: Sequence[TableEntry], scores: Sequence[float]) -> list[TableEntry]:
    pairs = zip(entries, scores, strict=True)
    return [replace(entry, score=score) for entry, score in pairs]


# The inner loop without a chat model: sentences near the question, then near what was found.
#
# The memory of a round is the best sentences. The query of the next round is the question together
# with their mean (relevance feedback after Rocchio, 1971), so that a sentence with words of a
# found sentence is near, even if it shares no word with the question.

CANDIDATES = 400
"""Number of segments that the database proposes for one round's query."""
SURPRISING = 1.1
"""Factor on the score of a sentence that is a surprise in its tree."""
LABEL = 8
"""Tokens of the label of a segment with shown sentences."""

Bag = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class NodeSentence:
    """A sentence of a segment; `start` and `end` are positions in its document."""

    segment_id: str
    document_id: str
    start: int
    end: int
    text: str
    is_surprise: bool
    score: float = 0.0


@dataclass(slots=True)
class Sentences:
    """The sentences that were found for a question so far.

    Attributes:
        surprises: segment id to the surprises of the node above it, white space folded.
        documents: ids of the only documents to search; `None`: all.
    """

    store: GraphStore
    ns: str
    surprises: Mapping[str, frozenset[str]]
    documents: frozenset[str] | None = None
    _known: dict[str, list[tuple[NodeSentence, list[str]]]] = field(default_factory=dict)

    async def ranked(self, question: str, memory: Sequence[str]) -> list[NodeSentence]:
        """Return sentences by similarity to the question and the memory, best first."""
        question_terms, memory_terms = terms(question), [terms(line) for line in memory]
        all_terms = sorted({*question_terms, *(term for line in memory_terms for term in line)})
        if not all_terms:
            return []
        sentences_near = await self._sentences_near(all_terms)
        vocabulary = await self.store.vocabulary(
            self.ns, sorted({t for _, sentence_terms in sentences_near for t in sentence_terms})
        )
        weight = {
            term: math.log((1 + vocabulary.segments) / (1 + count)) + 1
            for term, count in vocabulary.frequencies.items()
        }
        query = _sum(
            _unit(question_terms, weight), _mean([_unit(line, weight) for line in memory_terms])
        )
        scored = [
            (
                _dot(query, _unit(sentence_terms, weight)) * (SURPRISING if one.is_surprise else 1),
                one,
            )
            for one, sentence_terms in sentences_near
        ]
        scored.sort(key=lambda pair: (-round(pair[0], 4), pair[1].document_id, pair[1].start))
        return [replace(one, score=score) for score, one in scored if score > 0]

    async def _sentences_near(self, wanted: Sequence[str]) -> list[tuple[NodeSentence, list[str]]]:
        (ids,) = await self.store.matching_each(self.ns, [[wanted]], CANDIDATES, self.documents)
        new = [id for id in ids if id not in self._known]
        for segment in await self.store.segments(self.ns, new):
            self._known[segment.id] = self._cut(segment)
        return [pair for id in ids for pair in self._known.get(id, ())]

    def _cut(self, segment: Segment) -> list[tuple[NodeSentence, list[str]]]:
        surprises, cut_sentences = self.surprises.get(segment.id, frozenset()), []
        for start, end in sentences(segment.text):
            text = segment.text[start:end].rstrip()
            flat = " ".join(text.split())
            if sentence_terms := terms(flat):
                at = segment.start + start
                place = (segment.id, segment.document_id, at, at + len(text))
                cut_sentences.append(
                    (NodeSentence(*place, text, flat in surprises), sentence_terms)
                )
        return cut_sentences


def fitting(
    ranked: Sequence[NodeSentence], room: int, count: Callable[[str], int]
) -> tuple[NodeSentence, ...]:
    """Return the first sentences that fit a number of tokens, including the labels of segments."""
    sentences_shown: list[NodeSentence] = []
    labelled: set[str] = set()
    for one in ranked:
        room -= count(one.text) + 1 + (0 if one.segment_id in labelled else LABEL)
        if room < 0:
            break
        labelled.add(one.segment_id)
        sentences_shown.append(one)
    return tuple(sentences_shown)


def likeness(before: str, after: str) -> float:
    """Return 2L/(a+b) of two texts' words, L that of their longest common subsequence; in [0, 1].

    Both empty: 1.
    """
    ours, theirs = tokens(before), tokens(after)
    return (
        float(LCSseq.normalized_similarity(ours, theirs))
        if not ours or not theirs
        else (2 * LCSseq.similarity(ours, theirs) / (len(ours) + len(theirs)))
    )


def _unit(words: Sequence[str], weight: Bag) -> dict[str, float]:
    bag = Counter(word for word in words if word in weight)
    weights_found = {word: (1 + math.log(n)) * weight[word] for word, n in bag.items()}
    size = math.sqrt(sum(value * value for value in weights_found.values())) or 1.0
    return {word: value / size for word, value in weights_found.items()}


def _mean(bags: Sequence[Bag]) -> dict[str, float]:
    total: Counter[str] = Counter()
    for bag in bags:
        for word, value in bag.items():
            total[word] += value  # type: ignore[assignment]
    size = math.sqrt(sum(value * value for value in total.values())) or 1.0
    return {word: value / size for word, value in total.items()}


def _sum(one: Bag, other: Bag) -> dict[str, float]:
    return {word: one.get(word, 0.0) + other.get(word, 0.0) for word in one.keys() | other.keys()}


def _dot(one: Bag, other: Bag) -> float:
    return sum(value * one.get(word, 0.0) for word, value in other.items())
