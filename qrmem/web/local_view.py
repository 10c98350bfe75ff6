"""`qrmem view`: a page that shows a memory, for the person at this machine alone.

The page's own files are served to anybody; everything from the memory needs the token, which stands
behind the `#` of the address and so is in no log. The page loads nothing from elsewhere.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from qrmem.memory import Memory
from qrmem.types import Strategy
from qrmem.web.api import api
from qrmem.web.changing import deciding
from qrmem.web.guard import Guard, digest

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

FOLDER = Path(__file__).parent / "page"
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}


def view(
    memory: Memory,
    token: str,
    hosts: tuple[str, ...],
    *,
    ask: bool = False,
    write: bool = False,
) -> "ASGIApp":
    """Return the page and what it asks for.

    Args:
        token: that the page sends with each request.
        hosts: values of the header `Host` that are let in, so that no other site's name can be
            made to lead here.
        ask: whether it answers questions, which may call the chat model.
        write: whether it lets a person decide about names and statements.
    """
    app: Any = api(memory, ask=ask)  # says what is missing
    from starlette.responses import FileResponse
    from starlette.staticfiles import StaticFiles

    if write:
        deciding(app, memory)

    async def index() -> FileResponse:
        return FileResponse(FOLDER / "index.html")

    async def allowed() -> dict[str, Any]:
        return {"ask": ask, "write": write, "strategies": get_args(Strategy)}

    app.get("/", include_in_schema=False)(index)
    app.get("/allowed", include_in_schema=False)(allowed)
    app.mount("/page", StaticFiles(directory=FOLDER))
    return _with_headers(Guard({digest(token): app}, open_paths=("/", "/page/"), hosts=hosts))


def _with_headers(app: "ASGIApp") -> "ASGIApp":
    added = [(name.encode(), value.encode()) for name, value in HEADERS.items()]

    async def call(scope: "Scope", receive: "Receive", send: "Send") -> None:
        async def sent(message: "Message") -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *added]
            await send(message)

        await app(scope, receive, sent)

    return call
