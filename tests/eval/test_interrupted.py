"""A run that is stopped or killed, or on a full disk: results are kept and it can continue."""

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from servers.faults import Faults
from servers.openai_server import OpenAIServer, in_thread

from qrmem.eval import read_results

HOTPOT = str(Path(__file__).parent / "data" / "hotpot.json")
SYSTEMS = "closed-book,keep-left,bm25,reflection"


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with in_thread(OpenAIServer()) as running:
        yield running


def run_whole(server: OpenAIServer, out: Path) -> int:
    """Let a run end; return how many requests it takes, and let later ones hang on their way."""
    whole = start(server, out)
    assert whole.communicate(timeout=120)[0]
    assert whole.returncode == 0
    paid = server.stats.requests
    server.faults = Faults(always="hang", since=paid + paid * 3 // 4)
    return paid


def wait_for_hanging(server: OpenAIServer, running: "subprocess.Popen[str]") -> None:
    """Wait until a run waits for an answer that does not come; later ones come again."""
    while not server.stats.faults["hang"]:
        assert running.poll() is None
        time.sleep(0.05)
    server.faults = Faults()


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
    return {key: (row.short, row.error) for key, row in read_results(out).rows.items()}


def finish(server: OpenAIServer, folder: Path, paid: int) -> None:
    """Run the command again: only what is missing is asked for, and the results are the same."""
    before = results(folder / "r")
    assert 5 <= len(before) < 12
    again = start(server, folder / "r")
    printed = again.communicate(timeout=120)[1]
    assert again.returncode == 0, printed
    assert f"{len(before)} were there" in printed
    assert results(folder / "r") == results(folder / "whole")
    assert server.stats.requests - 2 * paid <= 2, "only what was in flight may be paid twice"


def test_an_interrupted_run_continues_with_what_is_missing(
    server: OpenAIServer, tmp_path: Path
) -> None:
    paid = run_whole(server, tmp_path / "whole")
    running = start(server, tmp_path / "r")
    wait_for_hanging(server, running)
    running.send_signal(signal.SIGINT)
    told = running.communicate(timeout=60)[1]
    assert running.returncode == 130
    assert "run the same command again to continue" in told
    finish(server, tmp_path, paid)


def test_a_killed_run_continues_with_what_is_missing(server: OpenAIServer, tmp_path: Path) -> None:
    paid = run_whole(server, tmp_path / "whole")
    running = start(server, tmp_path / "r")
    wait_for_hanging(server, running)
    running.kill()
    running.communicate(timeout=60)
    finish(server, tmp_path, paid)


def run_with_room(out: Path, limit: int) -> "subprocess.CompletedProcess[str]":
    """Run without a model where no file may be longer than so many bytes."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("QRMEM_", "OPENAI_"))}
    words = ["eval", "run", "hotpotqa", "--data", HOTPOT, "--embedder", "none", "--quiet"]
    systems = ["--system", "closed-book,keep-left,keep-right,keep-ends"]
    return subprocess.run(
        [sys.executable, "-m", "qrmem", *words, *systems, "--out", str(out)],
        capture_output=True,
        text=True,
        env=kept,
        timeout=120,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )


def test_a_run_that_has_no_room_says_so_and_continues_when_it_has(tmp_path: Path) -> None:
    short = run_with_room(tmp_path / "r", 3000)
    assert short.returncode == 4
    assert "rows.jsonl cannot be written" in short.stderr
    assert "free some space, then run the same command again" in short.stderr
    before = results(tmp_path / "r")
    assert 0 < len(before) < 12
    assert run_with_room(tmp_path / "r", 1_000_000).returncode == 0
    assert len(results(tmp_path / "r")) == 12
    assert before.items() <= results(tmp_path / "r").items()


def test_a_report_that_has_no_room_loses_no_result(tmp_path: Path) -> None:
    # The rows take more than the report's files do, but for the picture.
    short = run_with_room(tmp_path / "r", 12_000)
    assert short.returncode == 4
    assert "report cannot be written" in short.stderr
    assert len(results(tmp_path / "r")) == 12
    assert run_with_room(tmp_path / "r", 1_000_000).returncode == 0
    assert (tmp_path / "r" / "report" / "report.md").exists()
