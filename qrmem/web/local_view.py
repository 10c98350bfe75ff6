"""`qrmem view`: a page that shows a memory, only for the person at this machine.

The page's own files need no token; everything from the memory does. The token is in the fragment
(`#`) of the address, which no log contains. The page loads nothing from other sites.
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
    """Return the app of the page, with the routes that it uses.

    Args:
        memory: an open memory.
        token: the token that the page sends with each request.
        hosts: allowed values of the header `Host`, against DNS rebinding.
        ask: offer questions, which may call the chat model.
        write: offer to merge names and to edit statements.
    """
    app: Any = api(memory, ask=ask)  # raises the error about the missing extra
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
