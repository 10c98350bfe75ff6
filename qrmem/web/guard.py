"""Access control of the servers by tokens, limits on requests, and the server loop."""

import asyncio
import re
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from errno import EADDRINUSE
from hashlib import sha256
from logging import StreamHandler, getLogger
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, TypeAdapter, ValidationError

from qrmem import settings_files
from qrmem.errors import OutOfReach, UsageError, clean_name, refused

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

LOOPBACK = ("127.0.0.1", "localhost", "::1")
LARGEST = 1024 * 1024
"""Maximum size of a request's body in bytes."""
LARGEST_DOCUMENT = 16 * 1024 * 1024
"""Maximum size in bytes of a body with a document."""
CONNECTIONS = 512
"""Maximum number of open connections; a quarter of the process's file limit if that is lower."""
HEAD_SECONDS, BODY_SECONDS = 10.0, 60.0
"""Time limits for a request's head and for its body. A client must read on within the first."""
_SENDABLE = re.compile("[!-~]*")
_OWN_SITE = ("none", "same-origin")
"""Values of `Sec-Fetch-Site` for requests that no other site caused."""
_MINUTE = 60.0


class Guard:
    """An ASGI app that checks token, host and body size, and passes the request to an app.

    The token comes in `Authorization: Bearer …` and selects the app.
    """

    def __init__(
        self,
        doors: "Mapping[str, ASGIApp]",
        *,
        open_paths: tuple[str, ...] = (),
        hosts: tuple[str, ...] = (),
        large: tuple[str, ...] = (),
    ) -> None:
        """Protect apps.

        Args:
            doors: token digest (see `digest`) to app; the digest of "" opens its app to everybody.
            open_paths: paths of the first app that need no token. A path that ends in `/` includes
                all paths below it, except `/` itself.
            hosts: allowed values of the header `Host`; empty allows all.
            large: paths that allow bodies up to `LARGEST_DOCUMENT`.
        """
        self._doors = doors
        self._open_paths = open_paths
        self._open_folders = tuple(p for p in open_paths if p.endswith("/") and p != "/")
        self._hosts = hosts
        self._large = large

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Pass the request to its app, or refuse it with status 401, 403, 411 or 413."""
        from starlette.responses import JSONResponse

        first = next(iter(self._doors.values()))
        if scope["type"] != "http":
            await first(scope, receive, send)
            return
        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        path = scope["path"]
        answer: ASGIApp | None = first
        if path not in self._open_paths and not path.startswith(self._open_folders):
            scheme, _, token_given = headers.get("authorization", "").partition(" ")
            token_given = token_given if scheme.lower() == "bearer" else ""
            answer = self._doors.get(digest("")) or self._doors.get(digest(token_given))
        refused = self._refused(path, headers)
        if refused is None and answer is None:
            what = "this token is unknown" if token_given else "the token is missing"
            refused = f"{what}; send Authorization: Bearer TOKEN", 401
        if refused is not None:
            error, status = refused
            answer = JSONResponse({"error": error}, status)
        assert answer is not None
        await answer(scope, receive, send)

    def _refused(self, path: str, headers: Mapping[str, str]) -> tuple[str, int] | None:
        """Return message and status if the request is refused whatever its token, else `None`."""
        length = headers.get("content-length", "0")
        if "transfer-encoding" in headers:
            return "send the whole body, with a Content-Length", 411
        most = LARGEST_DOCUMENT if path in self._large else LARGEST
        if length.isdigit() and int(length) > most:
            return f"a body has at most {most:,} bytes here", 413
        if self._hosts and headers.get("host", "") not in self._hosts:
            return "unknown host; with QRMEM_TOKEN set, the token gives access from any", 403
        # Another site could not read the reply, but could detect whether there is one.
        is_open = digest("") in self._doors
        if is_open and headers.get("sec-fetch-site", "none") not in _OWN_SITE:
            return (
                "pages of other sites have no access; with QRMEM_TOKEN set, the token gives it",
                403,
            )
        return None


def digest(token: str) -> str:
    """Return the SHA-256 of a token in hex; lookups by it leak no timing about the token."""
    return sha256(token.encode()).hexdigest()


_logger = getLogger(__name__)
_logged = float("-inf")


def log(line: str) -> None:
    """Log a line for the operator, at most one per minute, as clients can cause many."""
    global _logged
    if (now := monotonic()) - _logged >= _MINUTE:
        _logged = now
        _logger.warning("qrmem: %s", "".join(c if c.isprintable() else " " for c in line))


def check_host(host: str, token: str) -> None:
    """Check that a server on a network address has a token, and that clients can send it.

    Raises:
        UsageError: the host is not a loopback address and there is no token, or the token has
            characters that a header cannot have.
    """
    if not _SENDABLE.fullmatch(token):
        raise UsageError(
            "QRMEM_TOKEN holds characters that clients cannot send: use ASCII letters, digits and "
            "signs, without spaces"
        )
    if host not in LOOPBACK and not token:
        raise UsageError(f"{host} is reachable from outside: set QRMEM_TOKEN to a secret of yours")


def local_hosts(port: int) -> tuple[str, ...]:
    """Return the values of the header `Host` for this machine's loopback addresses.

    They stop DNS rebinding: a site whose name resolves to this machine sends its name in `Host`.
    """
    return tuple(f"{name}{end}" for name in (*LOOPBACK, "[::1]") for end in (f":{port}", ""))


def listening(host: str, port: int) -> socket.socket:
    """Return a listening socket; port 0 selects a free port.

    Raises:
        OutOfReach: the port is in use, or the address is not an address of this machine.
        UsageError: the port is not in [0, 65535].
    """
    if not 0 <= port <= 65535:
        raise UsageError(f"a port is a number from 0 to 65535, not {port}")
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family)
    except OSError as exc:
        # Python's message would repeat the address.
        reason = str(exc.strerror).partition(" (while attempting")[0]
        other = "; choose another by --port" if exc.errno == EADDRINUSE else ""
        raise OutOfReach(f"cannot listen on {host}:{port}: {reason}{other}") from exc


async def run(app: "ASGIApp", listens: socket.socket) -> None:
    """Serve an app on a socket until an interrupt."""
    import uvicorn

    if not _logger.handlers:
        # To the terminal, since the logger of the package prints nothing.
        _logger.addHandler(StreamHandler())
    most = _most_connections()
    config = uvicorn.Config(
        app,
        http=_bounded(most),
        ws="none",
        # So many connections may be accepted before one of them is closed.
        backlog=max(1, most // 2),
        log_level="error",
        access_log=False,
        lifespan="on",
    )
    await uvicorn.Server(config).serve(sockets=[listens])


def _most_connections() -> int:
    """Return the maximum number of connections that leaves file descriptors for the memory."""
    with suppress(ImportError):  # Windows has no such limit
        from resource import RLIMIT_NOFILE, getrlimit

        return max(1, min(CONNECTIONS, getrlimit(RLIMIT_NOFILE)[0] // 4))
    return CONNECTIONS


def _bounded(most: int) -> Any:
    """Return uvicorn's protocol with time limits for requests and replies.

    uvicorn waits without limit for the first request of a connection and for the rest of a request.
    Its own limit on connections refuses every client while idle connections use it up.

    Args:
        most: maximum number of connections. A further connection closes the one that has waited
            longest for a request.
    """
    from uvicorn.protocols.http.h11_impl import H11Protocol

    waiting: dict[Any, None] = {}  # the one that has waited longest comes first

    class BoundedProtocol(H11Protocol):
        timer: asyncio.TimerHandle | None = None
        awaited: Any = None
        unsent = 0

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            if len(self.connections) > most:
                log(f"more than {most} connections: one that waits for its request is closed")
                longest = next(iter(waiting), self)
                waiting.pop(longest, None)  # else the next connection would close it again
                longest.transport.abort()
            self.watch()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self.watch()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            self.watch()

        def pause_writing(self) -> None:
            super().pause_writing()
            self.end_in(HEAD_SECONDS)

        def resume_writing(self) -> None:
            super().resume_writing()
            self.awaited = None
            self.watch()

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            self.rest()

        def watch(self) -> None:
            """Set a time limit for the current part, once; slow bytes do not extend it."""
            is_open = self.cycle is not None and not self.cycle.response_complete
            if is_open and not self.cycle.more_body:
                if not self.flow.write_paused:
                    self.rest()  # the request is complete, and is being answered
            elif self.awaited != (now := (self.cycle, is_open)):
                self.awaited = now
                waiting.pop(self, None)
                waiting[self] = None
                self.end_in(BODY_SECONDS if is_open else HEAD_SECONDS)

        def rest(self) -> None:
            waiting.pop(self, None)
            self.awaited = None
            if self.timer is not None:
                self.timer.cancel()

        def end_in(self, seconds: float) -> None:
            if self.timer is not None:
                self.timer.cancel()
            self.timer = self.loop.call_later(seconds, self.end)

        def end(self) -> None:
            unsent, self.unsent = self.unsent, self.transport.get_write_buffer_size()
            if self.unsent and self.unsent != unsent:
                self.end_in(HEAD_SECONDS)  # the client reads on
            else:
                self.transport.abort()

    return BoundedProtocol


# `qrmem serve --tokens FILE`: a table of tokens with the rights of each.


_EXAMPLE = 'write [[token]], and below it sha256 = "…"'


class Grant(BaseModel, frozen=True, strict=True, extra="forbid"):
    """The rights of one token.

    Attributes:
        sha256: SHA-256 of the token in hex, so that the file holds no secret.
        namespace: the namespace that it opens; "" in the table is the namespace of the settings.
        user: limits it to the documents and turns of this user; "" sets no limit.
        write: whether it may add, change and delete.
        metrics: whether it reads `/metrics`, and nothing else.
    """

    sha256: str
    namespace: str = ""
    user: str = ""
    write: bool = False
    metrics: bool = False


def grants(path: Path, namespace: str) -> Sequence[Grant]:
    """Read a table of tokens.

    Args:
        path: a TOML file with `[[token]]` entries, each with the fields of `Grant`.
        namespace: namespace of the tokens without one.

    Raises:
        UsageError: the file cannot be read, or an entry is wrong; the message names it.
    """
    try:
        rows = settings_files.read(path).values()
        if list(rows) != ["token"]:
            raise UsageError(f"no table of tokens: {_EXAMPLE}")
        try:
            grants_found = TypeAdapter(list[Grant]).validate_python(rows["token"])
        except ValidationError as exc:
            raise UsageError(refused(exc.errors())) from None
        if grants_found and all(grant.metrics for grant in grants_found):
            raise UsageError("no token opens a memory")
        return [
            _check_grant(n, grant, grants_found[: n - 1], namespace)
            for n, grant in enumerate(grants_found, 1)
        ]
    except UsageError as exc:
        raise UsageError(
            f"--tokens {path}: {str(exc).removeprefix(f'settings file {path}: ')}"
        ) from None


def _check_grant(n: int, grant: Grant, before: Sequence[Grant], namespace: str) -> Grant:
    sha256 = grant.sha256.lower()
    if len(sha256) != len(digest("")) or set(sha256) - set("0123456789abcdef"):
        raise UsageError(
            f"token {n}: sha256 is 64 characters of 0-9 and a-f, as `printf %s TOKEN | sha256sum` "
            "has it"
        )
    if sha256 == digest(""):
        raise UsageError(f"token {n}: sha256 is that of an empty token")
    if grant.metrics and (grant.namespace or grant.user or grant.write):
        raise UsageError(
            f"token {n}: metrics = true allows no other key, because such a token opens no memory"
        )
    if any(sha256 == other.sha256.lower() for other in before):
        raise UsageError(f"token {n}: its sha256 occurs twice")
    return Grant(
        sha256=sha256,
        namespace=clean_name(grant.namespace, "namespace") or namespace,
        user=clean_name(grant.user, "user"),
        write=grant.write,
        metrics=grant.metrics,
    )
