"""The command as a user runs it, in a folder of its own; a process of its own where that counts."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any
from unittest.mock import patch

import pytest

from qrmem.cli import main

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "qrmem" / "sample"


@dataclass(frozen=True)
class Ran:
    """What a command left: exit code and both outputs."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Shell:
    """Runs `qrmem …` in one folder with one memory, without the user's own settings."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        kept = {
            k: v for k, v in os.environ.items() if not k.startswith(("QRMEM_", "OPENAI_", "NEO4J_"))
        }
        self.environment = {
            **kept,
            "HOME": str(folder),
            "QRMEM_MEMORY": "test.db",
            "QRMEM_EMBEDDER": "none",
        }

    def __call__(self, *words: str, stdin: bytes = b"", **env: str) -> Ran:
        """Run a command in this process."""
        with (
            TemporaryFile() as out,
            TemporaryFile() as err,
            chdir(self.folder),
            patch.dict(os.environ, {**self.environment, **env}, clear=True),
            _standard_streams(stdin, out, err),
        ):
            try:
                code = main(words)
            except SystemExit as exc:
                code = exc.code if isinstance(exc.code, int) else 0
            sys.stdout.flush()
            sys.stderr.flush()
            out.seek(0)
            err.seek(0)
            return Ran(code, out.read().decode(), err.read().decode())

    def apart(self, *words: str, stdin: bytes = b"", timeout: float = 120, **env: str) -> Ran:
        """Run a command in a process of its own."""
        done = subprocess.run(
            self.command(*words),
            cwd=self.folder,
            env={**self.environment, **env},
            input=stdin,
            capture_output=True,
            timeout=timeout,
        )
        return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "qrmem", *words]

    def write(self, name: str, content: str | bytes) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path


@contextmanager
def _standard_streams(stdin: bytes, out: Any, err: Any) -> Iterator[None]:
    ours = io.TextIOWrapper(out, write_through=True), io.TextIOWrapper(err, write_through=True)
    with (
        patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin))),
        patch.object(sys, "stdout", ours[0]),
        patch.object(sys, "stderr", ours[1]),
    ):
        try:
            yield
        finally:
            for stream in ours:
                stream.flush()
                stream.detach()


@pytest.fixture
def qrmem(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.fixture(scope="module")
def read_sample(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """A memory that holds the sample; tests that use it only look."""
    shell = Shell(tmp_path_factory.mktemp("sample"))
    ran = shell("add", str(SAMPLE / "harbour.md"))
    assert ran.code == 0, ran.err
    return shell
