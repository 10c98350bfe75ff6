"""The parallel passes of a build over segments; each result is committed at once.

The segments of a shared chat call depend only on the texts of a source, not on earlier runs or on
concurrency.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from qrmem.agents.build_state import Build
from qrmem.agents.executor import LOCAL_BATCH
from qrmem.llm.parallel import in_batches
from qrmem.text.boilerplate import is_all_apparatus
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
    Segment,
    SegmentState,
)

REASON = 300
"""Maximum length in characters of a model's error in the ledger."""

SHARERS = 8
"""Maximum number of segments per shared call."""


_Outcome = tuple[Job, LedgerRow, Contribution | None]


@dataclass(slots=True)
class Reader:
    """Reads segments by an executor and commits the contributions.

    Attributes:
        executor: the executor.
        rows: segment id to its ledger row.
        first_readings: number of first passes in this run.
        left_out: number of entities and relations without any type of a closed schema.
        boilerplate: number of segments that are only boilerplate and gave no entities.
        dropped: document id, segment index and reason of items of replies that could not be used.
        shared: id of each segment in a shared call to the ids of all segments of the call.
        was_answered: whether a chat model has answered in this run.
    """

    build: Build
    executor: Executor
    rows: dict[str, LedgerRow] = field(default_factory=dict)
    first_readings: int = 0
    left_out: int = 0
    boilerplate: int = 0
    dropped: list[tuple[str, int, str]] = field(default_factory=list)
    shared: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    was_answered: bool = False
    _warned: set[str] = field(default_factory=set)
    _told: set[str] = field(default_factory=set)

    async def close(self, jobs: Sequence[Job]) -> None:
        """Close segments without a further pass; each becomes `ok` or `partial`."""
        for batch in in_batches(jobs, LOCAL_BATCH):
            await self._commit([(job, self._closed(job), None) for job in batch])

    async def read(
        self, phase: Phase, jobs: Sequence[Job], among: Collection[str] | None = None
    ) -> None:
        """Read segments; the first pass ends `extracted` or `failed`, the second `ok` or `partial`.

        Args:
            phase: first or second pass.
            jobs: the segments to read.
            among: see `calls`.
        """
        if jobs:
            commit_results = partial(
                self._commit_results, phase, {job.segment.id: job for job in jobs}
            )
            grouped = calls(jobs, self.shared, among)
            await self.executor.map(phase, grouped, commit_results, was_answered=self.was_answered)
            self.was_answered = True

    async def _commit_results(
        self, phase: Phase, jobs: Mapping[str, Job], results: Sequence[JobResult]
    ) -> None:
        outcomes: list[_Outcome] = []
        for result in results:
            job = jobs[result.segment_id]
            if result.contribution is not None:
                place = job.segment.document_id, job.segment.index
                self.dropped += [(*place, _line(why)) for why in result.contribution.dropped]
            if result.contribution is None:
                outcomes.append((job, await self._refused(phase, job, result), None))
            elif phase == "extract":
                outcomes.append(self._extracted(job, result.contribution))
            else:
                contribution = replace(result.contribution, asked=job.questions)
                outcomes.append((job, self._closed(job, contribution), contribution))
        await self._commit(outcomes)

    def _extracted(self, job: Job, made: Contribution) -> _Outcome:
        self._warn(made.losses)
        if job.reading.question:
            made = replace(made, asked=(job.reading.question,))
        self.first_readings += 1
        self.boilerplate += not made.mentions and is_all_apparatus(job.segment.text)
        return job, self._row(job, "extracted", _reason(made)), made

    async def _commit(self, outcomes: Sequence[_Outcome]) -> None:
        """Commit segments in one transaction, with the calls that were about them."""
        rows = [(row, contribution) for _, row, contribution in outcomes]
        self.left_out += sum(extraction.left_out for _, extraction in rows if extraction)
        calls: list[CallRecord] = []
        for row, _ in rows:
            calls += self.build.parts.take(row.segment_id)
        await self.build.store.record(self.build.ns, rows, calls)
        self.rows.update({row.segment_id: row for _, row, _ in outcomes})
        if fresh := {row.segment_id for row, _ in rows} - self._told:
            self._told |= fresh
            self.build.listener(Event("segment", {"count": len(fresh)}))

    def _warn(self, losses: Sequence[Loss]) -> None:
        """Report a failure of the tagger when it occurs for the first time."""
        for loss in losses:
            if loss.attempt < 0 and loss.reason not in self._warned:
                self._warned.add(loss.reason)
                self.build.listener(Event("warning", {"message": loss.reason}))

    def _row(self, job: Job, state: SegmentState, reason: str = "") -> LedgerRow:
        return LedgerRow(job.segment.id, state, reason, self.build.parts.reasoner.name)

    def _closed(self, job: Job, made: Contribution | None = None) -> LedgerRow:
        """Return the final row of a segment; it is `partial` if a part of a reply was lost."""
        reason = "; ".join(_reason(part) for part in (job.known, made) if part and part.losses)
        return self._row(job, "partial" if reason else "ok", _line(reason))

    async def _refused(self, phase: Phase, job: Job, result: JobResult) -> LedgerRow:
        """Store an unusable reply, so that a user can look it up."""
        is_first = phase == "extract" and job.known is None
        state: SegmentState = "failed" if is_first else "partial"
        id_ = job.segment.id
        await self.build.store.put_cache_entry(
            self.build.ns, "raw", f"raw:{id_}:{state}", {"raw": result.raw}, segments=[id_]
        )
        return self._row(job, state, _line(result.error))


