"""Mode `compact`: one call reads a segment, a second call asks its accepted questions."""

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from qrmem.errors import ModelOutputError
from qrmem.extraction import reply_items as items
from qrmem.extraction.own_types import Items, Typing, fitted
from qrmem.extraction.prompt_context import (
    LONG,
    Arguments,
    Out,
    PromptContext,
    SchemaPart,
    background,
    entity_lines,
    numbered,
    pieces,
    relation_lines,
)
from qrmem.llm.prompting import Called, Kept
from qrmem.prompts import fenced, fenced_if
from qrmem.prompts.replies import (
    PassageRead,
    PassageSupplement,
    ReadReply,
    ReadTogetherReply,
    SupplementReply,
    SupplementTogetherReply,
)
from qrmem.types import Contribution, Job, Mention, Reading, Segment


async def extract(context: PromptContext, segment: Segment, reading: Reading) -> Contribution:
    """Return the entities, statements and proposed questions of one reply."""
    count_wanted = context.wanted(segment)
    call = await context.caller.call(
        "read",
        ReadReply,
        **context.about(
            segment,
            reading,
            [reading.before] if reading.before else [],  # a small window has no room for them
            more=lambda kept: dict(count=count_wanted or "", before=fenced_if("".join(kept[0]))),
            is_long=True,
        ),
    )
    reply = call.value
    contribution = await contribution_of(
        context, segment, reading, reply.entities, reply.relations, reply.questions
    )
    return _with_call(contribution, call)


async def supplement(
    context: PromptContext,
    segment: Segment,
    reading: Reading,
    known: Contribution,
    questions: Sequence[str],
) -> Contribution:
    """Return the contribution of the accepted questions, asked in one call."""
    call = await context.caller.call(
        "supplement",
        SupplementReply,
        **asked(context, segment, reading, known, entity_lines(known), questions),
    )
    reply = call.value
    contribution = await supplemented(
        context, segment, reading, known, questions, reply.entities, reply.relations
    )
    return _with_call(contribution, call)


def _with_call(made: Contribution, call: Called[Any]) -> Contribution:
    """Return a contribution with what was lost or left out when its reply was parsed."""
    return replace(made, losses=call.losses + made.losses, dropped=(*call.left_out, *made.dropped))


async def contribution_of(
    context: PromptContext,
    segment: Segment,
    reading: Reading,
    entities: Sequence[str],
    relations: Sequence[str],
    questions: Sequence[str],
    elsewhere: str = "",
) -> Contribution:
    """Return the contribution of a first pass from the lists of a reply.

    Args:
        elsewhere: what else the prompt showed, besides the segment, its title and the lines before.
    """

    def made(given: Items, typing: Typing | None) -> Contribution:
        shown = shown_of(segment, reading, elsewhere)
        mentions = items.mentions(given[0], shown, typing)
        statements, new = items.statements(given[1], mentions, shown, typing)
        mentions = items.concerned(mentions, statements, shown)
        return Contribution(
            segment_id=segment.id,
            kind="extraction",
            mentions=(*mentions, *new),
            statements=tuple(statements),
            questions=items.questions(questions, context.wanted(segment)),
            by_model=True,
            dropped=tuple(shown.dropped),
        )

    reply_items = items.split(entities), items.split(relations)
    return await fitted(context, segment, reading, reply_items, made)


def shown_of(segment: Segment, reading: Reading, elsewhere: str = "") -> items.Shown:
    """Return the texts in which the names of a segment may stand."""
    around = "\n".join((reading.title, segment.part, reading.before))
    return items.Shown(segment.text, around, f"{reading.summary}\n{elsewhere}")


def asked(
    context: PromptContext,
    segment: Segment,
    reading: Reading,
    known: Contribution,
    entities: Sequence[str],
    questions: Sequence[str],
) -> Arguments:
    """Return the arguments of the call that reads a segment again with questions.

    Args:
        entities: the known entities as the prompt shows them.
    """

    def more(kept: Kept) -> dict[str, object]:
        lines = "\n".join((*kept[1], *kept[0]))
        return dict(known=fenced_if(lines), questions=fenced(numbered(questions)))

    return context.about(segment, reading, relation_lines(known), entities, more=more, part="names")


