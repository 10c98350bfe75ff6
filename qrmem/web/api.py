"""`qrmem serve`: the functions of a memory as a REST service, with an OpenAPI page."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, Any

from qrmem.errors import MissingError, QrmemError, install, refused
from qrmem.llm.usage import By
from qrmem.memory import EntityCount, Memory
from qrmem.types import (
    AddReport,
    Document,
    DocumentInfo,
    EntityView,
    FactView,
    Hit,
    MemoryStatus,
    Merge,
    MetaValue,
    Relation,
    Segment,
    Trail,
    Turn,
)
from qrmem.types.trees import TreeNode, TreeTop
from qrmem.types.usage import UsageRow
from qrmem.web.asking import MOST, asking, error_of, note_length, whole
from qrmem.web.replies import (
    Added,
    Around,
    BriefTrail,
    Decision,
    Deleted,
    DeletedCount,
    MarkedSegment,
    RecalledTurns,
    Refusal,
    RelationRow,
    Totals,
    of,
)

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.requests import Request

TOTAL = "x-total-count"
"""The header that says how many rows there are, where a reply holds a part of them."""
_UNREAD = {
    RecursionError: "the body is nested too deep",
    UnicodeDecodeError: "the body is not UTF-8",
}
"""What is wrong with a body that JSON's parser gives up."""
_LONGEST = 600
"""Characters of a relation's description; one of two common names may have thousands."""


def api(
    memory: Memory, *, ask: bool = True, write: bool = False, secured: bool = False
) -> "FastAPI":
    """Return the service of one memory, without protection; `qrmem.web.guard.Guard` is that.

    Args:
        ask: whether questions are answered, which may call the chat model.
        write: whether documents and turns can be added, and documents deleted.
        secured: whether clients give a token; the page `/docs` then asks for it.

    Raises:
        MissingError: the extra `serve` is not installed.
    """
    try:
        from fastapi import Depends, Security
        from fastapi.exceptions import RequestValidationError
        from fastapi.responses import JSONResponse
        from fastapi.security import HTTPBearer
        from fastapi_offline import FastAPIOffline
        from starlette.exceptions import HTTPException
        from starlette.requests import Request
    except ImportError as exc:
        raise MissingError(f"the REST service needs: {install('serve')}") from exc
    from importlib.metadata import version

    from starlette.convertors import PathConvertor, register_url_convertor

    class Whole(PathConvertor):
        regex = r"[\s\S]*"  # an id can hold line breaks, as a file's name can

    register_url_convertor("whole", Whole())

    async def nothing_else(request: Request) -> None:
        if unknown := await _unknown(request):
            kind = {"type": "extra_forbidden"}
            raise RequestValidationError([kind | {"loc": ("", name)} for name in unknown])

    # It checks nothing, as the guard does; it makes OpenAPI and the page `/docs` know of the token.
    bearer = HTTPBearer(auto_error=False, description="The token: QRMEM_TOKEN of the service.")
    app: FastAPI = FastAPIOffline(
        title="qrmem",
        version=version("qrmem"),
        dependencies=[Depends(nothing_else), *([Security(bearer)] if secured else [])],
        responses={"4XX": {"model": Refusal}, "5XX": {"model": Refusal}},
    )

    @app.exception_handler(QrmemError)
    async def refuse(_: Any, exc: QrmemError) -> JSONResponse:
        body, status = error_of(memory, exc)
        return JSONResponse(asdict(body), status)

    @app.exception_handler(RequestValidationError)
    async def correct(request: Request, exc: RequestValidationError) -> JSONResponse:
        # What was sent is not repeated: a request can hold numbers that no reply can.
        null = (await request.body()).strip() == b"null"  # which is handed on as no body
        error = whole(_refused(exc.errors(), [] if null else exc.body))
        typed = "json" in request.headers.get("content-type", "")
        if request.method == "POST" and (not typed or isinstance(exc.body, bytes)):
            error = "send JSON, with the header content-type: application/json"
        return JSONResponse(asdict(Refusal(error)), 422)

    @app.exception_handler(HTTPException)
    async def miss(request: Request, exc: HTTPException) -> JSONResponse:
        what = f"{request.method} {request.url.path}"
        more = "" if write else "; a service that changes the memory is started with --write"
        more = more if ask or request.url.path != "/ask" else "; a page that asks, with --ask"
        error = f"there is no {what}: /docs lists what there is{more}"
        if exc.status_code not in (404, 405):
            error = _UNREAD.get(type(exc.__cause__), str(exc.detail))
        body = asdict(Refusal(whole(error)))
        return JSONResponse(body, exc.status_code, headers=exc.headers)

    _looking(app, memory)
    _searching(app, memory)
    if ask:
        asking(app, memory)
    if write:
        _writing(app, memory)
        deciding(app, memory)
    return app


