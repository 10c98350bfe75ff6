"""Reading segments in this process: the executor that a build uses if it is given no other.

The bounded parallel work is our own: LangGraph's `Send` per segment is far too slow for it.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Generic, TypeVar

from qrmem.agents.tagging import Tagged, of_tagger_alone, tagged, united
from qrmem.errors import (
    CapReached,
    ContextExceeded,
    ModelOutputError,
    ModelUnavailable,
    ModelUnusable,
    WindowTooSmall,
)
from qrmem.types import (
    Contribution,
    EntityTagger,
    Job,
    JobResult,
    Phase,
    Reasoner,
    Sharer,
)

LOCAL_BATCH = 64
"""Segments that a local reasoner reads before their results are handed on."""
TAGGED_BATCH = 16
"""The same where a tagger is asked about each, which takes longer than the reading."""
FRUITLESS = 3
"""Shared calls after which no more are made, if none of them was of any use."""

Done = Callable[[Sequence[JobResult]], Awaitable[None]]
T = TypeVar("T")


@dataclass(slots=True)
class _Call:
    """Jobs of one call, as far as they are still to be read.

    Attributes:
        is_shared: whether they are to be tried together first.
    """

    jobs: list[Job]
    is_shared: bool


class InProcess:
    """Reads segments with a reasoner and a tagger, several at a time."""

    def __init__(
        self,
        reasoner: Reasoner,
        tagger: EntityTagger | None = None,
        *,
        concurrency: int = 8,
        open_entity: bool = True,
    ) -> None:
        """Take what reads.

        Args:
            tagger: its entities are united with the reasoner's.
            concurrency: calls that are under way at the same time.
            open_entity: `False` takes entities from the tagger alone (ablation).
        """
        self._reasoner = reasoner
        self._tagger = tagger
        self._concurrency = concurrency
        self._open_entity = open_entity
        self._was_of_use: list[bool] = []

    async def map(
        self,
        phase: Phase,
        calls: Sequence[Sequence[Job]],
        done: Done,
        *,
        was_answered: bool = False,
    ) -> None:
        """Read segments; see `qrmem.types.Executor`."""
        if self._reasoner.is_local:
            await self._locally(phase, [job for jobs in calls for job in jobs], done)
            return

        todo = [_Call(list(jobs), is_shared=len(jobs) > 1) for jobs in calls]
        work = partial(self._read, phase, done)
        await each(todo, work, concurrency=self._concurrency, was_answered=was_answered)

    async def _locally(self, phase: Phase, jobs: Sequence[Job], done: Done) -> None:
        size = LOCAL_BATCH if self._tagger is None else TAGGED_BATCH
        for start in range(0, len(jobs), size):
            batch = jobs[start : start + size]
            results: dict[str, JobResult] = {}

            async def work(job: Job, results: dict[str, JobResult] = results) -> None:
                results[job.segment.id] = await self._one(phase, job)
                await asyncio.sleep(0)  # let a cancellation through

            await each(batch, work, concurrency=self._concurrency if self._tagger else 1)
            await done([results[job.segment.id] for job in batch])

    async def _read(self, phase: Phase, done: Done, call: _Call) -> None:
        """Read the jobs of a call; if it is tried again, those that were not read yet."""
        was_of_use = self._was_of_use
        if call.is_shared and (any(was_of_use) or len(was_of_use) < FRUITLESS):
            found = await self._together(phase, call.jobs)
            if found:
                await done(found)
            read = {result.segment_id for result in found}
            call.jobs = [job for job in call.jobs if job.segment.id not in read]
            was_of_use.append(bool(found))
        call.is_shared = False
        while call.jobs:
            await done([await self._one(phase, call.jobs[0])])
            del call.jobs[0]

    async def _together(self, phase: Phase, jobs: Sequence[Job]) -> list[JobResult]:
        """Read several segments in one call; return what it was good for."""
        reasoner = self._reasoner
        if not isinstance(reasoner, Sharer):
            return []
        try:
            if phase == "extract":
                made = await reasoner.extract_together(jobs)
            else:
                made = await reasoner.supplement_together(jobs)
        except (ModelOutputError, WindowTooSmall, ContextExceeded):
            return []
        return [
            JobResult(
                job.segment.id, self._tagged(phase, contribution, await self._tags(phase, job))
            )
            for job, contribution in zip(jobs, made, strict=True)
            if contribution is not None
        ]

    async def _one(self, phase: Phase, job: Job) -> JobResult:
        try:
            found = await self._tags(phase, job)
            reading = replace(job.reading, tagged=found.mentions, open_entity=self._open_entity)
            if phase == "extract":
                made = await self._reasoner.extract(job.segment, reading)
            else:
                assert job.known is not None
                made = await self._reasoner.supplement(
                    job.segment, reading, job.known, job.questions
                )
        except ModelOutputError as exc:
            return JobResult(job.segment.id, error=str(exc), raw=exc.raw)
        return JobResult(job.segment.id, self._tagged(phase, made, found))

    async def _tags(self, phase: Phase, job: Job) -> Tagged:
        """Return the tagger's entities of a segment; a second reading builds on the first one's."""
        if phase == "extract":
            return await tagged(self._tagger, job.segment.text)
        assert job.known is not None
        return Tagged(job.known.mentions)

    def _tagged(self, phase: Phase, made: Contribution, found: Tagged) -> Contribution:
        """Return a reading with the tagger's entities; a second one without those, as it is."""
        if not self._open_entity:
            made = of_tagger_alone(made, found.mentions)
        return united(made, found) if self._tagger and phase == "extract" else made


