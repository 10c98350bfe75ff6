"""Ctrl-C in the middle of a run: what is done is kept, and the same command goes on."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from servers.openai_server import Behaviour, OpenAIServer, in_thread

from qrmem.eval.rundir import RunFolder

HOTPOT = str(Path(__file__).parent / "data" / "hotpot.json")
SYSTEMS = "closed-book,keep-left,bm25,reflection"


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with in_thread(OpenAIServer(behaviour=Behaviour(latency=0.1))) as running:
        yield running


def start(server: OpenAIServer, out: Path) -> "subprocess.Popen[str]":
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("QRMEM_", "OPENAI_"))}
    words = ["eval", "run", "hotpotqa", "--data", HOTPOT, "--embedder", "none"]
    model = ["--model", "test", "--base-url", server.url, "--concurrency", "1"]
    return subprocess.Popen(
        [sys.executable, "-m", "qrmem", *words, *model, "--system", SYSTEMS, "--out", str(out)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=kept,
    )


def results(out: Path) -> dict[tuple[str, str], tuple[str, str]]:
    return {key: (row.short, row.error) for key, row in RunFolder(out).rows().items()}


def test_an_interrupted_run_goes_on_for_what_is_missing(
    server: OpenAIServer, tmp_path: Path
) -> None:
    whole = start(server, tmp_path / "whole")
    assert whole.communicate(timeout=120)[0]
    assert whole.returncode == 0
    paid = server.stats.requests
    running = start(server, tmp_path / "r")
    while len(results(tmp_path / "r")) < 5:
        assert running.poll() is None
        time.sleep(0.05)
    running.send_signal(signal.SIGINT)
    told = running.communicate(timeout=60)[1]
    assert running.returncode == 130
    assert "run the same command again to go on" in told
    before = results(tmp_path / "r")
    assert 5 <= len(before) < 12
    again = start(server, tmp_path / "r")
    told = again.communicate(timeout=120)[1]
    assert again.returncode == 0, told
    assert f"{len(before)} were there" in told
    assert results(tmp_path / "r") == results(tmp_path / "whole")
    assert server.stats.requests - 2 * paid <= 2, "only what was in flight may be paid twice"
