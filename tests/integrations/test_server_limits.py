"""Limits of our servers for each client: connections, time, bytes; other clients do not wait."""

import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest
from integrations.conftest import Served, wait
from servers.openai_server import Behaviour, OpenAIServer, in_thread

from qrmem import sync
from qrmem.errors import UsageError
from qrmem.text.words import CUT
from qrmem.web.guard import check_host

TEXT = "Ada Lovelace met Charles Babbage in London in 1833."
HURRIED = """
import resource, sys
import qrmem.web.guard as guard
from qrmem.cli import main
guard.HEAD_SECONDS, guard.BODY_SECONDS = 0.5, 1.0
resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))
sys.exit(main(sys.argv[1:]))
"""
"""The command with less time for a request, and few files that it may open."""


@pytest.fixture
def hurried(tmp_path: Path) -> Iterator[tuple[int, Path]]:
    """A server's port and its log."""
    at, log = str(tmp_path / "m.db"), tmp_path / "log"
    with sync.open(at, embedder="none") as memory:
        memory.add({"id": "note", "text": TEXT, "title": "x" * 60})
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-c", HURRIED, "serve", "--memory", at, "--port", str(port)]
    with log.open("wb") as out, subprocess.Popen(command, stdout=out, stderr=out) as process:
        try:
            wait(process, port)
            yield port, log
        finally:
            process.terminate()
            process.wait(60)


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=60)


def closed(connection: socket.socket) -> bytes:
    """Return what a connection still says before the server closes it."""
    said = b""
    try:
        while piece := connection.recv(65536):
            said += piece
    except ConnectionError:
        pass
    return said


def written(connection: socket.socket, pieces: list[bytes], pause: float = 0.0) -> int:
    """Return how many pieces can be sent before the connection takes no more."""
    for n, piece in enumerate(pieces):
        try:
            connection.sendall(piece)
        except OSError:
            return n
        time.sleep(pause)
    return len(pieces)


def status(port: int) -> int:
    return httpx.get(f"http://127.0.0.1:{port}/status", timeout=60).status_code


HEAD = b"POST /search HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
BEGUN = {
    "nothing": b"",
    "half a head": HEAD,
    "half a body": HEAD + b'content-length: 100\r\n\r\n{"query": ',
    "half of a second request": b"GET /status HTTP/1.1\r\nhost: localhost\r\n\r\n" + HEAD,
}


@pytest.mark.parametrize("begun", BEGUN.values(), ids=BEGUN)
def test_a_connection_that_does_not_send_its_request_is_closed(
    hurried: tuple[int, Path], begun: bytes
) -> None:
    port, _ = hurried
    with connected(port) as idle:
        idle.sendall(begun)
        closed(idle)
    assert status(port) == 200


def test_a_request_that_comes_byte_by_byte_is_given_up(hurried: tuple[int, Path]) -> None:
    port, _ = hurried
    with connected(port) as slow:
        sent = written(slow, [bytes([byte]) for byte in HEAD * 100], pause=0.02)
    assert sent < len(HEAD) * 100
    assert status(port) == 200


def test_connections_that_wait_stop_nobody_and_fill_no_log(hurried: tuple[int, Path]) -> None:
    port, log = hurried
    with ExitStack() as open_ones:
        for n in range(300):
            idle = open_ones.enter_context(connected(port))
            idle.sendall((b"", HEAD)[n % 2])
            if n % 50 == 0:
                assert status(port) == 200
        assert status(port) == 200
    assert status(port) == 200
    lines = log.read_text().splitlines()
    assert [line for line in lines if "more than 32 connections" in line] == lines[1:]
    assert len(lines) == 2


def test_a_reply_that_nobody_reads_is_given_up(hurried: tuple[int, Path]) -> None:
    port, _ = hurried
    with connected(port) as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.settimeout(1)  # the server reads no further while nobody reads its replies
        asked = b"GET /openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n"
        written(deaf, [asked] * 5000)
        time.sleep(3)
        assert written(deaf, [asked] * 100, pause=0.05) < 100
    assert status(port) == 200


