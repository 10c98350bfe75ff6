"""`qrmem mcp`, `qrmem serve`: a memory for other programs."""

import argparse
from typing import Any

from qrmem.cli import output
from qrmem.cli.options import opened, settings_of
from qrmem.errors import MissingError

HOST, PORT = "127.0.0.1", 8321


def add_serving(commands: Any, common: argparse.ArgumentParser) -> None:
    """Add the commands that serve a memory."""
    mcp = commands.add_parser(
        "mcp", parents=[common], help="serve the memory to an MCP client (extra mcp)"
    )
    mcp.add_argument(
        "--http", action="store_true", help="by streamable HTTP at /mcp; default: standard input"
    )
    serve = commands.add_parser(
        "serve", parents=[common], help="serve the memory by REST (extra serve)"
    )
    for server in (mcp, serve):
        server.add_argument("--write", action="store_true", help="let clients add and delete")
        server.add_argument("--host", default=HOST, metavar="H", help=f"address ({HOST})")
        server.add_argument("--port", type=int, default=PORT, metavar="P", help=f"port ({PORT})")


async def mcp(arguments: argparse.Namespace) -> int:
    """Serve an MCP client until it goes away."""
    from qrmem.integrations.mcp import http_app, server

    async with opened(arguments, create=arguments.write) as memory:
        made = server(memory, write=arguments.write)
        if arguments.http:
            await _serve(arguments, http_app(made, arguments.host), "/mcp")
        else:
            await made.run_stdio_async()
    return 0


async def serve(arguments: argparse.Namespace) -> int:
    """Serve REST clients until interrupted."""
    from qrmem.web.api import api

    async with opened(arguments, create=arguments.write) as memory:
        await _serve(arguments, api(memory, write=arguments.write), "/docs")
    return 0


async def _serve(arguments: argparse.Namespace, app: Any, path: str) -> None:
    try:
        from qrmem.web.guard import Guard, check_host, run
    except ImportError as exc:
        raise MissingError("serving needs: pip install 'qrmem[serve]'") from exc
    token = settings_of(arguments).token.reveal()
    check_host(arguments.host, token)
    host = f"[{arguments.host}]" if ":" in arguments.host else arguments.host
    output.note(
        f"serving http://{host}:{arguments.port}{path} (Ctrl-C ends it)", quiet=arguments.quiet
    )
    await run(Guard(app, token), arguments.host, arguments.port)
