"""Who may speak to a server of ours: whoever has its token; and how it is run."""

import hmac
import socket
from collections.abc import Mapping
from errno import EADDRINUSE
from logging import getLogger
from time import monotonic
from typing import TYPE_CHECKING

from qrmem.errors import OutOfReach, UsageError

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

LOOPBACK = ("127.0.0.1", "localhost", "::1")
LARGEST = 16 * 1024 * 1024
"""Bytes of a request's body."""
_MINUTE = 60.0


class Guard:
    """Lets requests through that carry the token, and whose body is not too large.

    The token stands in `Authorization: Bearer …`.
    """

    def __init__(
        self,
        app: "ASGIApp",
        token: str,
        *,
        open_paths: tuple[str, ...] = (),
        hosts: tuple[str, ...] = (),
    ) -> None:
        """Protect an app.

        Args:
            token: "" lets everybody in.
            open_paths: that need no token; one that ends in `/` stands for all below it, too.
            hosts: values of the header `Host` that are let in; empty: all.
        """
        self._app = app
        self._token = token
        self._open_paths = open_paths
        self._hosts = hosts

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Answer 401, 403, 411 or 413 in the place of the app, or hand the request on."""
        from starlette.responses import JSONResponse

        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        answer = self._app
        if refused := self._refused(scope["path"], headers):
            error, status = refused
            answer = JSONResponse({"error": error}, status)
        await answer(scope, receive, send)

    def _refused(self, path: str, headers: Mapping[str, str]) -> tuple[str, int] | None:
        """Return why a request is not let in, and the status that says so."""
        length = headers.get("content-length", "0")
        if "transfer-encoding" in headers:
            return "send the body whole, with a Content-Length", 411
        if length.isdigit() and int(length) > LARGEST:
            return f"a body has at most {LARGEST} bytes", 413
        if self._hosts and headers.get("host", "") not in self._hosts:
            return "unknown host; with QRMEM_TOKEN set, any is let in by the token", 403
        if not self._is_let_in(path, headers.get("authorization", "")):
            return "give the token: Authorization: Bearer TOKEN", 401
        return None

    def _is_let_in(self, path: str, authorization: str) -> bool:
        if not self._token or path in self._open_paths:
            return True
        if any(path.startswith(folder) for folder in self._open_paths if folder.strip("/")):
            return True
        given = authorization.removeprefix("Bearer ")
        return hmac.compare_digest(self._token.encode(), given.encode())


_logged = float("-inf")


def log(line: str) -> None:
    """Write a line for whoever runs the server, one a minute at most: clients can cause many."""
    global _logged
    if (now := monotonic()) - _logged >= _MINUTE:
        _logged = now
        getLogger(__name__).warning(
            "qrmem: %s", "".join(c if c.isprintable() else " " for c in line)
        )


def check_host(host: str, token: str) -> None:
    """Refuse to let others on the network in without a token.

    Raises:
        UsageError: the host is not this machine's loopback address, and there is no token.
    """
    if host not in LOOPBACK and not token:
        raise UsageError(f"{host} is reachable from outside: set QRMEM_TOKEN to a secret of yours")


def local_hosts(port: int) -> tuple[str, ...]:
    """Return the values of the header `Host` that name this machine's own address.

    A page of another site can make its own name lead to this machine; its name stands in `Host`.
    """
    return tuple(f"{name}{end}" for name in (*LOOPBACK, "[::1]") for end in (f":{port}", ""))


def listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens; port 0 is any free one.

    Raises:
        OutOfReach: the port is taken, or the address is none of this machine's.
        UsageError: there is no such port.
    """
    if not 0 <= port <= 65535:
        raise UsageError(f"a port is a number from 0 to 65535, not {port}")
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family)
    except OSError as exc:
        # Python adds the address, which is named already.
        reason = str(exc.strerror).partition(" (while attempting")[0]
        other = "; choose another by --port" if exc.errno == EADDRINUSE else ""
        raise OutOfReach(f"cannot listen on {host}:{port}: {reason}{other}") from exc


async def run(app: "ASGIApp", listens: socket.socket) -> None:
    """Serve an app on a socket until it is interrupted."""
    import uvicorn

    config = uvicorn.Config(app, log_level="error", access_log=False, lifespan="on")
    await uvicorn.Server(config).serve(sockets=[listens])
