"""Building a tree of summaries over a document, level by level (RAPTOR; ILM-TR, section 3).

Clusters are formed within the parts of the document first, then over the roots of the parts. So a
changed chapter affects only its part and the few nodes above. The preset `paper` clusters each
level as a whole. A node in the store with the same method and the same text is reused. So a stopped
run resumes, and a tree that grew equals one that was built at once.
"""

import asyncio
import base64
import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any

from qrmem.agents.build_state import silent
from qrmem.extraction.summaries import NodeText, Summarised
from qrmem.graphstore.protocol import GraphStore
from qrmem.graphstore.reads import cached_value
from qrmem.llm.parallel import each, in_batches
from qrmem.retrieval.trees.clustering import (
    Clusters,
    ClusterSettings,
    are_alike,
    bounded,
    clusters,
    one_thread,
    reduction_of,
)
from qrmem.retrieval.trees.nodes import (
    StoredNode,
    load,
    node_key,
    parts,
    prefix_of,
    save,
    save_tree,
    texts_of,
)
from qrmem.types import CallRecord, Embedder, Event, Listener, Segment
from qrmem.types.documents import Tree, TreeKind, TreeNode
from qrmem.types.usage import Course

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

TOGETHER = 64
"""Number of nodes per batch and commit."""
NEIGHBOURS = 2
"""Number of segments on each side that serve as context for surprises, without a model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeSettings:
    """The settings of a tree.

    Attributes:
        within_parts: whether to cluster within parts first; `False` as in the papers.
        summary_tokens: maximum number of tokens of a summary.
        levels: maximum number of levels, if it does not cluster within parts.
    """

    kind: TreeKind = "ilm"
    within_parts: bool = True
    summary_tokens: int = 300
    levels: int = 5
    clusters: ClusterSettings = field(default_factory=ClusterSettings)


PAPER = TreeSettings(within_parts=False)
"""The settings of ILM-TR: RAPTOR's clusters over whole levels, summaries of 300 tokens."""

Summarise = Callable[[NodeText], Awaitable[Summarised]]


@dataclass(slots=True, kw_only=True)
class TreeDeps:
    """The dependencies of building a tree.

    Attributes:
        summarise: makes a node's summary and surprises.
        method: how they are made: model and prompt, or `extractive`. It is part of each node's key.
        is_local: whether no chat model is used; then a segment's neighbours serve as context for
            surprises.
        take_calls: returns the calls since the last time, to be stored with the nodes.
        count: counts tokens.
        course: for a plan: summaries are not clustered, as clusters depend on a model's text; the
            number of groups is the least or the greatest possible one.
    """

    store: GraphStore
    ns: str
    summarise: Summarise
    method: str
    is_local: bool
    count: Callable[[str], int]
    settings: TreeSettings = field(default_factory=TreeSettings)
    embedder: Embedder | None = None
    concurrency: int = 8
    listener: Listener = silent
    take_calls: Callable[[], Sequence[CallRecord]] = tuple
    course: Course | None = None
    made: int = 0
    reused: int = 0
    malformed: int = 0


@dataclass(frozen=True, slots=True)
class _Plan:
    """A node to make, unless it exists."""

    key: str
    level: int
    covers: tuple[str, ...]
    segments: tuple[str, ...]
    text: NodeText


async def build_tree(deps: TreeDeps, document_id: str) -> Tree:
    """Build the tree of a document, or its missing nodes.

    Raises:
        CapReached: finished nodes are kept; the next call resumes.
        MissingError: scikit-learn is not installed.
    """
    segments = await deps.store.segments(deps.ns, documents=[document_id])
    building = _Building(deps, document_id, [s for s in segments if s.text.strip()])
    await building.run()
    ids = [segment.id for segment in segments]
    tree = building.tree()
    await save_tree(deps.store, deps.ns, tree, ids, building.how())
    await building.drop_others()
    return tree


