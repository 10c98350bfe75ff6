"""Mode `compact`: a segment is read in one call, and once more with its accepted questions."""

from collections.abc import Sequence
from dataclasses import replace

from qrmem.extraction import reply_items as items
from qrmem.extraction.prompt_context import (
    Arguments,
    PromptContext,
    entity_lines,
    numbered,
    relation_lines,
)
from qrmem.llm.prompting import Kept
from qrmem.prompts import fenced, fenced_if
from qrmem.prompts.replies import ReadReply, SupplementReply
from qrmem.types import Contribution, Mention, Reading, Segment


async def extract(context: PromptContext, segment: Segment, reading: Reading) -> Contribution:
    """Return entities, statements and proposed questions of one reply."""
    wanted = context.wanted(segment)
    called = await context.caller.call(
        "read",
        ReadReply,
        **context.about(segment, reading, more=lambda kept: dict(count=wanted), is_long=True),
    )
    reply = called.value
    made = noted(segment, reply.entities, reply.relations, reply.questions, wanted)
    return replace(made, losses=called.losses)


async def supplement(
    context: PromptContext,
    segment: Segment,
    reading: Reading,
    known: Contribution,
    questions: Sequence[str],
) -> Contribution:
    """Return what the accepted questions bring, asked all at once."""
    called = await context.caller.call(
        "supplement",
        SupplementReply,
        **asked(context, segment, reading, known, entity_lines(known), questions),
    )
    reply = called.value
    made = supplemented(segment, known, questions, reply.entities, reply.relations)
    return replace(made, losses=called.losses)


def noted(
    segment: Segment,
    entities: Sequence[str],
    relations: Sequence[str],
    questions: Sequence[str],
    wanted: int,
) -> Contribution:
    """Return a first reading's contribution out of a reply's lists."""
    found = items.mentions(items.split(entities), segment.text)
    stated, new = items.statements(items.split(relations), found, segment.text)
    return Contribution(
        segment_id=segment.id,
        kind="extraction",
        mentions=(*found, *new),
        statements=tuple(stated),
        questions=items.questions(questions, wanted),
    )


def asked(
    context: PromptContext,
    segment: Segment,
    reading: Reading,
    known: Contribution,
    entities: Sequence[str],
    questions: Sequence[str],
) -> Arguments:
    """Return how a segment is read again with questions.

    Args:
        entities: how those that are known are shown.
    """

    def more(kept: Kept) -> dict[str, object]:
        lines = "\n".join((*kept[1], *kept[0]))
        return dict(known=fenced_if(lines), questions=fenced(numbered(questions)))

    return context.about(segment, reading, relation_lines(known), entities, more=more)


def supplemented(
    segment: Segment,
    known: Contribution,
    questions: Sequence[str],
    entities: Sequence[str],
    relations: Sequence[str],
) -> Contribution:
    """Return what is new in replies to numbered questions."""
    found = items.mentions(items.split(entities, questions), segment.text)
    everything = [*known.mentions, *found]
    stated, new = items.statements(items.split(relations, questions), everything, segment.text)
    old = {(s.head, s.tail, s.description) for s in known.statements}
    return Contribution(
        segment_id=segment.id,
        kind="supplement",
        mentions=tuple(fresh(known.mentions, [*found, *new])),
        statements=tuple(s for s in stated if (s.head, s.tail, s.description) not in old),
        asked=tuple(questions),
    )


def fresh(known: Sequence[Mention], found: Sequence[Mention]) -> list[Mention]:
    """Return the mentions that are not known under any of their names."""
    names = items.names_of(known)
    return [mention for mention in found if not items.names_of([mention]).keys() & names.keys()]
