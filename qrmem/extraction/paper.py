"""Mode `paper`: the paper's prompts in order, one call for each (QRMeM, Appendix E)."""

import re
from collections.abc import Sequence
from dataclasses import replace

from qrmem.errors import ModelOutputError
from qrmem.extraction import reply_items as items
from qrmem.extraction.compact import asked, fresh, supplemented
from qrmem.extraction.own_types import Items, Typing, fitted
from qrmem.extraction.prompt_context import PromptContext, entity_lines, pieces, relation_lines
from qrmem.llm.prompting import Kept
from qrmem.prompts import fenced, fenced_if
from qrmem.prompts.replies import EntitiesReply, FoldReply, QuestionsReply, RelationsReply
from qrmem.types import Contribution, Folded, Loss, Mention, Reading, Segment


async def extract(context: PromptContext, segment: Segment, reading: Reading) -> Contribution:
    """Return entities, relations between them and the tagger's entities, and questions."""
    losses: list[Loss] = []
    entity_items = await _entities(context, segment, reading, losses) if reading.open_entity else []
    mentions_found = items.mentions(entity_items, items.Shown(segment.text))
    everything = [*mentions_found, *fresh(mentions_found, reading.tagged)]
    related = await _relations(context, segment, reading, everything, losses)

    def made(given: Items, typing: Typing | None) -> Contribution:
        shown = items.Shown(segment.text)
        mentions = items.mentions(given[0], shown, typing)
        everything = [*mentions, *fresh(mentions, reading.tagged)]
        statements, new = items.statements(given[1], everything, shown, typing)
        return Contribution(
            segment_id=segment.id,
            kind="extraction",
            mentions=(*mentions, *new),
            statements=tuple(statements),
        )

    contribution = await fitted(context, segment, reading, (entity_items, related), made)
    questions = await _questions(context, segment, reading, contribution, losses)
    return replace(contribution, questions=questions, losses=(*losses, *contribution.losses))


async def supplement(
    context: PromptContext,
    segment: Segment,
    reading: Reading,
    known: Contribution,
    questions: Sequence[str],
) -> Contribution:
    """Return the new items from the entity and relation prompts with the accepted questions."""
    names_read, losses = [], list[Loss]()
    lines = entity_lines(known)
    if reading.open_entity:
        entities = await context.caller.call(
            "entities-asked",
            EntitiesReply,
            **asked(context, segment, reading, known, lines, questions),
        )
        names_read = entities.value.entities
        losses += entities.losses
    mentions_found = items.mentions(items.split(names_read, questions), items.Shown(segment.text))
    lines = [
        *(f"{mention.name} (new)" for mention in fresh(known.mentions, mentions_found)),
        *lines,
    ]
    relations = await context.caller.call(
        "relations-asked",
        RelationsReply,
        **asked(context, segment, reading, known, lines, questions),
    )
    contribution = await supplemented(
        context, segment, reading, known, questions, names_read, relations.value.relations
    )
    contribution = replace(contribution, by_model=False, dropped=())
    return replace(contribution, losses=(*losses, *relations.losses, *contribution.losses))


# --- one prompt each ------------------------------------------------------------------------------


async def _entities(
    context: PromptContext, segment: Segment, reading: Reading, losses: list[Loss]
) -> list[items.ReplyItem]:
    call = await context.caller.call(
        "entities", EntitiesReply, **context.about(segment, reading, is_long=True, part="entities")
    )
    losses += call.losses
    return items.split(call.value.entities)


async def _relations(
    context: PromptContext,
    segment: Segment,
    reading: Reading,
    known: Sequence[Mention],
    losses: list[Loss],
) -> list[items.ReplyItem]:
    text, names = fenced(mark_entities(segment.text, known)), [mention.name for mention in known]

    def more(kept: Kept) -> dict[str, object]:
        return dict(marked=text, entities=fenced_if("\n".join(kept[0])))

    call = await context.caller.call(
        "relations",
        RelationsReply,
        **context.about(segment, reading, names, more=more, is_long=True, part="relations"),
    )
    losses += call.losses
    return items.split(call.value.relations)


async def _questions(
    context: PromptContext,
    segment: Segment,
    reading: Reading,
    known: Contribution,
    losses: list[Loss],
) -> tuple[str, ...]:
    count_wanted = context.wanted(segment)
    if not count_wanted:
        return ()

    def more(kept: Kept) -> dict[str, object]:
        relations, entities = (fenced_if("\n".join(lines)) for lines in kept)
        return dict(entities=entities, relations=relations, count=count_wanted)

    call = await context.caller.call(
        "questions",
        QuestionsReply,
        **context.about(
            segment, reading, relation_lines(known), entity_lines(known), more=more, part="none"
        ),
    )
    losses += call.losses
    return items.questions(call.value.questions, count_wanted)


def mark_entities(text: str, known: Sequence[Mention]) -> str:
    """Return a text with its entities in double brackets; of overlapping names the longest.

    Like the paper, the prompt set `paper` shows the text twice, plain and marked. The default set
    shows only the marked text, for half the tokens.
    """
    forms = sorted({form for m in known for form in (m.name, *m.forms)}, key=len, reverse=True)
    if not forms:
        return text
    pattern = "|".join(rf"(?<!\w){re.escape(form)}(?!\w)" for form in forms)
    return re.sub(pattern, lambda match: f"[[{match.group()}]]", text)


# Merging two relations of one pair of entities with a chat model (QRMeM, Appendix E).


async def fold(
    context: PromptContext,
    relations: tuple[str, str],
    texts: tuple[str, str],
    *,
    summary: str = "",
    question: str = "",
) -> Folded:
    """Merge parallel relations in one call: the questions Q_s to settle, then the description.

    See `qrmem.types.Reasoner`.
    """

    def inputs(kept: Kept) -> dict[str, object]:
        return dict(
            question=question,
            background=fenced_if(" ".join(kept[0])),
            segment_1=fenced(" ".join(kept[1])),
            relation_1=fenced(relations[0]),
            segment_2=fenced(" ".join(kept[2])),
            relation_2=fenced(relations[1]),
        )

    try:
        call = await context.caller.call(
            "fold",
            FoldReply,
            inputs,
            [pieces(summary), *(pieces(text) for text in texts)],
            window=context.window,
            reply=context.reserve,
        )
    except ModelOutputError:
        return Folded()
    questions_settled = tuple(" ".join(question.split()) for question in call.value.questions)
    return Folded(" ".join(call.value.description.split()), questions_settled)
