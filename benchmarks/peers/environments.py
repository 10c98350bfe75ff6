"""The programs, their versions and their environments, which are made once and kept."""

import os
import subprocess
import sys
import venv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.frame import note

ROOT = Path(__file__).parents[2]
LONGEST_INSTALL = 1800
TOKENIZERS = "litellm==1.110.2"
"""Has tiktoken's files in it, which two of the programs else fetch from the internet."""


@dataclass(frozen=True, slots=True)
class Program:
    """A program to compare.

    Attributes:
        name: of its environment; with `_` for `-`, of its runner.
        install: what pip is given.
        version: of what is installed.
        shows: what it shows for a question, for the table.
        environment: of the program `name`, if it is not its own.
        needs_neo4j: whether it keeps its graph there.
    """

    name: str
    version: str
    install: Sequence[str]
    shows: str
    environment: str = ""
    needs_neo4j: bool = False

    @property
    def runner(self) -> str:
        """Name of the module that runs it."""
        return f"benchmarks.peers.runners.{self.name.replace('-', '_')}"


PROGRAMS = (
    Program("qrmem", "this one", ("--editable", str(ROOT)), "10 passages (`search`)"),
    Program(
        "qrmem-rules",
        "this one",
        ("--editable", str(ROOT)),
        "10 passages (`search`); no chat model",
        environment="qrmem",
    ),
    Program(
        "nano-graphrag",
        "0.0.8.2",
        ("nano-graphrag==0.0.8.2",),
        "the context of mode `local`: entities, relations, passages",
    ),
    Program(
        "lightrag",
        "1.5.7",
        ("lightrag-hku==1.5.7",),
        "the passages of the context of mode `mix`",
    ),
    Program(
        "fast-graphrag",
        "0.0.5",
        # With the newest sentencepiece, which pip takes by itself, it does not import.
        ("fast-graphrag==0.0.5", "sentencepiece==0.2.0"),
        "the passages of the context, at most 8",
    ),
    Program("mem0", "2.2.1", ("mem0ai==2.2.1",), "20 facts (`search`); their passages count"),
)


class NotRun(Exception):
    """Why a program was not run."""


def folder() -> Path:
    """Return where environments are kept."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "qrmem" / "peers"


def python_of(program: Program) -> Path:
    """Return the interpreter of a program's environment, which is made if it is not there.

    Raises:
        NotRun: it cannot be installed.
    """
    place = folder() / (program.environment or program.name)
    python, made_for = place / "bin" / "python", place / ".made-for"
    wanted = "\n".join(program.install)
    if not made_for.exists() or made_for.read_text(encoding="utf-8") != wanted:
        note(f"installing {' '.join(program.install)} into {place}")
        venv.create(place, with_pip=True, clear=True)
        _pip(python, program.install)
        made_for.write_text(wanted, encoding="utf-8")
    return python


def tokenizer_files() -> Path:
    """Return a folder with tiktoken's files."""
    place = folder() / "tokenizers"
    files = place / "litellm" / "litellm_core_utils" / "tokenizers"
    if not files.exists():
        _pip(Path(sys.executable), ("--no-deps", "--target", str(place), TOKENIZERS))
    return files


def _pip(python: Path, install: Sequence[str]) -> None:
    command = [
        str(python),
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        *install,
    ]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=LONGEST_INSTALL)
    except subprocess.TimeoutExpired as exc:
        raise NotRun(f"not installed within {LONGEST_INSTALL} s") from exc
    except subprocess.CalledProcessError as exc:
        last = (exc.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise NotRun(f"pip: {last[:200]}") from exc
