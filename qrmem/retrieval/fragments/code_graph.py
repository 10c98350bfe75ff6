"""The repository graph, the strengths of its paths, and their cache (FragRel, Equation 8).

Nodes are directories, files and syntax nodes. A file is the root of its own syntax tree; the paper
joins the two by an edge of weight 1. The strength between two nodes is the product of the weights
along the best path. Paths run between the nodes of each file's `Shape`, which leaves out leaves.
"""

import asyncio
import hashlib
import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import numpy as np

from qrmem.errors import require_extra
from qrmem.retrieval.fragments.source_files import Edge, SourceFile, pack, resolved, unpack
from qrmem.text.code import outline
from qrmem.text.code.languages import CODE_KEY

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from qrmem.graphstore.protocol import GraphStore


SYNTAX = 0.5
DIRECTORY = 0.3
CALL = 0.8

_MIXED = DIRECTORY**2 * SYNTAX * CALL
"""Upper bound of the strength of a path that uses both directories and calls. For a cut-off above
it the search leaves directories out: `folder_strength` gives paths without calls in closed form."""
_LEAST = 0.1
"""Weights below this share of the cut-off are dropped."""


@dataclass(frozen=True, slots=True, eq=False)
class Strengths:
    """Strengths of the relations between the fragments of all source files.

    Fragments are numbered consecutively over all files, file by file.

    Attributes:
        paths: paths of the files, in order.
        sizes: `(files,)`, number of fragments of each file.
        reach: `(n,)`, strength between each fragment and its file, the mean over its nodes.
        heads: `(k,)`, first fragment of each pair; each pair is stored in both directions.
        tails: `(k,)`, second fragment of each pair.
        weights: `(k,)`, strength by Equation 8 minus the strength of the path over directories.
    """

    paths: Sequence[str]
    sizes: "NDArray[np.int32]"
    reach: "NDArray[np.float32]"
    heads: "NDArray[np.int32]"
    tails: "NDArray[np.int32]"
    weights: "NDArray[np.float32]"

    @classmethod
    def none(cls) -> "Strengths":
        """Return the strengths of an empty repository."""
        numbers, weights = np.zeros(0, np.int32), np.zeros(0, np.float32)
        return cls((), numbers, weights, numbers, numbers, weights)

    def packed(self) -> str:
        """Serialise to text; `unpacked` reverses it."""
        return pack(
            list(self.paths), [self.sizes, self.reach, self.heads, self.tails, self.weights]
        )

    @classmethod
    def unpacked(cls, packed: str) -> "Strengths":
        """Return the strengths that `packed` serialised."""
        kinds = (np.int32, np.float32, np.int32, np.int32, np.float32)
        paths, arrays = unpack(packed, kinds)
        return cls(paths, *arrays)


