"""Fragments of one memory against a question: independent, environment, relation-aware scores."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from qrmem.llm.embedders import BY_PRODUCT, directions
from qrmem.retrieval.fragments import gathering, independent, scoring
from qrmem.retrieval.fragments.code_index import CodeIndex
from qrmem.retrieval.fragments.relating import related

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from qrmem.retrieval.fragments.gathering import Fragments
    from qrmem.retrieval.fragments.relations import Relation
    from qrmem.retrieval.searcher import Searcher
    from qrmem.types.options import FragmentSettings

    Vector = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Assessed:
    """Every fragment's scores for one question.

    Attributes:
        settings: what they were made by.
        alone: `(n,)`, s_ind of Equation 4.
        around: `(n,)`, s_env of Equation 9.
        scores: `(n,)`, s_rel of Equation 10.
    """

    fragments: "Fragments"
    settings: "FragmentSettings"
    alone: "Vector"
    around: "Vector"
    scores: "Vector"

    def best(self, k: int) -> dict[str, float]:
        """Return the k best segments with their scores, best first (Equation 11)."""
        rows = [row for row in scoring.best(self.scores, k) if np.isfinite(self.scores[row])]
        return {self.fragments.ids[row]: float(self.scores[row]) for row in rows}

    def documents(self, k: int | None) -> list[str]:
        """Return the ids of the documents with the best fragments, best first; `None`: of all."""
        rows = scoring.best(self.scores, self.scores.size)
        places = (int(self.fragments.document_of[r]) for r in rows if np.isfinite(self.scores[r]))
        return [self.fragments.documents[place].id for place in list(dict.fromkeys(places))[:k]]

    def surrounded(self, k: int) -> int:
        """Return how many of the k best would not be there without their surroundings."""
        alone = {row for row in scoring.best(self.alone, k) if self.alone[row] > 0}
        return sum(self.scores[r] > 0 and r not in alone for r in scoring.best(self.scores, k))


class FragmentScorer:
    """Assesses the fragments of one namespace; keeps their relations until the memory changes."""

    def __init__(self, searcher: "Searcher") -> None:
        """Take a namespace's searcher."""
        self._searcher = searcher
        self._index = CodeIndex(searcher.store, searcher.ns)
        self._gathered: tuple[tuple[object, ...], Fragments] | None = None
        self._related: tuple[Fragments, tuple[object, ...], Relation] | None = None

    async def assess(
        self,
        question: str,
        *,
        settings: "FragmentSettings | None" = None,
        documents: Collection[str] | None = None,
        hidden: Collection[str] = (),
    ) -> Assessed | None:
        """Score every fragment of some documents, or `None` if there is none.

        Args:
            settings: `None` takes the paper's for what most fragments are: text, code or turns.
            documents: ids of the only documents that count; `None`: all.
            hidden: ids of segments that must not be seen: neither found nor anybody's
                surroundings.

        Raises:
            UsageError: a relation or score has no name here, or needs vectors that are not there.
            MissingError: the code relation needs the extra `code`.
        """
        fragments = await self._gather(None if documents is None else frozenset(documents))
        if fragments is None or not fragments.size:
            return None
        chosen = settings or gathering.preset(fragments)
        alone = await independent.scores(self._searcher, fragments, question, chosen)
        relation = await self._relation(fragments, chosen)
        seen = np.array([id not in hidden for id in fragments.ids], dtype=np.float64)
        around = scoring.environment(relation, alone, with_self=chosen.with_self, counts=seen)
        scores = scoring.relation_aware(alone, around, chosen.alpha)
        scores = np.where(seen > 0, scores, -np.inf)
        return Assessed(fragments, chosen, alone, around, scores)

    async def _gather(self, documents: frozenset[str] | None) -> "Fragments | None":
        """Return the fragments; gathered again when the memory changed or vectors were missing."""
        info = await self._searcher.store.namespace(self._searcher.ns)
        if info is None:
            return None
        wanted = (info.revision, info.embedder, documents)
        known = self._gathered
        if known is None or known[0] != wanted or (info.dimension and not _are_whole(known[1])):
            found = await gathering.gather(self._searcher, documents)
            embedder = self._searcher.embedder
            if embedder is not None and embedder.name.startswith(BY_PRODUCT):
                found = replace(found, vectors=directions(found.vectors))
            self._gathered = known = wanted, found
        return known[1]

    async def _relation(self, fragments: "Fragments", settings: "FragmentSettings") -> "Relation":
        wanted = (settings.relations, settings.w_rel, settings.printed, settings.cutoff)
        known = self._related
        if known is None or known[0] is not fragments or known[1] != wanted:
            made = await related(self._searcher, fragments, settings, self._index)
            self._related = known = fragments, wanted, made
        return known[2]


def _are_whole(fragments: "Fragments") -> bool:
    """Return whether each fragment has a vector."""
    return bool(fragments.vectors.any(axis=1).all())
