"""`qrmem view` in a process of its own."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

PROGRAM = (sys.executable, "-m", "qrmem")


@contextmanager
def viewed(
    memory: Path,
    *options: str,
    program: Sequence[str] = PROGRAM,
    settings: Mapping[str, str] = {},
) -> Iterator[str]:
    """Serve a memory's page; the value is its address.

    Args:
        options: of `qrmem view`.
        settings: environment variables beside this process's own.
    """
    command = [*program, "view", "--no-browser", "--memory", str(memory), *options]
    environment = os.environ | settings
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait(60)
        process.stdout.close()
