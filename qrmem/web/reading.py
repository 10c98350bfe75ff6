"""Routes of `qrmem serve` that read: documents, turns, facts, searches, and how the memory stands.

A token of one user has only routes to that user's documents, turns and facts. Entities, trails,
status and merged names cover all users, so such a token has no route to them.
"""

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from qrmem.llm.totals import By
from qrmem.memory import Memory
from qrmem.types import (
    Document,
    DocumentInfo,
    FactView,
    Hit,
    MemoryStatus,
    Merge,
    Segment,
    Trail,
    Turn,
)
from qrmem.types.documents import TreeNode, TreeTop
from qrmem.types.turns import USER_KEY
from qrmem.types.usage import UsageRow
from qrmem.web.api import MOST, note_length
from qrmem.web.entities import conversing, naming
from qrmem.web.guard import own_document, own_user, own_where
from qrmem.web.response_models import (
    BriefTrail,
    MarkedSegment,
    RecalledTurns,
    counted,
    of,
    part,
)

if TYPE_CHECKING:
    from fastapi import FastAPI

_DOUBT = {"similar": 0, "alias": 1, "user": 2, "exact": 3}

_Limit = Annotated[int, Field(ge=1, le=1000)]
_Some = Annotated[
    int | None, Field(ge=1, le=1000, description="maximum number of results; default: all")
]
_Offset = Annotated[int, Field(ge=0, le=MOST, description="number of results to skip")]


def reading(app: "FastAPI", memory: Memory, user: str) -> None:
    """Add all routes that read.

    Args:
        app: the app to extend.
        memory: an open memory.
        user: limits the routes to the documents, turns and facts of this user; "" sets no limit.
    """
    if not user:
        conversing(app, memory)
        naming(app, memory)
        _overview(app, memory)
        _segments(app, memory)
        _trees(app, memory)
        _trails(app, memory)
    _documents(app, memory, user)
    _turns_and_facts(app, memory, user)
    _search(app, memory, user)
    _recall(app, memory, user)


def _overview(app: "FastAPI", memory: Memory) -> None:
    from fastapi import Response

    @app.get("/status", summary="The memory's size and state", responses=of(MemoryStatus))
    async def status(problems: _Some = None) -> Any:
        status_found = await memory.status()
        name = PurePath(status_found.location).name  # clients need not know where it is
        return replace(status_found, location=name, problems=status_found.problems[:problems])

    @app.get(
        "/merges", summary="Merged names, and why; the doubtful first", responses=of(list[Merge])
    )
    async def merges(
        response: Response, name: str = "", offset: _Offset = 0, limit: _Some = None
    ) -> Any:
        folded_name = name.casefold()
        merges_named = [
            m for m in await memory.merges() if folded_name in f"{m.name}\n{m.into}".casefold()
        ]
        merges_found = sorted(merges_named, key=lambda one: (_DOUBT[one.reason], one.score))
        return part(merges_found, offset, limit, response)

    @app.get("/usage", summary="The usage of all runs", responses=of(list[UsageRow]))
    async def usage(by: By = "stage") -> Any:
        return await memory.usage(by)


def _documents(app: "FastAPI", memory: Memory, token_user: str) -> None:
    from fastapi import Response

    where = {USER_KEY: token_user} if token_user else None

    @app.get(
        "/documents",
        summary="All documents, or those that are not turns, without their texts",
        responses=of(list[DocumentInfo]),
    )
    async def documents(
        response: Response, turns: bool = True, offset: _Offset = 0, limit: _Some = None
    ) -> Any:
        only = None if turns else False
        infos = await memory.documents(where, turns=only, offset=offset, limit=limit)
        return counted(infos, response)

    @app.get(
        "/documents/{id:whole}",
        summary="A document, with its text or with its length",
        responses=of(Document),
    )
    async def document(id: str, text: bool = True) -> Any:
        if token_user:
            stored_document = await own_document(memory, token_user, id)
        else:
            stored_document = await memory.document(id)
        if text:
            return stored_document
        length = {"characters": len(stored_document.text)}
        return asdict(replace(stored_document, text="", parts=())) | length

    # A browser resolves `..` in a path.
    other = "The same, for an id that no path can hold, such as `..`"
    app.get("/document", summary=other, responses=of(Document))(document)


def _turns_and_facts(app: "FastAPI", memory: Memory, token_user: str) -> None:
    from fastapi import Response

    @app.get("/turns", summary="Turns, in order of time", responses=of(list[Turn]))
    async def turns(
        response: Response,
        session: str | None = None,
        user: str | None = None,
        offset: _Offset = 0,
        limit: _Some = None,
    ) -> Any:
        turns_found = await memory.turns(session, user=own_user(token_user, user))
        return part(turns_found, offset, limit, response)

    @app.get(
        "/facts",
        summary="Statements with their times, sources and quotations",
        responses=of(list[FactView]),
    )
    async def facts(
        response: Response,
        entity: str = "",
        user: str = "",
        as_of: str = "",
        superseded: bool = False,
        deleted: bool = False,
        offset: _Offset = 0,
        limit: _Some = None,
    ) -> Any:
        facts_found = await memory.facts(
            entity=entity,
            user=own_user(token_user, user) or "",
            as_of=as_of,
            superseded=superseded,
            deleted=deleted,
            offset=offset,
            limit=limit,
        )
        return counted(facts_found, response)


