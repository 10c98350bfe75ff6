"""What a question adds to the memory for its own run: orientation `local`.

The stored view is not touched, so that others never see what one question read into it.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from qrmem.graph.name_parents import NameUse
from qrmem.graph.resolution import resolve
from qrmem.graph.view import Read, Rows, rows_of, uses_of
from qrmem.graphstore.protocol import EntityRow, NameRow
from qrmem.types import Contribution, Fact, MergeDecision, Segment


@dataclass(frozen=True, slots=True)
class Overlay:
    """Mentions and facts beside the stored ones; empty unless made by `overlaid`.

    Attributes:
        mentioned: segment id to entity keys.
        stated: in the order of the segments.
        entities: those that the stored view does not have, by key.
        said: how the mentions name an entity, by key.
    """

    mentioned: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    stated: tuple[Fact, ...] = ()
    entities: Mapping[str, EntityRow] = field(default_factory=dict)
    said: Mapping[str, str] = field(default_factory=dict)

    def entities_in(self, segment_id: str) -> tuple[str, ...]:
        """Return the keys of the entities that it adds to a segment."""
        return self.mentioned.get(segment_id, ())

    def segments_with(self, key: str) -> list[str]:
        """Return the ids of the segments to which it adds an entity."""
        return [segment_id for segment_id, keys in self.mentioned.items() if key in keys]

    def facts(self, keys: Collection[str]) -> list[Fact]:
        """Return the facts that it adds with an end in `keys`."""
        wanted = set(keys)
        return [fact for fact in self.stated if fact.head in wanted or fact.tail in wanted]


def overlaid(
    segments: Sequence[Segment],
    contributions: Iterable[Contribution],
    names: Sequence[NameRow],
    decisions: Sequence[MergeDecision] = (),
) -> Overlay:
    """Return what oriented contributions add, as the namespace's names resolve them.

    Args:
        segments: those that were read with the question, in order.
        contributions: oriented ones, all of one question; others are passed over.
        names: stored ones that could be one with those of the contributions; see `near_names`.

    Returns:
        Known names keep their entity. A new one joins the entity that it would join in the view,
        or is an entity of its own.
    """
    rows = _rows(segments, contributions)
    entity_of, entities = _resolved(rows, names, decisions)
    mentioned: dict[str, dict[str, None]] = defaultdict(dict)
    for row in rows.mentions:
        mentioned[row.segment_id][entity_of[row.name]] = None
    facts = (
        Fact(
            entity_of[f.head],
            entity_of[f.tail],
            f.description,
            f.segment_id,
            f.question,
            type=f.type,
            properties=f.properties,
        )
        for f in rows.facts
    )
    return Overlay(
        mentioned={segment_id: tuple(keys) for segment_id, keys in mentioned.items()},
        stated=tuple(fact for fact in facts if fact.head != fact.tail),
        entities=entities,
        said={entity_of[row.name]: row.forms[0][0] for row in rows.mentions},
    )


def names_in(segments: Sequence[Segment], contributions: Iterable[Contribution]) -> set[str]:
    """Return the keys of the names that oriented contributions speak of; see `overlaid`."""
    return {row.name for row in _rows(segments, contributions).mentions}


def _rows(segments: Sequence[Segment], contributions: Iterable[Contribution]) -> Rows:
    made: dict[str, list[Contribution]] = defaultdict(list)
    for contribution in contributions:
        if contribution.kind == "oriented":
            made[contribution.segment_id].append(contribution)
    rows = Rows()
    for segment in segments:
        asked = dict.fromkeys(question for c in made[segment.id] for question in c.asked)
        rows.add(rows_of(Read(segment, tuple(made[segment.id]), tuple(asked))))
    return rows


def _resolved(
    rows: Rows, names: Sequence[NameRow], decisions: Sequence[MergeDecision]
) -> tuple[dict[str, str], dict[str, EntityRow]]:
    """Return the entity of each name in the rows, and the entities that are new."""
    used = {row.name for row in rows.mentions}
    known = {name.key: name.entity for name in names if name.key in used}
    new = [row for row in rows.mentions if row.name not in known]
    resolution = resolve([*map(NameUse.of, names), *uses_of(new)], decisions)
    stored = _stored_entities(names, resolution.names)
    entity_of = dict(known)
    entities: dict[str, EntityRow] = {}
    for row in new:
        key = resolution.names[row.name]
        entity_of[row.name] = stored.get(key, key)
        if key not in stored:
            entities[key] = resolution.entities[key]
    return entity_of, entities


def _stored_entities(names: Sequence[NameRow], resolution: Mapping[str, str]) -> dict[str, str]:
    """Return for each resolved entity the stored one that most uses of its names stand for."""
    weight: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for name in names:
        weight[resolution[name.key]][name.entity] += name.count
    return {
        key: min(found, key=lambda entity: (-found[entity], entity))
        for key, found in weight.items()
    }
