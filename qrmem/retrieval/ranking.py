"""Features of each candidate, in [0, 1] and comparable across memories, and reasons in words."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from qrmem.retrieval.scoring import normalised
from qrmem.text.names import words_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from qrmem.retrieval.candidates import Neighbourhood
    from qrmem.retrieval.exploring import Exploration
    from qrmem.retrieval.linking import Texts, TitleLinks


def by_rank(scores: "NDArray[np.float64]") -> "NDArray[np.float64]":
    """Return 1 / sqrt(place) with places from 1; 0 where the score is 0, ties share a place."""
    rounded = np.round(scores, 9)
    places = 1 + scores.size - np.searchsorted(np.sort(rounded), rounded, side="right")
    return np.where(scores > 0, 1 / np.sqrt(places), 0.0)


def _walked(found: "Exploration") -> "NDArray[np.float64]":
    """Return logarithms of PageRank, scaled from 0 (at `_LEAST_WALK`) to 1 (the maximum)."""
    least = _LEAST_WALK
    result: NDArray[np.float64] = 1 - np.log(
        (normalised(found.walk) + least) / (1 + least)
    ) / np.log(least / (1 + least))
    return result


def _novelty(found: "Exploration") -> "NDArray[np.float64]":
    """Return the share of the question that a candidate adds to one of the five best seeds."""
    neighbourhood, seeds = found.near, found.seeds[:5]
    if not seeds.size or not neighbourhood.question.total:
        return np.zeros(found.rows.size)
    have, known = neighbourhood.coverage(found.rows), neighbourhood.coverage(seeds)
    added = (
        np.maximum(have[None] - known[:, None], 0)
        @ neighbourhood.weights
        / neighbourhood.question.total
    )
    best: NDArray[np.float64] = (added * neighbourhood.direct[seeds][:, None]).max(axis=0)
    return best


def _linked(found: "Exploration") -> "NDArray[np.float64]":
    return np.maximum(*(hop.scores_of(found.rows) for hop in (found.first, found.second)))


def _telling(found: "Exploration") -> "NDArray[np.float64]":
    """Return how much of the question's most telling words a candidate has.

    The feature sums, for each word, its share of the question times its share of squared weights.
    A question about one rare word has nearly all of its weight there, even beside common words, and
    segments with that word rank before linked ones. For ten equal words, it is at most 0.1.
    """
    neighbourhood = found.near
    shares = neighbourhood.weights / (neighbourhood.question.total or 1.0)
    squares = neighbourhood.weights**2 / ((neighbourhood.weights**2).sum() or 1.0)
    result: NDArray[np.float64] = neighbourhood.coverage(found.rows) @ (shares * squares)
    return result


FEATURES: "Mapping[str, Callable[[Exploration], NDArray[np.float64]]]" = {
    "walk": _walked,
    "novelty": _novelty,
    "named": lambda f: f.near.named[f.rows],
    "links": lambda f: by_rank(_linked(f)),
    "follow-up": lambda f: by_rank(f.uncovered[f.rows]),
    "follow-up by meaning": lambda f: by_rank(f.meant),
    "telling words": _telling,
}
"""Features by name; each returns `(c,)` with values in [0, 1]."""

WEIGHTS: Mapping[str, float] = {
    "walk": 5.68,
    "novelty": 1.83,
    "named": 2.57,
    "links": 1.81,
    "follow-up": 2.08,
    "follow-up by meaning": 1.69,
    "telling words": 6.34,
}
"""Fitted by `tools/fit_search.py`, none below 0; docs/retrieval.md has both fits."""

_LEAST_WALK = 1e-4
"""Added to a candidate's share of PageRank, as 0 has no logarithm."""
_TIE = 1e-4
"""Scores that differ by less are equal; they are shown with four digits."""


def ranked(found: "Exploration") -> "NDArray[np.float64]":
    """Return `(n,)`: a score in [0, 1] for every segment that was considered.

    Candidates come before all other segments, which keep the order of their direct scores.
    """
    neighbourhood = found.near
    if not found.rows.size:
        return neighbourhood.direct
    sums = np.zeros(found.rows.size)
    for name, weight in WEIGHTS.items():
        sums += weight * FEATURES[name](found)
    # Half the slope of a logistic curve, so that far lower sums still differ after rounding.
    likely = 2 / (1 + np.exp((sums.max() - sums) / 2))
    scores = neighbourhood.direct * float(likely.min()) * 0.99
    scores[found.rows] = likely
    return _led(scores, found)


def _led(scores: "NDArray[np.float64]", found: "Exploration") -> "NDArray[np.float64]":
    """Rank no segment without a word of the question first, if another segment has one.

    A link is only as good as its source. In a small memory everything is linked with
    everything, and weights that were fitted on large memories could rank a neighbour first.
    """
    neighbourhood, rows = found.near, found.rows
    has_own_words = (neighbourhood.bm25[rows] > 0) | (neighbourhood.named[rows] > 0)
    if has_own_words.any() and not has_own_words.all():
        ahead = rows[has_own_words][np.argmax(scores[rows[has_own_words]])]
        if scores[rows[~has_own_words]].max() > scores[ahead] - _TIE:
            top = scores[rows].max()
            scores *= 1 - 2 * _TIE
            scores[ahead] = top
    return scores