async def _unknown(request: "Request") -> list[str]:
    """Return what is sent under no name that the request has, sorted.

    A name with a slip in it would search everything, or keep half of a turn.
    """
    known = request.scope["route"].dependant
    unknown = set(request.query_params) - {one.alias for one in known.query_params}
    if known.body_params and "json" in request.headers.get("content-type", ""):
        try:
            body = await request.json()
        except (ValueError, RecursionError):  # none, or of a type that is not read as JSON
            body = None
        given = set(body if isinstance(body, dict) else ())
        unknown |= given - {one.alias for one in known.body_params}
    return sorted(unknown)


def _refused(errors: Sequence[Mapping[str, Any]], body: Any) -> str:
    """Say what is wrong with a request; the first of `loc` is the part that it stands in."""
    first = errors[0]
    if first["type"] == "json_invalid":
        why, at = first["ctx"]["error"], first["loc"][-1]
        return f"the body is not JSON, or is cut: {why}, at character {at}"
    if body is not None and not isinstance(body, dict):
        return 'the body should be a JSON object: {"name": value, …}'
    return refused({**one, "loc": one["loc"][1:]} for one in errors)


def _looking(app: "FastAPI", memory: Memory) -> None:
    from fastapi import Body, Query, Response

    limit = Annotated[int, Query(ge=1, le=1000)]
    some = Annotated[int | None, Query(ge=1, le=1000, description="at most so many; default: all")]
    offset = Annotated[int, Query(ge=0, le=MOST, description="how many to pass over")]
    get = app.get

    def part(rows: Sequence[Any], offset: int, limit: int | None, response: Response) -> Any:
        response.headers[TOTAL] = str(len(rows))
        return rows[offset:] if limit is None else rows[offset : offset + limit]

    @get("/status", summary="The memory in figures", responses=of(MemoryStatus))
    async def status(problems: some = None) -> Any:
        found = await memory.status()
        name = PurePath(found.location).name  # no client needs to know where it is
        return replace(found, location=name, problems=found.problems[:problems])

    @get("/merges", summary="Which names count as one, and why", responses=of(list[Merge]))
    async def merges(response: Response, offset: offset = 0, limit: some = None) -> Any:
        return part(await memory.merges(), offset, limit, response)

    @get("/usage", summary="What all runs used", responses=of(list[UsageRow]))
    async def usage(by: By = "stage") -> Any:
        return await memory.usage(by)

    @get(
        "/segments",
        summary="The segments of a document; `query`: with the spans of its words",
        responses=of(list[Segment] | list[MarkedSegment]),
    )
    async def segments(
        response: Response, document: str, query: str = "", offset: offset = 0, limit: some = None
    ) -> Any:
        shown = part(await memory.segments(document=document), offset, limit, response)
        return _marked(query, shown) if query else shown

    @app.post(
        "/segments",
        summary="Segments by their ids; those that are gone are left out",
        responses=of(list[Segment]),
    )
    async def segments_of(ids: Annotated[list[str], Body(embed=True, max_length=1000)]) -> Any:
        return await memory.segments(ids=ids)

    @get(
        "/documents", summary="All documents, without their texts", responses=of(list[DocumentInfo])
    )
    async def documents(response: Response, offset: offset = 0, limit: some = None) -> Any:
        return part(await memory.documents(), offset, limit, response)

    @get(
        "/documents/{id:whole}",
        summary="A document, with its text or with its length",
        responses=of(Document),
    )
    async def document(id: str, text: bool = True) -> Any:
        found = await memory.document(id)
        length = {"characters": len(found.text)}
        return found if text else asdict(replace(found, text="", parts=())) | length

    # A browser takes `..` in a path for the folder above.
    other = "The same, for an id that no path can hold, such as `..`"
    get("/document", summary=other, responses=of(Document))(document)

    @get("/turns", summary="What was said, in order of time", responses=of(list[Turn]))
    async def turns(
        response: Response,
        session: str | None = None,
        user: str | None = None,
        offset: offset = 0,
        limit: some = None,
    ) -> Any:
        return part(await memory.turns(session, user=user), offset, limit, response)

    @get(
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
        offset: offset = 0,
        limit: some = None,
    ) -> Any:
        found = await memory.facts(entity=entity, user=user, as_of=as_of, superseded=superseded)
        return part(found, offset, limit, response)

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
        return _neighbourhood(await memory.entity(name, offset=offset, limit=limit), offset, limit)

    @get("/trees", summary="Trees of summaries, without their nodes", responses=of(list[TreeTop]))
    async def trees(
        response: Response, document: str = "", offset: offset = 0, limit: some = None
    ) -> Any:
        found = [top for top in await memory.tree_tops() if document in ("", top.document_id)]
        return part(found, offset, limit, response)

    @app.post(
        "/trees/nodes",
        summary="Nodes of trees by their keys; those gone are left out",
        responses=of(list[TreeNode]),
    )
    async def nodes(keys: Annotated[list[str], Body(embed=True, max_length=1000)]) -> Any:
        return await memory.tree_nodes(keys)

    @get(
        "/trails",
        summary="Recorded runs, newest first; `brief`: with the number of their steps",
        responses=of(list[Trail] | list[BriefTrail]),
    )
    async def trails(limit: limit = 20, offset: offset = 0, brief: bool = False) -> Any:
        found = (await memory.trails(offset + limit))[offset:]
        return [_brief(trail) for trail in found] if brief else found

    @get("/trails/{id}", summary="A recorded run; `last` is the last one", responses=of(Trail))
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


