"""`qrmem serve`: a REST service over a memory, with an OpenAPI page."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, Any

from qrmem.errors import QrmemError, UsageError, missing_extra, refused
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
from qrmem.types.usage import UsageRow
from qrmem.web import changing, user_api
from qrmem.web.asking import MOST, asking, error_of, note_length, own
from qrmem.web.entities import conversing, naming
from qrmem.web.jobs import Jobs, handing_over
from qrmem.web.response_models import (
    BriefTrail,
    MarkedSegment,
    RecalledTurns,
    Refusal,
    counted,
    of,
    part,
    whole,
)

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.requests import Request

_DOUBT = {"similar": 0, "alias": 1, "user": 2, "exact": 3}
_UNREAD = {
    RecursionError: "the body is nested too deep",
    UnicodeDecodeError: "the body is not UTF-8",
}
"""Messages for errors of the JSON parser."""


def api(
    memory: Memory,
    *,
    ask: bool = True,
    write: bool = False,
    secured: bool = False,
    user: str = "",
    jobs: Jobs | None = None,
) -> "FastAPI":
    """Return the REST app of one memory, without access control; `qrmem.web.guard.Guard` adds it.

    Args:
        memory: an open memory.
        ask: offer routes that answer questions, which may call the chat model.
        write: offer routes that add, change and delete.
        secured: clients send a token; the page `/docs` then asks for it.
        user: limits the app to the documents and turns of this user; "" sets no limit.
        jobs: runs long adds, if `write` is set.

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
        raise missing_extra("serve", "a REST service") from exc
    from importlib.metadata import version

    from starlette.convertors import PathConvertor, register_url_convertor

    class Whole(PathConvertor):
        regex = r"[\s\S]*"  # an id can contain line breaks, like a file name

    register_url_convertor("whole", Whole())

    async def nothing_else(request: Request) -> None:
        if unknown := await _unknown(request):
            kind = {"type": "extra_forbidden"}
            raise RequestValidationError([kind | {"loc": ("", name)} for name in unknown])

    # The guard checks the token; this only tells OpenAPI and the page `/docs` about it.
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
        # The input is not repeated: a request can contain numbers that no reply can.
        null = (await request.body()).strip() == b"null"  # an empty body is passed on as no body
        error = whole(_refused(exc.errors(), [] if null else exc.body))
        if any(one["type"] == "extra_forbidden" for one in exc.errors()):
            error = f"{error} (arguments: {', '.join(_arguments(request)) or 'none'})"
        typed = "json" in request.headers.get("content-type", "")
        if request.method == "POST" and (not typed or isinstance(exc.body, bytes)):
            error = "send JSON, with the header content-type: application/json"
        return JSONResponse(asdict(Refusal(error)), 422)

    @app.exception_handler(HTTPException)
    async def miss(request: Request, exc: HTTPException) -> JSONResponse:
        what = f"{request.method} {request.url.path}"
        more = "" if write else "; this token or service only reads (write = true, or --write)"
        more = more if ask or request.url.path != "/ask" else "; a page that asks, with --ask"
        error = f"there is no {what}: /docs lists what there is{more}"
        if exc.status_code not in (404, 405):
            error = _UNREAD.get(type(exc.__cause__), str(exc.detail))
        body = asdict(Refusal(whole(error)))
        return JSONResponse(body, exc.status_code, headers=exc.headers)

    (user_api.looking(app, memory, user) if user else _looking(app, memory))
    _searching(app, memory, user)
    if ask:
        asking(app, memory, user)
    if write and user:
        user_api.writing(app, memory, user)
    elif write:
        changing.writing(app, memory, jobs)
        changing.deciding(app, memory)
    if write and jobs is not None:
        handing_over(app, memory, user, jobs)
    return app


async def _unknown(request: "Request") -> list[str]:
    """Return unknown names in a request, sorted.

    A misspelt name would search everything, or lose a part of a turn.
    """
    dependant = request.scope["route"].dependant
    unknown = set(request.query_params) - {one.alias for one in dependant.query_params}
    if dependant.body_params and "json" in request.headers.get("content-type", ""):
        try:
            body = await request.json()
        except (ValueError, RecursionError):  # no body, or a type that is not parsed as JSON
            body = None
        names_given = set(body if isinstance(body, dict) else ())
        unknown |= names_given - {one.alias for one in dependant.body_params}
    return sorted(unknown)


def _arguments(request: "Request") -> list[str]:
    """Return the names of all arguments of a request's route."""
    route = request.scope["route"].dependant
    return [one.alias for one in (*route.query_params, *route.body_params)]


def _refused(errors: Sequence[Mapping[str, Any]], body: Any) -> str:
    """Return a message for a wrong request; `loc` begins with the part of the request."""
    first = errors[0]
    if first["type"] == "json_invalid":
        why, at = first["ctx"]["error"], first["loc"][-1]
        return f"the body is not JSON, or is cut: {why}, at character {at}"
    if body is not None and not isinstance(body, dict):
        return 'the body should be a JSON object: {"name": value, …}'
    return refused({**one, "loc": one["loc"][1:]} for one in errors)