async def supplemented(
    context: PromptContext,
    segment: Segment,
    reading: Reading,
    known: Contribution,
    questions: Sequence[str],
    entities: Sequence[str],
    relations: Sequence[str],
) -> Contribution:
    """Return the new entities and statements in a reply to numbered questions."""
    old = {(s.head, s.tail, s.description) for s in known.statements}

    def made(given: Items, typing: Typing | None) -> Contribution:
        shown = shown_of(segment, reading)
        mentions = items.mentions(given[0], shown, typing)
        everything = [*known.mentions, *mentions]
        statements, new = items.statements(given[1], everything, shown, typing)
        return Contribution(
            segment_id=segment.id,
            kind="supplement",
            mentions=tuple(fresh(known.mentions, [*mentions, *new])),
            statements=tuple(s for s in statements if (s.head, s.tail, s.description) not in old),
            asked=tuple(questions),
            by_model=True,
            dropped=tuple(shown.dropped),
        )

    reply_items = items.split(entities, questions), items.split(relations, questions)
    return await fitted(context, segment, reading, reply_items, made)


def fresh(known: Sequence[Mention], found: Sequence[Mention]) -> list[Mention]:
    """Return the mentions none of whose names is known."""
    names = items.names_of(known)
    return [mention for mention in found if not items.names_of([mention]).keys() & names.keys()]


# Several short segments in one call, to share the prompt; the reply has notes for each segment.
#
# Notes that are missing, or that may belong to another segment, are not used: the caller reads that
# segment alone.


FRAME = 48
"""Tokens of a reply per passage, in addition to its notes."""


Entry = TypeVar("Entry", PassageRead, PassageSupplement)


async def extract_together(
    context: PromptContext, jobs: Sequence[Job]
) -> list[Contribution | None]:
    """Return the contributions of the first pass; `None` for a segment to read alone."""

    def shown(job: Job) -> str:
        wanted = context.wanted(job.segment)
        return f"Questions wanted: {wanted}" if wanted else ""

    # Segments of one document tell what "the ship" is; those of others have nothing to do with it.
    is_one = len({job.segment.document_id for job in jobs}) == 1
    together = "\n".join(job.segment.text for job in jobs) if is_one else ""

    call = await _ask_together(
        context, "read-together", ReadTogetherReply, jobs, shown, LONG, "all"
    )

    async def made(job: Job, entry: PassageRead) -> Contribution | None:
        notes = await contribution_of(
            context,
            job.segment,
            job.reading,
            entry.entities,
            entry.relations,
            entry.questions,
            together,
        )
        # Names of which none stands there may be those of another passage.
        return None if notes.dropped and not notes.mentions else notes

    notes = await _each(jobs, call.value.passages, made)
    # One passage may have no entity; a reply without any is of no use.
    is_empty = not any(one.mentions or one.left_out for one in notes if one is not None)
    return [None] * len(jobs) if is_empty else _told(notes, call)


async def supplement_together(
    context: PromptContext, jobs: Sequence[Job]
) -> list[Contribution | None]:
    """Return the contributions of accepted questions; `None` for a segment to read alone."""
    call = await _ask_together(
        context, "supplement-together", SupplementTogetherReply, jobs, _known_lines, 1, "names"
    )

    async def made(job: Job, entry: PassageSupplement) -> Contribution:
        assert job.known is not None
        about = job.segment, job.reading, job.known, job.questions
        return await supplemented(context, *about, entry.entities, entry.relations)

    return _told(await _each(jobs, call.value.passages, made), call)


def _told(notes: list[Contribution | None], call: Called[Any]) -> list[Contribution | None]:
    """Return the notes of a shared call; the first ones say what was left out of the reply."""
    first = next((at for at, made in enumerate(notes) if made is not None), None)
    if first is not None and (made := notes[first]) is not None:
        notes[first] = replace(made, dropped=(*call.left_out, *made.dropped))
    return notes


async def _ask_together(
    context: PromptContext,
    prompt: str,
    model: type[Out],
    jobs: Sequence[Job],
    beside: Callable[[Job], str],
    length: int,
    part: SchemaPart,
) -> Called[Out]:
    """Return the reply; if a part of it was lost, none of it is safe to use."""
    reading = jobs[0].reading
    is_one = len({job.segment.document_id for job in jobs}) == 1
    texts = "\n\n".join(
        f"{_numbered_text(n, job, with_title=not is_one)}\n{beside(job)}".rstrip()
        for n, job in enumerate(jobs, 1)
    )
    before = fenced_if(reading.before if is_one else "") if part == "all" else None

    def inputs(kept: Kept) -> dict[str, object]:
        about = background(reading, kept[0]) if is_one else ""
        slots: dict[str, object] = dict(background=about, focus=reading.question, passages=texts)
        return slots if before is None else {**slots, "before": before}

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
    return call


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


def _numbered_text(n: int, job: Job, *, with_title: bool) -> str:
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
