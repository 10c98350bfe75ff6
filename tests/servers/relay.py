"""A relay before a real server: it hands everything on and keeps what was said, as a witness."""

import http.server
import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

Json = Any

LONGEST = 900
"""Seconds that a model may take for one reply."""


@dataclass(frozen=True)
class Exchanged:
    """A request for a chat completion, and the server's answer to it."""

    asked: Json
    status: int
    said: Json

    @property
    def usage(self) -> tuple[int, int]:
        """Tokens in and out, as the server counted them."""
        return self.said["usage"]["prompt_tokens"], self.said["usage"]["completion_tokens"]

    @property
    def text(self) -> str:
        """The reply's text."""
        return str(self.said["choices"][0]["message"]["content"] or "")


class Relay(http.server.ThreadingHTTPServer):
    """Listens on loopback and passes requests to another server.

    Attributes:
        exchanged: all chat completions, in the order in which they were answered.
    """

    daemon_threads = True

    def __init__(self, upstream: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        parts = urlsplit(upstream)
        self.origin = f"{parts.scheme}://{parts.netloc}"
        self.url = f"http://127.0.0.1:{self.server_port}{parts.path}"
        self.exchanged: list[Exchanged] = []

    @property
    def replies(self) -> list[Exchanged]:
        """The exchanges in which the model has replied."""
        return [exchange for exchange in self.exchanged if exchange.status == 200]


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Relay

    def do_GET(self) -> None:
        self._hand_on(None)

    def do_POST(self) -> None:
        self._hand_on(self.rfile.read(int(self.headers.get("content-length", 0))))

    def log_message(self, format: str, *args: object) -> None:
        pass

    def _hand_on(self, body: bytes | None) -> None:
        kept = {"content-type": "application/json"}
        request = urllib.request.Request(self.server.origin + self.path, body, kept)
        try:
            with urllib.request.urlopen(request, timeout=LONGEST) as answer:
                status, said = answer.status, answer.read()
        except urllib.error.HTTPError as refused:
            with refused:
                status, said = refused.code, refused.read()
        if body is not None:
            asked = json.loads(body)
            self.server.exchanged.append(Exchanged(asked, status, json.loads(said or b"null")))
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)


@contextmanager
def relaying(upstream: str) -> Iterator[Relay]:
    """Relay to a server, given by its base URL, from a thread of its own."""
    with Relay(upstream) as relay:
        thread = threading.Thread(target=relay.serve_forever, daemon=True)
        thread.start()
        try:
            yield relay
        finally:
            relay.shutdown()
            thread.join()
