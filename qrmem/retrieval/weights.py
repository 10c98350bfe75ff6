"""Weights of the features; written by `python -m benchmarks.fit_search`, not by hand."""

from collections.abc import Mapping

WITH_EMBEDDER: Mapping[str, float] = {
    "lexical": -3.51,
    "dense": 0.361,
    "dense, logarithm": 5.123,
    "named": 3.689,
    "direct": -2.276,
    "direct, rank": -1.458,
    "walk": 0.479,
    "walk, logarithm": 7.68,
    "walk, rank": 1.957,
    "titles, one hop": -0.895,
    "titles, two hops": -1.353,
    "titles, rank": 1.907,
    "shared names": 0.408,
    "residual": 0.929,
    "residual, rank": 1.714,
    "names in titles": 0.609,
    "gain": 7.507,
    "cover": 0.797,
}
"""For a memory with vectors."""

WITHOUT_EMBEDDER: Mapping[str, float] = {
    "lexical": -1.183,
    "named": 4.179,
    "direct": -1.739,
    "direct, rank": -0.359,
    "walk": -0.127,
    "walk, logarithm": 7.395,
    "walk, rank": 0.397,
    "titles, one hop": -0.841,
    "titles, two hops": -0.757,
    "titles, rank": 1.982,
    "shared names": 0.626,
    "residual": 1.185,
    "residual, rank": 1.527,
    "names in titles": 0.66,
    "gain": 5.289,
    "cover": 2.004,
}
"""For a memory without."""
