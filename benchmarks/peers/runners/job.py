"""The input and the output of a runner, and the steps that all runners share.

A runner is started as `python -m benchmarks.peers.runners.NAME JOB RESULT`, two files in JSON.
"""

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

KEY = "not-a-key"
"""What is sent as the key: the server takes any."""
CHAT, EMBEDDER = "gpt-4o-mini", "text-embedding-3-small"
"""Names of models that every program knows; the server takes any."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage to keep; `whole` is what a program reads that knows no titles."""

    id: str
    title: str
    text: str

    @property
    def whole(self) -> str:
        """Title and text."""
        return f"{self.title}\n{self.text}"


@dataclass(frozen=True, slots=True)
class Job:
    """What a runner has to do.

    Attributes:
        url: base URL of the server that stands for the models.
        dimension: of its vectors.
        folder: an empty folder for what the program keeps.
        k: passages wanted for a question, where a program takes such a number.
        neo4j: address and password of an empty database, if the program needs one.
    """

    url: str
    dimension: int
    folder: str
    k: int
    passages: Sequence[Passage]
    questions: Sequence[str]
    neo4j: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Shown:
    """A piece of what a program shows for a question: a passage's id, or else a text."""

    id: str = ""
    text: str = ""


class Peer(Protocol):
    """A program that keeps passages and shows some of them for a question."""

    async def build(self, passages: Sequence[Passage]) -> Sequence[str]:
        """Keep passages; return what went wrong."""

    async def ask(self, question: str) -> Sequence[Shown]:
        """Return what is shown for a question, best first."""


@dataclass(slots=True)
class Phase:
    """A part of a run: when it began and ended (`time.monotonic`), and its processor seconds."""

    name: str
    began: float
    ended: float = 0.0
    processor: float = 0.0


@dataclass(slots=True)
class Result:
    """What a runner hands back.

    Attributes:
        shown: for each question, what was shown; empty where it failed.
        shown_for_itself: for each passage, what was shown when its text was asked for.
        memory: peak of the process in MB, until the last question.
    """

    phases: list[Phase] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    shown: list[list[Shown]] = field(default_factory=list)
    shown_for_itself: list[list[Shown]] = field(default_factory=list)
    memory: float = 0.0


def run(make: Callable[[Job], Awaitable[Peer]]) -> None:
    """Do the job that the command line names with the program that `make` opens."""
    given = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    given["passages"] = [Passage(**passage) for passage in given["passages"]]
    result = asyncio.run(_run(make, Job(**given)))
    Path(sys.argv[2]).write_text(json.dumps(asdict(result)), encoding="utf-8")


async def _run(make: Callable[[Job], Awaitable[Peer]], job: Job) -> Result:
    result = Result()

    async def timed(name: str, work: Awaitable[Any]) -> Any:
        phase, used = Phase(name, time.monotonic()), time.process_time()
        found = await work
        phase.ended, phase.processor = time.monotonic(), time.process_time() - used
        result.phases.append(phase)
        return found

    peer = await make(job)
    result.errors += await timed("build", peer.build(job.passages))
    result.shown = await timed("ask", _asked(peer, job.questions, result.errors))
    result.memory = peak()
    texts = [passage.whole for passage in job.passages]
    result.shown_for_itself = await timed("losses", _asked(peer, texts, result.errors))
    return result


async def _asked(peer: Peer, questions: Sequence[str], errors: list[str]) -> list[list[Shown]]:
    """Ask one by one; a failure is noted, and shows nothing."""
    shown: list[list[Shown]] = []
    for question in questions:
        try:
            shown.append(list(await peer.ask(question)))
        except Exception as exc:
            errors.append(f"asking: {said(exc)}")
            shown.append([])
    return shown


def said(exc: BaseException) -> str:
    """Return an exception in a line."""
    return f"{type(exc).__name__}: {' '.join(str(exc).split())[:300]}"


def peak() -> float:
    """Return the largest memory of this process so far, in MB.

    `getrusage` would give that of the process that started this one, if it was larger.
    """
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024
