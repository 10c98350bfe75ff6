"""`qrmem mcp`, `qrmem serve`: a memory for other programs."""

import argparse
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from qrmem.cli import output
from qrmem.cli.arguments import Common
from qrmem.cli.parsed_arguments import opened, settings_of, user_name
from qrmem.config import Settings
from qrmem.errors import UsageError, require_extra
from qrmem.types import Segment, Trail

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from qrmem.memory import Memory
    from qrmem.web.guard import Grant
    from qrmem.web.jobs import Jobs
    from qrmem.web.prometheus import Metrics

HOST, PORT = "127.0.0.1", 8321
DOCS = ("/docs", "/openapi.json", "/static-offline-docs/")
"""Paths that need no token: they describe the service and hold nothing of a memory."""


def add_serving(commands: Any, common: Common) -> None:
    """Add the commands that serve a memory."""
    mcp = commands.add_parser(
        "mcp",
        parents=common("memory", "model", "embedder"),
        help="serve the memory to an MCP client (extra mcp)",
    )
    mcp.add_argument(
        "--http", action="store_true", help="by streamable HTTP at /mcp; default: standard input"
    )
    mcp.add_argument(
        "--user", type=user_name, metavar="U", help="read and write only this user's data"
    )
    serve = commands.add_parser(
        "serve",
        parents=common("memory", "model", "embedder"),
        help="serve the memory by REST (extra serve)",
    )
    serve.add_argument(
        "--tokens",
        metavar="FILE",
        help="a table of tokens (TOML), each for a namespace and, optionally, a user",
    )
    serve.add_argument(
        "--jobs",
        metavar="FOLDER",
        help="keep long adds here until they are done; default: MEMORY.jobs, beside the file",
    )
    view = commands.add_parser(
        "view",
        parents=common("memory", "model", "embedder"),
        help="show the memory on a web page of this machine (extra serve)",
    )
    view.add_argument(
        "--ask", action="store_true", help="answer questions on the page (calls the chat model)"
    )
    view.add_argument(
        "--write", action="store_true", help="let the page merge names and edit statements"
    )
    view.add_argument("--no-browser", action="store_true", help="print the address only")
    view.add_argument("--port", type=int, default=0, metavar="P", help="port (default: a free one)")
    mcp.add_argument("--write", action="store_true", help="let clients add texts and turns")
    serve.add_argument("--write", action="store_true", help="let clients add, merge and delete")
    for server in (mcp, serve):
        server.add_argument("--host", default=HOST, metavar="H", help="address")
        server.add_argument("--port", type=int, default=PORT, metavar="P", help="port")


async def mcp(arguments: argparse.Namespace) -> int:
    """Serve an MCP client until it disconnects."""
    from qrmem.integrations.mcp import server

    require_extra("mcp", "an MCP server", "mcp")
    async with opened(arguments, create=arguments.write) as memory:
        mcp_server = server(memory, write=arguments.write, user=arguments.user or "")
        if arguments.http:
            from qrmem.web.guard import LARGEST_DOCUMENT, check_host, digest

            token = settings_of(arguments).token.reveal()
            check_host(arguments.host, token)
            # On loopback it refuses requests for another host name.
            app = mcp_server.streamable_http_app(
                host=arguments.host, stateless_http=True, max_request_body_size=LARGEST_DOCUMENT
            )
            await _serve(arguments, {digest(token): app}, "/mcp", large=("/mcp",))
        else:
            # A thread that waits for a line cannot be stopped: Ctrl-C ends the process at once.
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            try:
                await mcp_server.run_stdio_async()
            except* BrokenPipeError:
                raise BrokenPipeError from None  # the client disconnected
    return 0


async def serve(arguments: argparse.Namespace) -> int:
    """Serve REST clients until interrupted."""
    from qrmem.memory import open
    from qrmem.web.jobs import Jobs
    from qrmem.web.prometheus import Metrics, door

    settings = settings_of(arguments)
    table = _table(arguments, settings)
    metrics = Metrics()
    writes = {grant.namespace for grant in table if grant.write}
    names = dict.fromkeys(grant.namespace for grant in table if not grant.metrics)
    async with AsyncExitStack() as stack:
        memories: dict[str, Memory] = {}
        for name in names:
            namespace_settings = settings.with_(namespace=name)
            opening = open(settings=namespace_settings, create=name in writes, listener=metrics)
            memories[name] = await stack.enter_async_context(opening)
        jobs = Jobs(_jobs_folder(arguments, memories))

        def page() -> bytes:
            return metrics.page(jobs.counts())

        doors: dict[str, Any] = {}
        # `/docs` shows everybody the routes of the first: that with the most rights.
        opening_tokens = (one for one in table if not one.metrics)
        for grant in sorted(opening_tokens, key=lambda one: (bool(one.user), not one.write)):
            build = partial(
                _service, grant, memories[grant.namespace], jobs, None if arguments.tokens else page
            )
            doors[grant.sha256] = _when_asked(build) if arguments.tokens else build()
        doors |= {grant.sha256: door(page) for grant in table if grant.metrics}
        writable = {name: memories[name] for name in writes}
        await stack.enter_async_context(jobs.running(writable))
        large = ("/documents", "/jobs") if writes else ()
        await _serve(arguments, doors, "/docs", large=large, open_paths=DOCS, metrics=metrics)
    return 0