class CodeGraph:
    """All files of a repository as one graph, for best-product paths by Dijkstra's algorithm."""

    def __init__(
        self,
        files: Mapping[str, SourceFile],
        edges: Mapping[str, Sequence[Edge]],
        cutoff: float,
    ) -> None:
        """Build the graph.

        Args:
            files: files by path.
            edges: calls of each file by path.
            cutoff: paths with a lower strength are ignored. The edges of leaves that `Shape` left
                out do not count.
        """
        self._files = files
        self._cutoff = cutoff
        self._limit = -math.log(cutoff) + 1e-9
        self._paths = list(files)
        self._number = {path: n for n, path in enumerate(self._paths)}
        self._shapes = {path: file.shape for path, file in files.items()}
        sizes = [shape.size for shape in self._shapes.values()]
        self._starts = dict(zip(self._paths, np.cumsum([0, *sizes])[:-1].tolist(), strict=True))
        self._count = sum(sizes)
        self._graph = self._joined(edges)
        self._cover, self._twins, self._owner = self._covers()
        self._covered = self._cover.T.tocsr()
        self._reach = self._reaches()

    def strengths(self) -> Strengths:
        """Return the strengths between all pairs of fragments."""
        parts = [self._of_file(number) for number in range(len(self._paths))]
        heads, tails, weights = (np.concatenate(part) for part in zip(*parts, strict=True))
        return Strengths(
            paths=self._paths,
            sizes=np.bincount(self._owner, minlength=len(self._paths)).astype(np.int32),
            reach=self._reach.astype(np.float32),
            heads=heads.astype(np.int32),
            tails=tails.astype(np.int32),
            weights=weights.astype(np.float32),
        )

    # --- inside ---------------------------------------------------------------------------------

    def _joined(self, edges: Mapping[str, Sequence[Edge]]) -> "csr_array":
        heads, tails, costs = [], [], []
        for path, shape in self._shapes.items():
            heads.append(self._starts[path] + np.arange(1, shape.size))
            tails.append(self._starts[path] + shape.parents[1:])
            costs.append(np.full(shape.size - 1, -math.log(SYNTAX)))
        callers, callees = self._calls(edges)
        has_folders = self._cutoff <= _MIXED
        folders, count = self._folders() if has_folders else ([], self._count)
        of_calls = np.full(callers.size, -math.log(CALL))
        inner, outer = np.array(folders, dtype=np.int64).reshape(-1, 2).T
        return _symmetric(
            np.concatenate([*heads, callers, inner]),
            np.concatenate([*tails, callees, outer]),
            np.concatenate([*costs, of_calls, np.full(inner.size, -math.log(DIRECTORY))]),
            count,
        )

    def _calls(
        self, edges: Mapping[str, Sequence[Edge]]
    ) -> "tuple[NDArray[np.int64], NDArray[np.int64]]":
        """Return the node numbers of all calls, and of the definitions that they call."""
        of_file = [len(edges.get(path, ())) for path in self._paths]
        edges_found = list(chain.from_iterable(edges.get(path, ()) for path in self._paths))
        mine = np.repeat(np.arange(len(self._paths)), of_file)
        theirs = np.array([self._number[edge.path] for edge in edges_found], dtype=np.int64)
        nodes = np.array([edge.node for edge in edges_found], dtype=np.int64)
        targets = np.array([edge.target for edge in edges_found], dtype=np.int64)
        # The nodes of all files are numbered consecutively.
        step = 1 + max((int(shape.numbers[-1]) for shape in self._shapes.values()), default=0)
        node_numbers = np.concatenate(
            [n * step + shape.numbers for n, shape in enumerate(self._shapes.values())]
        )
        callers = np.searchsorted(node_numbers, mine * step + nodes).astype(np.int64)
        callees = np.searchsorted(node_numbers, theirs * step + targets).astype(np.int64)
        return callers, callees

    def _folders(self) -> tuple[list[tuple[int, int]], int]:
        numbers: dict[str, int] = {}
        pairs: list[tuple[int, int]] = []
        for path in self._paths:
            above = [str(folder) for folder in PurePosixPath(path).parents]
            known_above = [folder in numbers for folder in above]
            for folder in above:
                numbers.setdefault(folder, self._count + len(numbers))
            pairs.append((self._starts[path], numbers[above[0]]))
            for (inner, outer), is_known in zip(pairwise(above), known_above, strict=False):
                if not is_known:
                    pairs.append((numbers[inner], numbers[outer]))
        return pairs, self._count + len(numbers)

    def _covers(self) -> "tuple[csr_array, csr_array, NDArray[np.int64]]":
        """Return two matrices of the nodes that cover each fragment, and each fragment's file.

        The first has the share of each node; a leaf's share is times the weight of one edge, at the
        leaf's parent. The second, times its transpose, gives what leaves add with themselves.
        """
        from scipy.sparse import csr_array

        shapes = list(self._shapes.values())
        counts = np.concatenate([shape.counts for shape in shapes])
        owner = np.repeat(np.arange(len(shapes)), [shape.fragments for shape in shapes])
        rows = np.repeat(np.arange(owner.size), counts)
        share = np.concatenate([shape.shares() for shape in shapes])
        is_leaf = np.concatenate([shape.leaves for shape in shapes])
        sizes = [int(shape.nodes.max(initial=0)) + 1 for shape in shapes]
        firsts = np.cumsum([0, *sizes])
        at = np.concatenate(
            [self._starts[path] + shape.anchors for path, shape in self._shapes.items()]
        )
        old = np.concatenate(
            [first + shape.nodes for first, shape in zip(firsts[:-1], shapes, strict=True)]
        )
        cover = csr_array(
            (share * np.where(is_leaf, SYNTAX, 1.0), (rows, at)),
            shape=(owner.size, self._graph.shape[0]),
        )
        alone = share[is_leaf] * math.sqrt(1 - SYNTAX**2)
        twins = csr_array((alone, (rows[is_leaf], old[is_leaf])), shape=(owner.size, firsts[-1]))
        return cover, twins, owner

    def _reaches(self) -> "NDArray[np.float64]":
        depths = np.zeros(self._graph.shape[0])
        depths[: self._count] = np.concatenate([shape.depths for shape in self._shapes.values()])
        reaches: NDArray[np.float64] = self._cover @ SYNTAX**depths
        return reaches

    def _of_file(
        self, number: int
    ) -> "tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]":
        """Return the pairs of a file's fragments, with strengths beyond the directories' paths."""
        first, after = np.searchsorted(self._owner, [number, number + 1])
        mine = np.arange(first, after)
        sources = np.unique(self._cover[mine].indices).astype(np.int64)
        reached = np.flatnonzero(np.isfinite(self._reached(sources)))
        strengths = np.exp(-self._costs(sources, reached))
        touched = self._covered[reached]
        others = np.unique(touched.indices).astype(np.int64)
        # Multiply from the left, so that dense matrices stay narrow.
        joined = touched[:, others].T @ (self._cover[mine][:, sources] @ strengths).T
        weights = joined.T + (self._twins[mine] @ self._twins[others].T).toarray()
        owners, at = np.unique(self._owner[others], return_inverse=True)
        path = self._paths[number]
        far = np.array([folder_strength(path, self._paths[n]) for n in owners.tolist()])[at]
        beyond = weights - self._reach[mine][:, None] * (far * self._reach[others])[None, :]
        heads, tails = np.nonzero(beyond > _LEAST * self._cutoff)
        return mine[heads], others[tails], beyond[heads, tails]

    def _reached(self, sources: "NDArray[np.int64]") -> "NDArray[np.float64]":
        """Return the cost from the nearest of some nodes to all, infinite beyond the cut-off."""
        from scipy.sparse.csgraph import dijkstra

        distances: NDArray[np.float64] = dijkstra(
            self._graph, indices=sources, limit=self._limit, min_only=True
        )
        return distances

    def _costs(
        self, sources: "NDArray[np.int64]", near: "NDArray[np.int64]"
    ) -> "NDArray[np.float64]":
        """Return `(sources, near)`: the cost of the best path, infinite beyond the cut-off.

        Every node on a path within the cut-off is within the cut-off, so no path is missed.
        """
        from scipy.sparse.csgraph import dijkstra

        inner = self._graph[near][:, near]
        place = np.searchsorted(near, sources)
        distances: NDArray[np.float64] = dijkstra(inner, indices=place, limit=self._limit)
        return distances


