"""Reading segments: the parallel phases of a build, each committed as it comes in (Q04-Q10)."""

import asyncio
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Collection,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

from qrmem import apart
from qrmem.agents.calls import Call, Task, calls
from qrmem.agents.pool import each
from qrmem.agents.state import BuildDeps
from qrmem.agents.tagging import tagged, united
from qrmem.errors import ContextExceeded, ModelOutputError, WindowTooSmall
from qrmem.graph.view import Rows
from qrmem.types import CallRecord, Contribution, Event, Job, LedgerRow, Loss, SegmentState, Sharer

T = TypeVar("T")

LOCAL_BATCH = 64
"""Segments that a local reasoner reads between two commits."""
TAGGED_BATCH = 16
"""The same where a tagger is asked about each, which takes longer than the reading."""
REASON = 300
"""Characters of a model's error that the ledger keeps."""
FRUITLESS = 3
"""Shared calls after which no more are made, if none of them was of any use."""


@dataclass(slots=True)
class Reader:
    """Reads segments with the reasoner and commits what they bring.

    Attributes:
        rows: what the ledger says, by segment id.
        read: ids of segments whose first reading was made.
        shared: for each segment that shares a call the ids of all that do.
        was_answered: whether a chat model has answered in this run.
        firsts: what was read first since it was emptied last, without a model, by segment id.
        made: rows of the view that were made by other processes, by segment id.
    """

    deps: BuildDeps
    rows: dict[str, LedgerRow] = field(default_factory=dict)
    read: list[str] = field(default_factory=list)
    shared: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    was_answered: bool = False
    firsts: dict[str, Contribution] = field(default_factory=dict)
    made: dict[str, Rows] = field(default_factory=dict)
    _tried: list[bool] = field(default_factory=list)
    _warned: set[str] = field(default_factory=set)

    async def extract(self, tasks: Sequence[Task]) -> None:
        """Read segments for the first time; each ends `extracted` or `failed`."""
        if not self.deps.reasoner.is_local:
            await self._each(calls(tasks, self.shared), partial(self._read, self._extracted))
            return
        async with aclosing(self._by_batch(apart.extract, tasks)) as batches:
            async for batch, given in batches:
                done = await self._locally(self._extracted, batch, given)
                self.firsts |= {task.segment.id: made for task, _, made in done if made}
                await self._commit(done)

    async def supplement(self, tasks: Sequence[Task], questioned: Collection[str]) -> None:
        """Read segments again with their accepted questions; each ends `ok` or `partial`.

        Args:
            questioned: ids of all segments that have some, those of earlier runs too.
        """
        if self.deps.reasoner.is_local:
            async with aclosing(self._by_batch(apart.supplement, tasks)) as batches:
                async for batch, given in batches:
                    await self._commit(await self._locally(self._supplemented, batch, given))
            return
        idle = [await self._supplemented(task) for task in tasks if not task.questions]
        for done in _batches(idle, LOCAL_BATCH):
            await self._commit(done)
        asked = [task for task in tasks if task.questions]
        todo = calls(asked, self.shared, questioned)
        await self._each(todo, partial(self._read, self._supplemented))

    async def _by_batch(
        self, work: apart.Work, tasks: Sequence[Task]
    ) -> AsyncGenerator[tuple[Sequence[Task], Mapping[str, Contribution]], None]:
        """Yield tasks with the contributions to them that other processes have made."""
        size = LOCAL_BATCH if self.deps.tagger is None else TAGGED_BATCH
        batches = list(_batches(tasks, size))
        if self.deps.apart is None:
            for batch in batches:
                yield batch, {}
            return
        jobs = [[_job(task) for task in batch] for batch in batches]
        async with aclosing(self.deps.apart.made(work, jobs)) as made:
            for batch in batches:
                found = await anext(made)
                self.made |= found.rows
                yield batch, found.contributions

    async def _each(self, todo: Sequence[Call], work: Callable[[Call], Awaitable[None]]) -> None:
        concurrency = self.deps.concurrency
        await each(todo, work, concurrency=concurrency, was_answered=self.was_answered)
        self.was_answered |= bool(todo)

    async def _locally(
        self, one: "_One", tasks: Sequence[Task], given: Mapping[str, Contribution]
    ) -> "list[_Outcome]":
        """Read segments without a model; a tagger works on several of them at once.

        Args:
            given: by segment id what was read elsewhere.
        """
        if all(task.segment.id in given or _is_closed(task) for task in tasks):
            return [await one(task, given.get(task.segment.id)) for task in tasks]
        outcomes: dict[str, _Outcome] = {}

        async def work(task: Task) -> None:
            outcomes[task.segment.id] = await one(task, given.get(task.segment.id))
            await asyncio.sleep(0)  # whoever wants to stop is heard

        await each(tasks, work, concurrency=self.deps.concurrency if self.deps.tagger else 1)
        return [outcomes[task.segment.id] for task in tasks]

    # --- one call ---------------------------------------------------------------------------------

    async def _read(self, one: "_One", call: Call) -> None:
        """Read the segments of a call; if it is tried again, those that were not read yet."""
        if call.is_shared and (any(self._tried) or len(self._tried) < FRUITLESS):
            done = await self._together(one, call.tasks)
            read = {task.segment.id for task, _, _ in done}
            call.tasks = [task for task in call.tasks if task.segment.id not in read]
            self._tried.append(bool(done))
        call.is_shared = False
        while call.tasks:
            await self._commit([await one(call.tasks[0], None)])
            del call.tasks[0]

    async def _together(self, one: "_One", tasks: Sequence[Task]) -> "list[_Outcome]":
        """Read several segments in one call; what it was good for is committed, all at once."""
        reasoner = self.deps.reasoner
        assert isinstance(reasoner, Sharer)
        jobs = [_job(task) for task in tasks]
        try:
            if tasks[0].questions:
                made = await reasoner.supplement_together(jobs)
            else:
                made = await reasoner.extract_together(jobs)
        except (ModelOutputError, WindowTooSmall, ContextExceeded):
            return []
        found = zip(tasks, made, strict=True)
        done = [await one(task, contribution) for task, contribution in found if contribution]
        if done:
            await self._commit(done)
        return done

    # --- one segment ------------------------------------------------------------------------------

    async def _extracted(self, task: Task, given: Contribution | None = None) -> "_Outcome":
        """Return a first reading, made here or given, with the tagger's entities."""
        found = await tagged(self.deps.tagger, task.segment.text)
        self._warn(found.losses)
        try:
            made = given or await self.deps.reasoner.extract(
                task.segment, replace(task.reading, tagged=found.mentions)
            )
        except ModelOutputError as exc:
            state: SegmentState = "failed" if task.known is None else "partial"
            return task, await self._refused(task, state, exc), None
        if not self.deps.open_entity:
            made = replace(made, mentions=(), statements=())
        if self.deps.tagger is not None:
            made = united(made, found)
        if task.reading.question:
            made = replace(made, asked=(task.reading.question,))
        self.read.append(task.segment.id)
        return task, self._row(task, "extracted", _reason(made)), made

    async def _supplemented(self, task: Task, given: Contribution | None = None) -> "_Outcome":
        """Return a second reading, made here or given; none where no question was accepted."""
        assert task.known is not None
        if not task.questions:
            return task, self._closed(task), None
        try:
            made = given or await self.deps.reasoner.supplement(
                task.segment,
                replace(task.reading, tagged=task.known.mentions),
                task.known,
                task.questions,
            )
        except ModelOutputError as exc:
            return task, await self._refused(task, "partial", exc), None
        made = replace(made, asked=task.questions)
        return task, self._closed(task, made), made

    # --- committing -------------------------------------------------------------------------------

    async def _commit(self, outcomes: "Sequence[_Outcome]") -> None:
        """Commit segments in one transaction, with the calls that were about them."""
        rows = [(row, contribution) for _, row, contribution in outcomes]
        paid: list[CallRecord] = []
        for row, _ in rows:
            paid += self.deps.take_calls(row.segment_id)
        await self.deps.store.record_all(self.deps.ns, rows, paid)
        self.rows.update({row.segment_id: row for _, row, _ in outcomes})
        if fresh := [task for task, _, _ in outcomes if not task.is_counted]:
            self.deps.listener(Event("segment", {"count": len(fresh)}))

    def _warn(self, losses: Sequence[Loss]) -> None:
        """Say what a tagger failed in when it fails so for the first time."""
        for loss in losses:
            if loss.reason not in self._warned:
                self._warned.add(loss.reason)
                self.deps.listener(Event("warning", {"message": loss.reason}))

    def _row(self, task: Task, state: SegmentState, reason: str = "") -> LedgerRow:
        return LedgerRow(task.segment.id, state, reason, self.deps.reasoner.name)

    def _closed(self, task: Task, made: Contribution | None = None) -> LedgerRow:
        """Return the last row of a segment, which is `partial` if something of it was lost."""
        reason = "; ".join(_reason(part) for part in (task.known, made) if part and part.losses)
        return self._row(task, "partial" if reason else "ok", _line(reason))

    async def _refused(self, task: Task, state: SegmentState, error: ModelOutputError) -> LedgerRow:
        """Keep a reply that could not be used, for whoever wants to know why."""
        segment_id = task.segment.id
        await self.deps.store.put_cached(
            self.deps.ns, f"raw:{segment_id}:{state}", {"raw": error.raw}, segment_id=segment_id
        )
        return self._row(task, state, _line(str(error)))


def _job(task: Task) -> Job:
    return Job(task.segment, task.reading, task.known, task.questions)


def _is_closed(task: Task) -> bool:
    """Whether nothing is left to read, as no question was accepted."""
    return task.known is not None and not task.questions


def _reason(made: Contribution) -> str:
    return _line("; ".join(dict.fromkeys(loss.reason for loss in made.losses)))


def _line(text: str) -> str:
    """Return a reason as a ledger keeps it: a model may have replied what no store takes."""
    text = text.encode("utf-8", "replace").decode("utf-8")
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())[:REASON]


_Outcome = tuple[Task, LedgerRow, Contribution | None]
_One = Callable[[Task, Contribution | None], Awaitable[_Outcome]]


def _batches(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]