# --- bounded parallel work ------------------------------------------------------------------------


async def each(
    items: Iterable[T],
    work: Callable[[T], Awaitable[None]],
    *,
    concurrency: int,
    was_answered: bool = False,
) -> None:
    """Do some work for each item, started in order, at most `concurrency` at a time.

    An item whose model does not answer is tried again, and nothing new is begun before some item
    was answered: one bad spell of a server does not end a long run. What fails when nobody was ever
    answered, or fails a second time without an answer to another in between, does.

    Args:
        was_answered: whether the model has answered before, in the same run.

    Raises:
        CapReached: raised by the work; what was in flight is finished first, as it is paid for.
        ModelUnusable: in the same way.
        Exception: what else the work raised first; everything in flight is cancelled.
    """
    pool = _Pool(items, work, was_answered)
    workers: list[asyncio.Task[None]] = []
    for _ in range(concurrency):
        workers.append(asyncio.create_task(pool.run()))
    try:
        await asyncio.gather(*workers)
    finally:
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
    if pool.stop is not None:
        raise pool.stop


@dataclass(slots=True, eq=False)
class _Turn(Generic[T]):
    """An item, and how many had been answered when it failed; `None` if it never did."""

    item: T
    answers: int | None = None


class _Pool(Generic[T]):
    """What the workers share.

    Attributes:
        stop: why nothing new is started, if that is so.
    """

    def __init__(
        self, items: Iterable[T], work: Callable[[T], Awaitable[None]], was_answered: bool
    ) -> None:
        self._new = iter(items)
        self._again: deque[_Turn[T]] = deque()
        self._work = work
        self._answers = int(was_answered)
        self._is_silent = False
        self._busy = 0
        self._changed = asyncio.Condition()
        self.stop: CapReached | ModelUnusable | None = None

    async def run(self) -> None:
        """Work until nothing is left."""
        while (turn := await self._next()) is not None:
            try:
                await self._work(turn.item)
            except (CapReached, ModelUnusable) as exc:
                self.stop = exc
            except ModelUnavailable:
                if turn.answers == self._answers or not self._answers:
                    raise
                turn.answers = self._answers
                self._again.append(turn)
                self._is_silent = True
            else:
                self._answers += 1
                self._is_silent = False
            async with self._changed:
                self._busy -= 1
                self._changed.notify_all()

    async def _next(self) -> _Turn[T] | None:
        """Return what to do next: something new if all is well, else what has failed."""
        async with self._changed:
            while self.stop is None:
                turn = None if self._is_silent else next((_Turn(i) for i in self._new), None)
                # While the server is silent, whoever is still waiting for it may hear from it.
                if turn is None and self._again and not (self._is_silent and self._busy):
                    turn = self._again.popleft()
                if turn is not None:
                    self._busy += 1
                    return turn
                if not self._is_silent:
                    return None
                await self._changed.wait()
            return None
