"""Reading without a model in processes of its own, several segments at once (ADR 0014).

What they make of a segment is what the reasoner of this one would. What is lost with a process is
read here. Nothing that they don't need is imported: each of them has to.
"""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, suppress

from qrmem.apart.ahead import Ahead
from qrmem.apart.work import Given, Made, MadeWith, Names, Whole, Work, extract, name, supplement
from qrmem.graph.disambiguation import NameUse, Resolution, resolve
from qrmem.processes import Lost, Processes, started
from qrmem.types import Job, MergeDecision, Reading, Segment

__all__ = ["Apart", "Made", "MadeWith", "Work", "extract", "supplement"]

LEAST = 2000
"""Segments from which other processes are started: it takes them half a second to be of use."""
LONGEST = 512
"""Segments of a document that one process reads whole; a longer one is read by all of them."""


class Apart:
    """Processes that read as the local reasoner of a run does, once there is enough to read.

    New documents are offered as they are written, and read whole. Of all other segments the build
    has one phase after the other made: of long documents, and of those that were begun before.
    """

    def __init__(
        self,
        stack: AsyncExitStack,
        wanted: int | None,
        made_with: MadeWith,
        check: Callable[[], None],
    ) -> None:
        """Start none yet.

        Args:
            stack: ends them when it is closed.
            wanted: see `qrmem.processes.started`.
            made_with: what the reasoner of this run is made with.
            check: asked before each batch is given back; raises where the run is to stop.
        """
        self._wanted = wanted
        self._made_with = made_with
        self._check = check
        self._stack = stack
        self._processes: Processes | None = None
        self._ahead: Ahead | None = None
        self._offered: list[Sequence[Job]] = []
        self._count = 0
        self._is_over = False

    @property
    def count(self) -> int:
        """How many processes there are."""
        return len(self._processes) if self._processes else 0

    async def start(self, segments: int) -> None:
        """Start them for a build of enough segments; a smaller one reads alone what was offered."""
        if segments >= LEAST:
            await self._start()
        self._offered, self._count = [], 0

    async def _start(self) -> None:
        if self._is_over or self._processes:
            return
        self._processes = await self._stack.enter_async_context(started(self._wanted))
        self._is_over = self._processes is None
        if self._processes:
            self._ahead = Ahead(self._processes, self._made_with)
            self._stack.push_async_callback(self._ahead.close)
            for jobs in self._offered:
                self._ahead.offer(jobs)
        self._offered = []

    async def offer(self, title: str, segments: Sequence[Segment]) -> None:
        """Have a new document read whole, before it is asked for, unless it is long."""
        if self._is_over or len(segments) > LONGEST:
            return
        jobs = [Job(segment, Reading(title)) for segment in segments]
        if self._ahead:
            self._ahead.offer(jobs)
        else:
            self._offered.append(jobs)
            self._count += len(jobs)
            if self._count >= LEAST:
                await self._start()

    async def summary(self, segment_id: str) -> str | None:
        """Return the summary of the document that a segment is of, if it was read whole."""
        found = await self._ahead.made([segment_id]) if self._ahead else {}
        return found[segment_id].summary if found else None

    async def resolved(
        self,
        uses: Sequence[NameUse],
        decisions: Sequence[MergeDecision],
        similar: Sequence[tuple[str, str, float]],
    ) -> Resolution:
        """Return what the names of a memory stand for; another process finds out."""
        if self._processes and not self._is_over:
            with suppress(Lost):
                return await self._processes.call(name, Names(uses, decisions, similar))
        return resolve(uses, decisions, similar)

    async def made(
        self, work: Work, batches: Sequence[Sequence[Job]]
    ) -> AsyncGenerator[Made, None]:
        """Yield what was made of each batch: nothing where that is left to the caller."""
        rest = [[job for job in batch if not self._is_ahead(job)] for batch in batches]
        async with aclosing(self._sent(work, [jobs for jobs in rest if jobs])) as sent:
            for batch, others in zip(batches, rest, strict=True):
                made = await anext(sent) if others else Made()
                if self._ahead and len(others) < len(batch):
                    whole = await self._ahead.made([job.segment.id for job in batch])
                    made = _joined(made, _part_of(work, batch, whole))
                self._check()
                if self._ahead and work is supplement:
                    self._ahead.forget(job.segment.id for job in batch)
                yield made

    def _is_ahead(self, job: Job) -> bool:
        return self._ahead is not None and self._ahead.has(job.segment.id)

    async def _sent(
        self, work: Work, batches: Sequence[Sequence[Job]]
    ) -> AsyncGenerator[Made, None]:
        left = len(batches)
        if self._processes and not self._is_over:
            given = [Given(batch, self._made_with) for batch in batches]
            try:
                async with aclosing(self._processes.mapped(work, given)) as found:
                    async for made in found:
                        yield made
                        left -= 1
            except Lost:
                self._is_over = True
        for _ in range(left):
            yield Made()


def _part_of(work: Work, jobs: Sequence[Job], whole: Mapping[str, Whole]) -> Made:
    """Return one phase's part of what was made of whole documents, where it fits the jobs."""
    if work is extract:
        return Made({id_: made.first for id_, made in whole.items()})
    fitting = {
        job.segment.id: made
        for job in jobs
        if (made := whole.get(job.segment.id))
        and (job.known, job.questions) == (made.first, made.questions)
    }
    again = {id_: made.again for id_, made in fitting.items() if made.again}
    return Made(again, {id_: made.rows for id_, made in fitting.items()})


def _joined(one: Made, other: Made) -> Made:
    return Made({**one.contributions, **other.contributions}, {**one.rows, **other.rows})
