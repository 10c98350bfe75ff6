"""Executors that read and tag segments: in this process, or in workers without a chat model.

Parallel work uses `each`, as LangGraph's `Send` per segment is far too slow.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial

from qrmem.errors import ContextExceeded, ModelOutputError, WindowTooSmall
from qrmem.extraction.reply_items import names_of
from qrmem.extraction.rules_tagger import RulesTagger
from qrmem.llm.parallel import each, in_batches
from qrmem.text.names import normalise_name
from qrmem.types import (
    Contribution,
    EntityTagger,
    Job,
    JobResult,
    Loss,
    Mention,
    Phase,
    Reasoner,
    Sharer,
)
from qrmem.workers import Crew, WorkerLost

# Entities of a schema-based tagger, united with the reasoner's.


@dataclass(frozen=True, slots=True)
class SegmentTags:
    """A tagger's entities of a segment.

    Attributes:
        mentions: the entities.
        tagger: value for a contribution: the tagger's name, `!name` if it failed, "" for no tagger.
        losses: why it failed; then the entities come from the built-in rules.
    """

    mentions: tuple[Mention, ...] = ()
    tagger: str = ""
    losses: tuple[Loss, ...] = ()


async def tagged(tagger: EntityTagger | None, text: str) -> SegmentTags:
    """Return a tagger's entities; if it fails, return the entities of the built-in rules."""
    if tagger is None:
        return SegmentTags()
    try:
        return SegmentTags(tuple(await tagger.tag(text)), tagger.name)
    except Exception as exc:
        why = " ".join(str(exc).split()) or type(exc).__name__
        # No reply of a model was lost: the model's part is repeated from the cache.
        loss = Loss(f"tagger {tagger.name}: {why}; tagged by the rules", raw="", attempt=-1)
        return SegmentTags(tuple(await RulesTagger().tag(text)), f"!{tagger.name}", (loss,))


def of_tagger_alone(made: Contribution, mentions: Sequence[Mention]) -> Contribution:
    """Return a contribution with only the tagger's entities (ablation of QRMeM, section 3.5).

    Relations between these entities still come from the model; its other items are left out.

    Args:
        made: the model's contribution.
        mentions: the tagger's entities of the segment.
    """
    names = names_of(mentions)

    def of(end: str) -> str:
        return names.get(normalise_name(end), "")

    statements = [replace(s, head=of(s.head), tail=of(s.tail)) for s in made.statements]
    statements_kept = tuple(s for s in statements if s.head and s.tail and s.head != s.tail)
    return replace(made, mentions=(), statements=statements_kept)


def united(contribution: Contribution, found: SegmentTags) -> Contribution:
    """Add a tagger's entities and losses to a contribution.

    If both found a name in any of its forms, the reasoner's type is kept unless it is unknown, and
    the forms are joined.
    """
    mentions = list(contribution.mentions)
    at = {norm: i for i, mention in enumerate(mentions) for norm in _norms(mention)}
    for extra in found.mentions:
        place = at.get(normalise_name(extra.name))
        if place is None:
            place = len(mentions)
            mentions.append(extra)
        else:
            mentions[place] = _joined(mentions[place], extra)
        at |= {norm: place for norm in _norms(extra) if norm not in at}
    return replace(
        contribution,
        mentions=tuple(mentions),
        tagger=found.tagger,
        losses=contribution.losses + found.losses,
    )


def _norms(mention: Mention) -> list[str]:
    return [norm for form in (mention.name, *mention.forms) if (norm := normalise_name(form))]


def _joined(known: Mention, extra: Mention) -> Mention:
    return replace(
        known,
        type=known.type or extra.type,
        forms=tuple(dict.fromkeys((*known.forms, *extra.forms))),
        count=max(known.count, extra.count),
    )


LOCAL_BATCH = 64
"""Number of segments per batch of results for a local reasoner."""
TAGGED_BATCH = 16
"""The same number with an external tagger, which takes longer than the reasoner."""
FRUITLESS = 3
"""After this many useless shared calls, and no useful one, calls are not shared any more."""

Done = Callable[[Sequence[JobResult]], Awaitable[None]]


@dataclass(slots=True)
class _Call:
    """The unread jobs of one call.

    Attributes:
        is_shared: whether to try them together first.
    """

    jobs: list[Job]
    is_shared: bool


