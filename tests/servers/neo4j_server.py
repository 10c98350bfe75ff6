"""Real Neo4j servers for the tests, and which one it is: given, in a container, or started here."""

import http.client
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neo4j import Driver, GraphDatabase, NotificationMinimumSeverity

from qrmem.config import Secret, Settings
from servers.maven import Unavailable, jars

HERE = Path(__file__).parent
STARTER = HERE.parents[1] / "docker" / "neo4j-local" / "neo4j_local.py"
IMAGE = "neo4j:5.26-community"
HARNESS = HERE / "neo4j_2025"
HARNESS_VERSION = "2025.10.1"
LEAST_JAVA = 21
SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m"
"""For Java: a server of a few minutes is started and used up before thorough compiling pays.

With this option alone Java keeps only 48 MB of compiled code; the tests fill them, and code is
thrown away and compiled again."""


@dataclass(frozen=True)
class Server:
    """A server that answers and may be emptied."""

    uri: str
    password: str = ""
    user: str = "neo4j"
    browser: str = ""
    pid: int = 0
    state: Path | None = None

    @property
    def settings(self) -> Settings:
        """What `open_store` takes."""
        return Settings(memory=self.uri, neo4j_user=self.user, neo4j_password=Secret(self.password))

    def query(self, text: str, **values: object) -> list[list[object]]:
        """Run one statement beside the store."""
        with self._driver() as driver:
            records, _, _ = driver.execute_query(text, values)
            return [list(record) for record in records]

    def plan(self, text: str) -> dict[str, Any]:
        """Return how the server would run a statement."""
        with self._driver() as driver:
            _, summary, _ = driver.execute_query(f"EXPLAIN {text}")
            assert summary.plan is not None
            return summary.plan

    def _driver(self) -> Driver:
        auth = (self.user, self.password) if self.password else None
        quiet = NotificationMinimumSeverity.OFF
        return GraphDatabase.driver(self.uri, auth=auth, notifications_min_severity=quiet)

    def clear(self) -> None:
        """Remove everything but the schema."""
        text = (
            "MATCH (n) WHERE NOT n:QrmemSchema"
            " CALL (n) { DETACH DELETE n } IN TRANSACTIONS OF 2000 ROWS"
        )
        with self._driver() as driver, driver.session() as session:
            session.run(text).consume()


def choice() -> str:
    """Say in words which server the tests use."""
    if os.environ.get("NEO4J_URI"):
        return f"the server at NEO4J_URI ({os.environ['NEO4J_URI']})"
    if docker_answers():
        return f"a container of {IMAGE} (a Docker engine answers)"
    if shutil.which("java") and shutil.which("mvn"):
        return "a local server from Maven artifacts (no Docker engine answers)"
    return "none (no NEO4J_URI, no Docker engine, no Java and Maven)"


@contextmanager
def chosen() -> Iterator[Server]:
    """Yield the server that `choice` speaks of; stop it afterwards if it was started here.

    Raises:
        Unavailable: there is none.
    """
    if os.environ.get("NEO4J_URI"):
        server = _given()
        yield server
        server.clear()
        return
    with container() if docker_answers() else local() as server:
        yield server


def _given() -> Server:
    server = Server(
        os.environ["NEO4J_URI"],
        os.environ.get("NEO4J_PASSWORD", ""),
        os.environ.get("NEO4J_USERNAME", "neo4j"),
    )
    if server.query("MATCH (n) WHERE NOT n:QrmemSchema RETURN 1 LIMIT 1"):
        raise Unavailable("NEO4J_URI is not empty, and the tests would empty it")
    return server


def docker_answers() -> bool:
    """Say whether a Docker engine answers."""
    host = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")
    if not host.startswith("unix://"):
        return True
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(2)
            connection.connect(host.removeprefix("unix://"))
            connection.sendall(b"GET /_ping HTTP/1.0\r\n\r\n")
            reply = http.client.HTTPResponse(connection)
            reply.begin()
            return reply.status == 200
    except (OSError, http.client.HTTPException):
        return False


@contextmanager
def container() -> Iterator[Server]:
    """Yield a server in a container."""
    from testcontainers.neo4j import Neo4jContainer

    with Neo4jContainer(IMAGE) as found:
        yield Server(found.get_connection_url(), found.password, found.username)


@contextmanager
def local() -> Iterator[Server]:
    """Yield a server that the repository's own starter runs."""
    with tempfile.TemporaryDirectory() as folder:
        state = Path(folder)
        try:
            yield start(state)
        finally:
            stop(state)


def start(state: Path) -> Server:
    """Start the local server of a state folder, or find it running."""
    done = _starter("start", state, "--json")
    if done.returncode:
        raise Unavailable(done.stderr.strip())
    found = json.loads(done.stdout)
    return Server(
        found["uri"], found["password"], browser=found["browser"], pid=found["pid"], state=state
    )


def stop(state: Path) -> None:
    """Stop the local server of a state folder, if it runs."""
    _starter("stop", state)


def _starter(command: str, state: Path, *options: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, str(STARTER), command, "--state", str(state), *options],
        env=os.environ | {"JAVA_TOOL_OPTIONS": SHORT_LIVED},
        capture_output=True,
        text=True,
        check=False,
    )


# --- 2025 ----------------------------------------------------------------------------------------


@contextmanager
def harness() -> Iterator[Server]:
    """Yield a Neo4j 2025 server of the test harness.

    Raises:
        Unavailable: no Java of 21 or later, or no Maven, is here.
    """
    java, lib = _java(), jars(f"neo4j-{HARNESS_VERSION}", HARNESS / "pom.xml")
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        opens = [f"--add-opens=java.base/{p}=ALL-UNNAMED" for p in ("java.nio", "sun.nio.ch")]
        source = str(HARNESS / "Harness.java")
        process = stack.enter_context(
            subprocess.Popen(
                [java, "-Xmx512m", *SHORT_LIVED.split(), *opens, "-cp", f"{lib}/*", source, folder],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        )
        assert process.stdin is not None
        stack.callback(process.wait)
        stack.callback(process.stdin.close)
        yield Server(_address(process))


def _address(process: "subprocess.Popen[str]") -> str:
    lines = []
    for line in process.stdout or ():
        if line.startswith("URI "):
            return line.split()[1].rstrip("/")
        lines.append(line)
    raise Unavailable("the harness ended: " + "".join(lines[-5:]))


def _java() -> str:
    home = os.environ.get("JAVA21_HOME")
    folders = [Path(home)] if home else sorted(Path("/usr/lib/jvm").glob("*"), reverse=True)
    for folder in folders:
        release = folder / "release"
        text = release.read_text(encoding="utf-8") if release.is_file() else ""
        version = re.search(r'JAVA_VERSION="(\d+)', text)
        if version and int(version[1]) >= LEAST_JAVA and (folder / "bin" / "java").exists():
            return str(folder / "bin" / "java")
    raise Unavailable(
        f"Neo4j 2025 needs Java {LEAST_JAVA}: none in JAVA21_HOME or under /usr/lib/jvm"
    )