def _looking(app: "FastAPI", memory: Memory) -> None:
    from fastapi import Body, Query, Response

    conversing(app, memory)
    naming(app, memory)

    limit = Annotated[int, Query(ge=1, le=1000)]
    some = Annotated[
        int | None, Query(ge=1, le=1000, description="maximum number of results; default: all")
    ]
    offset = Annotated[int, Query(ge=0, le=MOST, description="number of results to skip")]
    get = app.get

    @get("/status", summary="The memory's size and state", responses=of(MemoryStatus))
    async def status(problems: some = None) -> Any:
        status_found = await memory.status()
        name = PurePath(status_found.location).name  # clients need not know where it is
        return replace(status_found, location=name, problems=status_found.problems[:problems])

    @get(
        "/merges",
        summary="Merged names, and why; the doubtful first",
        responses=of(list[Merge]),
    )
    async def merges(
        response: Response, name: str = "", offset: offset = 0, limit: some = None
    ) -> Any:
        folded_name = name.casefold()
        merges_named = [
            m for m in await memory.merges() if folded_name in f"{m.name}\n{m.into}".casefold()
        ]
        merges_found = sorted(merges_named, key=lambda one: (_DOUBT[one.reason], one.score))
        return part(merges_found, offset, limit, response)

    @get("/usage", summary="The usage of all runs", responses=of(list[UsageRow]))
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
        segments_shown = part(await memory.segments(document=document), offset, limit, response)
        return _mark_segments(query, segments_shown) if query else segments_shown

    @app.post(
        "/segments",
        summary="Segments by their ids; unknown ids are left out",
        responses=of(list[Segment]),
    )
    async def segments_of(ids: Annotated[list[str], Body(embed=True, max_length=1000)]) -> Any:
        return await memory.segments(ids=ids)

    @get(
        "/documents",
        summary="All documents, or those that are not turns, without their texts",
        responses=of(list[DocumentInfo]),
    )
    async def documents(
        response: Response, turns: bool = True, offset: offset = 0, limit: some = None
    ) -> Any:
        only = None if turns else False
        infos = await memory.documents(turns=only, offset=offset, limit=limit)
        return counted(infos, response)

    @get(
        "/documents/{id:whole}",
        summary="A document, with its text or with its length",
        responses=of(Document),
    )
    async def document(id: str, text: bool = True) -> Any:
        stored_document = await memory.document(id)
        length = {"characters": len(stored_document.text)}
        return (
            stored_document
            if text
            else asdict(replace(stored_document, text="", parts=())) | length
        )

    # A browser resolves `..` in a path.
    other = "The same, for an id that no path can hold, such as `..`"
    get("/document", summary=other, responses=of(Document))(document)

    @get("/turns", summary="Turns, in order of time", responses=of(list[Turn]))
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
        facts_found = await memory.facts(
            entity=entity,
            user=user,
            as_of=as_of,
            superseded=superseded,
            offset=offset,
            limit=limit,
        )
        return counted(facts_found, response)

    @get("/trees", summary="Trees of summaries, without their nodes", responses=of(list[TreeTop]))
    async def trees(
        response: Response, document: str = "", offset: offset = 0, limit: some = None
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

    @get(
        "/trails",
        summary="Recorded runs, newest first; `brief`: with the number of their steps",
        responses=of(list[Trail] | list[BriefTrail]),
    )
    async def trails(limit: limit = 20, offset: offset = 0, brief: bool = False) -> Any:
        trails_found = (await memory.trails(offset + limit))[offset:]
        return [_brief(trail) for trail in trails_found] if brief else trails_found

    @get("/trails/{id}", summary="A recorded run; `last` is the newest", responses=of(Trail))
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


def _mark_segments(query: str, segments: Sequence[Segment]) -> list[MarkedSegment]:
    from qrmem.answering.excerpts import matches  # loads the search

    return [MarkedSegment(**asdict(one), matches=matches(query, one.text)) for one in segments]


def _searching(app: "FastAPI", memory: Memory, of_user: str) -> None:
    from fastapi import Body, Response

    from qrmem.answering.excerpts import scant  # loads the search

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
        types: several = None,
        as_of: Annotated[str, Body()] = "",
    ) -> Any:
        hits = await memory.search(
            query,
            k=k,
            documents=documents,
            where=own(of_user, where, documents),
            types=types,
            as_of=as_of,
        )
        note_length(query, response, miss=scant(query, (hit.text for hit in hits)))
        return hits

    @app.post(
        "/recall",
        summary="Earlier turns that a model needs to answer a prompt",
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
        types: several = None,
    ) -> Any:
        note_length(prompt, response)
        if of_user and user not in (None, of_user):
            raise UsageError(f"this token recalls only {of_user}'s turns: leave out user")
        user = of_user or user
        recalled = await memory.recall(
            prompt,
            session=session,
            tokens=tokens,
            user=user,
            min_score=min_score,
            as_of=as_of,
            types=types,
        )
        return RecalledTurns(recalled.text, recalled.messages, recalled.tokens, recalled.scores)