def _segments(app: "FastAPI", memory: Memory) -> None:
    from fastapi import Body, Response

    @app.get(
        "/segments",
        summary="The segments of a document; `query`: with the spans of its words",
        responses=of(list[Segment] | list[MarkedSegment]),
    )
    async def segments(
        response: Response, document: str, query: str = "", offset: _Offset = 0, limit: _Some = None
    ) -> Any:
        segments_shown = part(await memory.segments(document=document), offset, limit, response)
        return _mark_segments(query, segments_shown) if query else segments_shown

    @app.post(
        "/segments",
        summary="Segments by their ids; unknown ids are left out",
        responses=of(list[Segment]),
    )
    async def segments_of(ids: Annotated[list[str], Body(embed=True, max_length=1000)]) -> Any:
        return await memory.segments(ids=ids)


def _mark_segments(query: str, segments: Sequence[Segment]) -> list[MarkedSegment]:
    from qrmem.answering.excerpts import matches  # loads the search

    return [MarkedSegment(**asdict(one), matches=matches(query, one.text)) for one in segments]


def _trees(app: "FastAPI", memory: Memory) -> None:
    from fastapi import Body, Response

    @app.get(
        "/trees", summary="Trees of summaries, without their nodes", responses=of(list[TreeTop])
    )
    async def trees(
        response: Response, document: str = "", offset: _Offset = 0, limit: _Some = None
    ) -> Any:
        tops = [top for top in await memory.tree_tops() if document in ("", top.document_id)]
        return part(tops, offset, limit, response)

    @app.post(
        "/trees/nodes",
        summary="Nodes of trees by their keys; unknown keys are left out",
        responses=of(list[TreeNode]),
    )
    async def nodes(keys: Annotated[list[str], Body(embed=True, max_length=1000)]) -> Any:
        return await memory.tree_nodes(keys)


def _trails(app: "FastAPI", memory: Memory) -> None:
    @app.get(
        "/trails",
        summary="Recorded runs, newest first; `brief`: with the number of their steps",
        responses=of(list[Trail] | list[BriefTrail]),
    )
    async def trails(limit: _Limit = 20, offset: _Offset = 0, brief: bool = False) -> Any:
        trails_found = (await memory.trails(offset + limit))[offset:]
        return [_brief(trail) for trail in trails_found] if brief else trails_found

    @app.get("/trails/{id}", summary="A recorded run; `last` is the newest", responses=of(Trail))
    async def trail(id: str) -> Any:
        return await memory.trail(None if id == "last" else id)


def _brief(trail: Trail) -> BriefTrail:
    return BriefTrail(
        id=trail.id,
        question=trail.question,
        strategy=trail.strategy,
        window=trail.window,
        status=trail.status,
        created=trail.created,
        steps=len(trail.steps),
    )


def _search(app: "FastAPI", memory: Memory, token_user: str) -> None:
    from fastapi import Body, Response

    from qrmem.answering.excerpts import scant  # loads the search

    @app.post("/search", summary="Rank segments; no chat model is called", responses=of(list[Hit]))
    async def search(
        response: Response,
        query: Annotated[str, Body(min_length=1)],
        k: Annotated[int, Body(ge=1, le=1000, strict=True)] = 10,
        documents: Annotated[list[str] | None, Body()] = None,
        where: Annotated[dict[str, Any] | None, Body()] = None,
        types: Annotated[list[str] | None, Body()] = None,
        as_of: Annotated[str, Body()] = "",
    ) -> Any:
        hits = await memory.search(
            query,
            k=k,
            documents=documents,
            where=own_where(token_user, where, documents),
            types=types,
            as_of=as_of,
        )
        note_length(query, response, miss=scant(query, (hit.text for hit in hits)))
        return hits


def _recall(app: "FastAPI", memory: Memory, token_user: str) -> None:
    from fastapi import Body, Response

    @app.post(
        "/recall",
        summary="Earlier turns that a model needs to answer a prompt",
        responses=of(RecalledTurns),
    )
    async def recall(
        response: Response,
        prompt: Annotated[str, Body(min_length=1)],
        session: Annotated[str, Body()] = "",
        tokens: Annotated[int, Body(ge=1, le=MOST, strict=True)] = 2000,
        user: Annotated[str | None, Body()] = None,
        min_score: Annotated[float, Body(ge=0)] = 0.0,
        as_of: Annotated[str, Body()] = "",
        types: Annotated[list[str] | None, Body()] = None,
    ) -> Any:
        note_length(prompt, response)
        recalled = await memory.recall(
            prompt,
            session=session,
            tokens=tokens,
            user=own_user(token_user, user),
            min_score=min_score,
            as_of=as_of,
            types=types,
        )
        return RecalledTurns(recalled.text, recalled.messages, recalled.tokens, recalled.scores)