# The reason for a hit, in words.


_WORDS = 6
_SENTENCE = 160
_STRONG = 0.5
"""Minimum direct score of a hit whose reason needs no link."""

_Step = tuple[str, int]
"""A part of a path in words, and the row of the segment that it quotes."""


async def reason(
    near: "Neighbourhood", found: "Exploration | None", texts: "Texts", row: int
) -> tuple[str, list[int]]:
    """Return the path from the question to a segment, and the rows of the segments that it quotes.

    The path consists of names, sentences, words and meaning.
    """
    steps: list[_Step] = []
    if found is not None and near.direct[row] < _STRONG:
        steps = await _way(found, texts, row)
    step_in_words = "; ".join([*(step_in_words for step_in_words, _ in steps), *_itself(near, row)])
    return step_in_words or "near what the question names", [source for _, source in steps]


def _itself(near: "Neighbourhood", row: int) -> list[str]:
    question, parts = near.question, []
    if near.named[row] > 0:
        parts.append(f'the question names "{near.entries[row].title}"')
    own_terms = set(near.entries[row].terms)
    shared = [term for term in question.weights if term in own_terms]
    terms_chosen = sorted(shared, key=lambda term: -question.weights[term])[:_WORDS]
    spelled = [question.spelled.get(term, term) for term in shared if term in terms_chosen]
    if spelled:
        parts.append(f"has the question's words {', '.join(dict.fromkeys(spelled))}")
    if near.dense[row] > 0:
        parts.append(f"near in meaning ({near.dense[row]:.0%} of the nearest segment's cosine)")
    return parts


async def _way(found: "Exploration", texts: "Texts", row: int) -> list[_Step]:
    """Return the links that lead to a segment, beginning at the question."""
    second, first = _link(found.second, row), _link(found.first, row)
    if first is not None and (second is None or first[1] >= second[1]):
        return [await _step(found, texts, found.first, first[0])]
    if second is not None:
        source = int(found.second.sources[second[0]])
        before = _link(found.first, source)
        steps = [await _step(found, texts, found.first, before[0])] if before else []
        return [*steps, await _step(found, texts, found.second, second[0])]
    if row < found.uncovered.size and found.uncovered[row] > 0:
        source = int(found.asked_by[row])
        title = await _label_of(found.near, texts, source)
        return [(f"shares names with {title} and has what the question still needs", source)]
    return []


def _link(links: "TitleLinks", row: int) -> tuple[int, float] | None:
    places = np.flatnonzero(links.targets == row)
    if not places.size:
        return None
    place = int(places[np.argmax(links.scores[places])])
    return place, float(links.scores[place])


async def _step(found: "Exploration", texts: "Texts", links: "TitleLinks", place: int) -> _Step:
    source = int(links.sources[place])
    id_ = found.near.entries[source].id
    _, cut = (await texts.read([id_])).get(id_, (None, ()))
    number = int(links.sentences[place])
    sentence = " ".join(cut[number].text.split()) if number < len(cut) else ""
    name = _as_written(str(links.names[place]), sentence)
    words_around = _around(sentence, name)
    to = "its title" if links.entitled[place] else "named here too"
    title = await _label_of(found.near, texts, source)
    return f'from {title}, "{words_around}", over "{name}" ({to})', source


def _around(sentence: str, name: str) -> str:
    """Return a sentence, or the part of a long one that has the name."""
    if len(sentence) <= _SENTENCE:
        return sentence
    start = max(0, sentence.find(name) + len(name) - _SENTENCE // 2)
    start = min(start, len(sentence) - _SENTENCE)
    words_around = sentence[start : start + _SENTENCE]
    if start:
        words_around = "… " + words_around.partition(" ")[2]
    return (
        words_around
        if start + _SENTENCE == len(sentence)
        else words_around.rpartition(" ")[0] + " …"
    )


def _as_written(name: str, sentence: str) -> str:
    """Return a name as a sentence spells it."""
    words = words_of(sentence)
    length = name.count(" ") + 1
    for first in range(len(words.words) - length + 1):
        if words.joined(first, first + length) == name:
            return sentence[words.starts[first] : words.ends[first + length - 1]]
    return name


async def _label_of(near: "Neighbourhood", texts: "Texts", row: int) -> str:
    """Return the label of a segment: its document's title, and its chapter or number."""
    entry = near.entries[row]
    segment, _ = (await texts.read([entry.id])).get(entry.id, (None, ()))
    part = segment.part if segment else ""
    more = f", {part}" if part else f" segment {entry.index}" if entry.index else ""
    return f'"{entry.title or entry.document_id}"{more}'