class _Building:
    """One tree while it is built."""

    def __init__(self, deps: TreeDeps, document_id: str, segments: Sequence[Segment]) -> None:
        self._deps = deps
        self._document_id = document_id
        self._segments = segments
        self._place = {segment.id: n for n, segment in enumerate(segments)}
        self._method = _method(deps)
        self._prefix = prefix_of(deps.settings.kind, document_id)
        self._groupings: set[str] = set()
        self._clustered: list[Clusters] = []
        self._nodes: dict[str, StoredNode] = {}

    async def drop_others(self) -> None:
        """Delete nodes of the document that are no longer part of its tree."""
        keys = await self._deps.store.cache_keys(self._deps.ns, "tree")
        current = self._nodes.keys() | self._groupings
        old = [key for key in keys if key.startswith(self._prefix) and key not in current]
        if old:
            await self._deps.store.drop_cache_entries(self._deps.ns, "tree", old)

    def tree(self) -> Tree:
        """Return the built tree."""
        nodes = tuple(below.node for below in self._nodes.values())
        covered = {key for node in nodes for key in node.covers}
        roots = tuple(node.key for node in nodes if node.key not in covered)
        return Tree(self._document_id, self._deps.settings.kind, nodes, roots)

    def how(self) -> dict[str, str]:
        """Return how the tree was made, in words."""
        within_parts = self._deps.settings.within_parts
        reductions = {name for clusters in self._clustered for name in clusters.reductions}
        return {
            "method": self._deps.method,
            "reduction": "+".join(sorted(reductions)) or "none",
            "clusters": "within parts" if within_parts else "whole levels",
            "groups": str(sum(len(clusters.groups) for clusters in self._clustered)),
            "runs": str(sum(clusters.runs for clusters in self._clustered)),
            "embedder": _name(self._deps.embedder),
        }

    async def run(self) -> None:
        """Make the levels of all parts in parallel, then those over the parts' roots."""
        settings = self._deps.settings
        whole = parts(self._segments) if settings.within_parts else [list(self._segments)]
        levels = await self._first(whole)
        few = settings.clusters.few
        if settings.within_parts:
            while any(len(one) > 1 for one in levels):
                levels = await self._above(levels, is_root_wanted=True)
            levels = [list(chain.from_iterable(levels))]
        for _ in range(2, 100 if settings.within_parts else settings.levels + 1):
            if len(levels[0]) <= few:
                break
            levels = await self._above(levels, is_root_wanted=False)

    async def _first(self, whole: Sequence[Sequence[Segment]]) -> list[list[StoredNode]]:
        """Return each part's nodes over single segments, or over clusters of them."""
        if self._deps.settings.kind == "raptor":
            return await self._clusters_of_segments(whole)
        plans = [[self._leaf(segment) for segment in part] for part in whole]
        return await self._make_level(plans)

    def _leaf(self, segment: Segment) -> _Plan:
        around: tuple[Segment, ...] = ()
        if self._deps.is_local:
            at = self._place[segment.id]
            neighbours = self._segments[max(0, at - NEIGHBOURS) : at + NEIGHBOURS + 1]
            around = tuple(other for other in neighbours if other.id != segment.id)
        ids = (segment.id,)
        beside = hashlib.sha256(" ".join(s.id for s in around).encode()).hexdigest()[:8]
        method = f"{self._method}:{beside}" if around else self._method
        key = node_key(self._prefix, method, 1, ids)
        text = NodeText((segment.text,), tuple(s.text for s in around), ids)
        return _Plan(key, 1, ids, ids, text)

    async def _clusters_of_segments(
        self, whole: Sequence[Sequence[Segment]]
    ) -> list[list[StoredNode]]:
        plans = []
        for part in whole:
            texts, sizes = [s.text for s in part], [s.tokens for s in part]
            vectors, settings = await self._vectors(texts), self._deps.settings.clusters
            if self._deps.course is not None and are_alike(vectors):  # a stub's vectors
                groups = bounded(sizes, self._deps.course, settings)
            else:
                groups = await asyncio.to_thread(clusters, vectors, sizes, settings)
            self._clustered.append(groups)
            plans.append([self._over([part[n] for n in group]) for group in groups.groups])
        return await self._make_level(plans)

    def _over(self, segments: Sequence[Segment]) -> _Plan:
        ids = tuple(segment.id for segment in segments)
        key = node_key(self._prefix, self._method, 1, ids)
        return _Plan(key, 1, ids, ids, NodeText(tuple(s.text for s in segments), (), ids))

    async def _above(
        self, levels: Sequence[Sequence[StoredNode]], *, is_root_wanted: bool
    ) -> list[list[StoredNode]]:
        """Return the next level of each part; a part with one node does not change."""
        plans: list[list[_Plan]] = []
        for below in levels:
            is_few = len(below) <= self._deps.settings.clusters.few
            if len(below) == 1:
                groups: list[list[int]] = []
            elif is_root_wanted and is_few:
                groups = [list(range(len(below)))]
            else:
                groups = await self._groups(below)
            plans.append([self._parent([below[n] for n in group]) for group in groups])
        nodes = await self._make_level(plans)
        return [above or list(below) for above, below in zip(nodes, levels, strict=True)]

    async def _groups(self, below: Sequence[StoredNode]) -> list[list[int]]:
        """Return the clusters of some nodes; stored clusters of the same nodes are reused."""
        deps = self._deps
        below_keys = [node.node.key for node in below]
        key = node_key(f"{self._prefix}groups:", self._method, 0, below_keys)
        self._groupings.add(key)
        cached = await cached_value(deps.store, deps.ns, "tree", key)
        if cached is not None:
            groups = Clusters(cached["groups"], tuple(cached["reductions"]), cached["runs"])
        else:
            groups = await self._clusters(below)
            segments = list(dict.fromkeys(id for node in below for id in node.node.segments))
            await deps.store.put_cache_entry(
                deps.ns, "tree", key, asdict(groups), segments=segments
            )
        self._clustered.append(groups)
        return groups.groups

    async def _clusters(self, below: Sequence[StoredNode]) -> Clusters:
        summaries = [node.node.summary for node in below]
        if self._deps.course is not None:
            # The length of a model's summaries is unknown: all of them may fit one cluster.
            return bounded([0] * len(below), self._deps.course, self._deps.settings.clusters)
        if all(node.vectors is not None for node in below):
            import numpy as np

            vectors = np.stack([s.vectors[0] for s in below if s.vectors is not None])
        else:
            vectors = await self._vectors(summaries)
        sizes = [self._deps.count(summary) for summary in summaries]
        # In a thread: UMAP compiles for seconds, and a blocked event loop loses its connections.
        return await asyncio.to_thread(clusters, vectors, sizes, self._deps.settings.clusters)

    def _parent(self, children: Sequence[StoredNode]) -> _Plan:
        level = 1 + max(child.node.level for child in children)
        covers = tuple(child.node.key for child in children)
        below = {id for child in children for id in child.node.segments}
        segments = tuple(s.id for s in self._segments if s.id in below)
        key = node_key(self._prefix, self._method, level, covers)
        text = NodeText(tuple(child.node.summary for child in children), (), segments)
        return _Plan(key, level, covers, segments, text)

    # --- nodes ------------------------------------------------------------------------------------

    async def _make_level(self, plans: Sequence[Sequence[_Plan]]) -> list[list[StoredNode]]:
        """Make the missing nodes of a level."""
        flat = {plan.key: plan for part in plans for plan in part}
        nodes = await load(self._deps.store, self._deps.ns, list(flat))
        missing = [plan for key, plan in flat.items() if key not in nodes]
        self._deps.reused += len(nodes)
        nodes |= await self._make(missing)
        self._nodes |= {key: nodes[key] for key in flat}
        return [[nodes[plan.key] for plan in part] for part in plans]

    async def _make(self, plans: Sequence[_Plan]) -> dict[str, StoredNode]:
        """Make nodes; some are embedded and stored while others are being made."""
        deps, summaries, nodes = self._deps, dict[str, Summarised](), dict[str, StoredNode]()

        async def one(of: tuple[_Plan, Sequence[_Plan]]) -> None:
            plan, batch = of
            summaries[plan.key] = await deps.summarise(plan.text)
            deps.listener(Event("node", {"document": self._document_id, "level": plan.level}))
            if all(other.key in summaries for other in batch):
                await self._keep(batch, summaries, nodes)

        todo = [(plan, batch) for batch in in_batches(plans, TOGETHER) for plan in batch]
        try:
            await each(todo, one, concurrency=deps.concurrency)
        finally:
            plans_left = [plan for plan in plans if plan.key in summaries and plan.key not in nodes]
            await self._keep(plans_left, summaries, nodes)
        return nodes

    async def _keep(
        self,
        plans: Sequence[_Plan],
        said: Mapping[str, Summarised],
        found: dict[str, StoredNode],
    ) -> None:
        deps = self._deps
        own_texts = {p.key: texts_of(said[p.key].summary, said[p.key].surprises) for p in plans}
        texts = [text for plan in plans for text in own_texts[plan.key]]
        vectors: Any = None
        if deps.embedder is not None and texts:
            vectors = await deps.embedder.embed(texts)
        at = 0
        for plan in plans:
            summarised = said[plan.key]
            node = TreeNode(
                plan.key,
                self._document_id,
                plan.level,
                summarised.summary,
                summarised.surprises,
                plan.covers,
                plan.segments,
                summarised.is_well_formed,
            )
            size = len(own_texts[plan.key])
            own_vectors = None if vectors is None else vectors[at : at + size]
            at += size
            node_stored = StoredNode(node, own_vectors)
            await save(deps.store, deps.ns, node_stored, deps.take_calls())
            found[plan.key] = node_stored
            deps.made += 1
            deps.malformed += not summarised.is_well_formed

    async def _vectors(self, texts: Sequence[str]) -> "Vectors":
        """Return the vectors for clustering: embeddings, or latent semantic analysis."""
        if self._deps.embedder is not None:
            return await self._deps.embedder.embed(texts)
        return await asyncio.to_thread(latent, texts)


