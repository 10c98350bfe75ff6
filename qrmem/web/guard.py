"""Access control of the servers by tokens, limits on requests, and the server loop."""

import re
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from errno import EADDRINUSE
from functools import partial
from hashlib import sha256
from logging import StreamHandler, getLogger
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, cast

from pydantic import BaseModel, TypeAdapter, ValidationError

from qrmem import settings_files
from qrmem.errors import NotFound, OutOfReach, UsageError, clean_name, refused
from qrmem.text.normalise import normalise
from qrmem.types.turns import SCOPES, USER_KEY, document_id_of

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from qrmem.memory import Memory
    from qrmem.types import Document, Where

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
    from uvicorn.protocols.http.h11_impl import H11Protocol

    from qrmem.web.connections import Bounded

    class BoundedProtocol(Bounded, H11Protocol):
        """Uvicorn's protocol with the limits."""

    if not _logger.handlers:
        # To the terminal, since the logger of the package prints nothing.
        _logger.addHandler(StreamHandler())
    most = _most_connections()
    protocol = partial(
        BoundedProtocol,
        most=most,
        waiting={},
        head_seconds=HEAD_SECONDS,
        body_seconds=BODY_SECONDS,
        log=log,
    )
    config = uvicorn.Config(
        app,
        http=cast(Any, protocol),
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


# What a token of one user reaches.


def own_where(user: str, where: "Where | None", documents: Sequence[str] | None) -> "Where | None":
    """Return `where`, limited to the documents of the token's user.

    Args:
        user: the user of the token; "" adds no limit.
        where: the request's condition on the metadata.
        documents: the request's document ids.

    Raises:
        UsageError: the token has a user, and the request names documents or a user.
    """
    if not user:
        return where
    if documents is not None or USER_KEY in (where or {}):
        raise UsageError(f"this token reads only {user}'s documents: leave out documents and user")
    return {**(where or {}), USER_KEY: user}


async def own_document(memory: "Memory", user: str, id: str) -> "Document":
    """Return a document of a user.

    Raises:
        NotFound: the user has no document with this id, even if another user has.
    """
    with suppress(NotFound):
        stored_document = await memory.document(id)
        if stored_document.metadata.get(USER_KEY) == user:
            return stored_document
    raise NotFound(f"no document {id!r} of {user}")


def own_user(token_user: str, user: str | None) -> str | None:
    """Return the user whose data a request may read: the token's, or else the one it names.

    Raises:
        UsageError: the token has a user, and the request names another.
    """
    if token_user and user not in (None, "", token_user):
        raise UsageError(f"this token reads only {token_user}'s turns and facts: leave out user")
    return token_user or user


def of_user(user: str, document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a document with the user in its metadata.

    Raises:
        UsageError: it has no id, or it has metadata that only the service sets.
    """
    metadata, id = document.get("metadata"), document.get("id")
    if not isinstance(id, str) or not id:
        raise UsageError("a document needs an id")
    if not isinstance(metadata, Mapping | None):
        raise UsageError(f"metadata of {id} are names with values")
    if scopes_taken := SCOPES.intersection(map(normalise, metadata or ())):
        raise UsageError(f"metadata {', '.join(sorted(scopes_taken))}: the service sets it")
    changes = {"id": document_id_of(user, id), "metadata": {**(metadata or {}), USER_KEY: user}}
    return {**document, **changes}


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
