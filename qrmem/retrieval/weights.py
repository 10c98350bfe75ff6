"""Weights of the features; written by `python -m benchmarks.fit_search`, not by hand."""

from collections.abc import Mapping

WITH_EMBEDDER: Mapping[str, float] = {
    "lexical": -3.062,
    "dense": 0.498,
    "dense, logarithm": 5.931,
    "named": 3.713,
    "direct": -3.216,
    "direct, rank": -1.561,
    "walk": 0.057,
    "walk, logarithm": 8.241,
    "walk, rank": 2.37,
    "titles, one hop": -1.024,
    "titles, two hops": -1.47,
    "titles, rank": 2.083,
    "shared names": 0.635,
    "residual": 0.921,
    "residual, rank": 1.518,
    "names in titles": 0.466,
    "gain": 8.124,
    "cover": 0.713,
}
"""For a memory with vectors."""

WITHOUT_EMBEDDER: Mapping[str, float] = {
    "lexical": -0.429,
    "named": 4.379,
    "direct": -1.848,
    "direct, rank": -1.015,
    "walk": -0.985,
    "walk, logarithm": 7.147,
    "walk, rank": 1.71,
    "titles, one hop": -0.951,
    "titles, two hops": -1.118,
    "titles, rank": 2.259,
    "shared names": 0.902,
    "residual": 1.264,
    "residual, rank": 1.233,
    "names in titles": 0.59,
    "gain": 5.2,
    "cover": 2.216,
}
"""For a memory without."""
