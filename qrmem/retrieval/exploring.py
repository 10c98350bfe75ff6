"""Expands the first segments of a search to its candidates, by links and PageRank."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from qrmem.retrieval import linking, scoring
from qrmem.text.words import terms

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from qrmem.retrieval.candidates import Neighbourhood
    from qrmem.retrieval.linking import Names, Sentence, Texts, TitleLinks


# Personalised PageRank over the candidates of one question: title links and shared names.

_RESTART = 0.5
_ROUNDS = 12
_SHARPEN = 6
"""Exponent on the direct scores: nearly all of the walk starts from few segments."""
_TITLE_LINK = 3.0
"""Weight of a link to a title, relative to a shared name."""
_COMMON = 40
"""Maximum number of segments with a name that links them."""

Edges = tuple["NDArray[np.int64]", "NDArray[np.int64]", "NDArray[np.float64]"]
"""Heads, tails and weights."""


async def rank(
    near: "Neighbourhood", rows: "NDArray[np.int64]", links: "TitleLinks"
) -> "NDArray[np.float64]":
    """Return the probability of each candidate in a random walk from the best segments.

    Args:
        near: the segments.
        rows: `(c,)` ascending, the candidates.
        links: links among segments; those with an end outside the candidates don't count.

    Returns:
        `(c,)`, at least 0.
    """
    ours, names, weights, size = await _shared_names(near, rows)
    sources, targets, worth = _titles(rows, links)
    heads = np.concatenate([ours, names, sources, targets])
    tails = np.concatenate([names, ours, targets, sources])
    shares = np.concatenate([weights, weights, worth, worth])
    restart = np.zeros(size)
    restart[: rows.size] = near.direct[rows] ** _SHARPEN
    restart /= restart.sum() or 1.0
    if not heads.size:
        return restart[: rows.size]
    shares = shares / np.bincount(heads, shares, minlength=size)[heads]
    walk = restart
    for _ in range(_ROUNDS):
        moved = np.bincount(tails, walk[heads] * shares, minlength=size)
        walk = _RESTART * restart + (1 - _RESTART) * moved
    return walk[: rows.size]


def _titles(rows: "NDArray[np.int64]", links: "TitleLinks") -> Edges:
    """Return the edges between candidates that come from titles."""
    title_links = links.chosen(
        links.entitled & np.isin(links.sources, rows) & np.isin(links.targets, rows)
    )
    return (
        np.searchsorted(rows, title_links.sources),
        np.searchsorted(rows, title_links.targets),
        _TITLE_LINK * title_links.worth,
    )


async def _shared_names(near: "Neighbourhood", rows: "NDArray[np.int64]") -> tuple[*Edges, int]:
    """Return edges from candidates to the names they share, and the number of all nodes.

    Nodes are the candidates, then the names.
    """
    place_of = {near.entries[row].id: place for place, row in enumerate(rows.tolist())}
    shared = await near.store.shared_entities(near.ns, list(place_of), _COMMON)
    edges = sorted(
        (place_of[id_], number, 1 / np.log2(1 + spread))
        for number, (_, (ids, spread)) in enumerate(sorted(shared.items()), rows.size)
        for id_ in ids
    )
    ours, names, weights = zip(*edges, strict=True) if edges else ((),) * 3
    return (
        np.array(ours, dtype=np.int64),
        np.array(names, dtype=np.int64),
        np.array(weights, dtype=np.float64),
        rows.size + len(shared),
    )


_DIRECT, _SEEDS = 40, 12
"""Number of candidates by direct score, and of the first ones whose names are followed."""
_ONWARD = 10
"""Number of segments that start a second hop."""
_ASKED_AGAIN = 8
"""Number of seeds that make a follow-up query."""
_SHARED, _FAR, _FAR_SHARED = 60, 60, 30
"""Number of candidates by shared names, by a second hop, and by shared names after it."""
_MEANT, _NAMES_MEANT = 3, 3
"""Number of seeds whose follow-up query an embedder reads, and of the names in it."""
_ASKED = 15
"""Number of candidates from each follow-up query."""
_ASKED_FOR = 24
"""Number of terms of names in a follow-up query."""
_PLAIN_NAME = 0.3
"""Weight of a name in a sentence without words of the question."""


@dataclass(frozen=True, slots=True)
class Exploration:
    """The result of the expansion for one question.

    Attributes:
        near: the segments that were considered.
        rows: `(c,)` ascending, the candidates among them.
        seeds: the segments that links were followed from, best first.
        first: the links out of the seeds, the best one to each target.
        second: the links out of these targets.
        uncovered: `(n,)`, scores from the follow-up queries, which join terms of the question that
            a seed lacks with names in the seed.
        asked_by: `(n,)`, the seed of the best follow-up query; -1 where `uncovered` is 0.
        walk: `(c,)`, PageRank.
        meant: `(c,)` in [0, 1], the best cosine with a follow-up query, times the direct score of
            its seed; all 0 without an embedder.
    """

    near: "Neighbourhood"
    rows: "NDArray[np.int64]"
    seeds: "NDArray[np.int64]"
    first: "TitleLinks"
    second: "TitleLinks"
    uncovered: "NDArray[np.float64]"
    asked_by: "NDArray[np.int64]"
    walk: "NDArray[np.float64]"
    meant: "NDArray[np.float64]"


async def explore(near: "Neighbourhood", texts: "Texts") -> Exploration:
    """Follow the names in the best segments for two hops, and collect the candidates."""
    ordered = near.best(near.direct, _DIRECT)
    seeds = ordered[:_SEEDS]
    names = await linking.names_in(near, texts, _ids(near, seeds))
    out = await linking.follow(near, names)
    weight = dict(zip(seeds.tolist(), near.direct[seeds].tolist(), strict=True))
    covered = dict(zip(seeds.tolist(), near.profiles[seeds], strict=True))
    first = linking.weigh(near, out, weight, covered)

    onward = _onward(first, seeds)
    further = await linking.names_in(near, texts, _ids(near, onward.targets))
    out_2 = await linking.follow(near, further)
    top = float(first.scores.max(initial=0.0)) or 1.0
    weight = dict(zip(onward.targets.tolist(), (onward.scores / top).tolist(), strict=True))
    covered = {
        row: np.maximum(covered[source], near.profiles[row])
        for row, source in zip(onward.targets.tolist(), onward.sources.tolist(), strict=True)
    }
    second = linking.weigh(near, out_2, weight, covered)

    uncovered, asked_by = await _ask_again(near, names, seeds[:_ASKED_AGAIN])
    rows = _candidates(near, ordered, first, second, uncovered)
    links = _joined(out, out_2)
    walk = await rank(near, rows, links)
    meant = np.zeros(rows.size)
    return Exploration(near, rows, seeds, first, second, uncovered, asked_by, walk, meant)


def follow_ups(found: Exploration) -> dict[int, str]:
    """Return the follow-up queries for an embedder, by the row of their seed.

    Each is the question without the words that a seed has, and the names with the best links out.
    """
    queries = ((row, _follow_up(found, row)) for row in found.seeds[:_MEANT].tolist())
    return {row: query for row, query in queries if query}


def _follow_up(found: Exploration, row: int) -> str:
    near, links = found.near, found.first.chosen(found.first.sources == row)
    held = frozenset(near.entries[row].terms)
    # Words such as "who" have no term. They stay, as an encoder knows what they ask for.
    words = [one for one in near.question.text.split() if not held.issuperset(terms(one) or ("",))]
    names = dict.fromkeys(links.best(len(links)).names.tolist())
    return " ".join([*words, *islice(names, _NAMES_MEANT)])


async def with_meaning(
    found: Exploration, vectors: "Mapping[int, NDArray[np.float32]]"
) -> Exploration:
    """Return the exploration with the candidates' cosines with the follow-up queries.

    A seed has, instead of its own cosine, the square of the share of the question it covers.

    Args:
        vectors: the vectors of `follow_ups`, by the row of their seed.
    """
    near = found.near
    ids = _ids(near, found.rows)
    reads = (near.store.nearest(near.ns, one, len(ids), among=ids) for one in vectors.values())
    meant = np.zeros(found.rows.size)
    for row, cosines in zip(vectors, await asyncio.gather(*reads), strict=True):
        scores = near.direct[row] * np.array([cosines.get(id_, 0.0) for id_ in ids])
        # A segment that answers all of a question must not lose to what it leads to.
        covered = near.coverage(row) @ near.weights / (near.question.total or 1)
        scores[found.rows == row] = near.direct[row] * covered**2
        meant = np.maximum(meant, scores)
    return replace(found, meant=meant)


def _ids(near: "Neighbourhood", rows: "NDArray[np.int64]") -> list[str]:
    return [near.entries[row].id for row in rows.tolist()]


def _joined(one: "TitleLinks", other: "TitleLinks") -> "TitleLinks":
    fields = one.__dataclass_fields__
    return type(one)(*(np.concatenate([getattr(one, f), getattr(other, f)]) for f in fields))


def _onward(first: "TitleLinks", seeds: "NDArray[np.int64]") -> "TitleLinks":
    """Return the best links to new segments, one for each segment."""
    new = first.chosen(~np.isin(first.targets, seeds))
    ordered = new.best(len(new))
    _, places = np.unique(ordered.targets, return_index=True)
    return ordered.chosen(np.sort(places)[:_ONWARD])


async def _ask_again(
    near: "Neighbourhood", names: "Names", seeds: "NDArray[np.int64]"
) -> "tuple[NDArray[np.float64], NDArray[np.int64]]":
    """Query from each seed for the terms of the question that it lacks, together with its names.

    A segment that names no title can still lead on: its names, and the words of the question that
    it lacks, form a new query.
    """
    bags = {row: _bag(near, names.read.get(near.entries[row].id, ())) for row in seeds.tolist()}
    query_terms = dict.fromkeys(sorted({term for bag in bags.values() for term in bag}), 1.0)
    if not query_terms:
        return np.zeros(near.size), np.full(near.size, -1, dtype=np.int64)
    vocabulary = await near.store.vocabulary(near.ns, list(query_terms))
    rarity = scoring.weighted(query_terms, vocabulary)
    bags = {row: _rarest(bag, rarity) for row, bag in bags.items()}

    only = near.question
    queries = [[_lacking(near, row), list(bag)] for row, bag in bags.items()]
    found = await near.store.matching_each(
        near.ns, queries, _ASKED, only.documents, among=only.segments
    )
    answers = dict(zip(bags, found, strict=True))
    await near.add(id_ for ids in answers.values() for id_ in ids)
    result, sources = np.zeros(near.size), np.full(near.size, -1, dtype=np.int64)
    for row, ids in answers.items():
        rows = near.rows(id_ for id_ in ids if id_ != near.entries[row].id)
        weights = {term: count * rarity[term] for term, count in bags[row].items()}
        scores = near.direct[row] * _together(near, row, rows, weights)
        better = rows[scores > result[rows]]
        result[better], sources[better] = scores[scores > result[rows]], row
    return result, sources


def _lacking(near: "Neighbourhood", row: int) -> list[str]:
    """Return the terms of the question that a segment lacks."""
    counts = near.profiles[row]
    return [term for term, count in zip(near.question.weights, counts, strict=True) if count < 1]


def _rarest(bag: Mapping[str, float], rarity: Mapping[str, float]) -> dict[str, float]:
    """Return the terms with the most weight in a follow-up query."""
    ordered = sorted(bag, key=lambda term: (-bag[term] * rarity[term], term))
    return {term: bag[term] for term in ordered[:_ASKED_FOR]}


def _together(
    near: "Neighbourhood",
    seed: int,
    rows: "NDArray[np.int64]",
    weights: Mapping[str, float],
) -> "NDArray[np.float64]":
    """Return the geometric mean of the scores for terms that a seed lacks and for its names."""
    bags = (near.entries[row].terms for row in rows.tolist())
    length = near.question.vocabulary.mean_length
    counts = scoring.saturated(bags, list(weights), length)
    lacking = (1 - near.coverage(seed)) * near.weights
    by_names = scoring.normalised(counts @ np.array(list(weights.values())))
    result: NDArray[np.float64] = np.sqrt(
        by_names * scoring.normalised(near.profiles[rows] @ lacking)
    )
    return result


def _bag(near: "Neighbourhood", cut: "Sequence[Sentence]") -> dict[str, float]:
    """Return the words of the names in a segment, weighted by the sentences that contain them."""
    bag: dict[str, float] = {}
    for sentence in cut:
        weight = _PLAIN_NAME + near.question.share(sentence.terms)
        for name in sentence.names:
            for term in terms(name):
                if term not in near.question.weights:
                    bag[term] = max(bag.get(term, 0.0), weight)
    return bag


def _candidates(
    near: "Neighbourhood",
    ordered: "NDArray[np.int64]",
    first: "TitleLinks",
    second: "TitleLinks",
    uncovered: "NDArray[np.float64]",
) -> "NDArray[np.int64]":
    parts = [
        ordered,
        np.flatnonzero(near.named),
        first.targets[first.entitled],
        first.chosen(~first.entitled).best(_SHARED).targets,
        second.chosen(second.entitled).best(_FAR).targets,
        second.chosen(~second.entitled).best(_FAR_SHARED).targets,
        np.flatnonzero(uncovered),
    ]
    return np.unique(np.concatenate(parts))
