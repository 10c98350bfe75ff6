"""Several short segments in one call, to share the prompt; the reply has notes for each segment.

Notes that are missing, or that may belong to another segment, are not used: the caller reads that
segment alone.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from qrmem.errors import ModelOutputError
from qrmem.extraction.compact import contribution_of, supplemented
from qrmem.extraction.prompt_context import (
    LONG,
    Out,
    PromptContext,
    SchemaPart,
    background,
    numbered,
    pieces,
    relation_lines,
)
from qrmem.llm.prompting import Kept
from qrmem.prompts import fenced
from qrmem.prompts.replies import (
    PassageRead,
    PassageSupplement,
    ReadTogetherReply,
    SupplementTogetherReply,
)
from qrmem.types import Contribution, Job

FRAME = 48
"""Tokens of a reply per passage, in addition to its notes."""


Entry = TypeVar("Entry", PassageRead, PassageSupplement)


async def extract(context: PromptContext, jobs: Sequence[Job]) -> list[Contribution | None]:
    """Return the contributions of the first pass; `None` for a segment to read alone."""

    def shown(job: Job) -> str:
        return f"Questions wanted: {context.wanted(job.segment)}"

    reply = await _ask(context, "read-together", ReadTogetherReply, jobs, shown, LONG, "all")

    async def made(job: Job, entry: PassageRead) -> Contribution | None:
        notes = await contribution_of(
            context, job.segment, job.reading, entry.entities, entry.relations, entry.questions
        )
        return notes if notes.mentions or notes.left_out else None

    return await _each(jobs, reply.passages, made)


async def supplement(context: PromptContext, jobs: Sequence[Job]) -> list[Contribution | None]:
    """Return the contributions of accepted questions; `None` for a segment to read alone."""
    reply = await _ask(
        context, "supplement-together", SupplementTogetherReply, jobs, _known_lines, 1, "names"
    )

    async def made(job: Job, entry: PassageSupplement) -> Contribution:
        assert job.known is not None
        about = job.segment, job.reading, job.known, job.questions
        return await supplemented(context, *about, entry.entities, entry.relations)

    return await _each(jobs, reply.passages, made)


async def _ask(
    context: PromptContext,
    prompt: str,
    model: type[Out],
    jobs: Sequence[Job],
    beside: Callable[[Job], str],
    length: int,
    part: SchemaPart,
) -> Out:
    """Return the reply; if a part of it was lost, none of it is safe to use."""
    reading = jobs[0].reading
    is_one = len({job.segment.document_id for job in jobs}) == 1
    texts = "\n\n".join(
        f"{_text(n, job, with_title=not is_one)}\n{beside(job)}" for n, job in enumerate(jobs, 1)
    )

    def inputs(kept: Kept) -> dict[str, object]:
        about = background(reading, kept[0]) if is_one else ""
        return dict(background=about, focus=reading.question, passages=texts)

    window = context.within(reading)
    tokens = sum(job.segment.tokens for job in jobs)
    call = await context.caller.call(
        prompt,
        model,
        inputs,
        [pieces(reading.summary) if is_one else []],
        window=window,
        reply=min(max(context.reserve, length * tokens + FRAME * len(jobs)), window // 2),
        segments=[job.segment.id for job in jobs],
        retries=1,
        standing=context.types(part),
    )
    if call.losses:
        raise ModelOutputError(call.losses[0].reason, raw=call.losses[0].raw)
    return call.value


async def _each(
    jobs: Sequence[Job],
    entries: Sequence[Entry],
    made: Callable[[Job, Entry], Awaitable[Contribution | None]],
) -> list[Contribution | None]:
    """Return each segment's entry; entries with a repeated number are not used."""
    times = Counter(entry.n for entry in entries)
    by_number = {entry.n: entry for entry in entries if times[entry.n] == 1}
    job_entries = [(job, by_number.get(n)) for n, job in enumerate(jobs, 1)]
    return [None if entry is None else await made(job, entry) for job, entry in job_entries]


def _text(n: int, job: Job, *, with_title: bool) -> str:
    title = f"Title: {job.reading.title}\n" if with_title and job.reading.title else ""
    return fenced(title + job.segment.text, str(n))


def _known_lines(job: Job) -> str:
    """Return the notes on a segment and its questions; names in relations are not repeated."""
    assert job.known is not None
    statement_ends = {end for s in job.known.statements for end in (s.head, s.tail)}
    names = "; ".join(m.name for m in job.known.mentions if m.name not in statement_ends)
    lines = "\n".join((*relation_lines(job.known), *([names] if names else [])))
    questions = f"Questions:\n{fenced(numbered(job.questions))}"
    return f"Known already:\n{fenced(lines)}\n{questions}" if lines else questions
