#!/usr/bin/env python3
"""Serves the style and the guide of this folder to Neo4j Browser, on the loopback address only.

The Browser takes guides from a few hosts, `localhost` among them, and asks across origins.
"""

import argparse
import functools
import http.server
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent


class Handler(http.server.SimpleHTTPRequestHandler):
    """Gives files to pages of any origin."""

    def end_headers(self) -> None:
        """Add the headers that let the Browser read what it fetched."""
        self.send_header("Access-Control-Allow-Origin", "*")
        self.send_header("Access-Control-Allow-Headers", "*")
        super().end_headers()

    def do_OPTIONS(self) -> None:
        """Answer the question that comes before such a request."""
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(
        allow_abbrev=False, description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--port", type=int, default=0, help="default: a free one")
    options = parser.parse_args(arguments)
    handler = functools.partial(Handler, directory=str(HERE))
    with http.server.ThreadingHTTPServer(("127.0.0.1", options.port), handler) as server:
        address = f"http://localhost:{server.server_address[1]}"
        print(f"In Neo4j Browser:\n  :style {address}/qrmem.grass\n  :play {address}/guide.html")
        print("Stop with Ctrl+C.", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print()


if __name__ == "__main__":
    main()
