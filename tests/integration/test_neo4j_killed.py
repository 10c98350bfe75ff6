"""The server is killed in the middle of `qrmem add`: nothing is doubled, nothing is missing."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from contract.suite.samples import contents
from servers import neo4j_server
from servers.neo4j_server import Server

from qrmem.config import Settings
from qrmem.graphstore import GraphStore, open_store

pytestmark = pytest.mark.neo4j

SAMPLE = Path(__file__).parents[2] / "qrmem" / "sample" / "harbour.md"
COPIES = 4
BEGUN = "MATCH (s:Segment {ns: $ns}) RETURN count(s)"
MERGING = (
    "MATCH (s:Segment {ns: $ns}) WITH count(s) AS n, count({ok: s.state = 'ok' OR NULL}.ok) AS ok "
    "RETURN CASE WHEN n > 0 AND n = ok THEN 1 ELSE 0 END"
)
"""1 once everything is read: what follows is the merge."""


@pytest.fixture(scope="module")
def books(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of books that tell alike stories of different people."""
    folder = tmp_path_factory.mktemp("books")
    text = SAMPLE.read_text(encoding="utf-8")
    for n in range(COPIES):
        changed = text.replace("Sayle", f"Sayle{n}").replace("Garrick", ("Garrick", "Gorse")[n % 2])
        (folder / f"book{n}.md").write_text(changed, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Yield a server that these tests may kill; started again, it has the same address."""
    if "local server" not in neo4j_server.choice():
        pytest.skip("the server is not ours to kill: it was not started by the local starter")
    state = tmp_path_factory.mktemp("server")
    try:
        yield neo4j_server.start(state)
    finally:
        neo4j_server.stop(state)


def _started(server: Server) -> Server:
    assert server.state is not None
    again = neo4j_server.start(server.state)
    assert (again.uri, again.password) == (server.uri, server.password)
    return again


@contextmanager
def _add(
    books: Path, memory: str, server: Server | None = None, *, ns: str = "n", patience: int = 30
) -> Iterator["subprocess.Popen[str]"]:
    """Run `qrmem add`; it does not outlive the block, however the block ends."""
    environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    if server is not None:
        environment |= {"NEO4J_USERNAME": server.user, "NEO4J_PASSWORD": server.password}
        environment["QRMEM_NEO4J_PATIENCE"] = str(patience)
    options = ["--memory", memory, "--namespace", ns, "--embedder", "none", "--quiet"]
    with subprocess.Popen(
        [sys.executable, "-m", "qrmem", "add", str(books), *options],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as adding:
        try:
            yield adding
        finally:
            adding.kill()


def _kill(server: Server, adding: "subprocess.Popen[str]", once: str, ns: str) -> None:
    """Kill the server once it holds what a query counts."""
    while server.query(once, ns=ns) == [[0]]:
        assert adding.poll() is None, adding.communicate()
        time.sleep(0.05)
    assert adding.poll() is None
    os.kill(server.pid, signal.SIGKILL)


def _finish(adding: "subprocess.Popen[str]", *codes: int) -> int:
    _, errors = adding.communicate(timeout=200)
    assert adding.returncode in codes, errors
    assert all(line.startswith("qrmem: ") for line in errors.splitlines()), errors
    return adding.returncode


async def _held(store: GraphStore, ns: str) -> dict[str, object]:
    found = await contents(store, ns)
    await store.close()
    return found


@pytest.fixture(scope="module")
def undisturbed(books: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """Return what a run leaves that nothing happens to."""
    file = str(tmp_path_factory.mktemp("undisturbed") / "file.db")
    with _add(books, file) as adding:
        _finish(adding, 0)

    async def held() -> dict[str, object]:
        return await _held(await open_store(file, Settings()), "n")

    return asyncio.run(held())


async def test_the_command_gives_up_in_the_end_and_the_next_one_completes(
    own: Server, books: Path, undisturbed: dict[str, object]
) -> None:
    server = _started(own)
    with _add(books, own.uri, own, ns="up", patience=3) as adding:
        _kill(server, adding, BEGUN, "up")  # in the middle of reading
        _finish(adding, 4)
    server = _started(own)
    with _add(books, own.uri, own, ns="up") as adding:
        _finish(adding, 0)
    found = await _held(await open_store(server.uri, server.settings), "up")
    for part in undisturbed:
        assert found[part] == undisturbed[part], part


async def test_the_command_continues_when_the_server_is_back_in_time(
    own: Server, books: Path, undisturbed: dict[str, object]
) -> None:
    server = _started(own)
    with _add(books, own.uri, own, ns="on", patience=120) as adding:
        _kill(server, adding, MERGING, "on")
        server = _started(own)
        code = _finish(adding, 0, 4)
    if code:  # 4: it died between a commit and its word for it
        with _add(books, own.uri, own, ns="on") as adding:
            _finish(adding, 0)
    found = await _held(await open_store(server.uri, server.settings), "on")
    for part in undisturbed:
        assert found[part] == undisturbed[part], part
