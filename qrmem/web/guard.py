"""Who may speak to a server of ours: whoever has its token; and how it is run."""

import hmac
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from qrmem.errors import OutOfReach, UsageError

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

LOOPBACK = ("127.0.0.1", "localhost", "::1")
LARGEST = 16 * 1024 * 1024
"""Bytes of a request's body."""


class Guard:
    """Lets requests through that carry the token, and whose body is not too large.

    The token stands in `Authorization: Bearer …`; a page may also carry it as `?token=…` or, after
    its first request, in a cookie.
    """

    def __init__(self, app: "ASGIApp", token: str, *, largest: int = LARGEST) -> None:
        self._app = app
        self._token = token
        self._largest = largest

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Answer 401 or 413 in the place of the app, or hand the request on."""
        from starlette.responses import JSONResponse

        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        length = headers.get("content-length", "0")
        if "transfer-encoding" in headers or (length.isdigit() and int(length) > self._largest):
            refused = JSONResponse({"error": f"a body has at most {self._largest} bytes"}, 413)
            await refused(scope, receive, send)
        elif self._token and not self._is_known(scope, headers):
            refused = JSONResponse({"error": "give the token: Authorization: Bearer TOKEN"}, 401)
            await refused(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _is_known(self, scope: "Scope", headers: dict[str, str]) -> bool:
        query = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        bearer = headers.get("authorization", "").removeprefix("Bearer ")
        cookies = [pair.strip().partition("=") for pair in headers.get("cookie", "").split(";")]
        cookie = next((value for name, _, value in cookies if name == "qrmem"), "")
        given = (bearer, query, cookie)
        return any(hmac.compare_digest(self._token.encode(), one.encode()) for one in given)


def check_host(host: str, token: str) -> None:
    """Refuse to let others on the network in without a token.

    Raises:
        UsageError: the host is not this machine's loopback address, and there is no token.
    """
    if host not in LOOPBACK and not token:
        raise UsageError(f"{host} is reachable from outside: set QRMEM_TOKEN to a secret of yours")


async def run(app: "ASGIApp", host: str, port: int) -> None:
    """Serve an app until it is interrupted.

    Raises:
        OutOfReach: the port is taken.
    """
    import socket

    import uvicorn

    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listening = socket.create_server((host, port), family=family)
    except OSError as exc:
        raise OutOfReach(f"cannot listen on {host}:{port}: {exc.strerror}") from exc
    with listening:
        config = uvicorn.Config(app, log_level="error", access_log=False, lifespan="on")
        await uvicorn.Server(config).serve(sockets=[listening])
