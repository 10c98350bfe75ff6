"""What is known of each candidate, as numbers in [0, 1] that mean the same in every memory."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from qrmem.retrieval import fusion

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from qrmem.retrieval.direct import Direct
    from qrmem.retrieval.links import Reached
    from qrmem.retrieval.residual import Residual


@dataclass(frozen=True, slots=True)
class Evidence:
    """Everything that was found out for one question.

    Attributes:
        rows: `(c,)` ascending, the candidates.
        direct: what the question says by itself.
        seeds: the segments that the graph was walked from, best first.
        first: what the seeds lead to.
        second: what these lead to.
        residual: what the second query finds.
        walk: `(c,)`, PageRank.
    """

    rows: "NDArray[np.int64]"
    direct: "Direct"
    seeds: "NDArray[np.int64]"
    first: "Reached"
    second: "Reached"
    residual: "Residual"
    walk: "NDArray[np.float64]"


def by_rank(scores: "NDArray[np.float64]") -> "NDArray[np.float64]":
    """Return 1 / sqrt(place) with places from 1; 0 where the score is 0, ties share a place."""
    rounded = np.round(scores, 9)
    places = 1 + scores.size - np.searchsorted(np.sort(rounded), rounded, side="right")
    return np.where(scores > 0, 1 / np.sqrt(places), 0.0)


def _lexical(found: Evidence) -> "NDArray[np.float64]":
    return found.direct.lexical[found.rows]


def _leading(found: Evidence) -> "NDArray[np.float64]":
    """Return 1 for the best by words and next to nothing for those well behind it."""
    return _lexical(found) ** 4


def _dense(found: Evidence) -> "NDArray[np.float64]":
    return _logged(found.direct.dense[found.rows], 0.05)


def _named(found: Evidence) -> "NDArray[np.float64]":
    return found.direct.named[found.rows]


def _direct(found: Evidence) -> "NDArray[np.float64]":
    return found.direct.scores[found.rows]


def _direct_rank(found: Evidence) -> "NDArray[np.float64]":
    return by_rank(_direct(found))


def _walk(found: Evidence) -> "NDArray[np.float64]":
    return _logged(fusion.normalised(found.walk), 1e-4)


def _walk_rank(found: Evidence) -> "NDArray[np.float64]":
    return by_rank(found.walk)


def _first_titles(found: Evidence) -> "NDArray[np.float64]":
    return fusion.normalised(_at(found, found.first.only(found.first.links.entitled)))


def _second_titles(found: Evidence) -> "NDArray[np.float64]":
    return fusion.normalised(_at(found, found.second.only(found.second.links.entitled)))


def _path_rank(found: Evidence) -> "NDArray[np.float64]":
    first = _at(found, found.first.only(found.first.links.entitled))
    second = _at(found, found.second.only(found.second.links.entitled))
    return by_rank(np.maximum(first, second))


def _first_names(found: Evidence) -> "NDArray[np.float64]":
    return fusion.normalised(_at(found, found.first.only(~found.first.links.entitled)))


def _residual(found: Evidence) -> "NDArray[np.float64]":
    return fusion.normalised(found.residual.scores[found.rows])


def _residual_rank(found: Evidence) -> "NDArray[np.float64]":
    return by_rank(found.residual.scores[found.rows])


def _title_names(found: Evidence) -> "NDArray[np.float64]":
    return fusion.normalised(found.residual.titles[found.rows])


def _gain(found: Evidence) -> "NDArray[np.float64]":
    """Return how much of the question a candidate adds to one of the five best seeds."""
    direct, seeds = found.direct, found.seeds[:5]
    if not seeds.size or not direct.found:
        return np.zeros(found.rows.size)
    have = np.minimum(direct.profiles(found.rows), 1)
    known = np.minimum(direct.profiles(seeds), 1)
    added = np.maximum(have[None] - known[:, None], 0) @ direct.term_weights() / direct.total
    best: NDArray[np.float64] = (added * direct.scores[seeds][:, None]).max(axis=0)
    return best


def _at(found: Evidence, reached: "Reached") -> "NDArray[np.float64]":
    scores = reached.by_target()
    return np.array([scores.get(row, 0.0) for row in found.rows.tolist()])


def _logged(values: "NDArray[np.float64]", floor: float) -> "NDArray[np.float64]":
    """Return logarithms from 0 (at most the floor) to 1 (the maximum)."""
    result: NDArray[np.float64] = 1 - np.log((values + floor) / (1 + floor)) / np.log(
        floor / (1 + floor)
    )
    return result


FEATURES: "Mapping[str, Callable[[Evidence], NDArray[np.float64]]]" = {
    "lexical": _lexical,
    "lexical, leading": _leading,
    "dense": _dense,
    "named": _named,
    "direct, rank": _direct_rank,
    "walk": _walk,
    "walk, rank": _walk_rank,
    "titles, one hop": _first_titles,
    "titles, two hops": _second_titles,
    "titles, rank": _path_rank,
    "shared names": _first_names,
    "residual": _residual,
    "residual, rank": _residual_rank,
    "names in titles": _title_names,
    "gain": _gain,
}
"""Name to what it measures; each gives `(c,)` with values in [0, 1]."""


def combined(found: Evidence, weights: Mapping[str, float]) -> "NDArray[np.float64]":
    """Return the weighted sum of the features that have a weight."""
    result = np.zeros(found.rows.size)
    for name, weight in weights.items():
        result += weight * FEATURES[name](found)
    return result
