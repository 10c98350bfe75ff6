#!/usr/bin/env python3
"""Runs a real Neo4j on this machine with Java and Maven: `start`, `stop`, `status`.

The server listens on the loopback address only, on free ports, with a password that is made before
its first start. Jars go to a cache folder; data, logs, process id and address to a state folder;
both lie outside the repository. `stop` keeps the data, and the next `start` finds the same address
and password. Only the standard library is needed.
"""

import argparse
import contextlib
import json
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
VERSION = "5.26.20"
MAIN_CLASS = "org.neo4j.server.CommunityEntryPoint"
ADMIN_CLASS = "org.neo4j.cli.AdminTool"
LEAST_JAVA = 17
PORT_PATIENCE = 5.0
BOLT_HANDSHAKE = bytes.fromhex("6060b017 00020805 00000004 00000000 00000000")
OPENS = ("java.nio", "java.io", "sun.nio.ch")
LOGS = ("logs/neo4j.log", "logs/debug.log", "logs/console.log")

CONFIG = """\
server.default_listen_address=127.0.0.1
server.default_advertised_address=127.0.0.1
server.bolt.listen_address=127.0.0.1:{bolt}
server.bolt.advertised_address=127.0.0.1:{bolt}
server.http.listen_address=127.0.0.1:{http}
server.http.advertised_address=127.0.0.1:{http}
server.https.enabled=false
server.memory.pagecache.size={pagecache}
dbms.security.auth_enabled=true
dbms.usage_report.enabled=false
client.allow_telemetry=false
"""


class Failed(Exception):
    """Something that the user has to know, in one line or a few."""


@dataclass(frozen=True)
class Server:
    """A server that was started: how to reach and how to stop it."""

    pid: int
    bolt: int
    http: int
    password: str
    version: str = VERSION

    @property
    def uri(self) -> str:
        """Address for `NEO4J_URI`."""
        return f"bolt://127.0.0.1:{self.bolt}"

    @property
    def browser(self) -> str:
        """Address of Neo4j Browser, connecting to this server."""
        return f"http://127.0.0.1:{self.http}/browser/?dbms=bolt://neo4j@127.0.0.1:{self.bolt}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return the exit status."""
    options = _parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # ends what it started
    commands = {"start": _start, "stop": _stop, "status": _status}
    try:
        return commands[options.command](options)
    except Failed as exc:
        print(exc, file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        allow_abbrev=False, description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("command", choices=("start", "stop", "status"))
    state = _folder("XDG_STATE_HOME", ".local/state")
    cache = _folder("XDG_CACHE_HOME", ".cache", VERSION)
    parser.add_argument(
        "--state", type=_path, default=state, help="folder of data and logs (default: %(default)s)"
    )
    parser.add_argument(
        "--cache", type=_path, default=cache, help="folder of the jars (default: %(default)s)"
    )
    parser.add_argument("--bolt-port", type=int, default=0, help="default: the last one, or free")
    parser.add_argument("--http-port", type=int, default=0, help="default: the last one, or free")
    parser.add_argument("--heap", default="512m", help="Java heap (default: %(default)s)")
    parser.add_argument("--pagecache", default="128m", help="page cache (default: %(default)s)")
    parser.add_argument("--wait", type=float, default=120, help="seconds until it must answer")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser


def _path(text: str) -> Path:
    return Path(text).resolve()  # the server runs in a folder of its own


def _folder(variable: str, otherwise: str, version: str = "") -> Path:
    base = os.environ.get(variable) or Path.home() / otherwise
    return Path(base) / "qrmem" / (f"neo4j-{version}" if version else "neo4j")


# --- commands ------------------------------------------------------------------------------------


def _start(options: argparse.Namespace) -> int:
    state: Path = options.state
    state.mkdir(parents=True, exist_ok=True, mode=0o700)
    with _locked(state):
        server = _running(state)
        if server is None:
            server = _launch(state, options)
        elif (options.bolt_port or server.bolt, options.http_port or server.http) != (
            server.bolt,
            server.http,
        ):
            ports = f"{server.bolt} (Bolt) and {server.http} (HTTP)"
            raise Failed(f"it runs already, on the ports {ports}; stop it first")
    _show(server, as_json=options.json)
    return 0


def _stop(options: argparse.Namespace) -> int:
    server = _running(options.state)
    if server is None:
        print("no server is running", file=sys.stderr)
        return 0
    _end(server.pid, options.wait)
    print("stopped; the data are kept", file=sys.stderr)
    return 0


def _status(options: argparse.Namespace) -> int:
    server = _running(options.state)
    if server is None:
        print("no server is running", file=sys.stderr)
        return 3
    _show(server, as_json=options.json)
    return 0


def _show(server: Server, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(asdict(server) | {"uri": server.uri, "browser": server.browser}))
        return
    print(f"NEO4J_URI={server.uri}")
    print("NEO4J_USERNAME=neo4j")
    print(f"NEO4J_PASSWORD={server.password}")
    print(f"# Neo4j Browser: {server.browser}")


# --- state ---------------------------------------------------------------------------------------


@contextlib.contextmanager
def _locked(state: Path) -> Iterator[None]:
    """Keep two starts of one state folder apart."""
    lock = state / "starting"
    for _ in range(2):
        try:
            descriptor = os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
            break
        except FileExistsError:
            with contextlib.suppress(OSError, ValueError):
                if _is_alive(int(lock.read_text() or 0)):
                    raise Failed(f"another start is under way (see {lock})") from None
            lock.unlink(missing_ok=True)
    else:
        raise Failed(f"another start is under way (see {lock})")
    os.write(descriptor, str(os.getpid()).encode())
    os.close(descriptor)
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)


