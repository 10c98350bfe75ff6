"""Storage of nodes: cached values that are deleted with any of the segments below them.

So deleting a document deletes its tree, and changing it deletes the nodes above the changes. The
other nodes are found again by their key, which is made from what they cover.
"""

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

from qrmem.graphstore.protocol import CacheEntry, GraphStore
from qrmem.types import CallRecord, Segment
from qrmem.types.documents import Grouping, Tree, TreeKind, TreeNode, TreeTop

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

TREE = "tree:"
"""Prefixes of the keys of nodes and of trees."""
RUN = 100
"""Approximate number of segments of a part in a document without chapters."""


@dataclass(frozen=True, slots=True)
class StoredNode:
    """A node with a vector for each of its texts (`texts_of`); `None` without an embedder."""

    node: TreeNode
    vectors: "Vectors | None" = None


def texts_of(summary: str, surprises: Sequence[str]) -> list[str]:
    """Return the texts that find a node: its summary, and its surprises as one (Figure 2)."""
    return [summary, "\n".join(surprises)] if surprises else [summary]


def prefix_of(kind: TreeKind, document_id: str) -> str:
    """Return the prefix of the keys of a document's nodes."""
    return f"{TREE}{hashlib.sha256(f'{kind}:{document_id}'.encode()).hexdigest()[:12]}:"


def node_key(prefix: str, method: str, level: int, covers: Sequence[str]) -> str:
    """Return the key of the node that covers these segments or nodes and was made in this way."""
    words = json.dumps([method, level, list(covers)])
    return prefix + hashlib.sha256(words.encode()).hexdigest()[:24]


def tree_key(kind: TreeKind, document_id: str) -> str:
    """Return the key under which a document's tree is listed."""
    return f"{TREE}{kind}:{document_id}"


def parts(segments: Sequence[Segment]) -> list[list[Segment]]:
    """Divide a document into chapters, and chapters and plain texts into runs of about 100.

    A run ends where a segment's id says so, not after a fixed number. So an insertion moves only
    the ends near it.
    """
    result: list[list[Segment]] = []
    label = None
    for segment in segments:
        run = result[-1] if result else []
        ends = len(run) >= RUN // 2 and _is_milestone(run[-1])
        is_chapter = segment.part != label and len(run) >= RUN // 10
        if not run or ends or is_chapter or len(run) >= RUN * 3 // 2:
            result.append([])
        label = segment.part
        result[-1].append(segment)
    return result


def _is_milestone(segment: Segment) -> bool:
    digest = hashlib.sha256(segment.id.encode()).digest()
    return int.from_bytes(digest[:4], "big") % (RUN // 2) == 0


async def save(
    store: GraphStore,
    ns: str,
    stored: StoredNode,
    calls: Sequence[CallRecord] = (),
) -> None:
    """Store a node until one of its segments is deleted, with the calls that made it."""
    node, vectors = stored.node, stored.vectors
    value: dict[str, Any] = {
        "document": node.document_id,
        "level": node.level,
        "summary": node.summary,
        "surprises": list(node.surprises),
        "covers": list(node.covers),
        "segments": list(node.segments),
        "well_formed": node.is_well_formed,
    }
    if vectors is not None:
        value["vectors"] = [
            base64.b64encode(row.astype("<f4").tobytes()).decode() for row in vectors
        ]
    await store.put_cache_entry(ns, "tree", node.key, value, segments=node.segments, calls=calls)


async def load(store: GraphStore, ns: str, keys: Sequence[str]) -> dict[str, StoredNode]:
    """Return the nodes that exist, by key."""
    nodes_found = (
        (entry.key, _node(entry)) for entry in await store.cache_entries(ns, "tree", keys)
    )
    return {key: node for key, node in nodes_found if node is not None}


def _node(kept: CacheEntry) -> StoredNode | None:
    """Parse a node; `None` if an archive has it in another form, so that it is made again."""
    value = kept.value
    try:
        node = TreeNode(
            key=kept.key,
            document_id=value["document"],
            level=value["level"],
            summary=value["summary"],
            surprises=tuple(value["surprises"]),
            covers=tuple(value["covers"]),
            segments=tuple(value["segments"]),
            is_well_formed=value["well_formed"],
        )
        vectors = _vectors(value.get("vectors"))
        if vectors is not None and len(vectors) != len(texts_of(node.summary, node.surprises)):
            return None
        return StoredNode(node, vectors)
    except (KeyError, TypeError, ValueError):
        return None


def _vectors(rows: Sequence[str] | None) -> "Vectors | None":
    if rows is None:
        return None
    import numpy as np

    data = [np.frombuffer(base64.b64decode(row), dtype="<f4") for row in rows]
    return np.stack(data).astype(np.float32)


async def save_tree(
    store: GraphStore, ns: str, tree: Tree, segments: Sequence[str], made: Mapping[str, str]
) -> None:
    """Store the list of a document's nodes, so that they are found together.

    Args:
        segments: ids of the document's segments.
        made: how it was made, in words; after `reembed`, the memory has other vectors.
    """
    value = {
        "document": tree.document_id,
        "nodes": [node.key for node in tree.nodes],
        "roots": list(tree.roots),
        "segments": len(segments),
        "made": dict(made),
    }
    await store.put_cache_entry(
        ns, "tree", tree_key(tree.kind, tree.document_id), value, segments=list(segments)
    )


@dataclass(frozen=True, slots=True)
class StoredTree:
    """A tree with its nodes' vectors, and how it was made."""

    tree: Tree
    nodes: Mapping[str, StoredNode]
    made: Mapping[str, str]


async def load_trees(
    store: GraphStore, ns: str, kind: TreeKind, documents: Sequence[str] | None = None
) -> list[StoredTree]:
    """Return the trees of all documents, or of some, by document id."""
    infos = await store.documents(ns, documents)
    counts = {info.id: info.segments for info in infos}
    keys = {tree_key(kind, id): id for id in counts}
    trees = []
    for entry in await store.cache_entries(ns, "tree", sorted(keys)):
        value = entry.value
        nodes = await load(store, ns, value["nodes"])
        tree = Tree(
            keys[entry.key],
            kind,
            tuple(nodes[key].node for key in value["nodes"] if key in nodes),
            tuple(value["roots"]),
            is_current=value["segments"] == counts[keys[entry.key]],
            grouping=_grouping(value["made"]),
        )
        trees.append(StoredTree(tree, nodes, value["made"]))
    return trees


async def load_tops(store: GraphStore, ns: str) -> list[TreeTop]:
    """Return all trees without their nodes, by kind and document id."""
    starts = {f"{TREE}{kind}:": kind for kind in get_args(TreeKind)}
    keys = {
        key: (kind, key.removeprefix(start))
        for key in await store.cache_keys(ns, "tree")
        for start, kind in starts.items()
        if key.startswith(start)
    }
    infos = await store.documents(ns, sorted({id for _, id in keys.values()}))
    counts = {info.id: info.segments for info in infos}
    tops = []
    for entry in await store.cache_entries(ns, "tree", list(keys)):
        kind, id = keys[entry.key]
        nodes, roots = len(entry.value["nodes"]), tuple(entry.value["roots"])
        is_current = entry.value["segments"] == counts.get(id)
        grouping = _grouping(entry.value["made"])
        tops.append(TreeTop(id, kind, nodes, roots, is_current, grouping))
    return tops


def _grouping(made: Mapping[str, str]) -> Grouping:
    """Parse the methods of clustering; a tree of an older version may lack them."""
    counts = (int(made.get(name, "0")) for name in ("groups", "runs"))
    return Grouping(made.get("reduction", "none"), *counts)
