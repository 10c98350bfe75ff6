"""Clusters and trees by real UMAP, where umap-learn is installed."""

from importlib.util import find_spec

import numpy as np
import pytest
from integration.test_trees import book, shape

import qrmem
from qrmem.retrieval.trees.clustering import ClusterSettings, clusters

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
    assert {row for group in found for row in group} == set(range(n))
    assert len(found) < max(n, 2)
    if n <= 40:
        assert clusters(rows, [50] * n, UMAP) == found


@pytest.mark.parametrize("n", [13, 200])
def test_identical_rows_become_fewer_groups(n: int) -> None:
    found = clusters(np.ones((n, 32)), [1000] * n, UMAP)
    assert sorted({row for group in found for row in group}) == list(range(n))
    assert len(found) < n


async def test_a_document_has_the_same_tree_by_umap_twice() -> None:
    shapes = []
    for _ in range(2):
        async with qrmem.open("memory://", embedder="none", segment_tokens=280) as memory:
            await memory.add(book(2))
            report = await memory.build_tree()
            assert report.levels >= 2
            shapes.append(shape(await memory.trees()))
    assert shapes[0] == shapes[1]
