"""Starts `qrmem` commands that have imported everything already, so that many can be killed.

    with Nursery(folder, environment) as nursery:
        child = nursery.start("add", "book.md")
        child.kill()

A process that has done the imports forks one for each command; there is no other difference to a
command of its own. For systems that can fork.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import NoReturn, Self

TESTS = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True)
class Child:
    """A running command."""

    pid: int
    nursery: "Nursery"

    def kill(self) -> None:
        """Kill it, as `kill -9` does; harmless if it has ended: `wait` alone frees its number."""
        os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> int:
        """Wait until it has ended; return its exit code, negative for a signal."""
        return self.nursery.tell("wait")


class Nursery:
    """A process that forks commands, one at a time."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "servers.nursery"],
            cwd=folder,
            env={**environment, "PYTHONPATH": str(TESTS)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._process.communicate(timeout=30)

    def start(self, *words: str) -> Child:
        """Start `qrmem` with some words; what it prints goes to the file `printed`."""
        return Child(self.tell(json.dumps(words)), self)

    def tell(self, line: str) -> int:
        """Send a line to the process; returns the number that it replies."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(f"{line}\n")
        stdin.flush()
        return int(stdout.readline())


def main() -> None:
    """Fork a command for each line of words and print its pid; for `wait` print its exit code."""
    for name in (
        "openai",
        "qrmem.agents.building",
        "qrmem.answering.with_model",
        "qrmem.cli.commands",
    ):
        import_module(name)
    pid = 0
    for line in sys.stdin:
        if line.strip() == "wait":
            _, status = os.waitpid(pid, 0)
            print(os.waitstatus_to_exitcode(status), flush=True)
            continue
        pid = os.fork()
        if pid == 0:
            _run(json.loads(line))
        print(pid, flush=True)


def _run(words: Sequence[str]) -> NoReturn:
    from qrmem.cli import main as command

    printed = os.open("printed", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(printed, 1)
    os.dup2(printed, 2)
    code = 1
    try:
        code = command(words)
    except SystemExit as exc:
        code = int(exc.code or 0)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
