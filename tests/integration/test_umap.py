"""Clusters and trees by real UMAP, where umap-learn is installed."""

from importlib.util import find_spec
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
