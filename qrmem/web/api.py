"""`qrmem serve`: a REST service over a memory, with an OpenAPI page."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from qrmem.errors import QrmemError, missing_extra, refused
from qrmem.memory import Memory
from qrmem.web import changing
from qrmem.web.asking import asking, error_of
from qrmem.web.jobs import Jobs, handing_over
from qrmem.web.response_models import Refusal, whole

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.requests import Request

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
    app = _new_app(is_secured=secured)
    from qrmem.web.reading import reading  # imports FastAPI

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
        handing_over(app, memory, user, jobs)
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
    bearer = HTTPBearer(auto_error=False, description="The token: QRMEM_TOKEN of the service.")
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