def folder_strength(one: str, other: str) -> float:
    """Return the strength of the path between two files over directories, in (0, 1]."""
    if one == other:
        return 1.0
    mine, theirs = one.split("/"), other.split("/")
    shared = 0
    while shared < min(len(mine), len(theirs)) - 1 and mine[shared] == theirs[shared]:
        shared += 1
    return float(DIRECTORY ** (len(mine) + len(theirs) - 2 * shared))


def _symmetric(
    heads: "NDArray[np.int64]", tails: "NDArray[np.int64]", costs: "NDArray[np.float64]", count: int
) -> "csr_array":
    """Return the graph with edges in both directions; of parallel edges the strongest is kept."""
    from scipy.sparse import csr_array

    between = np.concatenate([heads * count + tails, tails * count + heads])
    order = np.argsort(between)
    between = between[order]
    first = np.flatnonzero(np.diff(between, prepend=-1))
    cost = np.minimum.reduceat(np.tile(costs, 2)[order], first) if first.size else costs
    one, other = np.divmod(between[first], count)
    is_other = one != other
    return csr_array((cost[is_other], (one[is_other], other[is_other])), shape=(count, count))


# The code relation of one namespace: outlines are cached by file, strengths as a whole.

VERSION = 8
"""Version of the cached form; a new number makes every cached entry stale."""


