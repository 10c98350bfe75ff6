"""Weights of the features; written by `python -m benchmarks.fit_search`, not by hand."""

from collections.abc import Mapping

WITH_EMBEDDER: Mapping[str, float] = {
    "lexical": -4.334,
    "dense": 3.972,
    "named": 2.809,
    "direct, rank": -1.19,
    "walk": 8.829,
    "walk, rank": 1.877,
    "titles, one hop": -1.171,
    "titles, two hops": -1.166,
    "titles, rank": 1.927,
    "shared names": 0.64,
    "residual": 0.422,
    "residual, rank": 1.762,
    "names in titles": 0.756,
    "gain": 8.058,
}
"""For a memory with vectors."""

WITHOUT_EMBEDDER: Mapping[str, float] = {
    "lexical": -1.578,
    "named": 3.202,
    "direct, rank": -0.427,
    "walk": 7.942,
    "walk, rank": 0.24,
    "titles, one hop": -0.738,
    "titles, two hops": -0.942,
    "titles, rank": 1.789,
    "shared names": 1.153,
    "residual": 0.758,
    "residual, rank": 1.403,
    "names in titles": 0.814,
    "gain": 6.176,
}
"""For a memory without."""
