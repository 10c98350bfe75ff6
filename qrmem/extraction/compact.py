"""Mode `compact`: a segment is read in one call, and once more with its accepted questions."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from qrmem.extraction import reply_items as items
from qrmem.extraction.prompt_context import (
    PromptContext,
    background,
    entity_lines,
    numbered,
    pieces,
    relation_lines,
)
from qrmem.llm.prompting import Kept
from qrmem.prompts import fenced, fenced_if
from qrmem.prompts.replies import ReadReply, SupplementReply
from qrmem.types import Contribution, Mention, Reading, Segment


@dataclass(frozen=True, slots=True)
class CompactReader:
    """At most two calls per segment."""

    context: PromptContext

    async def extract(self, segment: Segment, reading: Reading) -> Contribution:
        """Return entities, statements and proposed questions of one reply."""
        wanted = self.context.wanted(segment)

        def inputs(kept: Kept) -> dict[str, object]:
            return dict(
                background=background(reading, kept[0]),
                focus=reading.question,
                segment=fenced(segment.text),
                count=wanted,
            )

        called = await self.context.caller.call(
            "read",
            ReadReply,
            inputs,
            [pieces(reading.summary)],
            **self.context.limits(segment, reading, is_long=True),
        )
        reply = called.value
        made = noted(segment, reply.entities, reply.relations, reply.questions, wanted)
        return replace(made, losses=called.losses)

    async def supplement(
        self, segment: Segment, reading: Reading, known: Contribution, questions: Sequence[str]
    ) -> Contribution:
        """Return what the accepted questions bring, asked all at once."""

        def inputs(kept: Kept) -> dict[str, object]:
            return asked_inputs(segment, reading, kept, questions)

        called = await self.context.caller.call(
            "supplement",
            SupplementReply,
            inputs,
            [pieces(reading.summary), relation_lines(known), entity_lines(known)],
            **self.context.limits(segment, reading),
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


def asked_inputs(
    segment: Segment, reading: Reading, kept: Kept, questions: Sequence[str]
) -> dict[str, object]:
    """Return a second reading's inputs out of what was kept of summary, relations and entities."""
    summary, relations, entities = kept
    return dict(
        background=background(reading, summary),
        focus=reading.question,
        segment=fenced(segment.text),
        known=fenced_if("\n".join((*entities, *relations))),
        questions=fenced(numbered(questions)),
    )


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