LATENT = 100
"""Number of dimensions of latent semantic analysis, before the reduction for clustering."""


def latent(texts: Sequence[str]) -> "Vectors":
    """Return unit vectors of texts by latent semantic analysis: TF-IDF, and an exact SVD."""
    import numpy as np
    from sklearn.feature_extraction.text import TfidfVectorizer

    from qrmem.text.words import terms

    try:
        matrix = TfidfVectorizer(analyzer=terms, sublinear_tf=True).fit_transform(texts)
    except ValueError:  # no text has a content word
        return np.zeros((len(texts), 1), dtype=np.float32)
    with one_thread():
        basis, sizes, _ = np.linalg.svd(matrix @ matrix.T.toarray(), hermitian=True)
    rank = min(LATENT, len(texts))
    # The signs of an SVD are arbitrary: the largest number of each column is made positive.
    signs = np.sign(basis[np.abs(basis).argmax(axis=0), np.arange(basis.shape[1])])
    vectors = (basis * signs * np.sqrt(np.abs(sizes)))[:, :rank]
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    latent_vectors: Vectors = (vectors / np.maximum(lengths, 1e-9)).astype(np.float32)
    return np.round(latent_vectors, 4)


def _method(deps: TreeDeps) -> str:
    """Return everything except for the text that a node depends on."""
    settings = deps.settings
    vectors = _name(deps.embedder) if deps.embedder is not None else f"latent {LATENT}"
    words = repr((deps.method, settings, reduction_of(settings.clusters), vectors))
    return base64.b32encode(hashlib.sha256(words.encode()).digest()[:10]).decode()


def _name(embedder: Embedder | None) -> str:
    return embedder.name if embedder is not None else "none"