def _marked(query: str, segments: Sequence[Segment]) -> list[MarkedSegment]:
    from qrmem.answering.passages import matches  # which loads what searches

    return [MarkedSegment(**asdict(one), matches=matches(query, one.text)) for one in segments]


def _neighbourhood(view: EntityView, offset: int, limit: int) -> Around:
    """Return a part of an entity's view in few bytes, and how much there is in all.

    Args:
        offset: how many names are passed over; relations and segments are a part already.
    """
    entity = view.entity
    return Around(
        key=entity.key,
        name=entity.name,
        type=entity.type,
        forms=entity.forms[offset : offset + limit],
        relations=[_row(relation) for relation in view.relations],
        neighbours=view.neighbours,
        questions=view.questions,
        segments=view.segments,
        totals=Totals(
            forms=len(entity.forms),
            relations=view.relation_count,
            segments=len(entity.segments),
        ),
    )


def _row(relation: Relation) -> RelationRow:
    told = relation.description
    return RelationRow(
        key=relation.key,
        head=relation.head,
        tail=relation.tail,
        description=told if len(told) <= _LONGEST else f"{told[:_LONGEST]}…",
        statements=len(relation.facts),
        type=relation.type,
        questions=relation.questions,
    )


def _searching(app: "FastAPI", memory: Memory) -> None:
    from fastapi import Body, Response

    asked = Annotated[str, Body(min_length=1)]
    several = Annotated[list[str] | None, Body()]
    narrowed = Annotated[dict[str, Any] | None, Body()]
    amount = Annotated[int, Body(ge=1, le=MOST, strict=True)]

    @app.post("/search", summary="Rank segments; no chat model is called", responses=of(list[Hit]))
    async def search(
        response: Response,
        query: asked,
        k: Annotated[int, Body(ge=1, le=1000, strict=True)] = 10,
        documents: several = None,
        where: narrowed = None,
        as_of: Annotated[str, Body()] = "",
    ) -> Any:
        note_length(query, response)
        return await memory.search(query, k=k, documents=documents, where=where, as_of=as_of)

    @app.post(
        "/recall",
        summary="Turns that a model is to know before it answers a prompt",
        responses=of(RecalledTurns),
    )
    async def recall(
        response: Response,
        prompt: asked,
        session: Annotated[str, Body()] = "",
        tokens: amount = 2000,
        user: Annotated[str | None, Body()] = None,
        min_score: Annotated[float, Body(ge=0)] = 0.0,
        as_of: Annotated[str, Body()] = "",
    ) -> Any:
        note_length(prompt, response)
        found = await memory.recall(
            prompt, session=session, tokens=tokens, user=user, min_score=min_score, as_of=as_of
        )
        return RecalledTurns(found.text, found.messages, found.tokens, found.scores)


