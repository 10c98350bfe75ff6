"""Reading without a model in processes of its own, several segments at once (ADR 0014).

What they make of a segment is what the reasoner of this one would. What is lost with a process is
read here. Nothing that they don't need is imported: each of them has to.
"""

from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import cache

from qrmem.language.local import LocalReasoner
from qrmem.memory.view import Read, Rows, rows_of
from qrmem.models.tokenizers import open_tokenizer
from qrmem.ports import Job
from qrmem.processes import Lost, Processes
from qrmem.records import Contribution

LEAST = 2000
"""Segments from which other processes are started: it takes them half a second to be of use."""


@dataclass(frozen=True, slots=True)
class Made:
    """What another process made of some segments, by their ids.

    Attributes:
        rows: those of the view, of segments that are read for the last time.
    """

    contributions: Mapping[str, Contribution] = field(default_factory=dict)
    rows: Mapping[str, Rows] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Given:
    """Segments to read, and what the reasoner is made with."""

    jobs: Sequence[Job]
    questions_per_600: int


Work = Callable[[Given], Coroutine[None, None, Made]]
"""`extract` or `supplement`."""


class Apart:
    """Processes that read as the local reasoner of a run does."""

    def __init__(
        self, processes: Processes, questions_per_600: int, check: Callable[[], None]
    ) -> None:
        """Take processes.

        Args:
            questions_per_600: see `LocalReasoner`.
            check: asked before each batch is given back; raises where the run is to stop.
        """
        self._processes = processes
        self._questions_per_600 = questions_per_600
        self._check = check
        self._are_lost = False

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._processes)

    async def made(
        self, work: Work, batches: Sequence[Sequence[Job]]
    ) -> AsyncGenerator[Made, None]:
        """Yield what was made of each batch: nothing where that is left to the caller."""
        left = len(batches)
        if not self._are_lost:
            given = [Given(batch, self._questions_per_600) for batch in batches]
            try:
                async with aclosing(self._processes.mapped(work, given)) as found:
                    async for made in found:
                        self._check()
                        yield made
                        left -= 1
            except Lost:
                self._are_lost = True
        for _ in range(left):
            yield Made()


# --- in such a process ---------------------------------------------------------------------------


async def extract(given: Given) -> Made:
    """Read segments for the first time."""
    reasoner = _reasoner(given.questions_per_600)
    made = [await reasoner.extract(job.segment, job.reading) for job in given.jobs]
    return Made({contribution.segment_id: contribution for contribution in made})


async def supplement(given: Given) -> Made:
    """Read those that have accepted questions again, and make the rows of all."""
    reasoner = _reasoner(given.questions_per_600)
    contributions, rows = {}, {}
    for job in given.jobs:
        assert job.known is not None
        made = [job.known]
        if job.questions:
            reading = replace(job.reading, tagged=job.known.mentions)
            again = await reasoner.supplement(job.segment, reading, job.known, job.questions)
            contributions[job.segment.id] = again
            made.append(again)
        rows[job.segment.id] = rows_of(Read(job.segment, tuple(made), job.questions))
    return Made(contributions, rows)


@cache
def _reasoner(questions_per_600: int) -> LocalReasoner:
    return LocalReasoner(open_tokenizer("builtin"), questions_per_600=questions_per_600)
