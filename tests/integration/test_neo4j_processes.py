"""The command on a real Neo4j: several processes at once, and two stores of one text."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from contract.suite.samples import contents
from servers.neo4j_server import Server

from qrmem.config import Settings
from qrmem.graphstore import GraphStore, open_store

pytestmark = pytest.mark.neo4j

SAMPLE = Path(__file__).parents[2] / "qrmem" / "sample" / "harbour.md"
NS = "harbour"


@pytest.fixture
def chapters(tmp_path: Path) -> list[str]:
    """Return the names of eight files, each a chapter of the sample."""
    parts = SAMPLE.read_text(encoding="utf-8").split("\n## ")[1:9]
    for n, part in enumerate(parts):
        (tmp_path / f"chapter{n}.md").write_text(part, encoding="utf-8")
    return [f"chapter{n}.md" for n in range(len(parts))]


def _add(server: Server, folder: Path, *files: str, ns: str = NS) -> "subprocess.Popen[str]":
    return _command(
        folder,
        *files,
        NEO4J_URI=server.uri,
        NEO4J_USERNAME=server.user,
        NEO4J_PASSWORD=server.password,
        QRMEM_NAMESPACE=ns,
    )


def _command(folder: Path, *files: str, **variables: str) -> "subprocess.Popen[str]":
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return subprocess.Popen(
        [sys.executable, "-m", "qrmem", "add", "--embedder", "none", "--quiet", *files],
        cwd=folder,
        env=kept | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _finish(*processes: "subprocess.Popen[str]") -> None:
    """Wait until all have ended well."""
    for process, (out, errors) in zip(processes, _ended(*processes), strict=True):
        assert process.returncode == 0, out + errors


def _ended(*processes: "subprocess.Popen[str]", timeout: float = 200) -> list[tuple[str, str]]:
    """Wait for all, and return what they wrote; none outlives the test."""
    try:
        return [process.communicate(timeout=timeout) for process in processes]
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
                process.communicate()


async def _held(store: GraphStore, ns: str = NS) -> dict[str, object]:
    found = await contents(store, ns)
    await store.close()
    return found


async def test_processes_that_add_at_once_leave_what_one_would(
    neo4j: Server, tmp_path: Path, chapters: list[str]
) -> None:
    neo4j.clear()
    _finish(
        _add(neo4j, tmp_path, *chapters[:5]),
        _add(neo4j, tmp_path, *chapters[3:]),
    )
    _finish(_add(neo4j, tmp_path, *chapters, ns="alone"))
    store = await open_store(neo4j.uri, neo4j.settings)
    together = await contents(store, NS)
    alone = await _held(store, "alone")
    for part in alone:
        assert together[part] == alone[part], part


async def test_a_text_in_neo4j_is_what_it_is_in_a_file(
    neo4j: Server, tmp_path: Path, chapters: list[str]
) -> None:
    neo4j.clear()
    _finish(_add(neo4j, tmp_path, *chapters))
    _finish(_command(tmp_path, *chapters, QRMEM_MEMORY="file.db", QRMEM_NAMESPACE=NS))
    in_neo4j = await _held(await open_store(neo4j.uri, neo4j.settings))
    in_file = await _held(await open_store(str(tmp_path / "file.db"), Settings()))
    for part in in_file:
        assert in_neo4j[part] == in_file[part], part


async def test_a_wrong_password_ends_the_command_with_three(neo4j: Server, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Ann met Bob.", encoding="utf-8")
    refused = Server(neo4j.uri, "no-such-password")
    process = _add(refused, tmp_path, "a.txt")
    ((out, errors),) = _ended(process, timeout=60)
    assert process.returncode == 3
    assert out == ""
    assert len(errors.strip().splitlines()) == 1
    assert "no-such-password" not in errors


async def test_a_closed_port_ends_the_command_with_four(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Ann met Bob.", encoding="utf-8")
    process = _add(Server("bolt://127.0.0.1:9", "x"), tmp_path, "a.txt")
    ((_, errors),) = _ended(process, timeout=60)
    assert process.returncode == 4
    assert len(errors.strip().splitlines()) == 1
