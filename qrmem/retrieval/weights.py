"""Weights of the features; written by `python -m tools.fit_search`, not by hand."""

from collections.abc import Mapping

WITH_EMBEDDER: Mapping[str, float] = {
    "lexical": -5.242,
    "lexical, leading": 1.336,
    "dense": 4.618,
    "named": 2.476,
    "direct, rank": -1.302,
    "walk": 9.326,
    "walk, rank": 1.669,
    "titles, one hop": -1.38,
    "titles, two hops": -1.12,
    "titles, rank": 2.028,
    "shared names": 0.434,
    "residual": 0.475,
    "residual, rank": 1.608,
    "names in titles": 0.724,
    "gain": 8.142,
}
"""For a memory with vectors."""

WITHOUT_EMBEDDER: Mapping[str, float] = {
    "lexical": -1.495,
    "lexical, leading": 0.426,
    "named": 2.399,
    "direct, rank": 0.015,
    "walk": 8.675,
    "walk, rank": 0.03,
    "titles, one hop": -0.905,
    "titles, two hops": -0.866,
    "titles, rank": 1.724,
    "shared names": 0.831,
    "residual": 0.486,
    "residual, rank": 1.528,
    "names in titles": 0.83,
    "gain": 5.631,
}
"""For a memory without."""
