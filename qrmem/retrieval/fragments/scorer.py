"""FragRel's scores of a memory's fragments: independent, environment and relation-aware."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

import numpy as np

from qrmem.errors import UsageError
from qrmem.llm.embedders import BY_PRODUCT, directions
from qrmem.retrieval.fragments import gathering
from qrmem.retrieval.fragments.code_graph import CodeIndex
from qrmem.retrieval.fragments.operators import (
    EXACT,
    Blend,
    Code,
    Semantic,
    Structure,
    WeightMatrix,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]
    from qrmem.retrieval.fragments.gathering import Fragments
    from qrmem.retrieval.searcher import Searcher
    from qrmem.types.options import FragmentSettings, Relate


# FragRel's scores of a fragment: by its own text and its surroundings (Eq. 9-11).

_NOTHING = 1e-6
"""A fragment with at most this sum of weights is unrelated; vectors are float32."""


def environment(
    relation: "WeightMatrix",
    independent: "Vector",
    *,
    with_self: bool = True,
    counts: "Vector | None" = None,
) -> "Vector":
    """Return the environment scores (Equation 9): the weighted mean score of related fragments.

    Args:
        relation: a relation over n fragments.
        independent: `(n,)`, independent scores.
        with_self: whether a fragment is part of its own environment. The paper's text excludes it,
            its equation includes it. Only if included, `w_rel = 0` gives the independent ranking.
        counts: `(n,)`, 0 for hidden fragments, else 1; `None` hides none.

    Returns:
        `(n,)`; 0 for a fragment that is related to nothing.
    """
    visible_counts = np.ones_like(independent) if counts is None else counts
    sums, weights = relation.times(
        np.stack([independent * visible_counts, visible_counts], axis=1)
    ).T
    if not with_self:
        diagonal_part = relation.diagonal() * visible_counts
        sums, weights = sums - diagonal_part * independent, weights - diagonal_part
    result = np.zeros_like(independent)
    np.divide(sums, weights, out=result, where=weights > _NOTHING)
    return result


def relation_aware(independent: "Vector", around: "Vector", alpha: float) -> "Vector":
    """Return the relation-aware scores (Equation 10)."""
    result: Vector = independent + alpha * around
    return result


def best(scores: "Vector", k: int) -> list[int]:
    """Return the k best fragments, best first (Equation 11); of equal ones the earlier first."""
    order = np.argsort(-np.round(scores, 12), kind="stable")
    return [int(row) for row in order[:k]]


# Relations over a memory's fragments, by name or as a user's function.

GROUP = "qrmem.relations"
"""Entry point group by which other packages add relations."""


def name_of(relation: "str | Relate") -> str:
    """Return a relation's name: itself if text, else the name of the function or class."""
    if isinstance(relation, str):
        return relation
    return str(getattr(relation, "__name__", type(relation).__name__))


async def related(
    searcher: "Searcher",
    fragments: "Fragments",
    settings: "FragmentSettings",
    index: CodeIndex,
) -> "WeightMatrix":
    """Return the relation that the settings name; the mean if they name several.

    Raises:
        UsageError: no relation has that name, it needs vectors and the memory has none, or a
            user's relation has another number of fragments or a negative weight.
    """
    parts: list[WeightMatrix] = []
    for relation_name in settings.relations:
        if relation_name == "code":
            parts.append(Code.over(fragments, await index.strengths(settings.cutoff)))
        elif isinstance(relation_name, str) and relation_name in _BUILT_IN:
            parts.append(_BUILT_IN[relation_name](fragments, settings))
        else:
            relate = (
                _entry_point(relation_name) if isinstance(relation_name, str) else relation_name
            )
            parts.append(await _plug_in_relation(searcher, fragments, relate))
    return parts[0] if len(parts) == 1 else Blend(parts)


def _structure(fragments: "Fragments", settings: "FragmentSettings") -> Structure:
    return Structure(fragments.sequences, fragments.places, settings.w_rel)


def _semantic(fragments: "Fragments", settings: "FragmentSettings") -> Semantic:
    if not fragments.vectors.any():
        raise UsageError("relation 'semantic' needs an embedder; `qrmem reembed` adds vectors")
    # Deviation: beyond that size a sample represents all fragments, see docs/adr/0009.
    return Semantic(fragments.vectors, settings.printed, fragments.size > EXACT)


_BUILT_IN: Mapping[str, "Callable[[Fragments, FragmentSettings], WeightMatrix]"] = {
    "structure": _structure,
    "semantic": _semantic,
}


def _entry_point(name: str) -> "Relate":
    plug_ins = {point.name: point for point in entry_points(group=GROUP)}
    if name not in plug_ins:
        names = ", ".join([*_BUILT_IN, "code", *sorted(plug_ins)])
        raise UsageError(f"no relation is called {name!r}; there are: {names}")
    relate: Relate = plug_ins[name].load()
    return relate


async def _plug_in_relation(
    searcher: "Searcher", fragments: "Fragments", relate: "Relate"
) -> "WeightMatrix":
    segments = await searcher.store.segments(searcher.ns, fragments.ids)
    relation = relate(replace(fragments, segments=segments))
    if not isinstance(relation, WeightMatrix):
        returned = f"{name_of(relate)} returned {type(relation).__name__}"
        raise UsageError(
            f"{returned}, which is not a relation between fragments: make one by `Links`"
        )
    if relation.size != fragments.size:
        raise UsageError(f"the relation is over {relation.size} fragments, not {fragments.size}")
    if not np.all(relation.times(np.ones((relation.size, 1))) >= 0):
        raise UsageError("the weights of a relation must be numbers, none negative")
    return relation


