"""Entities over HTTP: a list, one with all that hangs on it, and one a part at a time."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from qrmem.memory import EntityCount, Memory
from qrmem.types import EntityView, GraphPart, Relation, Segment
from qrmem.web.replies import Around, RelationRow, SourcedFact, Totals, of

if TYPE_CHECKING:
    from fastapi import FastAPI

_LONGEST, _LONGEST_FACT, _FACTS = 600, 300, 5
"""Characters of a relation's description and of a statement, and statements of a relation; one of
two common names may have thousands."""
_EDGES, _LONGEST_EDGE = 600, 160
"""Edges of a graph, those with most statements, and characters that one says."""


def naming(app: "FastAPI", memory: Memory) -> None:
    """Let clients look at entities."""
    from fastapi import Query

    limit = Annotated[int, Query(ge=1, le=1000)]
    offset = Annotated[int, Query(ge=0, le=10**9, description="how many to pass over")]
    get = app.get

    @get(
        "/entities",
        summary="Entities by falling number of segments",
        responses=of(list[EntityCount]),
    )
    async def entities(limit: limit = 100) -> Any:
        return await memory.entities(limit)

    @get(
        "/entities/{name:whole}",
        summary="An entity with its relations, questions and segments",
        responses=of(EntityView),
    )
    async def entity(name: str, as_of: str = "") -> Any:
        return await memory.entity(name, as_of=as_of)

    @get(
        "/around/{name:whole}",
        summary="An entity and what is near it, a part at a time",
        responses=of(Around),
    )
    async def around(name: str, offset: offset = 0, limit: limit = 20) -> Any:
        view = await memory.entity(name, offset=offset, limit=limit)
        ids = {fact.segment_id for row in view.relations for fact in row.facts[:_FACTS]}
        return _neighbourhood(view, await memory.segments(ids=sorted(ids)), offset, limit)

    few = Annotated[int, Query(ge=1, le=300)]

    @get(
        "/graph",
        summary="An entity with its nearest neighbours and the edges between them, to be drawn",
        responses=of(GraphPart),
    )
    async def graph(name: str = "", limit: few = 40) -> Any:
        found = await memory.graph(name, limit=limit)
        short = [
            replace(one, description=_cut(one.description, _LONGEST_EDGE)) for one in found.edges
        ]
        return replace(found, edges=tuple(short[:_EDGES]))


def _neighbourhood(view: EntityView, sources: Sequence[Segment], offset: int, limit: int) -> Around:
    """Return a part of an entity's view in few bytes, and how much there is in all.

    Args:
        sources: segments that state the relations.
        offset: how many names are passed over; relations and segments are a part already.
    """
    entity = view.entity
    places = {segment.id: segment for segment in sources}
    return Around(
        key=entity.key,
        name=entity.name,
        type=entity.type,
        forms=entity.forms[offset : offset + limit],
        relations=[_row(relation, places) for relation in view.relations],
        neighbours=view.neighbours,
        questions=view.questions,
        segments=view.segments,
        totals=Totals(
            forms=len(entity.forms),
            relations=view.relation_count,
            segments=len(entity.segments),
        ),
    )


def _row(relation: Relation, places: Mapping[str, Segment]) -> RelationRow:
    return RelationRow(
        key=relation.key,
        head=relation.head,
        tail=relation.tail,
        description=_cut(relation.description, _LONGEST),
        statements=len(relation.facts),
        type=relation.type,
        questions=relation.questions,
        facts=[
            SourcedFact(
                fact.id,
                _cut(fact.description, _LONGEST_FACT),
                fact.said_at,
                fact.valid_from,
                fact.valid_until,
                places[fact.segment_id].document_id,
                places[fact.segment_id].index,
            )
            for fact in relation.facts[:_FACTS]
            if fact.segment_id in places
        ],
    )


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}…"
