"""Checks items of replies against a schema: types, properties, ends; asks again for misfits."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from qrmem.extraction.prompt_context import PromptContext
from qrmem.extraction.reply_items import TYPES, ReplyItem, split, with_dates
from qrmem.llm.prompting import PARSE_RETRIES
from qrmem.prompts import fenced
from qrmem.prompts.replies import SupplementReply
from qrmem.schema import Kind, Schema
from qrmem.text.names import normalise_name, type_key
from qrmem.types import (
    Contribution,
    EntityTagger,
    Loss,
    Mention,
    Properties,
    Reading,
    Segment,
)

Items = tuple[Sequence[ReplyItem], Sequence[ReplyItem]]
"""The lists of entities and of relations of a reply."""
_TOLD = 3
"""Maximum number of misfits that a problem names."""


@dataclass(slots=True)
class Typing:
    """Assigns the types of a schema to items.

    Attributes:
        misfits: items that do not fit their type, with the reason; they lose their type.
        left_out: number of items without any type of a closed schema.
    """

    schema: Schema
    misfits: list[tuple[ReplyItem, str]] = field(default_factory=list)
    left_out: int = 0

    def entity(self, item: ReplyItem) -> tuple[Sequence[str], str, Properties] | None:
        """Return an entity's other forms, its type and properties; `None` to leave it out."""
        others = item.parts[1:]
        key = type_key(others[0]) if others else ""
        kind = self.schema.entities.get(key) or self.schema.entities.get(TYPES.get(key, ""))
        if kind is None:
            if not self.schema.is_open:
                self.left_out += 1
                return None
            is_usual = key in TYPES
            return others[is_usual:], TYPES.get(key, ""), ()
        values_said, forms = _property_values(kind, others[1:])
        properties = self._checked(kind, values_said, item)
        return forms, "" if properties is None else kind.key, properties or ()

    def relation(self, item: ReplyItem) -> tuple[ReplyItem, Kind | None, Properties] | None:
        """Return a relation without its type, then type and properties; `None` to leave it out.

        The type comes after the second name, or between the names.
        """
        parts = item.parts
        of = self.schema.relations
        at = next((n for n in range(len(parts) - 1, 0, -1) if type_key(parts[n]) in of), 0)
        if not at or len(parts) < 3:
            if not self.schema.is_open and len(parts) >= 3:
                self.left_out += 1
                return None
            return item, None, ()
        kind = of[type_key(parts[at])]
        ends, rest = parts[:at], parts[at + 1 :]
        if len(ends) < 3:
            ends, rest = (*ends[:1], kind.key.replace("_", " ").lower(), *rest[:1]), rest[1:]
        properties = self._checked(kind, _property_values(kind, rest)[0], item)
        plain = replace(item, parts=tuple(ends))
        return (plain, None, ()) if properties is None else (plain, kind, properties)

    def fits(self, item: ReplyItem, kind: Kind, types: tuple[str, str]) -> bool:
        """Return whether a relation's type allows the types of its ends; unknown types pass."""
        for end, types_wanted, end_type in zip(
            ("head", "tail"), (kind.heads, kind.tails), types, strict=True
        ):
            if end_type and types_wanted and end_type not in map(type_key, types_wanted):
                why = f"the {end} of {kind.name} is {' or '.join(types_wanted)}, not {end_type}"
                self.misfits.append((item, why))
                return False
        return True

    def _checked(self, kind: Kind, said: Mapping[str, str], item: ReplyItem) -> Properties | None:
        try:
            return kind.checked(said)
        except ValueError as exc:
            self.misfits.append((item, f"{kind.name}: {exc}"))
            return None