@dataclass(frozen=True, slots=True)
class Assessed:
    """Every fragment's scores for one question.

    Attributes:
        settings: the settings that were used.
        alone: `(n,)`, independent scores, s_ind of Equation 4.
        around: `(n,)`, environment scores, s_env of Equation 9.
        scores: `(n,)`, relation-aware scores, s_rel of Equation 10; -inf for hidden fragments.
    """

    fragments: "Fragments"
    settings: "FragmentSettings"
    alone: "Vector"
    around: "Vector"
    scores: "Vector"

    def best(self, k: int) -> dict[str, float]:
        """Return the k best segments with their scores, best first (Equation 11)."""
        rows = [row for row in best(self.scores, k) if np.isfinite(self.scores[row])]
        return {self.fragments.ids[row]: float(self.scores[row]) for row in rows}

    def documents(self, k: int | None) -> list[str]:
        """Return the ids of the k documents with the best fragments, best first.

        Args:
            k: upper bound on the number; `None` returns all.
        """
        rows = best(self.scores, self.scores.size)
        places = (int(self.fragments.document_of[r]) for r in rows if np.isfinite(self.scores[r]))
        return [self.fragments.documents[place].id for place in list(dict.fromkeys(places))[:k]]

    def surrounded(self, k: int) -> int:
        """Return how many of the k best fragments are not among the k best by `alone`."""
        alone = {row for row in best(self.alone, k) if self.alone[row] > 0}
        return sum(self.scores[r] > 0 and r not in alone for r in best(self.scores, k))


class FragmentScorer:
    """Scores the fragments of one namespace; caches their relations until the memory changes."""

    def __init__(self, searcher: "Searcher") -> None:
        """Take a namespace's searcher."""
        self._searcher = searcher
        self._index = CodeIndex(searcher.store, searcher.ns)
        self._gathered: tuple[tuple[object, ...], Fragments] | None = None
        self._related: tuple[Fragments, tuple[object, ...], WeightMatrix] | None = None

    async def assess(
        self,
        question: str,
        *,
        settings: "FragmentSettings | None" = None,
        documents: Collection[str] | None = None,
        hidden: Collection[str] = (),
        searcher: "Searcher | None" = None,
    ) -> Assessed | None:
        """Score every fragment of some documents; return `None` if there is none.

        Args:
            settings: `None` uses the paper's settings for the most frequent kind of fragment: text,
                code or turns.
            documents: ids of the documents to score; `None` scores all.
            hidden: ids of segments to leave out of the results and of every environment.
            searcher: searches on a run's account; `None`: the scorer's own.

        Raises:
            UsageError: the settings name an unknown relation or score, or one that needs vectors
                that the memory does not have.
            MissingError: the relation `code` needs the extra `code`.
        """
        fragments = await self._gather(None if documents is None else frozenset(documents))
        if fragments is None or not fragments.size:
            return None
        chosen_settings = settings or gathering.preset(fragments)
        searcher = searcher or self._searcher
        alone = await gathering.scores(searcher, fragments, question, chosen_settings)
        relation = await self._relation(fragments, chosen_settings)
        is_visible = np.array([id not in hidden for id in fragments.ids], dtype=np.float64)
        around = environment(
            relation, alone, with_self=chosen_settings.with_self, counts=is_visible
        )
        scores = relation_aware(alone, around, chosen_settings.alpha)
        scores = np.where(is_visible > 0, scores, -np.inf)
        return Assessed(fragments, chosen_settings, alone, around, scores)

    async def _gather(self, documents: frozenset[str] | None) -> "Fragments | None":
        """Return the fragments; gather them again if the memory changed or vectors are missing."""
        info = await self._searcher.store.namespace(self._searcher.ns)
        if info is None:
            return None
        cache_key = (info.revision, info.embedder, documents)
        gathered = self._gathered
        if (
            gathered is None
            or gathered[0] != cache_key
            or (info.dimension and not _are_whole(gathered[1]))
        ):
            fragments_found = await gathering.gather(self._searcher, documents)
            embedder = self._searcher.embedder
            if embedder is not None and embedder.name.startswith(BY_PRODUCT):
                fragments_found = replace(
                    fragments_found, vectors=directions(fragments_found.vectors)
                )
            self._gathered = gathered = cache_key, fragments_found
        return gathered[1]

    async def _relation(
        self, fragments: "Fragments", settings: "FragmentSettings"
    ) -> "WeightMatrix":
        cache_key = (settings.relations, settings.w_rel, settings.printed, settings.cutoff)
        cached_relation = self._related
        if (
            cached_relation is None
            or cached_relation[0] is not fragments
            or cached_relation[1] != cache_key
        ):
            relation = await related(self._searcher, fragments, settings, self._index)
            self._related = cached_relation = fragments, cache_key, relation
        return cached_relation[2]


def _are_whole(fragments: "Fragments") -> bool:
    """Return whether every fragment has a vector."""
    return bool(fragments.vectors.any(axis=1).all())