# --- which segments share a call -----------------------------------------------------------------


def shares(segments: Iterable[Segment], limit: int) -> dict[str, tuple[str, ...]]:
    """Return, for each segment in a shared call, the ids of all segments of the call.

    Segments of one document can share a call, as they have the same summary. Documents with a
    single segment can share a call, too.

    Args:
        segments: segments in order.
        limit: maximum number of tokens per call; a segment with more than half gets its own call.
    """
    segments_left = list(segments)
    sizes = Counter(segment.document_id for segment in segments_left)
    filling: dict[str, list[Segment]] = {}
    groups: list[list[Segment]] = []
    for segment in segments_left:
        if 2 * segment.tokens > limit:
            continue
        key = segment.document_id if sizes[segment.document_id] > 1 else ""
        group = filling.get(key)
        is_full = group is None or len(group) == SHARERS
        if group is None or is_full or sum(s.tokens for s in group) + segment.tokens > limit:
            filling[key] = group = []
            groups.append(group)
        group.append(segment)
    id_groups = (tuple(segment.id for segment in group) for group in groups)
    return {id: ids for ids in id_groups if len(ids) > 1 for id in ids}


def calls(
    jobs: Sequence[Job],
    shared: Mapping[str, tuple[str, ...]],
    among: Collection[str] | None = None,
) -> list[list[Job]]:
    """Return the calls that read some segments, each as a list of jobs.

    A call is shared only if all its segments need a first pass. If an earlier run read some of
    them, the others must be read alone.

    Args:
        jobs: the segments to read.
        shared: see `shares`.
        among: all segments of this phase, with those of earlier runs; `None`: every segment.
    """
    waiting = {job.segment.id: job for job in jobs}
    job_calls = []
    for job in jobs:
        if job.segment.id not in waiting:
            continue
        ids = shared.get(job.segment.id, ())
        members = [id for id in ids if among is None or id in among]
        together = [waiting[id] for id in members if id in waiting]
        is_whole = 1 < len(together) == len(members)
        is_shared = is_whole and all(t.reading.attempt == 0 for t in together)
        job_calls.append(together if is_shared else [job])
        for read in job_calls[-1]:
            del waiting[read.segment.id]
    return job_calls


# --- rows of the ledger --------------------------------------------------------------------------


def _reason(made: Contribution) -> str:
    return _line("; ".join(dict.fromkeys(loss.reason for loss in made.losses)))


def _line(text: str) -> str:
    """Return a reason in the form of a ledger row, without characters that no store keeps."""
    text = text.encode("utf-8", "replace").decode("utf-8")
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())[:REASON]
