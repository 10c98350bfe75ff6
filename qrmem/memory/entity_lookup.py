"""Find the entity of a name, and what the memory holds about it."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from qrmem.errors import NotFound
from qrmem.graph.name_parents import MOST, NameUse, parent_of
from qrmem.graph.superseding import dated, held_by, kept_endings
from qrmem.graphstore.protocol import EntityCount, GraphStore, NameFilter
from qrmem.graphstore.reads import (
    entities_in_time,
    entity_said_by,
    names_called,
    relations_from,
)
from qrmem.graphstore.relations import merged_text, relation_id
from qrmem.text.names import name_key, normalise_name, split_key
from qrmem.text.names.blocks import own_block
from qrmem.types import Entity, EntityView, Fact, Question, Relation

MOST_NEAR = 100_000
"""Number of entities, the most frequent ones, that an unknown name is compared with."""
MOST_HINTS, ALIKE = 5, 80
"""Maximum number of names suggested for an unknown one, and their minimum similarity (0-100)."""


async def view_entity(
    store: GraphStore,
    ns: str,
    name: str,
    offset: int = 0,
    limit: int | None = None,
    as_of: str = "",
    single_types: Collection[str] = (),
) -> EntityView:
    """Return the entity of a name with its relations and segments; see `Memory.entity`."""
    key = await entity_key(store, ns, name)
    part = slice(offset, None if limit is None else offset + limit)
    (stored_entity,) = await entities_in_time(store, ns, [key])
    entity = await entity_said_by(store, ns, stored_entity, as_of)
    around = await store.around(ns, [key])
    facts_held = held_by(around.facts, as_of)
    replaced = await kept_endings(store, ns, facts_held, single_types, as_of)
    later = await store.entities(ns, sorted({ending.by.tail for ending in replaced.values()}))
    facts = dated(facts_held, replaced, {other.key: other.name for other in later}, as_of)
    # A common name has thousands of relations: only those that are shown are merged.
    every = _by_relation(facts)
    largest = sorted(every, key=lambda pair: (-len(every[pair]), relation_id(*pair)))[part]
    stated_of = _by_relation(around.facts)
    merged = await relations_from(store, ns, [f for pair in largest for f in stated_of[pair]])
    of_pair = {(one.head, one.tail, one.type): one for one in merged}
    relations = [_as_held(of_pair[pair], every[pair]) for pair in largest]
    segments = entity.segments[part]
    ends = sorted({end for r in relations for end in (r.head, r.tail)} - {key})
    questions = await store.questions(ns, segments)
    return EntityView(
        entity=entity,
        relations=tuple(relations),
        neighbours={end: around.names[end] for end in ends},
        questions=tuple(_concerning(questions, entity, facts)),
        segments=tuple(await store.segments(ns, segments)),
        relation_count=len(every),
    )


def _by_relation(facts: Iterable[Fact]) -> dict[tuple[str, str, str], list[Fact]]:
    """Group facts by pair, direction and type; an entity has no relation with itself."""
    facts_by_relation: dict[tuple[str, str, str], list[Fact]] = {}
    for fact in facts:
        if fact.head != fact.tail:
            facts_by_relation.setdefault((fact.head, fact.tail, fact.type), []).append(fact)
    return facts_by_relation


def _as_held(relation: Relation, facts: Sequence[Fact]) -> Relation:
    """Return a relation as of the view's date.

    If a statement is marked, or was said later, the merged description would hide this.

    Args:
        facts: its statements in the view, with marks on those that are not true then.
    """
    facts_held = tuple(facts)
    if facts_held == relation.facts:
        return relation
    return replace(relation, facts=facts_held, description=merged_text(facts_held))


async def entity_key(store: GraphStore, ns: str, name: str) -> str:
    """Return the key of the entity of a name.

    Raises:
        NotFound: there is none; the message lists similar names.
    """
    key = await _find_entity(store, ns, name) or await _stand_in_entity(store, ns, name)
    if not key:
        raise _unknown(name, await store.list_entities(ns, MOST_NEAR))
    return key


async def _find_entity(store: GraphStore, ns: str, name: str) -> str:
    """Return the key of the most frequent entity with that key or name; else ""."""
    norm = normalise_name(name)
    rows = [
        *await store.names(ns, NameFilter(entities=[name])),
        *await names_called(store, ns, [norm]),
    ]
    ranked = sorted(rows, key=lambda row: (row.entity != name, -row.count, row.key))
    return ranked[0].entity if ranked else ""


async def _stand_in_entity(store: GraphStore, ns: str, name: str) -> str:
    """Return the key of the entity that an unused form of a name would be merged with; else ""."""
    norm = normalise_name(name)
    if not norm or "|" in name:
        return ""
    key = name_key(norm, "PERSON")
    block = await store.names(ns, NameFilter(blocks={own_block(key): MOST + 1}))
    uses = {row.key: NameUse.of(row) for row in block} | {key: NameUse(key, name, 1)}
    is_crowded = len(block) > MOST
    parent = parent_of(uses, key, None if is_crowded else [row.key for row in block], ())
    return next((row.entity for row in block if row.key == parent), "")


def _unknown(name: str, entities: Sequence[EntityCount]) -> NotFound:
    """Return the error for a name that no entity has, with similar names."""
    from rapidfuzz import fuzz, process

    normal_name = normalise_name(name)
    names: dict[str, str] = {}
    words: dict[str, str] = {}
    for entity in entities:
        norm = split_key(entity.key)[0]
        names.setdefault(norm, entity.name)
        for word in norm.split():
            words.setdefault(word, entity.name)
    names_of = words | names
    alike = process.extract(
        normal_name, names_of.keys(), scorer=fuzz.ratio, limit=2 * MOST_HINTS, score_cutoff=ALIKE
    )
    suggestions = [names_of[text] for text, *_ in alike]
    suggestions += [
        names_of[text] for text in names_of if normal_name and text.startswith(normal_name)
    ]
    offered = tuple(dict.fromkeys(suggestions))[:MOST_HINTS]
    hint = f"; near: {', '.join(offered)}" if offered else ""
    shown = name.partition("|")[0] or name  # a key has its type after the bar
    return NotFound(f"no entity is called {shown!r}{hint}", near=offered)


def _concerning(
    questions: Iterable[Question], entity: Entity, facts: Iterable[Fact]
) -> Iterator[Question]:
    """Yield the questions that added an entity or a statement about it, or that name it."""
    added = set(entity.questions) | {fact.question for fact in facts}
    forms = [form.casefold() for form, _ in entity.forms]
    for question in questions:
        text = question.text.casefold()
        if question.text in added or any(form in text for form in forms):
            yield question