@dataclass(slots=True)
class CodeIndex:
    """The source files of one namespace, and the strengths between their fragments.

    The strengths stay in memory until a file changes.
    """

    store: "GraphStore"
    ns: str
    _strengths: dict[float, tuple[str, Strengths]] = field(default_factory=dict)

    async def strengths(self, cutoff: float) -> Strengths:
        """Return the strengths between the fragments of all source files.

        The first question after a change computes them; the store caches them.

        Raises:
            MissingError: the extra `code` is not installed.
        """
        digests = await self._digests()
        state = _digest([VERSION, cutoff, sorted(digests.items())])
        strengths_cached = self._strengths.get(cutoff)
        if strengths_cached is None or strengths_cached[0] != state:
            strengths_found = await self._kept_strengths(cutoff, state)
            if strengths_found is None:
                strengths_found = await self._computed(cutoff, digests, state)
            self._strengths[cutoff] = strengths_cached = state, strengths_found
        return strengths_cached[1]

    async def _kept_strengths(self, cutoff: float, state: str) -> Strengths | None:
        for entry in await self.store.cache_entries(self.ns, "code", [_key(cutoff)]):
            if entry.value.get("state") == state:
                return Strengths.unpacked(entry.value["packed"])
        return None

    async def _computed(self, cutoff: float, digests: Mapping[str, str], state: str) -> Strengths:
        require_extra("code", "the relation 'code'", "scipy")
        files = await self._outlines(digests)
        related_strengths = await asyncio.to_thread(_related, files, cutoff)
        # The strengths depend on these files: they are deleted with any of them.
        firsts = [segment for path in files for segment in (await self._segments(path))[:1]]
        await self._keep(
            _key(cutoff), {"state": state, "packed": related_strengths.packed()}, firsts
        )
        return related_strengths

    async def _outlines(self, digests: Mapping[str, str]) -> dict[str, SourceFile]:
        """Return the outlines of all files, from the cache if it has them."""
        keys = {path: f"code:file:{path}" for path in sorted(digests)}
        cached_outlines = {
            one.key: one.value
            for one in await self.store.cache_entries(self.ns, "code", list(keys.values()))
        }
        files = {}
        for path, key in keys.items():
            value = cached_outlines.get(key, {})
            if value.get("digest") == digests[path]:
                files[path] = SourceFile.unpacked(path, value["packed"])
            else:
                files[path] = file = await self._outline(path)
                new_value = {"digest": digests[path], "packed": file.packed()}
                await self._keep(key, new_value, await self._segments(path))
        return files

    async def _outline(self, path: str) -> SourceFile:
        document = await self.store.document(self.ns, path)
        assert document is not None
        spans = [(s.start, s.end) for s in await self.store.segments(self.ns, documents=[path])]
        language = str(document.metadata[CODE_KEY])

        def made() -> SourceFile:
            return SourceFile.of(path, document.text, outline(document.text, language), spans)

        return await asyncio.to_thread(made)

    # --- the store --------------------------------------------------------------------------------

    async def _digests(self) -> dict[str, str]:
        """Return a digest of each source file's text and fragments, by path."""
        return {
            info.id: f"{VERSION}:{info.segments}:{info.digest}"
            for info in await self.store.documents(self.ns)
            if CODE_KEY in info.metadata
        }

    async def _segments(self, path: str) -> list[str]:
        return [segment.id for segment in await self.store.segments(self.ns, documents=[path])]

    async def _keep(self, key: str, value: Mapping[str, Any], segments: Collection[str]) -> None:
        if not self.store.is_read_only:
            await self.store.put_cache_entry(self.ns, "code", key, value, segments=list(segments))


def _related(files: Mapping[str, SourceFile], cutoff: float) -> Strengths:
    if not files:
        return Strengths.none()
    return CodeGraph(files, resolved(files), cutoff).strengths()


def _key(cutoff: float) -> str:
    return f"code:strengths:{cutoff:g}"


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:32]
