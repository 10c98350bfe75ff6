"""From a relation's name, or a function of one's own, to the relation over a memory's fragments."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

import numpy as np

from qrmem.errors import UsageError
from qrmem.retrieval.fragments.code_index import CodeIndex
from qrmem.retrieval.fragments.code_relation import Code
from qrmem.retrieval.fragments.relations import EXACT, Blend, Relation, Semantic, Structure

if TYPE_CHECKING:
    from qrmem.retrieval.fragments.gathering import Fragments
    from qrmem.retrieval.searcher import Searcher
    from qrmem.types.options import FragmentSettings, Relate

GROUP = "qrmem.relations"
"""Entry points of relations that come with other packages."""


def name_of(relation: "str | Relate") -> str:
    """Return what a relation is called: a function's own name, an object's class's."""
    if isinstance(relation, str):
        return relation
    return str(getattr(relation, "__name__", type(relation).__name__))


async def related(
    searcher: "Searcher",
    fragments: "Fragments",
    settings: "FragmentSettings",
    index: CodeIndex,
) -> "Relation":
    """Return how fragments are related by the settings; the mean, where several are named.

    Raises:
        UsageError: no relation has that name, or it needs vectors that are not there, or it is
            over another number of fragments.
    """
    parts: list[Relation] = []
    for wanted in settings.relations:
        if wanted == "code":
            parts.append(Code.over(fragments, await index.strengths(settings.cutoff)))
        elif isinstance(wanted, str) and wanted in _BUILT_IN:
            parts.append(_BUILT_IN[wanted](fragments, settings))
        else:
            relate = _entry_point(wanted) if isinstance(wanted, str) else wanted
            parts.append(await _own(searcher, fragments, relate))
    return parts[0] if len(parts) == 1 else Blend(parts)


def _structure(fragments: "Fragments", settings: "FragmentSettings") -> Structure:
    return Structure(fragments.sequences, fragments.places, settings.w_rel)


def _semantic(fragments: "Fragments", settings: "FragmentSettings") -> Semantic:
    if not fragments.vectors.any():
        raise UsageError("relation 'semantic' needs an embedder; `qrmem reembed` adds vectors")
    # Deviation: beyond that size a sample stands for all fragments, see docs/adr/0009.
    return Semantic(fragments.vectors, settings.printed, fragments.size > EXACT)


_BUILT_IN: Mapping[str, "Callable[[Fragments, FragmentSettings], Relation]"] = {
    "structure": _structure,
    "semantic": _semantic,
}


def _entry_point(name: str) -> "Relate":
    found = {point.name: point for point in entry_points(group=GROUP)}
    if name not in found:
        known = ", ".join([*_BUILT_IN, "code", *sorted(found)])
        raise UsageError(f"no relation is called {name!r}; there are: {known}")
    relate: Relate = found[name].load()
    return relate


async def _own(searcher: "Searcher", fragments: "Fragments", relate: "Relate") -> "Relation":
    segments = await searcher.store.segments(searcher.ns, fragments.ids)
    made = relate(replace(fragments, segments=segments))
    if not isinstance(made, Relation):
        given = f"{name_of(relate)} returned {type(made).__name__}"
        raise UsageError(f"{given}, which is no relation between fragments: make one by `Links`")
    if made.size != fragments.size:
        raise UsageError(f"the relation is over {made.size} fragments, not {fragments.size}")
    if not np.all(made.times(np.ones((made.size, 1))) >= 0):
        raise UsageError("a relation must be of numbers, none of them negative")
    return made
