"""`qrmem view` in a process of its own."""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

PROGRAM = (sys.executable, "-m", "qrmem")


@contextmanager
def viewed(memory: Path, program: Sequence[str] = PROGRAM) -> Iterator[str]:
    """Serve a memory's page; the value is its address."""
    command = [*program, "view", "--no-browser", "--memory", str(memory)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait(60)
        process.stdout.close()