class InProcess:
    """Reads segments in this process with a reasoner and a tagger, several at a time."""

    def __init__(
        self,
        reasoner: Reasoner,
        tagger: EntityTagger | None = None,
        *,
        concurrency: int = 8,
        open_entity: bool = True,
    ) -> None:
        """Take the reasoner and the tagger.

        Args:
            tagger: its entities are united with the reasoner's.
            concurrency: maximum number of calls in flight.
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
        for batch in in_batches(jobs, size):
            results: dict[str, JobResult] = {}

            async def work(job: Job, results: dict[str, JobResult] = results) -> None:
                results[job.segment.id] = await self._one(phase, job)
                await asyncio.sleep(0)  # lets a cancellation through

            await each(batch, work, concurrency=self._concurrency if self._tagger else 1)
            await done([results[job.segment.id] for job in batch])

    async def _read(self, phase: Phase, done: Done, call: _Call) -> None:
        """Read the unread jobs of a call."""
        was_of_use = self._was_of_use
        if call.is_shared and (any(was_of_use) or len(was_of_use) < FRUITLESS):
            results = await self._together(phase, call.jobs)
            if results:
                await done(results)
            read = {result.segment_id for result in results}
            call.jobs = [job for job in call.jobs if job.segment.id not in read]
            was_of_use.append(bool(results))
        call.is_shared = False
        while call.jobs:
            await done([await self._one(phase, call.jobs[0])])
            del call.jobs[0]

    async def _together(self, phase: Phase, jobs: Sequence[Job]) -> list[JobResult]:
        """Read several segments in one call; return no result if the call fails."""
        reasoner = self._reasoner
        if not isinstance(reasoner, Sharer):
            return []
        try:
            if phase == "extract":
                contributions = await reasoner.extract_together(jobs)
            else:
                contributions = await reasoner.supplement_together(jobs)
        except (ModelOutputError, WindowTooSmall, ContextExceeded):
            return []
        return [
            JobResult(
                job.segment.id, self._tagged(phase, contribution, await self._tags(phase, job))
            )
            for job, contribution in zip(jobs, contributions, strict=True)
            if contribution is not None
        ]

    async def _one(self, phase: Phase, job: Job) -> JobResult:
        try:
            tags = await self._tags(phase, job)
            reading = replace(job.reading, tagged=tags.mentions, open_entity=self._open_entity)
            if phase == "extract":
                contribution = await self._reasoner.extract(job.segment, reading)
            else:
                assert job.known is not None
                contribution = await self._reasoner.supplement(
                    job.segment, reading, job.known, job.questions
                )
        except ModelOutputError as exc:
            return JobResult(job.segment.id, error=str(exc), raw=exc.raw)
        return JobResult(job.segment.id, self._tagged(phase, contribution, tags))

    async def _tags(self, phase: Phase, job: Job) -> SegmentTags:
        """Return the tagger's entities of a segment; a second reading builds on the first one's."""
        if phase == "extract":
            return await tagged(self._tagger, job.segment.text)
        assert job.known is not None
        return SegmentTags(job.known.mentions)

    def _tagged(self, phase: Phase, made: Contribution, found: SegmentTags) -> Contribution:
        """Return a reading with the tagger's entities; a second reading is returned unchanged."""
        if not self._open_entity:
            made = of_tagger_alone(made, found.mentions)
        return united(made, found) if self._tagger and phase == "extract" else made


# --- by workers ----------------------------------------------------------------------------------

READ_TWICE = "two workers were lost while reading this"


@dataclass(frozen=True, slots=True)
class HowRead:
    """The configuration of a worker: everything that a contribution depends on, as plain data.

    Attributes:
        tokenizer: name of the tokenizer in the settings.
        open_entity: see `InProcess`.
        tagger: settings to open a tagger; empty for none.
    """

    tokenizer: str
    open_entity: bool = True
    tagger: tuple[tuple[str, str | float], ...] = ()


class ByWorkers:
    """Reads segments by rules in workers; the results equal those of this process."""

    def __init__(self, crew: Crew, how: HowRead, check: Callable[[], None]) -> None:
        """Take the workers and their configuration.

        Args:
            check: called before each batch; it raises if the run should stop.
        """
        self._crew = crew
        self._how = how
        self._check = check

    async def map(
        self,
        phase: Phase,
        calls: Sequence[Sequence[Job]],
        done: Done,
        *,
        was_answered: bool = False,
    ) -> None:
        """Read segments; see `qrmem.types.Executor`.

        If a worker is lost, the segments of its batch are read again one by one, so that only a
        segment that kills workers fails.
        """
        jobs = [job for together in calls for job in together]
        size = max(1, min(LOCAL_BATCH, -(-len(jobs) // self._crew.at_once)))
        again: list[Job] = []

        async def first(batch: Sequence[Job]) -> None:
            try:
                results = await self._read(phase, batch)
            except WorkerLost:
                again.extend(batch)
            else:
                await done(results)

        async def second(job: Job) -> None:
            try:
                results = await self._read(phase, [job])
            except WorkerLost:
                results = [JobResult(job.segment.id, error=READ_TWICE)]
            await done(results)

        await each(list(in_batches(jobs, size)), first, concurrency=self._crew.at_once)
        await each(again, second, concurrency=self._crew.at_once)

    async def _read(self, phase: Phase, jobs: Sequence[Job]) -> list[JobResult]:
        self._check()
        results: list[JobResult] = await self._crew.do(read_jobs, self._how, phase, jobs)
        return results


async def read_jobs(how: HowRead, phase: Phase, jobs: Sequence[Job]) -> list[JobResult]:
    """Read segments in a worker."""
    results_so_far: list[JobResult] = []

    async def done(results: Sequence[JobResult]) -> None:
        results_so_far.extend(results)

    await _reader(how).map(phase, [[job] for job in jobs], done)
    return results_so_far


@cache
def _reader(how: HowRead) -> InProcess:
    """Return a worker's reader; a tagger starts once in each worker."""
    from qrmem.answering.local import LocalReasoner
    from qrmem.config import Settings
    from qrmem.extraction.taggers import open_tagger
    from qrmem.llm.tokenizers import open_tokenizer

    tagger = open_tagger(Settings().with_(**dict(how.tagger))) if how.tagger else None
    reasoner = LocalReasoner(open_tokenizer(how.tokenizer))
    return InProcess(reasoner, tagger, open_entity=how.open_entity)
