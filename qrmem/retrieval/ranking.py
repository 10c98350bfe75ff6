"""What is known of each candidate, as numbers in [0, 1] that mean the same in every memory."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from qrmem.retrieval.scoring import normalised

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from qrmem.retrieval.exploring import Exploration


def by_rank(scores: "NDArray[np.float64]") -> "NDArray[np.float64]":
    """Return 1 / sqrt(place) with places from 1; 0 where the score is 0, ties share a place."""
    rounded = np.round(scores, 9)
    places = 1 + scores.size - np.searchsorted(np.sort(rounded), rounded, side="right")
    return np.where(scores > 0, 1 / np.sqrt(places), 0.0)


def _logged(values: "NDArray[np.float64]", floor: float) -> "NDArray[np.float64]":
    """Return logarithms from 0 (at most the floor) to 1 (the maximum)."""
    result: NDArray[np.float64] = 1 - np.log((values + floor) / (1 + floor)) / np.log(
        floor / (1 + floor)
    )
    return result


def _novelty(found: "Exploration") -> "NDArray[np.float64]":
    """Return how much of the question a candidate adds to one of the five best seeds."""
    near, seeds = found.near, found.seeds[:5]
    if not seeds.size or not near.question.total:
        return np.zeros(found.rows.size)
    have = np.minimum(near.profiles[found.rows], 1)
    known = np.minimum(near.profiles[seeds], 1)
    added = np.maximum(have[None] - known[:, None], 0) @ near.weights / near.question.total
    best: NDArray[np.float64] = (added * near.direct[seeds][:, None]).max(axis=0)
    return best


def _linked(found: "Exploration") -> "NDArray[np.float64]":
    return np.maximum(*(hop.scores_of(found.rows) for hop in (found.first, found.second)))


def _shared(found: "Exploration") -> "NDArray[np.float64]":
    """Return the best link out of a seed by a name that both texts have."""
    return normalised(found.first.chosen(~found.first.entitled).scores_of(found.rows))


def _telling(found: "Exploration") -> "NDArray[np.float64]":
    """Return how much a candidate has of the few words that make a question: shares, squared.

    A question about one rare word has nearly all of its weight there, and what holds the word goes
    before what names lead to. Spread over ten words the feature is next to nothing.
    """
    near = found.near
    shares = near.weights / (near.question.total or 1.0)
    has: NDArray[np.float64] = np.minimum(near.profiles[found.rows], 1) @ shares**2
    return has


FEATURES: "Mapping[str, Callable[[Exploration], NDArray[np.float64]]]" = {
    "walk": lambda f: _logged(normalised(f.walk), 1e-4),
    "novelty": _novelty,
    "named": lambda f: f.near.named[f.rows],
    "links": lambda f: by_rank(_linked(f)),
    "shared names": _shared,
    "follow-up": lambda f: by_rank(f.uncovered[f.rows]),
    "meaning": lambda f: _logged(f.near.dense[f.rows], 0.05),
    "telling words": _telling,
}
"""Name to what it measures; each gives `(c,)` with values in [0, 1]."""

WEIGHTS: Mapping[str, float] = {
    "walk": 6.29,
    "novelty": 2.61,
    "named": 2.39,
    "links": 1.59,
    "shared names": 0.48,
    "follow-up": 1.86,
    "meaning": 0.12,
    "telling words": 7.72,
}
"""Fitted by `tools/fit_search.py`, none below 0; "meaning" is 0 everywhere without an embedder."""

_TIE = 1e-4
"""Scores that are shown with four digits and differ by less are equal."""


def ranked(found: "Exploration") -> "NDArray[np.float64]":
    """Return `(n,)`: a score in [0, 1] for every segment that was looked at.

    Candidates come before all others, which keep the order of their direct scores.
    """
    near = found.near
    if not found.rows.size:
        return near.direct
    sums = np.zeros(found.rows.size)
    for name, weight in WEIGHTS.items():
        sums += weight * FEATURES[name](found)
    # Half the slope of a logistic curve, so that far lower sums still differ after rounding.
    likely = 2 / (1 + np.exp((sums.max() - sums) / 2))
    scores = near.direct * float(likely.min()) * 0.99
    scores[found.rows] = likely
    return _led(scores, found)


def _led(scores: "NDArray[np.float64]", found: "Exploration") -> "NDArray[np.float64]":
    """Let nothing lead that has no word of the question, where something has one.

    A link is only as good as where it starts. In a small memory everything is linked with
    everything, and what was fitted on large ones would let a neighbour lead.
    """
    near, rows = found.near, found.rows
    own = (near.bm25[rows] > 0) | (near.named[rows] > 0)
    if own.any() and not own.all():
        ahead = rows[own][np.argmax(scores[rows[own]])]
        if scores[rows[~own]].max() > scores[ahead] - _TIE:
            top = scores[rows].max()
            scores *= 1 - 2 * _TIE
            scores[ahead] = top
    return scores
