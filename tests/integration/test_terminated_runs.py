"""Runs that are terminated leave no server behind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from servers import neo4j_server

REPOSITORY = Path(__file__).parents[2]
WAITING = """
import time
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def server(request):
    started = Path(__file__).with_name("started")
    started.touch()
    yield
    started.unlink()


def test_that_takes_long(server):
    Path(__file__).with_name("running").touch()
    time.sleep(60)
"""


def _until_there(path: Path, process: "subprocess.Popen[str]") -> None:
    while not path.exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)


def test_tests_that_are_terminated_end_what_their_fixtures_started(tmp_path: Path) -> None:
    file = tmp_path / "test_waiting.py"
    file.write_text(WAITING, encoding="utf-8")
    options = ["-c", str(REPOSITORY / "pyproject.toml"), "-p", "conftest"]
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", "-q", *options, str(file)],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    started = tmp_path / "started"
    _until_there(tmp_path / "running", process)
    process.terminate()
    output, _ = process.communicate(timeout=60)
    assert process.returncode == pytest.ExitCode.INTERRUPTED, output
    assert not started.exists()


@pytest.mark.neo4j
def test_a_start_that_is_terminated_leaves_no_server(tmp_path: Path) -> None:
    if "local server" not in neo4j_server.choice():
        pytest.skip("the server is not ours to kill: it was not started by the local starter")
    process = subprocess.Popen(
        [sys.executable, str(neo4j_server.STARTER), "start", "--state", str(tmp_path)],
        env=os.environ | {"JAVA_TOOL_OPTIONS": neo4j_server.SHORT_LIVED},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    _until_there(tmp_path / "server.json", process)
    process.terminate()
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM, errors
    assert not _processes_that_speak_of(tmp_path)


def _processes_that_speak_of(folder: Path) -> list[str]:
    found = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True)
    return [line for line in found.stdout.splitlines() if f"--home-dir={folder}" in line]
