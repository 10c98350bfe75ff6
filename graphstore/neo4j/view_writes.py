"""Writes the view: reads the rows that a change touches, computes the result, writes it.

A change is one transaction, and the server holds everything that a transaction writes in memory, so
callers keep their changes small. Nodes are merged, not created, and missing nodes are skipped, so
that a person may delete or repair nodes in Neo4j Browser.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from qrmem.errors import StoreConflict
from qrmem.graphstore.checking import check_change, used_names, written_segments
from qrmem.graphstore.neo4j import edges, full_text, stored_facts
from qrmem.graphstore.neo4j.connection import Properties, Step, Work
from qrmem.graphstore.neo4j.database_schema import entity_labels
from qrmem.graphstore.neo4j.edges import Pair, own_properties
from qrmem.graphstore.neo4j.keys import full, joined, short, shortened
from qrmem.graphstore.protocol import FactRow, MentionRow, ViewUpdate
from qrmem.graphstore.records import by_frequency, form_blocks
from qrmem.text.names.blocks import blocks_of
from qrmem.types import Question

Place = tuple[str, str]
"""Short keys of a segment and a name."""


@dataclass(slots=True)
class Name:
    """A name that a change touches; entities by short key.

    Attributes:
        was: its entity in the database; "" for a new name.
        now: its entity after the change.
        forms: surface form to count.
        mentions: segments that mention it.
        said: segments in which a chat model named it.
        is_stale: whether its mentions changed, so that it must be resolved again.
    """

    was: str = ""
    now: str = ""
    forms: dict[str, int] = field(default_factory=dict)
    mentions: int = 0
    said: int = 0
    is_stale: bool = False

    def count(self, forms: Iterable[tuple[str, int]], said: bool, sign: int) -> None:
        """Add (1) or subtract (-1) a mention."""
        self.mentions += sign
        self.said += sign * said
        self.is_stale = True
        for form, number in forms:
            self.forms[form] = self.forms.get(form, 0) + sign * number

    def properties(self) -> Properties:
        """Return its properties besides the keys."""
        ranked = by_frequency({form: number for form, number in self.forms.items() if number > 0})
        return {
            "forms": [form for form, _ in ranked],
            "counts": [number for _, number in ranked],
            "mentions": self.mentions,
            "said": self.said or None,
            "surface": ranked[0][0] if ranked else "",
            "count": sum(number for _, number in ranked),
        }


@dataclass(frozen=True, slots=True)
class Before:
    """The rows of a segment in the view before a change.

    Attributes:
        title: title of its document.
        length: number of its terms in the search index; `None` if it is not indexed.
        mentions: name, forms, how often each form occurs, whether it has properties, and whether a
            chat model named it.
        questions: text to number.
        stated: number, head and tail of its facts.
    """

    title: str
    length: int | None
    mentions: Sequence[tuple[str, Sequence[str], Sequence[int], bool, bool]]
    questions: Mapping[str, int]
    stated: Sequence[tuple[int, str | None, str | None]]


async def apply(work: Work, revision: int, change: ViewUpdate) -> int:
    """Apply a change if the revision is still the expected one; return the new revision."""
    current = await work.lock()
    if current != revision:
        raise StoreConflict(f"namespace {work.ns!r} changed meanwhile; try again")
    await stored_facts.put_decisions(work, change.decisions)
    segments = shortened(written_segments(change).union(change.clear))
    before = await _before(work, segments)
    cleared = before.keys() & set(map(short, change.clear))
    mentions = {(short(row.segment_id), short(row.name)): row for row in change.mentions}
    names, overwritten = await _touched_names(work, change, before, cleared, mentions)
    await _check(work, change, {segments[key] for key in before}, names)
    for (_, name), row in mentions.items():
        names[name].count(row.forms, row.said, 1)
    for key, entity in change.names.items():
        names[short(key)].now = short(entity)
    indexed = set(map(short, change.index))
    facts = {(short(row.segment_id), row.n): row for row in change.facts}
    replaced = _replaced(facts, before, cleared)
    pairs = _pairs(before, cleared, replaced) | await _pairs_of(work, names)
    pairs |= {(names[short(r.head)].now, names[short(r.tail)].now) for r in change.facts}
    await work.together(
        [
            ("view_writes.clear", sorted(cleared)),
            ("view_writes.drop_mentions", overwritten),
            ("view_writes.drop_facts", replaced),
            *full_text.drop_steps({key: before[key].length for key in sorted(cleared | indexed)}),
            *_drop_steps(names),
        ]
    )
    await work.together(
        [
            *_name_steps(change, names),
            ("view_writes.put_questions", _question_rows(change.questions, before, cleared)),
            *_mention_steps(mentions, names),
            *_fact_steps(facts, names),
            *full_text.add_steps(
                work,
                change.index,
                {key: segment_before.title for key, segment_before in before.items()},
            ),
            ("view_writes.put_digests", _digest_rows(change)),
            ("stored_facts.put_contributions", stored_facts.contribution_rows(change.edits)),
            ("view_writes.resolve", sorted(map(short, change.resolved))),
            ("namespaces.raise_revision", [1]),
        ]
    )
    await work.together(
        [
            ("view_writes.move", _moved(names)),
            ("view_writes.drop_unnamed", _unused(change, names)),
            ("view_writes.show_properties", _changed_properties(change, before, names)),
        ]
    )
    await edges.draw(work, pairs)
    return current + 1


async def clear(work: Work, segments: Collection[str]) -> list[tuple[str, str]]:
    """Delete the view rows of some segments, given by short key.

    Returns:
        Key and name of the entities that vanished.
    """
    before = await _before(work, segments)
    names, _ = await _touched_names(work, ViewUpdate(), before, before.keys(), {})
    pairs = _pairs(before, before.keys(), ()) | await _pairs_of(work, names)
    await work.together(
        [
            ("view_writes.clear", sorted(before)),
            *full_text.drop_steps(
                {key: segment_before.length for key, segment_before in before.items()}
            ),
            *_drop_steps(names),
        ]
    )
    await work.together(_name_steps(ViewUpdate(), names))
    keys_lost = _keys(name.was for name in names.values() if not name.mentions)
    names_gone = await work.each("view_writes.unnamed", keys_lost)
    entities_shown = _changed_properties(ViewUpdate(), before, names)
    await work.together(
        [("view_writes.drop_unnamed", keys_lost), ("view_writes.show_properties", entities_shown)]
    )
    await edges.draw(work, pairs)
    return [(key, name) for key, name in names_gone]


def _pairs(
    before: Mapping[str, Before], cleared: Collection[str], replaced: Iterable[Properties]
) -> set[Pair]:
    """Return the pairs of entities that lose a fact."""
    replaced_places = {(row["segment"], row["n"]) for row in replaced}
    return {
        (head, tail)
        for segment, segment_before in before.items()
        for n, head, tail in segment_before.stated
        if head and tail and (segment in cleared or (segment, n) in replaced_places)
    }


async def _pairs_of(work: Work, names: Mapping[str, Name]) -> set[Pair]:
    """Return the pairs of entities of names that vanish or move, before and after the change.

    Some pairs may contain an entity that vanishes.
    """
    rows = [
        {"key": key, "was": name.was}
        for key, name in sorted(names.items())
        if name.was and (not name.mentions or name.now != name.was)
    ]
    pairs: set[Pair] = set()
    for head, was_head, tail, was_tail in await work.gathered("view_writes.stated_of_names", rows):
        now = [
            names[name].now if name in names else was
            for name, was in ((head, was_head), (tail, was_tail))
        ]
        pairs |= {(was_head, was_tail), (now[0], now[1])}
    return pairs


async def _before(work: Work, segments: Collection[str]) -> dict[str, Before]:
    rows = await work.each("view_writes.before", sorted(segments))
    return {
        key: Before(title or "", length, mentions, dict(questions), facts_before)
        for key, title, length, mentions, questions, facts_before in rows
    }


async def _touched_names(
    work: Work,
    change: ViewUpdate,
    before: Mapping[str, Before],
    cleared: Collection[str],
    mentions: Mapping[Place, MentionRow],
) -> tuple[dict[str, Name], list[Properties]]:
    """Return the names that a change mentions or takes mentions from; the latter are subtracted.

    Returns:
        Names by short key, and the stored mentions that a row replaces.
    """
    mentions_gone, overwritten = [], []
    for segment, segment_before in before.items():
        for name, forms, counts, _, said in segment_before.mentions:
            if segment in cleared or (segment, name) in mentions:
                mentions_gone.append((name, dict(zip(forms, counts, strict=True)), said))
                if segment not in cleared:
                    overwritten.append({"segment": segment, "name": name})
    keys = {
        *shortened(used_names(change).union(change.names)),
        *(name for name, _, _ in mentions_gone),
    }
    names = {key: Name() for key in keys}
    rows = await work.each("view_writes.names", sorted(keys))
    for key, entity, forms, counts, number, said in rows:
        names[key] = Name(entity, entity, dict(zip(forms, counts, strict=True)), number, said)
    for name, counted, was_said in mentions_gone:
        names[name].count(counted.items(), was_said, -1)
    return names, overwritten


async def _check(
    work: Work, change: ViewUpdate, segments: Collection[str], names: Mapping[str, Name]
) -> None:
    keys = used_names(change)
    entity_keys = {row.key for row in change.entities}
    targets = shortened(key for key in change.names.values() if key not in entity_keys)
    entities = set(await work.gathered("view_writes.known_entities", sorted(targets)))
    check_change(
        change,
        segments=segments,
        names={key for key in keys if names[short(key)].was},
        entities={targets[key] for key in entities},
    )


def _drop_steps(names: Mapping[str, Name]) -> list[Step]:
    """Return the steps that delete names without a mention, with their facts."""
    name_rows = [
        {"key": k, "was": n.was} for k, n in sorted(names.items()) if n.was and not n.mentions
    ]
    return [
        ("view_writes.mark_stale", [row["key"] for row in name_rows]),
        ("view_writes.drop_names", name_rows),
    ]


def _name_steps(change: ViewUpdate, names: Mapping[str, Name]) -> list[Step]:
    """Return the steps that write entities and the mentioned names."""
    entities = {short(row.key): row for row in change.entities}
    living = {key: name for key, name in sorted(names.items()) if name.mentions}
    fulls = {short(key): full(key) for key in change.names}
    new = [
        key for key in sorted(change.names) if short(key) in living and not names[short(key)].was
    ]
    return [
        (
            "view_writes.put_entities",
            [
                {
                    "labels": entity_labels(row.type),
                    "entity": {
                        "key": key,
                        "full": full(row.key),
                        "name": short(row.name),
                        "full_name": full(row.name),
                        "type": row.type,
                    },
                }
                for key, row in sorted(entities.items())
            ],
        ),
        (
            "view_writes.put_names",
            [{"entity": n.now, "name": _name_row(key, n, fulls)} for key, n in living.items()],
        ),
        (
            "view_writes.put_blocks",
            [
                *({"key": short(key), "blocks": sorted(blocks_of(key))} for key in new),
                *(
                    {"key": short(row.name), "blocks": sorted(blocks)}
                    for row in change.mentions
                    if (blocks := form_blocks(row))
                ),
            ],
        ),
        ("view_writes.mark_stale", [key for key, name in living.items() if name.is_stale]),
    ]


def _moved(names: Mapping[str, Name]) -> list[Properties]:
    """Return the names whose entity changes; their mentions and facts move with them."""
    return [
        {"key": key, "was": name.was, "now": name.now}
        for key, name in sorted(names.items())
        if name.mentions and name.was and name.was != name.now
    ]


def _unused(change: ViewUpdate, names: Mapping[str, Name]) -> list[str]:
    """Return entities that may have no name left."""
    entities_lost = {n.was for n in names.values() if not n.mentions or n.was != n.now}
    entities_used = {name.now for name in names.values() if name.mentions}
    return _keys((entities_lost | {short(row.key) for row in change.entities}) - entities_used)


def _name_row(key: str, name: Name, fulls: Mapping[str, str | None]) -> Properties:
    row = {"key": key} | name.properties()
    return row if name.was else row | {"full": fulls.get(key)}


def _digest_rows(change: ViewUpdate) -> list[Properties]:
    return [{"segment": short(id_), "digest": d} for id_, d in sorted(change.merged.items())]


def _mention_steps(mentions: Mapping[Place, MentionRow], names: Mapping[str, Name]) -> list[Step]:
    rows: dict[str, list[Properties]] = defaultdict(list)
    added: list[Properties] = []
    for (segment, name), row in sorted(mentions.items()):
        entity = names[name].now
        properties = {
            "name": name,
            "forms": [form for form, _ in row.forms],
            "counts": [number for _, number in row.forms],
            "question": row.question,
            **({"said": True} if row.said else {}),
            **own_properties(row.properties),
        }
        rows[segment].append({"entity": entity, "properties": properties})
        if row.question:
            place = {"segment": segment, "question": row.question}
            added.append(place | {"entity": entity, "name": name})
    grouped = [
        {"segment": segment, "mentions": segment_mentions}
        for segment, segment_mentions in rows.items()
    ]
    return [("view_writes.put_mentions", grouped), ("view_writes.link_entities", added)]


def _replaced(
    facts: Mapping[tuple[str, int], FactRow],
    before: Mapping[str, Before],
    cleared: Collection[str],
) -> list[Properties]:
    """Return the stored facts that a new fact of the same number replaces."""
    return [
        {"segment": segment, "n": n}
        for segment, n in sorted(facts)
        if segment not in cleared and any(n == place for place, *_ in before[segment].stated)
    ]


def _fact_steps(facts: Mapping[tuple[str, int], FactRow], names: Mapping[str, Name]) -> list[Step]:
    """Return the steps that write facts whose names are mentioned."""
    rows: dict[str, list[Properties]] = defaultdict(list)
    added: list[Properties] = []
    for (segment, n), row in sorted(facts.items()):
        head, tail = names[short(row.head)], names[short(row.tail)]
        if not head.mentions or not tail.mentions:
            continue
        key = joined(segment, str(n))
        ends = {"head": head.now, "head_name": short(row.head)}
        ends |= {"tail": tail.now, "tail_name": short(row.tail)}
        rows[segment].append({"key": key, "properties": _fact_properties(row)} | ends)
        if row.question:
            added.append({"segment": segment, "question": row.question, "key": key})
    grouped = [
        {"segment": segment, "facts": segment_facts} for segment, segment_facts in rows.items()
    ]
    return [("view_writes.put_facts", grouped), ("view_writes.link_statements", added)]


def _fact_properties(row: FactRow) -> Properties:
    return {
        "n": row.n,
        "description": row.description,
        "question": row.question,
        # A missing date is no property, so that `WHERE f.valid_until IS NULL` works.
        "said_at": row.said_at or None,
        "valid_from": row.valid_from or None,
        "valid_until": row.valid_until or None,
        "type": row.type or None,
        **own_properties(row.properties),
    }


def _changed_properties(
    change: ViewUpdate,
    before: Mapping[str, Before],
    names: Mapping[str, Name],
) -> list[str]:
    """Return the entities whose properties may change."""
    had = {
        name
        for segment_before in before.values()
        for name, _, _, has, _ in segment_before.mentions
        if has
    }
    have = {short(row.name) for row in change.mentions if row.properties}
    if not had and not have and not any(n.was and n.was != n.now for n in names.values()):
        return []
    return _keys(key for name in names.values() for key in (name.was, name.now))


def _question_rows(
    rows: Sequence[Question], before: Mapping[str, Before], cleared: Collection[str]
) -> list[Properties]:
    """Return rows for questions; each is numbered within its segment, in order of arrival."""
    numbers_taken = {
        key: {} if key in cleared else dict(segment_before.questions)
        for key, segment_before in before.items()
    }
    ready = {}
    for question in rows:
        segment = short(question.segment_id)
        n = numbers_taken[segment].setdefault(question.text, len(numbers_taken[segment]))
        ready[segment, n] = {
            "segment": segment,
            "key": joined(segment, str(n)),
            "n": n,
            "text": question.text,
            "kind": question.kind,
        }
    return list(ready.values())


def _keys(found: Iterable[str]) -> list[str]:
    return sorted({*found} - {""})
