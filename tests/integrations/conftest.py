"""A command that serves, started on a free port of loopback and ended by its process id."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from qrmem import sync

Served = Callable[..., AbstractContextManager[str]]
WAIT = 60


@pytest.fixture
def served(tmp_path: Path) -> Served:
    @contextmanager
    def serve(*words: str, text: str = "", **environment: str) -> Iterator[str]:
        at = str(tmp_path / "served.db")
        if text:
            with sync.open(at, embedder="none") as memory:
                memory.add({"id": "note", "text": text})
        command = [sys.executable, "-m", "qrmem", *words, "--memory", at]
        with listening(command, {**os.environ, **environment}) as url:
            yield url

    return serve


@contextmanager
def listening(command: Sequence[str], environment: Mapping[str, str]) -> Iterator[str]:
    """Start a command that takes `--port`; the value is its address."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = subprocess.Popen([*command, "--port", str(port)], env=environment, text=True)
    try:
        wait(process, port)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(WAIT)


def wait(process: subprocess.Popen[Any], port: int) -> None:
    latest = time.monotonic() + WAIT
    while time.monotonic() < latest and process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError("the server did not start")
