"""Mode `compact`: one call reads a segment, a second call asks its accepted questions."""

from collections.abc import Sequence
from dataclasses import replace

from qrmem.extraction import reply_items as items
from qrmem.extraction.own_types import Items, Typing, fitted
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
    """Return the entities, statements and proposed questions of one reply."""
    count_wanted = context.wanted(segment)
    call = await context.caller.call(
        "read",
        ReadReply,
        **context.about(segment, reading, more=lambda kept: dict(count=count_wanted), is_long=True),
    )
    reply = call.value
    contribution = await contribution_of(
        context, segment, reading, reply.entities, reply.relations, reply.questions
    )
    return replace(contribution, losses=call.losses + contribution.losses)


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
    return replace(contribution, losses=call.losses + contribution.losses)


async def contribution_of(
    context: PromptContext,
    segment: Segment,
    reading: Reading,
    entities: Sequence[str],
    relations: Sequence[str],
    questions: Sequence[str],
) -> Contribution:
    """Return the contribution of a first pass from the lists of a reply."""

    def made(given: Items, typing: Typing | None) -> Contribution:
        mentions = items.mentions(given[0], segment.text, typing)
        statements, new = items.statements(given[1], mentions, segment.text, typing)
        return Contribution(
            segment_id=segment.id,
            kind="extraction",
            mentions=(*mentions, *new),
            statements=tuple(statements),
            questions=items.questions(questions, context.wanted(segment)),
        )

    reply_items = items.split(entities), items.split(relations)
    return await fitted(context, segment, reading, reply_items, made)


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
        mentions = items.mentions(given[0], segment.text, typing)
        everything = [*known.mentions, *mentions]
        statements, new = items.statements(given[1], everything, segment.text, typing)
        return Contribution(
            segment_id=segment.id,
            kind="supplement",
            mentions=tuple(fresh(known.mentions, [*mentions, *new])),
            statements=tuple(s for s in statements if (s.head, s.tail, s.description) not in old),
            asked=tuple(questions),
        )

    reply_items = items.split(entities, questions), items.split(relations, questions)
    return await fitted(context, segment, reading, reply_items, made)


def fresh(known: Sequence[Mention], found: Sequence[Mention]) -> list[Mention]:
    """Return the mentions none of whose names is known."""
    names = items.names_of(known)
    return [mention for mention in found if not items.names_of([mention]).keys() & names.keys()]
