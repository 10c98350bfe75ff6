"""The start of a search: the entities E_s and the segments S_imp (QRMeM, section 2.2)."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from qrmem.text.names import normalise_name, split_key
from qrmem.text.numbers import counted
from qrmem.text.words import terms
from qrmem.types import Hit

if TYPE_CHECKING:
    from qrmem.agents.search.run import Search

MOST_ENTITIES = 24
"""Maximum number of entities to start from; with more, every edge would be a neighbour."""
MOST_ALIKE = 2000
"""Maximum number of names to compare with an unknown name."""
SPELT_ALIKE = 0.6
"""Least similarity in spelling to replace an unknown name, without vectors."""


@dataclass(frozen=True, slots=True)
class SearchStart:
    """The start of a search.

    Attributes:
        entities: E_s, entity keys.
        important: S_imp, segment id to score.
        how: description of how it was found.
        hits: segment id to `[via, over]` of the search.
    """

    entities: list[str]
    important: dict[str, float]
    how: str
    hits: dict[str, list[Any]] = field(default_factory=dict)


async def start(run: "Search") -> SearchStart:
    """Start from the hits of a search, or from the entities that the question names."""
    if run.options.start == "search":
        return await _from_search(run)
    return await _from_entities(run)


def question_text(run: "Search") -> str:
    """Return the question with its options, the query of the search."""
    return " ".join((run.context.question, *run.context.choices))


_COMPARED = re.compile(
    r"\b(?:compare|contrast|differences? between|similarit(?:y|ies) (?:between|of)"
    r"|common between)\s+"
    r"(?P<a>[^?.,;]+?)\s+(?:and|with|to|vs\.?|versus)\s+(?P<b>[^?.,;]+)"
    r"|\b(?:how|what) (?:do|does|did|have) (?P<c>[^?.,;]+?) and (?P<d>[^?.,;]+?)"
    r" (?:differ|compare|have in common)",
    re.IGNORECASE,
)


def sides(question: str) -> tuple[str, ...]:
    """Return the two sides of a comparison in a question; none if it is no comparison."""
    match = _COMPARED.search(question)
    return tuple(side.strip() for side in match.groups() if side) if match else ()


async def _searched(run: "Search") -> list[Hit]:
    """Return the hits of the question and, for a comparison, of each side, best first."""
    k, documents = run.options.hits, run.options.documents
    two = sides(run.context.question)
    if not two:
        return list(await run.searcher.search(question_text(run), k=k, documents=documents))
    each = max(1, k // len(two))
    rankings = [await run.searcher.search(side, k=each, documents=documents) for side in two]
    rankings.append(await run.searcher.search(question_text(run), k=k, documents=documents))
    hits: dict[str, Hit] = {}
    for row in zip_longest(*rankings[:-1]):
        for hit in filter(None, row):
            hits.setdefault(hit.segment_id, hit)
    for hit in rankings[-1]:
        if len(hits) < k:
            hits.setdefault(hit.segment_id, hit)
    count = len(hits)
    return [replace(hit, score=1 - n / count) for n, hit in enumerate(hits.values())]


async def _from_search(run: "Search") -> SearchStart:
    hits = await _searched(run)
    if not hits:
        return await _from_all(run)
    important = {hit.segment_id: hit.score for hit in hits}
    entities = await _entities_of(run, list(important))
    await run.graph.look(entities)
    hit_reasons = {hit.segment_id: [hit.via, list(hit.over)] for hit in hits}
    compared = " and ".join(sides(run.context.question))
    how = f"{counted(len(hits), 'passages')} found by search" + (
        f", for {compared} each" if compared else ""
    )
    return SearchStart(entities, important, how, hit_reasons)


async def _from_all(run: "Search") -> SearchStart:
    """Start from all segments, if they are few and none shares a word with the question."""
    ids = [segment.id for segment in await run.all_segments(run.options.hits)]
    entities = await _entities_of(run, ids)
    await run.graph.look(entities)
    how = (
        f"0 passages found by search; read all {len(ids)}" if ids else "0 passages found by search"
    )
    return SearchStart(entities, dict.fromkeys(ids, 0.0), how)


async def _entities_of(run: "Search", segment_ids: Sequence[str]) -> list[str]:
    """Return the entities of ranked segments: those in the question first, then by rank."""
    question = f" {normalise_name(question_text(run))} "
    keys_by_segment = await run.graph.entities_in(segment_ids)
    weight: dict[str, tuple[int, float]] = {}
    for rank, segment_id in enumerate(segment_ids, 1):
        for key in keys_by_segment[segment_id]:
            is_named = f" {split_key(key)[0]} " in question
            before = weight.get(key, (0, 0.0))[1]
            weight[key] = (int(is_named), before + 1 / rank)
    return sorted(weight, key=lambda key: (-weight[key][0], -weight[key][1], key))[:MOST_ENTITIES]


async def _from_entities(run: "Search") -> SearchStart:
    names = await run.reasoner.query_entities(run.context)
    entities = await _entities_named(run, names)
    how = f"the question names {', '.join(names)}" if names else "the question names nothing"
    if not entities:
        entities = await _nearest_node(run)
        how += "; started from the entity nearest to it"
    segments = await important(run, entities)
    if not segments and (few := await _from_all(run)).important:
        return few
    return SearchStart(entities, segments, how)


async def important(run: "Search", entities: Sequence[str]) -> dict[str, float]:
    """Return S_imp of some entities: their segments, scored by similarity to the question."""
    places = await run.graph.places(entities)
    ids = list(dict.fromkeys(id for key in entities for id in places[key]))
    scores = await run.scorer.score_segments(question_text(run), ids)
    return {id: scores.get(id, 0.0) for id in ids}


async def _entities_named(run: "Search", names: Sequence[str]) -> list[str]:
    """Map names to entities: every entity of the normalised name, else the nearest one."""
    entities: dict[str, list[str]] = {}
    for row in await run.store.names(run.ns):
        entities.setdefault(split_key(row.key)[0], []).append(row.entity)
    found_keys: dict[str, None] = {}
    for name in names:
        keys = entities.get(normalise_name(name)) or await _alike(run, name, entities)
        found_keys.update(dict.fromkeys(keys))
    places = await run.graph.places(list(found_keys))
    return [key for key in found_keys if places[key]]


async def _alike(run: "Search", name: str, entities: Mapping[str, Sequence[str]]) -> Sequence[str]:
    """Return the entities of the known name nearest to an unknown one.

    Names that share a word come first; if none does, all are compared by vectors or, without an
    embedder, by spelling.
    """
    name_terms = set(terms(name))
    names_near = [norm for norm in entities if name_terms & set(terms(norm))] or list(entities)
    scores = await run.scorer.score_edges(name, {norm: norm for norm in names_near[:MOST_ALIKE]})
    best = max(sorted(scores), key=lambda norm: scores[norm], default=None)
    if best is not None and scores[best] > 0:
        return entities[best]
    spelt = get_close_matches(normalise_name(name), names_near, 1, cutoff=SPELT_ALIKE)
    return entities[spelt[0]] if spelt else ()


async def _nearest_node(run: "Search") -> list[str]:
    """Return the entity whose name and edges are nearest to the question."""
    hits = await run.searcher.search(question_text(run), k=3, documents=run.options.documents)
    keys_by_segment = await run.graph.entities_in([hit.segment_id for hit in hits])
    keys = list(
        dict.fromkeys(key for segment_keys in keys_by_segment.values() for key in segment_keys)
    )
    texts = {}
    for key in keys:
        edges = await run.graph.relations([key])
        descriptions = " ".join(edge.description for edge in edges.values())
        texts[key] = f"{run.graph.name(key)} {descriptions}"
    scores = await run.scorer.score_edges(question_text(run), texts)
    best = max(sorted(scores), key=lambda key: scores[key], default=None)
    return [best] if best is not None else []
