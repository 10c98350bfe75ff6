"""Mode `paper`: the paper's prompts in their order, each a call of its own (QRMeM, Appendix E)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from qrmem.extraction import reply_items as items
from qrmem.extraction.compact import asked_inputs, fresh, supplemented
from qrmem.extraction.prompt_context import (
    PromptContext,
    background,
    entity_lines,
    pieces,
    relation_lines,
)
from qrmem.llm.prompting import Kept
from qrmem.prompts import fenced, fenced_if
from qrmem.prompts.replies import EntitiesReply, QuestionsReply, RelationsReply
from qrmem.types import Contribution, Loss, Mention, Reading, Segment, Statement


@dataclass(frozen=True, slots=True)
class PaperReader:
    """Three calls for the first reading, two for the second."""

    context: PromptContext

    async def extract(self, segment: Segment, reading: Reading) -> Contribution:
        """Return entities, relations between them and the tagger's, and proposed questions."""
        losses: list[Loss] = []
        found = await self._entities(segment, reading, losses) if reading.open_entity else []
        everything = [*found, *fresh(found, reading.tagged)]
        stated, new = await self._relations(segment, reading, everything, losses)
        known = Contribution(
            segment_id=segment.id,
            kind="extraction",
            mentions=(*found, *new),
            statements=tuple(stated),
        )
        questions = await self._questions(segment, reading, known, losses)
        return replace(known, questions=questions, losses=tuple(losses))

    async def supplement(
        self, segment: Segment, reading: Reading, known: Contribution, questions: Sequence[str]
    ) -> Contribution:
        """Return what the entity and the relation prompt add with the questions in them."""
        groups = [pieces(reading.summary), relation_lines(known), entity_lines(known)]
        named, losses = [], list[Loss]()
        if reading.open_entity:
            entities = await self.context.caller.call(
                "entities-asked",
                EntitiesReply,
                lambda kept: asked_inputs(segment, reading, kept, questions),
                groups,
                **self.context.limits(segment, reading),
            )
            named = entities.value.entities
            losses += entities.losses
        found = items.mentions(items.split(named, questions), segment.text)
        new = [f"{mention.name} (new)" for mention in fresh(known.mentions, found)]
        groups[2] = [*new, *groups[2]]
        relations = await self.context.caller.call(
            "relations-asked",
            RelationsReply,
            lambda kept: asked_inputs(segment, reading, kept, questions),
            groups,
            **self.context.limits(segment, reading),
        )
        made = supplemented(segment, known, questions, named, relations.value.relations)
        return replace(made, losses=(*losses, *relations.losses))

    # --- one prompt each --------------------------------------------------------------------------

    async def _entities(
        self, segment: Segment, reading: Reading, losses: list[Loss]
    ) -> list[Mention]:
        def inputs(kept: Kept) -> dict[str, object]:
            return dict(
                background=background(reading, kept[0]),
                focus=reading.question,
                segment=fenced(segment.text),
            )

        called = await self.context.caller.call(
            "entities",
            EntitiesReply,
            inputs,
            [pieces(reading.summary)],
            **self.context.limits(segment, reading, is_long=True),
        )
        losses += called.losses
        return items.mentions(items.split(called.value.entities), segment.text)

    async def _relations(
        self, segment: Segment, reading: Reading, known: Sequence[Mention], losses: list[Loss]
    ) -> tuple[list[Statement], list[Mention]]:
        text = marked(segment.text, known)

        def inputs(kept: Kept) -> dict[str, object]:
            return dict(
                background=background(reading, kept[0]),
                focus=reading.question,
                segment=fenced(segment.text),
                marked=fenced(text),
                entities=fenced_if("\n".join(kept[1])),
            )

        called = await self.context.caller.call(
            "relations",
            RelationsReply,
            inputs,
            [pieces(reading.summary), [mention.name for mention in known]],
            **self.context.limits(segment, reading, is_long=True),
        )
        losses += called.losses
        return items.statements(items.split(called.value.relations), known, segment.text)

    async def _questions(
        self, segment: Segment, reading: Reading, known: Contribution, losses: list[Loss]
    ) -> tuple[str, ...]:
        wanted = self.context.wanted(segment)

        def inputs(kept: Kept) -> dict[str, object]:
            return dict(
                background=background(reading, kept[0]),
                segment=fenced(segment.text),
                entities=fenced_if("\n".join(kept[2])),
                relations=fenced_if("\n".join(kept[1])),
                count=wanted,
            )

        called = await self.context.caller.call(
            "questions",
            QuestionsReply,
            inputs,
            [pieces(reading.summary), relation_lines(known), entity_lines(known)],
            **self.context.limits(segment, reading),
        )
        losses += called.losses
        return items.questions(called.value.questions, wanted)


def marked(text: str, known: Sequence[Mention]) -> str:
    """Return a text with its entities in double brackets, the longest name where names overlap.

    The set `paper` shows the text twice as the paper does, plain and marked; the default set shows
    it marked alone, at half the tokens.
    """
    forms = sorted({form for m in known for form in (m.name, *m.forms)}, key=len, reverse=True)
    if not forms:
        return text
    pattern = "|".join(rf"(?<!\w){re.escape(form)}(?!\w)" for form in forms)
    return re.sub(pattern, lambda match: f"[[{match.group()}]]", text)