def _writing(app: "FastAPI", memory: Memory) -> None:
    from fastapi import Body

    @app.post("/documents", summary="Read a text into the memory", responses=of(AddReport))
    async def add(
        text: Annotated[str, Body(min_length=1)],
        title: Annotated[str, Body()] = "",
        id: Annotated[str | None, Body()] = None,
        metadata: Annotated[Mapping[str, MetaValue] | None, Body()] = None,
        update: Annotated[bool, Body()] = False,
    ) -> Any:
        document = {"text": text, "title": title, "id": id, "metadata": metadata or {}}
        return await memory.add(document, update=update)

    @app.delete("/documents/{id:whole}", summary="Forget a document", responses=of(Deleted))
    async def delete(id: str) -> Any:
        await memory.delete(id)
        return Deleted(whole(id))

    @app.post("/turns", summary="Keep what somebody said", responses=of(Added))
    async def add_turn(
        role: Annotated[str, Body()],
        text: Annotated[str, Body()],
        session: Annotated[str, Body()] = "",
        speaker: Annotated[str, Body()] = "",
        at: Annotated[str | None, Body()] = None,
        user: Annotated[str, Body()] = "",
        extract: Annotated[bool, Body()] = False,
    ) -> Any:
        id = await memory.add_turn(
            role, text, at=at, session=session, speaker=speaker, user=user, extract=extract
        )
        return Added(id)

    @app.delete(
        "/users/{user:whole}",
        summary="Forget all turns and documents of a user",
        responses=of(DeletedCount),
    )
    async def forget_user(user: str) -> Any:
        return DeletedCount(await memory.forget_user(user))


def deciding(app: "FastAPI", memory: Memory) -> None:
    """Let clients decide about names and statements."""
    from fastapi import Body

    @app.patch(
        "/facts/{id:whole}",
        summary="Say in other words what a statement says, or when",
        responses=of(FactView),
    )
    async def edit_fact(
        id: str,
        text: Annotated[str | None, Body()] = None,
        valid_from: Annotated[str | None, Body()] = None,
        valid_until: Annotated[str | None, Body()] = None,
    ) -> Any:
        return await memory.edit_fact(id, text, valid_from=valid_from, valid_until=valid_until)

    @app.post(
        "/facts/{id:whole}/end",
        summary="Say that a statement holds no longer",
        responses=of(FactView),
    )
    async def end_fact(id: str, on: Annotated[str, Body(embed=True)] = "") -> Any:
        return await memory.end_fact(id, on)

    @app.post(
        "/facts/{id:whole}/restore",
        summary="Take back a decision on a statement",
        responses=of(FactView),
    )
    async def restore_fact(id: str) -> Any:
        return await memory.restore_fact(id)

    @app.delete(
        "/facts/{id:whole}", summary="Leave a statement out of the graph", responses=of(Deleted)
    )
    async def delete_fact(id: str) -> Any:
        await memory.delete_fact(id)
        return Deleted(whole(id))

    @app.post(
        "/merges", summary="Merge two names by hand, or keep them apart", responses=of(Decision)
    )
    async def decide(
        first: Annotated[str, Body()],
        second: Annotated[str, Body()],
        same: Annotated[bool, Body()] = True,
    ) -> Any:
        await (memory.merge if same else memory.separate)(first, second)
        return Decision(whole(first), whole(second), same)
