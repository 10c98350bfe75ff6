"""Weights of the features; written by `python -m benchmarks.fit_search`, not by hand."""

from collections.abc import Mapping

WITH_EMBEDDER: Mapping[str, float] = {
    "lexical": -4.165,
    "dense": 4.249,
    "named": 2.99,
    "direct, rank": -1.388,
    "walk": 8.583,
    "walk, rank": 1.867,
    "titles, one hop": -0.892,
    "titles, two hops": -1.427,
    "titles, rank": 1.904,
    "shared names": 0.637,
    "residual": 0.953,
    "residual, rank": 1.421,
    "names in titles": 0.537,
    "gain": 8.397,
}
"""For a memory with vectors."""

WITHOUT_EMBEDDER: Mapping[str, float] = {
    "lexical": -0.499,
    "named": 3.589,
    "direct, rank": -1.192,
    "walk": 6.871,
    "walk, rank": 0.817,
    "titles, one hop": -0.904,
    "titles, two hops": -1.206,
    "titles, rank": 2.306,
    "shared names": 0.978,
    "residual": 1.223,
    "residual, rank": 1.262,
    "names in titles": 0.614,
    "gain": 5.872,
}
"""For a memory without."""