def _last(state: Path) -> Server | None:
    """Return what the last start wrote down, whether or not it still runs."""
    try:
        found = json.loads((state / "server.json").read_text(encoding="utf-8"))
        return Server(**found)
    except (OSError, ValueError, TypeError):
        return None


def _running(state: Path) -> Server | None:
    server = _last(state)
    return server if server and _is_ours(server.pid, state) else None


def _is_alive(pid: int) -> bool:
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _is_ours(pid: int, state: Path) -> bool:
    """Say whether the process is a server of this folder: numbers of processes are used again."""
    if not _is_alive(pid):
        return False
    proc = Path(f"/proc/{pid}/cmdline")
    if proc.exists():
        words = proc.read_bytes().decode(errors="replace").split("\0")
    else:
        found = subprocess.run(
            ["ps", "-o", "args=", "-p", str(pid)], capture_output=True, text=True, check=False
        )
        words = found.stdout.split()
    return MAIN_CLASS in words and f"--home-dir={state / 'home'}" in words


def _keep(state: Path, server: Server) -> None:
    target = state / "server.json"
    descriptor = os.open(target, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(asdict(server), file)


# --- starting ------------------------------------------------------------------------------------


def _launch(state: Path, options: argparse.Namespace) -> Server:
    java, home = _java(), state / "home"
    jars = _jars(options.cache)
    last = _last(state)
    bolt = _port(options.bolt_port, last.bolt if last else 0)
    http = _port(options.http_port, last.http if last else 0)
    for folder in ("conf", "logs", "data"):
        (home / folder).mkdir(parents=True, exist_ok=True)
    password = last.password if last else _set_password(java, jars, home)
    text = CONFIG.format(bolt=bolt, http=http, pagecache=options.pagecache)
    (home / "conf" / "neo4j.conf").write_text(text, encoding="utf-8")
    process = _spawn(java, jars, home, options.heap)
    server = Server(process.pid, bolt, http, password)
    _keep(state, server)
    try:
        _wait(process, bolt, home, options.wait)
    except BaseException:
        _end(process.pid, 10)
        raise
    return server


def _spawn(java: str, jars: Path, home: Path, heap: str) -> "subprocess.Popen[bytes]":
    opens = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENS]
    command = [java, f"-Xms{heap}", f"-Xmx{heap}", "-XX:+UseG1GC", *opens, "-cp", f"{jars}/*"]
    command += [MAIN_CLASS, f"--home-dir={home}", f"--config-dir={home / 'conf'}"]
    with (home / "logs" / "console.log").open("wb") as console:
        return subprocess.Popen(
            command,
            cwd=home,
            stdin=subprocess.DEVNULL,
            stdout=console,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def _wait(process: "subprocess.Popen[bytes]", port: int, home: Path, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise Failed(f"Neo4j ended while starting (exit {process.returncode})\n{_logs(home)}")
        if speaks_bolt(port):
            return
        time.sleep(0.2)
    raise Failed(f"Neo4j did not answer within {seconds:.0f} s\n{_logs(home)}")


def speaks_bolt(port: int) -> bool:
    """Say whether something on the port agrees to a version of the Bolt protocol."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=2) as connection:
            connection.sendall(BOLT_HANDSHAKE)
            return any(connection.recv(4))
    except OSError:
        return False


def _logs(home: Path) -> str:
    """Name the logs, and show the end of the one that says most."""
    found = [home / name for name in LOGS if (home / name).is_file()]
    lines = ["its logs: " + ", ".join(map(str, found))]
    for log in (home / "logs" / "console.log", home / "logs" / "neo4j.log"):
        if log.is_file():
            lines += log.read_text(encoding="utf-8", errors="replace").splitlines()[-5:]
    return "\n".join(lines)


def _port(wanted: int, last: int) -> int:
    """Return the port asked for, else the one of the last start if it is free, else a free one."""
    if wanted:
        if not _is_free(wanted):
            raise Failed(f"port {wanted} is taken")
        return wanted
    if last and _is_soon_free(last):
        return last
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _is_soon_free(port: int) -> bool:
    """Say whether a port is free now or shortly: a killed process holds its own while it ends."""
    deadline = time.monotonic() + PORT_PATIENCE
    while not _is_free(port):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _set_password(java: str, jars: Path, home: Path) -> str:
    """Make a password and let the server's own tool keep it; right only before the first start."""
    password = secrets.token_urlsafe(18)
    environment = os.environ | {"NEO4J_HOME": str(home), "NEO4J_CONF": str(home / "conf")}
    # A word that starts with "-" would be read as an option. Everybody on this machine can read the
    # words of a command, so Java takes them from a file that only the user can read.
    words = ["-cp", f"{jars}/*", ADMIN_CLASS, "dbms", "set-initial-password", "--", password]
    with tempfile.NamedTemporaryFile("w", encoding="utf-8") as file:  # of mode 0600
        file.write("\n".join('"' + word.replace("\\", "\\\\") + '"' for word in words))
        file.flush()
        command = [java, f"@{file.name}"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failed(f"the first password could not be set: {(done.stderr or done.stdout).strip()}")
    return password


# --- stopping ------------------------------------------------------------------------------------


def _end(pid: int, seconds: float) -> None:
    """End a process by number: politely, then by force."""
    for sign, patience in ((signal.SIGTERM, seconds), (signal.SIGKILL, 10.0)):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, sign)
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
            if not _is_alive(pid):
                return
            time.sleep(0.1)
    raise Failed(f"process {pid} does not end")


# --- what it needs -------------------------------------------------------------------------------


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if not java or not Path(java).exists():
        raise Failed(f"Neo4j {VERSION} needs Java {LEAST_JAVA} or 21: none is on the PATH")
    found = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    version = re.search(r'version "(\d+)', found.stderr)
    if version is None or int(version[1]) < LEAST_JAVA:
        raise Failed(f"Neo4j {VERSION} needs Java {LEAST_JAVA} or 21; {java} is older")
    return java


def _jars(cache: Path) -> Path:
    """Return the folder of the jars; fetch them once."""
    jars, mark = cache / "lib", cache / "complete"
    if _is_complete(mark):
        return jars
    maven = shutil.which("mvn")
    if maven is None:
        raise Failed("the server's jars are not here yet, and fetching them needs Maven (mvn)")
    print(f"fetching Neo4j {VERSION} (128 MB, once) into {jars}", file=sys.stderr)
    # Two may fetch at once: each into a folder of its own, and the first one stays.
    cache.mkdir(parents=True, exist_ok=True)
    own = Path(tempfile.mkdtemp(dir=cache))
    try:
        _fetch(maven, own)
        if not _is_complete(mark):
            shutil.rmtree(jars, ignore_errors=True)
            own.rename(jars)
            mark.write_text(_recipe(), encoding="utf-8")
    finally:
        shutil.rmtree(own, ignore_errors=True)
    return jars


def _is_complete(mark: Path) -> bool:
    return mark.is_file() and mark.read_text(encoding="utf-8") == _recipe()


def _fetch(maven: str, into: Path) -> None:
    goal = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
    # -C: a file whose checksum is wrong ends the command, and is not a mere warning
    command = [maven, "-q", "-B", "-C", "-f", str(HERE / "pom.xml")]
    command += [goal, f"-DoutputDirectory={into}"]
    for _ in range(2):  # what a first try could not fetch is tried once more
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if not done.returncode:
            return
    raise Failed(f"Maven could not fetch the server:\n{(done.stdout + done.stderr)[-2000:]}")


def _recipe() -> str:
    return (HERE / "pom.xml").read_text(encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