def _service(
    grant: "Grant", memory: "Memory", jobs: "Jobs", page: Callable[[], bytes] | None
) -> "ASGIApp":
    """Return what a token gives access to.

    Args:
        page: the figures of `/metrics`; `None` if the token may not read them.
    """
    from qrmem.web.api import api
    from qrmem.web.guard import digest
    from qrmem.web.prometheus import figures

    secured = grant.sha256 != digest("")
    app = api(memory, write=grant.write, secured=secured, user=grant.user, jobs=jobs)
    figures(app, page)
    return app


def _when_asked(build: "Callable[[], ASGIApp]") -> "ASGIApp":
    """Return an app that is built on its first request: a table may have thousands of tokens."""
    built = cache(build)

    async def call(scope: "Scope", receive: "Receive", send: "Send") -> None:
        await built()(scope, receive, send)

    return call


def _table(arguments: argparse.Namespace, settings: Settings) -> "Sequence[Grant]":
    """Return the grants by token; without a table the one token, or anybody, has a grant."""
    from qrmem.web.guard import Grant, check_host, digest, grants

    token = settings.token.reveal()
    if not arguments.tokens:
        check_host(arguments.host, token)
        return [Grant(sha256=digest(token), namespace=settings.namespace, write=arguments.write)]
    if token or arguments.write:
        other = "QRMEM_TOKEN" if token else "--write"
        raise UsageError(f"{other} is for one token; with --tokens, leave it out: the table has it")
    return grants(Path(arguments.tokens), settings.namespace)


def _jobs_folder(arguments: argparse.Namespace, memories: "Mapping[str, Memory]") -> Path | None:
    """Return the folder for jobs; by default it is beside a memory that is a file."""
    from qrmem.web.jobs import usual_folder

    if arguments.jobs:
        return Path(arguments.jobs).expanduser().absolute()
    memory = next(iter(memories.values()), None)
    return usual_folder(memory) if memory is not None else None


async def view(arguments: argparse.Namespace) -> int:
    """Serve the memory's web page until interrupted."""
    import secrets
    import webbrowser

    from qrmem.web.guard import listening, run
    from qrmem.web.pages import view as page

    require_extra("serve", "the page", "fastapi")
    async with opened(arguments) as memory:
        await memory.trails(1)  # raises here if there is no memory
        with listening(HOST, arguments.port) as socket:
            port, token = socket.getsockname()[1], secrets.token_urlsafe(24)
            hosts = (f"{HOST}:{port}", f"localhost:{port}")
            app = page(memory, token, hosts, ask=arguments.ask, write=arguments.write)
            address = f"http://{HOST}:{port}/#token={token}"
            output.show(address)
            output.note("Ctrl-C ends it", quiet=arguments.quiet)
            with _leading_to(address) as file:
                if not arguments.no_browser:
                    webbrowser.open(file.as_uri())
                await run(app, socket)
    return 0


@contextmanager
def _leading_to(address: str) -> Iterator[Path]:
    """Yield a file, readable only by the user, that sends a browser to an address.

    The address holds the token, and everybody on this machine can read a browser's command line.
    """
    with TemporaryDirectory(prefix="qrmem-") as folder:
        file = Path(folder) / "view.html"
        lead = f'<meta http-equiv="refresh" content="0; url={address}">'
        file.write_text(f"<!doctype html>{lead}<title>qrmem</title>", encoding="utf-8")
        yield file


async def segments_of(memory: "Memory", trail: Trail) -> dict[str, Segment]:
    """Return the existing segments that a trail read or dropped, by id."""
    ids = {one.segment_id for step in trail.steps for one in (*step.read, *step.dropped)}
    return {segment.id: segment for segment in await memory.segments(ids=sorted(ids))}


async def write_trail(memory: "Memory", trail: Trail, path: str) -> int:
    """Write a trail as one HTML file."""
    from qrmem.io.place import write_whole
    from qrmem.web.pages import trail_page

    page = trail_page(trail, await segments_of(memory, trail), output.reader(trail.reasoner))
    data = page.encode("utf-8", "backslashreplace")
    write_whole(Path(path), data, b"<!doctype html>", "a trail page")
    output.show(f"written to {path}")
    return 0


async def _serve(
    arguments: argparse.Namespace,
    doors: "Mapping[str, Any]",
    path: str,
    *,
    large: tuple[str, ...],
    open_paths: tuple[str, ...] = (),
    metrics: "Metrics | None" = None,
) -> None:
    from qrmem.web.guard import Guard, digest, listening, local_hosts, run

    is_open = digest("") in doors
    with listening(arguments.host, arguments.port) as socket:
        host = f"[{arguments.host}]" if ":" in arguments.host else arguments.host
        port = socket.getsockname()[1]
        where = f"http://{host}:{port}{path}"
        output.note(f"serving {where} (Ctrl-C ends it)", quiet=arguments.quiet)
        hosts = local_hosts(port) if is_open else ()
        guarded: Any = Guard(doors, open_paths=open_paths, hosts=hosts, large=large)
        await run(metrics.counted(guarded) if metrics else guarded, socket)