def test_a_long_question_is_cut_and_holds_nobody_up(served: Served) -> None:
    question = " ".join(f"Name{n} lamp" for n in range(60_000))
    with served("serve", text=TEXT) as url, ThreadPoolExecutor(9) as at_once:

        def search() -> httpx.Response:
            asked = {"query": f"Babbage {question}"}
            return httpx.post(f"{url}/search", json=asked, timeout=60)

        searches = [at_once.submit(search) for _ in range(8)]
        answered = 0
        while not all(one.done() for one in searches) and answered < 1000:
            assert httpx.get(f"{url}/status", timeout=60).status_code == 200
            answered += 1
        for one in searches:
            found = one.result()
            assert found.json()[0]["text"] == TEXT
            assert found.headers["x-warning"] == CUT
        assert answered > 1
        short = httpx.post(f"{url}/search", json={"query": "Babbage"}, timeout=60)
        assert "x-warning" not in short.headers


def test_only_a_document_has_a_body_of_more_than_a_megabyte(served: Served) -> None:
    long = json.dumps({"text": "x" * 2_000_000, "query": "x"}).encode()
    says = {"content-type": "application/json"}
    with served("serve", "--write", text=TEXT) as url:
        refused = httpx.post(f"{url}/search", content=long, headers=says, timeout=60)
        assert (refused.status_code, "1,048,576 bytes" in refused.text) == (413, True)
        taken = httpx.post(f"{url}/documents", content=long, headers=says, timeout=60)
        assert taken.status_code == 422  # there is no argument query
    with served("serve", text=TEXT) as url:
        assert httpx.post(f"{url}/documents", content=long, timeout=60).status_code == 413


def test_a_page_of_another_site_cannot_tell_what_is_there(served: Served) -> None:
    with served("serve", text=TEXT) as url:
        for path in ("/documents/note", "/documents/other", "/docs", "/status"):
            for site in ("cross-site", "same-site"):
                found = httpx.get(f"{url}{path}", headers={"sec-fetch-site": site}, timeout=60)
                assert found.status_code == 403
        for site in ("same-origin", "none"):
            said = {"sec-fetch-site": site}
            assert httpx.get(f"{url}/status", headers=said, timeout=60).status_code == 200


@pytest.mark.parametrize("token", ["pässword", "two words", "tab\there", "\N{SNOWMAN}"])
def test_a_token_that_no_client_can_send_is_refused(token: str) -> None:
    with pytest.raises(UsageError, match="QRMEM_TOKEN holds characters"):
        check_host("127.0.0.1", token)


@contextmanager
def measured(process: int) -> Iterator[list[int]]:
    """Take the resident memory of a process, in kB, before and after."""

    def resident() -> int:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
        return int(next(line.split()[1] for line in lines if line.startswith("VmRSS")))

    found = [resident()]
    yield found
    found.append(resident())


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's /proc")
def test_a_client_of_mcp_that_says_hello_again_and_again_leaves_nothing(tmp_path: Path) -> None:
    at = str(tmp_path / "m.db")
    with sync.open(at, embedder="none") as memory:
        memory.add({"id": "note", "text": TEXT})
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "qrmem", "mcp", "--http", "--memory", at]
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    }
    says = {"accept": "application/json, text/event-stream"}
    with subprocess.Popen([*command, "--port", str(port)], env=os.environ) as process:
        try:
            wait(process, port)
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:

                def greet(times: int) -> None:
                    for _ in range(times):
                        answer = client.post("/mcp", json=hello, headers=says)
                        assert answer.status_code == 200
                        assert "mcp-session-id" not in answer.headers

                greet(100)
                with measured(process.pid) as kilobytes:
                    greet(300)
        finally:
            process.terminate()
            process.wait(60)
    assert kilobytes[1] - kilobytes[0] < 300 * 10


@pytest.mark.parametrize("stream", [False, True])
def test_a_question_whose_client_has_gone_asks_no_more(stream: bool, served: Served) -> None:
    asked = json.dumps({"question": "Who met Ada?", "stream": stream}).encode()
    head = HEAD.replace(b"/search", b"/ask") + b"content-length: %d\r\n\r\n" % len(asked)
    with in_thread(OpenAIServer(behaviour=Behaviour(latency=600.0))) as model:
        words = ("serve", "--model", "test", "--base-url", model.url)
        with served(*words, text=TEXT, QRMEM_TIMEOUT="600") as url:
            with connected(int(url.rpartition(":")[2])) as client:
                client.sendall(head + asked)
                while not model.stats.requests:
                    time.sleep(0.05)
            running = 2.0
            until = time.monotonic() + 60
            while running > 1 and time.monotonic() < until:  # this request is one
                told = httpx.get(f"{url}/metrics", timeout=60).text
                (running,) = map(float, re.findall(r"(?m)^qrmem_requests_running (\S+)$", told))
    assert running == 1
