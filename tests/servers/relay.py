"""A relay before a real server: it passes everything on, and records it as a witness."""

import hashlib
import http.server
import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
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
        fetched: those that the other server was asked for.
    """

    daemon_threads = True

    def __init__(self, upstream: str, kept: Path | None = None) -> None:
        """Relay to a server.

        Args:
            kept: a folder of replies; what was asked before, word for word, is answered out of it.
        """
        super().__init__(("127.0.0.1", 0), _Handler)
        self._kept = kept
        self.fetched = 0
        parts = urlsplit(upstream)
        self.origin = f"{parts.scheme}://{parts.netloc}"
        self.url = f"http://127.0.0.1:{self.server_port}{parts.path}"
        self.exchanged: list[Exchanged] = []

    @property
    def replies(self) -> list[Exchanged]:
        """The exchanges in which the model has replied."""
        return [exchange for exchange in self.exchanged if exchange.status == 200]

    def known(self, body: bytes) -> bytes | None:
        """Return the reply to a request that was asked before."""
        path = self._path(body)
        return path.read_bytes() if path and path.exists() else None

    def keep(self, body: bytes, said: bytes) -> None:
        """Record the reply to a request, if the relay records replies."""
        path = self._path(body)
        if path:
            path.parent.mkdir(parents=True, exist_ok=True)
            new = path.with_suffix(".new")
            new.write_bytes(said)
            new.replace(path)

    def _path(self, body: bytes) -> Path | None:
        return self._kept and self._kept / f"{hashlib.sha256(body).hexdigest()}.json"


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
        known = self.server.known(body) if body is not None else None
        status, said = (200, known) if known is not None else self._fetched(body)
        if body is not None:
            asked = json.loads(body)
            self.server.exchanged.append(Exchanged(asked, status, json.loads(said or b"null")))
            if known is None:
                self.server.fetched += 1
                if status == 200:
                    self.server.keep(body, said)
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def _fetched(self, body: bytes | None) -> tuple[int, bytes]:
        kept = {"content-type": "application/json"}
        request = urllib.request.Request(self.server.origin + self.path, body, kept)
        try:
            with urllib.request.urlopen(request, timeout=LONGEST) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as refused:
            with refused:
                return refused.code, refused.read()


@contextmanager
def relaying(upstream: str, kept: Path | None = None) -> Iterator[Relay]:
    """Relay to a server, given by its base URL, from a thread of its own; see `Relay`."""
    with Relay(upstream, kept) as relay:
        thread = threading.Thread(target=relay.serve_forever, daemon=True)
        thread.start()
        try:
            yield relay
        finally:
            relay.shutdown()
            thread.join()
