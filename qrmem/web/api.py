"""`qrmem serve`: a REST service over a memory, with an OpenAPI page.

Questions have a whole or a streamed reply; errors become HTTP replies.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import aclosing
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, cast
from urllib.parse import quote

from qrmem.errors import (
    CapReached,
    MissingError,
    NotFound,
    OutOfReach,
    QrmemError,
    StoreConflict,
    UsageError,
    missing_extra,
    refused,
)
from qrmem.memory import Memory
from qrmem.memory.ask import answer_of
from qrmem.text.words import cut_note
from qrmem.types import Answer, Step, Strategy, Words
from qrmem.web import changing
from qrmem.web.guard import log, own_where
from qrmem.web.job_routes import add_job_routes
from qrmem.web.jobs import Jobs
from qrmem.web.response_models import Refusal, of, whole

if TYPE_CHECKING:
    from fastapi import FastAPI, Response
    from starlette.requests import Request
    from starlette.responses import StreamingResponse


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
    from qrmem.web.reading import reading  # imports this module

    app = _new_app(is_secured=secured)
    _answer_errors(app, memory, ask=ask, write=write, user=user)
    reading(app, memory, user)
    if ask:
        asking(app, memory, user)
    if write and user:
        changing.writing_of_user(app, memory, user)
    elif write:
        changing.writing(app, memory, jobs)
        changing.deciding(app, memory)
    if write and jobs is not None:
        add_job_routes(app, memory, user, jobs)
    return app


def _new_app(*, is_secured: bool) -> "FastAPI":
    """Return an app without routes that refuses unknown arguments.

    Raises:
        MissingError: the extra `serve` is not installed.
    """
    try:
        from fastapi import Depends, Security
        from fastapi.exceptions import RequestValidationError
        from fastapi.security import HTTPBearer
        from fastapi_offline import FastAPIOffline
        from starlette.convertors import PathConvertor, register_url_convertor
        from starlette.requests import Request
    except ImportError as exc:
        raise missing_extra("serve", "a REST service") from exc
    from importlib.metadata import version

    class Whole(PathConvertor):
        regex = r"[\s\S]*"  # an id can contain line breaks, like a file name

    register_url_convertor("whole", Whole())

    async def nothing_else(request: Request) -> None:
        if unknown := await _unknown(request):
            kind = {"type": "extra_forbidden"}
            raise RequestValidationError([kind | {"loc": ("", name)} for name in unknown])

    # The guard checks the token; this only tells OpenAPI and the page `/docs` about it.
    bearer = HTTPBearer(auto_error=False, description="QRMEM_TOKEN, or a token of the table.")
    app: FastAPI = FastAPIOffline(
        title="qrmem",
        version=version("qrmem"),
        dependencies=[Depends(nothing_else), *([Security(bearer)] if is_secured else [])],
        responses={"4XX": {"model": Refusal}, "5XX": {"model": Refusal}},
    )
    return app


def _answer_errors(app: "FastAPI", memory: Memory, *, ask: bool, write: bool, user: str) -> None:
    """Make replies of errors: of the library, of wrong arguments, and of unknown routes."""
    from fastapi.exceptions import RequestValidationError
    from fastapi.responses import JSONResponse
    from starlette.exceptions import HTTPException
    from starlette.requests import Request

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
        more = ""
        if not ask and request.url.path == "/ask":
            more = "; a page that asks, with --ask"
        elif not write and request.method != "GET":
            more = "; this token or service only reads (write = true, or --write)"
        elif user:
            more = f"; this token opens only {user}'s documents, turns and facts"
        error = f"there is no {request.method} {request.url.path}: /docs lists all routes{more}"
        if exc.status_code not in (404, 405):
            error = _UNREAD.get(type(exc.__cause__), str(exc.detail))
        body = asdict(Refusal(whole(error)))
        return JSONResponse(body, exc.status_code, headers=exc.headers)


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


_STATUS: tuple[tuple[type[QrmemError], int], ...] = (
    (NotFound, 404),
    (UsageError, 400),
    (MissingError, 424),
    (StoreConflict, 409),
    (CapReached, 429),
    (OutOfReach, 503),
)
"""HTTP status by class of error; the first match counts, any other error is 500."""

WARNING = "x-warning"
"""Header with a warning about the reply, as text."""
_IN_HEADERS = "".join(chr(code) for code in range(32, 127) if chr(code) != "%")
_LEFT = 499
"""Status in the metrics if the client left before the reply."""
MOST = 2**31 - 1
"""Largest number of tokens that a request may name."""


def asking(app: "FastAPI", memory: Memory, user: str = "") -> None:
    """Add the route `POST /ask`.

    Args:
        app: the app to extend.
        memory: an open memory.
        user: limits answers to the documents and turns of this user; "" sets no limit.
    """
    from fastapi import Body, Request, Response

    several = Annotated[list[str] | None, Body()]

    @app.post(
        "/ask", summary="Answer a question, with citations and the trail", responses=of(Answer)
    )
    async def ask(
        request: Request,
        response: Response,
        question: Annotated[str, Body(min_length=1)],
        strategy: Annotated[str | None, Body()] = None,
        window: Annotated[int | None, Body(ge=1, le=MOST, strict=True)] = None,
        choices: several = None,
        documents: several = None,
        where: Annotated[dict[str, Any] | None, Body()] = None,
        types: Annotated[list[str] | None, Body()] = None,
        as_of: Annotated[str, Body()] = "",
        stream: Annotated[bool, Body(description="stream the steps as events")] = False,
    ) -> Any:
        note_length(question, response)
        items = memory.stream(
            question,
            words=stream,
            strategy=cast(Strategy | None, strategy),  # raises there if it is invalid
            window=window,
            choices=choices,
            documents=documents,
            where=own_where(user, where, documents),
            types=types,
            as_of=as_of,
        )
        return await _unless_left(request, _streamed(memory, items) if stream else answer_of(items))


async def _unless_left(request: "Request", work: Coroutine[Any, Any, Any]) -> Any:
    """Return the result of a run; the run ends, and costs nothing more, if the client leaves."""
    from starlette.responses import Response

    running: asyncio.Future[Any] = asyncio.ensure_future(work)
    disconnect: asyncio.Future[Any] = asyncio.ensure_future(request.receive())
    try:
        await asyncio.wait((running, disconnect), return_when=asyncio.FIRST_COMPLETED)
        return await running if running.done() else Response(status_code=_LEFT)
    finally:
        disconnect.cancel()
        running.cancel()
        await asyncio.wait((running, disconnect))


_Items = AsyncGenerator[Step | Words | Answer, None]


async def _streamed(memory: Memory, items: _Items) -> "StreamingResponse":
    """Return a run as server-sent events: `step` and `words`, then `answer` or `error`.

    An error before the first event gives the same reply as without streaming. If the client
    disconnects, the run ends.
    """
    from starlette.responses import StreamingResponse

    first = await anext(items)

    async def events() -> AsyncIterator[str]:
        async with aclosing(items):
            yield _event(first)
            try:
                async for item in items:
                    yield _event(item)
            except QrmemError as exc:
                yield _event(error_of(memory, exc)[0])

    return StreamingResponse(events(), media_type="text/event-stream")


def _event(item: Step | Words | Answer | Refusal) -> str:
    kind = "error" if isinstance(item, Refusal) else type(item).__name__.lower()
    return f"event: {kind}\ndata: {json.dumps(asdict(item))}\n\n"


def error_of(memory: Memory, exc: QrmemError) -> tuple[Refusal, int]:
    """Return an error's reply body and its HTTP status; errors from 500 on are logged."""
    status = next((code for kind, code in _STATUS if isinstance(exc, kind)), 500)
    if status >= 500:
        log(str(exc))
    message = whole(exc.public(memory.location))
    suggestions = exc.near if isinstance(exc, NotFound) else ()
    return Refusal(message, type(exc).__name__, suggestions), status


def note_length(question: str, response: "Response", *, miss: str = "") -> None:
    """Set the warning header if a long question was cut, or else to `miss`.

    What a header cannot hold, such as a word in another script, is percent-encoded.
    """
    if note := cut_note(question) or miss:
        response.headers[WARNING] = quote(note, safe=_IN_HEADERS)
