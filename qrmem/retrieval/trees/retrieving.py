"""What a tree is searched by: all its texts in one table, or one level after the other (RAPTOR).

The table has raw segments, summaries and surprises (ILM-TR, Figure 2). With an embedder they are
ranked by cosine, without one by TF-IDF; so is a tree whose vectors another embedder made.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from qrmem.graphstore.protocol import GraphStore
from qrmem.retrieval.trees.nodes import StoredNode, StoredTree, texts_of
from qrmem.text.words import terms
from qrmem.types import Embedder
from qrmem.types.answers import NodeKind

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]

TOP, TOP_LAYER, TOKENS = 10, 5, 3500
"""Entries of a search at most, in all or of each level, and their tokens (RAPTOR's defaults)."""
LEAVES = 50
"""Segments that the database proposes for a query."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A text of the table.

    Attributes:
        key: of its node; of the segment itself for a raw one.
        level: 0 for a raw segment.
        segments: ids of the raw segments below.
    """

    key: str
    kind: NodeKind
    level: int
    text: str
    segments: tuple[str, ...]
    score: float = 0.0


class Table:
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
            embedder: that the namespace was embedded by.
            surprising: whether surprises are in the table (an ablation leaves them out).
        """
        self._store = store
        self._ns = ns
        self._trees = trees
        self._embedder = embedder
        nodes = [stored for tree in trees for stored in tree.nodes.values()]
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

    async def collapsed(self, query: str) -> list[Entry]:
        """Return all entries that have anything to do with a query, best first."""
        found = [*await self._above(query), *await self._leaves(query)]
        found = [entry for entry in found if entry.score > 0]
        return sorted(found, key=lambda entry: (-round(entry.score, 4), entry.level, entry.key))

    async def layered(self, query: str) -> list[list[Entry]]:
        """Return the best of the top level, then the best of what these cover, down to segments."""
        above = {e.key: e for e in await self._above(query) if e.kind == "summary"}
        covers = {key: n.node.covers for tree in self._trees for key, n in tree.nodes.items()}
        level = [root for tree in self._trees for root in tree.tree.roots]
        layers = []
        while level:
            leaves = await self._these(query, [key for key in level if key not in covers])
            known = [*(above[key] for key in level if key in above), *leaves]
            best = sorted(known, key=lambda entry: (-round(entry.score, 4), entry.key))[:TOP_LAYER]
            layers.append([entry for entry in best if entry.score > 0])
            below = (child for entry in best for child in covers.get(entry.key, ()))
            level = list(dict.fromkeys(below))
        return layers

    async def _these(self, query: str, ids: Sequence[str]) -> list[Entry]:
        """Return some segments with their scores."""
        segments = await self._store.segments(self._ns, list(ids)) if ids else ()
        if self._is_dense and self._embedder is not None and segments:
            (vector,) = await self._embedder.embed([query], kind="query")
            near = await self._store.nearest(self._ns, vector, len(ids), among=list(ids))
            return [_leaf(s.id, s.text, near[s.id]) for s in segments if s.id in near]
        leaves = [_leaf(segment.id, segment.text) for segment in segments]
        return _scored(leaves, tf_idf(query, [leaf.text for leaf in leaves]))

    async def _above(self, query: str) -> list[Entry]:
        """Return summaries and surprises with their scores."""
        if not self._is_dense:
            texts = [entry.text for entry in self._entries]
            return _scored(self._entries, tf_idf(query, texts))
        import numpy as np

        assert self._embedder is not None
        (vector,) = await self._embedder.embed([query], kind="query")
        matrix = np.stack(self._vectors) if self._vectors else np.zeros((0, len(vector)))
        return _scored(self._entries, [float(score) for score in matrix @ vector])

    async def _leaves(self, query: str) -> list[Entry]:
        """Return raw segments with their scores."""
        documents = sorted(tree.tree.document_id for tree in self._trees)
        if self._is_dense and self._embedder is not None:
            (vector,) = await self._embedder.embed([query], kind="query")
            near = await self._store.nearest(self._ns, vector, LEAVES, documents=documents)
            segments = await self._store.segments(self._ns, list(near))
            return [_leaf(s.id, s.text, near[s.id]) for s in segments]
        wanted = sorted(set(terms(query)))
        ids = await self._store.matching(self._ns, [wanted], LEAVES, documents) if wanted else ()
        segments = await self._store.segments(self._ns, list(ids))
        leaves = [_leaf(segment.id, segment.text) for segment in segments]
        return _scored(leaves, tf_idf(query, [leaf.text for leaf in leaves]))


def within(entries: Sequence[Entry], sizes: Mapping[str, int], room: int) -> list[Entry]:
    """Return the first entries; the first that would exceed the room ends it.

    Args:
        sizes: tokens by text.
    """
    kept: list[Entry] = []
    for entry in entries:
        room -= sizes[entry.text]
        if room < 0:
            break
        kept.append(entry)
    return kept


def tf_idf(query: str, texts: Sequence[str]) -> list[float]:
    """Return the cosines of a query with texts, by TF-IDF over these texts."""
    bags = [Counter(terms(text)) for text in texts]
    spread = Counter(term for bag in bags for term in bag)
    weight = {term: math.log((1 + len(bags)) / (1 + n)) + 1 for term, n in spread.items()}
    asked = Counter(term for term in terms(query) if term in weight)
    return [_cosine(asked, bag, weight) for bag in bags]


def _cosine(asked: Counter[str], bag: Counter[str], weight: Mapping[str, float]) -> float:
    def size(one: Counter[str]) -> float:
        return math.sqrt(sum(((1 + math.log(n)) * weight[t]) ** 2 for t, n in one.items()))

    shared = sum(
        (1 + math.log(n)) * (1 + math.log(bag[t])) * weight[t] ** 2
        for t, n in asked.items()
        if t in bag
    )
    return shared / (size(asked) * size(bag)) if shared else 0.0


def _entries(stored: StoredNode, surprising: bool) -> list[Entry]:
    """Return what a node says: its summary, then its surprises, in the order of its vectors."""
    node = stored.node
    summary, *block = texts_of(node.summary, node.surprises)
    found = [Entry(node.key, "summary", node.level, summary, node.segments)]
    for text in block if surprising else ():
        found.append(Entry(node.key, "surprise", node.level, text, node.segments))
    return found


def _leaf(id: str, text: str, score: float = 0.0) -> Entry:
    return Entry(id, "segment", 0, text, (id,), score)


def _scored(entries: Sequence[Entry], scores: Sequence[float]) -> list[Entry]:
    pairs = zip(entries, scores, strict=True)
    return [replace(entry, score=score) for entry, score in pairs]
