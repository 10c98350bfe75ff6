"""The starter of a local Neo4j finds the last address again, also right after a kill."""

import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import servers.maven
from servers import neo4j_server

HOLDER = """
import socket, sys, time
with socket.create_server(("127.0.0.1", 0)) as held:
    print(held.getsockname()[1], flush=True)
    sys.stdin.readline()
    time.sleep(0.5)
"""


@pytest.fixture
def starter(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("neo4j_local", neo4j_server.STARTER)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "neo4j_local", module)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def holder() -> Iterator["subprocess.Popen[str]"]:
    """Yield a process that uses a port until half a second after a signal to end."""
    command = [sys.executable, "-c", HOLDER]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        yield process
        process.kill()


def _held(holder: "subprocess.Popen[str]") -> int:
    assert holder.stdout is not None
    return int(holder.stdout.readline())


def test_the_last_port_is_waited_for_while_something_that_ends_holds_it(
    starter: ModuleType, holder: "subprocess.Popen[str]"
) -> None:
    port = _held(holder)
    assert holder.stdin is not None
    holder.stdin.write("end\n")
    holder.stdin.flush()
    assert starter._port(0, port) == port


def test_the_first_of_two_concurrent_downloads_of_the_jars_stays(
    starter: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def slow(maven: str, into: Path) -> None:
        (into / "slow.jar").touch()
        monkeypatch.setattr(starter, "_fetch", quick)
        starter._jars(tmp_path)  # another one comes, and is ready sooner
        assert (into / "slow.jar").exists()

    def quick(maven: str, into: Path) -> None:
        (into / "quick.jar").touch()

    monkeypatch.setattr(starter, "_fetch", slow)
    monkeypatch.setattr(starter.shutil, "which", lambda name: name)
    found = starter._jars(tmp_path)
    assert [path.name for path in found.iterdir()] == ["quick.jar"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["complete", "lib"]


def test_a_relative_folder_is_that_of_the_caller(
    starter: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    found = starter._parser().parse_args(["start", "--state", "here", "--cache", "../jars"])
    assert (found.state, found.cache) == (tmp_path / "here", tmp_path.parent / "jars")


def test_another_port_of_a_server_that_runs_is_refused(
    starter: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(starter, "_running", lambda state: starter.Server(1, 7687, 7474, "x"))
    words = ["start", "--state", str(tmp_path)]
    assert starter.main(words) == starter.main([*words, "--bolt-port", "7687"]) == 0
    assert starter.main([*words, "--http-port", "7475"]) == 1
    assert "it runs already, on the ports 7687 (Bolt)" in capsys.readouterr().err


@pytest.mark.neo4j
def test_the_first_password_is_in_no_command(starter: ModuleType, tmp_path: Path) -> None:
    try:
        jars = starter._jars(starter._folder("XDG_CACHE_HOME", ".cache", starter.VERSION))
        real = starter._java()
    except starter.Failed as exc:
        pytest.skip(str(exc))
    java, words = tmp_path / "java", tmp_path / "words"
    java.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {words}\nexec {real} "$@"\n')
    java.chmod(0o700)
    home = tmp_path / "a home"
    for folder in ("conf", "data"):
        (home / folder).mkdir(parents=True)
    password = starter._set_password(str(java), jars, home)
    assert words.read_text().startswith("@")
    assert password not in words.read_text()
    assert "neo4j:" in (home / "data" / "dbms" / "auth.ini").read_text()


def test_what_maven_fetches_has_the_checksum_that_the_repository_says(
    starter: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    maven, words = tmp_path / "mvn", tmp_path / "words"
    maven.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >> {words}\n')
    maven.chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    starter._jars(tmp_path / "jars")
    servers.maven.jars("name", tmp_path / "pom.xml")
    assert words.read_text().splitlines().count("-C") == 2
