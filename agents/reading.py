"""Reading segments: the parallel phases of a build, each committed as it comes in."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

from qrmem.agents.calls import Task, calls
from qrmem.agents.executor import LOCAL_BATCH, InProcess
from qrmem.agents.state import BuildDeps
from qrmem.types import (
    CallRecord,
    Contribution,
    Event,
    Executor,
    Job,
    JobResult,
    LedgerRow,
    Loss,
    Phase,
    SegmentState,
)

T = TypeVar("T")

REASON = 300
"""Characters of a model's error that the ledger keeps."""

_Outcome = tuple[Task, LedgerRow, Contribution | None]


@dataclass(slots=True)
class Reader:
    """Has segments read by the executor and commits what they bring.

    Attributes:
        rows: what the ledger says, by segment id.
        read: ids of segments whose first reading was made.
        shared: for each segment that shares a call the ids of all that do.
        was_answered: whether a chat model has answered in this run.
        firsts: what was read first since it was emptied last, without a model, by segment id.
    """

    deps: BuildDeps
    rows: dict[str, LedgerRow] = field(default_factory=dict)
    read: list[str] = field(default_factory=list)
    shared: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    was_answered: bool = False
    firsts: dict[str, Contribution] = field(default_factory=dict)
    _executor: Executor | None = None
    _warned: set[str] = field(default_factory=set)

    async def extract(self, tasks: Sequence[Task]) -> None:
        """Read segments for the first time; each ends `extracted` or `failed`."""
        await self._map("extract", [call.tasks for call in calls(tasks, self.shared)])

    async def supplement(self, tasks: Sequence[Task], questioned: Collection[str]) -> None:
        """Read segments again with their accepted questions; each ends `ok` or `partial`.

        Args:
            questioned: ids of all segments that have some, those of earlier runs too.
        """
        idle = [task for task in tasks if not task.questions]
        for batch in _batches(idle, LOCAL_BATCH):
            await self._commit([(task, self._closed(task), None) for task in batch])
        asked = [task for task in tasks if task.questions]
        await self._map("supplement", [c.tasks for c in calls(asked, self.shared, questioned)])

    async def _map(self, phase: Phase, todo: Sequence[Sequence[Task]]) -> None:
        if not todo:
            return
        by_id = {task.segment.id: task for tasks in todo for task in tasks}
        jobs = [[_job(task) for task in tasks] for tasks in todo]
        done = partial(self._done, phase, by_id)
        await self._where().map(phase, jobs, done, was_answered=self.was_answered)
        self.was_answered = True

    def _where(self) -> Executor:
        if self._executor is None:
            deps = self.deps
            self._executor = deps.executor or InProcess(
                deps.reasoner,
                deps.tagger,
                concurrency=deps.concurrency,
                open_entity=deps.open_entity,
            )
        return self._executor

    async def _done(
        self, phase: Phase, tasks: Mapping[str, Task], results: Sequence[JobResult]
    ) -> None:
        outcomes: list[_Outcome] = []
        for result in results:
            task = tasks[result.segment_id]
            if result.contribution is None:
                outcomes.append((task, await self._refused(phase, task, result), None))
            elif phase == "extract":
                outcomes.append(self._extracted(task, result.contribution))
            else:
                made = replace(result.contribution, asked=task.questions)
                outcomes.append((task, self._closed(task, made), made))
        await self._commit(outcomes)

    def _extracted(self, task: Task, made: Contribution) -> _Outcome:
        self._warn(made.losses)
        if task.reading.question:
            made = replace(made, asked=(task.reading.question,))
        self.read.append(task.segment.id)
        if self.deps.reasoner.is_local:
            self.firsts[task.segment.id] = made
        return task, self._row(task, "extracted", _reason(made)), made

    async def _commit(self, outcomes: Sequence[_Outcome]) -> None:
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
        """Report a failure of the tagger when it occurs for the first time."""
        for loss in losses:
            if loss.attempt < 0 and loss.reason not in self._warned:
                self._warned.add(loss.reason)
                self.deps.listener(Event("warning", {"message": loss.reason}))

    def _row(self, task: Task, state: SegmentState, reason: str = "") -> LedgerRow:
        return LedgerRow(task.segment.id, state, reason, self.deps.reasoner.name)

    def _closed(self, task: Task, made: Contribution | None = None) -> LedgerRow:
        """Return the last row of a segment, which is `partial` if something of it was lost."""
        reason = "; ".join(_reason(part) for part in (task.known, made) if part and part.losses)
        return self._row(task, "partial" if reason else "ok", _line(reason))

    async def _refused(self, phase: Phase, task: Task, result: JobResult) -> LedgerRow:
        """Keep a reply that could not be used, for whoever wants to know why."""
        is_first = phase == "extract" and task.known is None
        state: SegmentState = "failed" if is_first else "partial"
        id_ = task.segment.id
        await self.deps.store.put_cached(
            self.deps.ns, f"raw:{id_}:{state}", {"raw": result.raw}, segment_id=id_
        )
        return self._row(task, state, _line(result.error))


def _job(task: Task) -> Job:
    return Job(task.segment, task.reading, task.known, task.questions)


def _reason(made: Contribution) -> str:
    return _line("; ".join(dict.fromkeys(loss.reason for loss in made.losses)))


def _line(text: str) -> str:
    """Return a reason as a ledger keeps it: a model may have replied what no store takes."""
    text = text.encode("utf-8", "replace").decode("utf-8")
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())[:REASON]


def _batches(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]
