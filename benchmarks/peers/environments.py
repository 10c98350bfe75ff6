"""The programs, their versions and their environments; each environment is made once."""

import json
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock

from servers.maven import Unavailable, jars

from benchmarks.frame import note

ROOT = Path(__file__).parents[2]
LONGEST_INSTALL = 1800
TOKENIZERS = "litellm==1.110.2"
"""Has tiktoken's files in it, which two of the programs else fetch from the internet."""


@dataclass(frozen=True, slots=True)
class Program:
    """A program to compare.

    Attributes:
        name: name of its environment, and, with `_` for `-`, of its runner.
        install: arguments of pip.
        bare: what pip is given then, to install it without what it asks for.
        version: version of the installed program.
        shows: what it shows for a question, for the table.
        environment: of the program `name`, if it is not its own.
        needs_neo4j: whether it keeps its graph there.
    """

    name: str
    version: str
    install: Sequence[str]
    shows: str
    environment: str = ""
    bare: Sequence[str] = ()
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
        "graphiti",
        "0.31.2",
        # It imports httpx, and none of its requirements installs it.
        ("graphiti-core==0.31.2", "httpx<1"),
        "10 facts (`search`); their passages count",
        needs_neo4j=True,
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
        # pip takes the newest sentencepiece, and the import fails with it.
        ("fast-graphrag==0.0.5", "sentencepiece==0.2.0"),
        "the passages of the context, at most 8",
    ),
    Program("mem0", "2.2.1", ("mem0ai==2.2.1",), "20 facts (`search`); their passages count"),
    Program(
        "hipporag",
        "2.0.0a4",
        # It asks for openai 1.91.1, which the registry does not have, and not for pyarrow, without
        # which it keeps nothing. It imports torch and vllm, of which nothing is used here.
        (
            *("torch==2.5.1", "transformers==4.45.2", "vllm==0.6.6.post1", "openai==1.91.0"),
            *("litellm==1.73.1", "gritlm==1.0.2", "networkx==3.4.2", "python_igraph==0.11.8"),
            *("tiktoken==0.7.0", "pydantic==2.10.4", "tenacity==8.5.0", "einops", "tqdm", "boto3"),
            "pyarrow==18.1.0",
        ),
        "10 passages (`retrieve`)",
        bare=("hipporag==2.0.0a4",),
    ),
    Program(
        "neo4j-graphrag",
        "1.22.0",
        ("neo4j-graphrag[openai]==1.22.0",),
        "10 chunks (`HybridRetriever`)",
        needs_neo4j=True,
    ),
)


APOC = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>qrmem</groupId><artifactId>apoc</artifactId><version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.neo4j.procedure</groupId><artifactId>apoc-core</artifactId>
      <version>5.26.19</version>
    </dependency>
    <dependency>
      <groupId>org.neo4j.procedure</groupId><artifactId>apoc-common</artifactId>
      <version>5.26.19</version>
    </dependency>
  </dependencies>
</project>
"""
"""Procedures that neo4j-graphrag calls; Neo4j does not come with them."""

_INSTALLING = Lock()
"""Two programs may share an environment, and several run at once."""


class NotRun(Exception):
    """The reason why a program did not run."""


def folder() -> Path:
    """Return the folder of the environments."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "qrmem" / "peers"


def python_of(program: Program) -> Path:
    """Return the interpreter of a program's environment; make the environment if it is missing.

    Raises:
        NotRun: it cannot be installed.
    """
    place = folder() / (program.environment or program.name)
    python, made_for = place / "bin" / "python", place / ".made-for"
    wanted = "\n".join([*program.install, *program.bare])
    with _INSTALLING:
        if not made_for.exists() or made_for.read_text(encoding="utf-8") != wanted:
            note(f"installing {' '.join(program.install)} into {place}")
            venv.create(place, with_pip=True, clear=True)
            _pip(python, program.install)
            if program.bare:
                _pip(python, ("--no-deps", *program.bare))
            made_for.write_text(wanted, encoding="utf-8")
    return python


def tokenizer_files() -> Path:
    """Return a folder with tiktoken's files."""
    place = folder() / "tokenizers"
    files = place / "litellm" / "litellm_core_utils" / "tokenizers"
    with _INSTALLING:
        if not files.exists():
            _pip(Path(sys.executable), ("--no-deps", "--target", str(place), TOKENIZERS))
    return files


@contextmanager
def neo4j() -> Iterator[Mapping[str, str]]:
    """Run an empty Neo4j with APOC; yields its address and password.

    Raises:
        NotRun: it does not start.
    """
    script = str(ROOT / "docker" / "neo4j-local" / "neo4j_local.py")
    with TemporaryDirectory() as place:
        command = [sys.executable, script, "--json", "--wait", "600", "--state"]
        try:
            cache = _with_apoc(Path(place), command)
            command += [f"{place}/state", "--cache", str(cache)]
            said = subprocess.run([*command, "start"], check=True, capture_output=True, text=True)
        except (subprocess.CalledProcessError, Unavailable) as exc:
            raise NotRun(f"Neo4j: {getattr(exc, 'stderr', '') or exc}"[:200]) from exc
        try:
            server = json.loads(said.stdout)
            yield {name: str(server[name]) for name in ("uri", "password")}
        finally:
            subprocess.run([*command, "stop"], check=False, capture_output=True)


def _with_apoc(place: Path, command: Sequence[str]) -> Path:
    """Return a folder with the server's jars and APOC's, which is a plug-in of the state, too."""
    pom = place / "pom.xml"
    pom.write_text(APOC, encoding="utf-8")
    own, plugins = jars("apoc-5.26.19", pom), place / "state" / "home" / "plugins"
    usual, cache = folder().parent / "neo4j-5.26.20", place / "cache"
    if not usual.exists():
        for what in ("start", "stop"):  # fetches its jars
            subprocess.run([*command, f"{place}/first", what], check=True, capture_output=True)
    (cache / "lib").mkdir(parents=True)
    plugins.mkdir(parents=True)
    for jar in usual.joinpath("lib").iterdir():
        (cache / "lib" / jar.name).symlink_to(jar)
    for jar in own.iterdir():
        if not (cache / "lib" / jar.name).exists() and not jar.name.startswith("slf4j"):
            (cache / "lib" / jar.name).symlink_to(jar)
        if jar.name.startswith("apoc"):
            (plugins / jar.name).symlink_to(jar)
    shutil.copy(usual / "complete", cache)
    return cache


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
