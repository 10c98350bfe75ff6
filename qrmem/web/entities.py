"""Entities and conversations over HTTP: lists, single entities and sessions, in whole or part."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated, Any

from qrmem.memory import EntityCount, Memory
from qrmem.text.dates import said_at
from qrmem.types import DocumentInfo, EntityView, GraphPart, Relation, Segment, Turn
from qrmem.types.turns import CHAT_KEY, FACT_KEY, ROLE_KEY, USER_KEY, turn_number
from qrmem.web.response_models import (
    Conversation,
    EntityNeighbourhood,
    EntityTotals,
    RelationRow,
    SaidTurn,
    SourcedFact,
    of,
    part,
)

if TYPE_CHECKING:
    from fastapi import FastAPI

_LONGEST, _LONGEST_FACT, _FACTS = 600, 300, 5
"""Maximum length in characters of a relation's description and of a statement, and maximum number
of statements per relation and of values per property, as a relation of two frequent names may have
thousands."""
_EDGES, _LONGEST_EDGE = 600, 160
"""Maximum number of edges of a graph (those with most statements are kept), and maximum length in
characters of an edge's description."""


def naming(app: "FastAPI", memory: Memory) -> None:
    """Add the routes that read entities."""
    from fastapi import Query

    limit = Annotated[int, Query(ge=1, le=1000)]
    offset = Annotated[int, Query(ge=0, le=10**9, description="number of results to skip")]
    get = app.get

    @get(
        "/entities",
        summary="Entities, those with most segments first",
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
        summary="An entity and its surroundings, one part at a time",
        responses=of(EntityNeighbourhood),
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
        graph_part = await memory.graph(name, limit=limit)
        short = [
            replace(one, description=_cut(one.description, _LONGEST_EDGE))
            for one in graph_part.edges
        ]
        return replace(graph_part, edges=tuple(short[:_EDGES]))


def _neighbourhood(
    view: EntityView, sources: Sequence[Segment], offset: int, limit: int
) -> EntityNeighbourhood:
    """Return a part of an entity's view in compact form, with the total counts.

    Args:
        sources: segments that state the relations.
        offset: number of names to skip; relations and segments are only a part already.
    """
    entity = view.entity
    places = {segment.id: segment for segment in sources}
    return EntityNeighbourhood(
        key=entity.key,
        name=entity.name,
        type=entity.type,
        forms=entity.forms[offset : offset + limit],
        properties={name: [*values][:_FACTS] for name, values in entity.values().items()},
        relations=[_row(relation, places) for relation in view.relations],
        neighbours=view.neighbours,
        questions=view.questions,
        segments=view.segments,
        totals=EntityTotals(
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


# Conversations over HTTP: a list of sessions, and a session's turns with facts.


_SPEAKERS = 4
"""Maximum number of speakers that a session lists."""


def conversing(app: "FastAPI", memory: Memory) -> None:
    """Add the routes that read conversations."""
    from fastapi import Query, Response

    limit = Annotated[int, Query(ge=1, le=1000)]
    offset = Annotated[int, Query(ge=0, le=10**9, description="number of results to skip")]

    @app.get(
        "/sessions", summary="Conversations, the latest first", responses=of(list[Conversation])
    )
    async def sessions(response: Response, offset: offset = 0, limit: limit = 1000) -> Any:
        return part(sessions_of(await memory.documents(turns=True)), offset, limit, response)

    @app.get(
        "/conversation",
        summary="The turns of a session, with their facts",
        responses=of(list[SaidTurn]),
    )
    async def conversation(
        response: Response,
        session: str = "",
        user: str = "",
        offset: offset = 0,
        limit: limit = 50,
    ) -> Any:
        every = await memory.turns(session, user=user or None)
        turns_said = [turn for turn in every if turn.user == user]
        turns_shown: list[Turn] = part(turns_said, offset, limit, response)
        facts_by_turn = await _facts_of_turns(memory, session, turns_shown)
        return [
            SaidTurn(**asdict(turn), facts=facts_by_turn.get(turn.id, ())) for turn in turns_shown
        ]


def is_turn(info: DocumentInfo) -> bool:
    """Return whether a document is a turn, or a fact that was extracted from a turn."""
    return turn_number(info.id, info.metadata) > 0


def sessions_of(infos: Iterable[DocumentInfo]) -> list[Conversation]:
    """Return the conversations of some documents, latest first."""
    infos_by_session: dict[tuple[str, str], list[DocumentInfo]] = {}
    for info in infos:
        if is_turn(info) and FACT_KEY not in info.metadata:
            of_whom = str(info.metadata.get(USER_KEY, "")), str(info.metadata[CHAT_KEY])
            infos_by_session.setdefault(of_whom, []).append(info)
    rows = [_session(*of_whom, turns) for of_whom, turns in infos_by_session.items()]
    return sorted(rows, key=lambda row: (row.last, row.user, row.session), reverse=True)


def _session(user: str, session: str, turns: Sequence[DocumentInfo]) -> Conversation:
    times = sorted(filter(None, (said_at(info.metadata) for info in turns)))
    speakers = dict.fromkeys(
        str(info.metadata.get("speaker") or info.metadata[ROLE_KEY]) for info in turns
    )
    first, last = (times[0], times[-1]) if times else ("", "")
    return Conversation(session, user, len(turns), first, last, tuple(speakers)[:_SPEAKERS])


async def _facts_of_turns(
    memory: Memory, session: str, turns: Sequence[Turn]
) -> dict[str, list[str]]:
    """Return the facts that a chat model extracted from turns, by turn id."""
    turn_ids = {turn.id for turn in turns}
    facts_by_turn: dict[str, list[str]] = {}
    for info in await memory.documents({CHAT_KEY: session}):
        of_turn = str(info.metadata.get(FACT_KEY, ""))
        if of_turn in turn_ids and is_turn(info):
            facts_by_turn.setdefault(of_turn, []).append((await memory.document(info.id)).text)
    return facts_by_turn