def _property_values(kind: Kind, parts: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Return the properties in parts of the form `property=value`, and the other parts."""
    names = {name.lower() for name in kind.properties}
    values_said: dict[str, str] = {}
    others = []
    for part in parts:
        name, mark, value = (piece.strip() for piece in part.partition("="))
        if mark and name.lower() in names:
            values_said |= {name.lower(): value} if value else {}
        else:
            others.append(part)
    return values_said, others


class ClosedTagger:
    """A tagger limited to the entity types of a closed schema."""

    def __init__(self, tagger: EntityTagger, schema: Schema) -> None:
        self.name = tagger.name
        self._tagger = tagger
        self._schema = schema

    async def tag(self, text: str) -> Sequence[Mention]:
        """Return the entities with types of the schema; see `qrmem.types.EntityTagger`."""
        tags = await self._tagger.tag(text)
        return [mention for mention in tags if type_key(mention.type) in self._schema.entities]

    async def close(self) -> None:
        """Close the tagger."""
        await self._tagger.close()


# --- misfits ----------------------------------------------------------------------------


async def fitted(
    context: PromptContext,
    segment: Segment,
    reading: Reading,
    items: Items,
    made: Callable[[Items, Typing | None], Contribution],
) -> Contribution:
    """Return the contribution of a reply's items, after a second request for those that misfit.

    Args:
        made: makes a contribution from items; it drops the types of items that misfit.
    """
    items, dates = _dated(items, segment, reading)
    if context.schema is None:
        return replace(made(items, None), losses=dates)
    typing = Typing(context.schema)
    contribution = made(items, typing)
    if typing.misfits:
        items = await _again(context, segment, reading, items, typing.misfits)
        typing = Typing(context.schema)
        contribution = made(items, typing)
    losses = (_loss(typing, reading),) if typing.misfits else ()
    return replace(contribution, left_out=typing.left_out, losses=(*dates, *losses))


def _dated(items: Items, segment: Segment, reading: Reading) -> tuple[Items, tuple[Loss, ...]]:
    """Return relations with their valid dates, and messages about invalid ones."""
    text_shown = f"{reading.title}\n{reading.summary}\n{segment.text}"
    dated_items = [with_dates(item, text_shown) for item in items[1]]
    problems = [f"{'|'.join(item.parts)} ({why})" for item, why in dated_items if why]
    losses = (_loss_of("kept without a date", problems, reading),) if problems else ()
    return (items[0], [item for item, _ in dated_items]), losses


def _loss(typing: Typing, reading: Reading) -> Loss:
    misfits = [f"{'|'.join(item.parts)} ({why})" for item, why in typing.misfits]
    return _loss_of("kept without a type, as it does not fit the schema", misfits, reading)


def _loss_of(what: str, told: Sequence[str], reading: Reading) -> Loss:
    more = f" and {len(told) - _TOLD} more" if len(told) > _TOLD else ""
    reason = f"{what}: {'; '.join(told[:_TOLD])}{more}"
    return Loss(reason, raw="", attempt=reading.attempt + PARSE_RETRIES)


async def _again(
    context: PromptContext,
    segment: Segment,
    reading: Reading,
    items: Items,
    misfits: Sequence[tuple[ReplyItem, str]],
) -> Items:
    """Ask for misfits once more; one that the reply does not repeat stays unchanged."""
    lines = "\n".join(f"{'|'.join(item.parts)}: {why}" for item, why in misfits)
    call = await context.caller.call(
        "schema-again",
        SupplementReply,
        **context.about(segment, reading, more=lambda kept: dict(items=fenced(lines))),
    )
    reply = call.value
    wrong = [item for item, _ in misfits]
    again = split(reply.entities), split(reply.relations)
    entities, relations = (
        [_rewritten(item, new, names) if item in wrong else item for item in items_of_kind]
        for items_of_kind, new, names in zip(items, again, ((0,), (0, 2)), strict=True)
    )
    return entities, relations


def _rewritten(item: ReplyItem, again: Sequence[ReplyItem], names: Sequence[int]) -> ReplyItem:
    """Return the new form of an item, which is found by its names.

    Args:
        names: positions of names in an item.
    """
    parts = {normalise_name(part) for part in item.parts}
    for new in again:
        names_of_new = {normalise_name(new.parts[n]) for n in names if n < len(new.parts)}
        if len(names_of_new) == len(names) and names_of_new <= parts:
            return ReplyItem(item.question, new.parts, item.valid)
    return item
