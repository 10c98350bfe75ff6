"""Writing the view: read what a change touches, work out what comes of it, write that.

A change is one transaction, and the server keeps all that a transaction writes in memory: callers
keep their changes small. Nodes are merged, not created, and what is not where it is expected is
passed over, so that a person may delete or mend nodes in Neo4j Browser.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from qrmem.errors import StoreConflict
from qrmem.graphstore.checking import check_change, used_names, written_segments
from qrmem.graphstore.neo4j import words
from qrmem.graphstore.neo4j.connection import Properties, Work
from qrmem.graphstore.neo4j.keys import full, joined, short, shortened
from qrmem.graphstore.protocol import Change, FactRow, MentionRow
from qrmem.text.blocks import blocks_of
from qrmem.types import Question

Place = tuple[str, str]
"""Short keys of a segment and a name."""


@dataclass(slots=True)
class Name:
    """A name that a change touches; entities by short key.

    Attributes:
        was: the entity that it stands for in the database; "" for a new name.
        now: the entity that it will stand for.
        forms: surface form to count.
        mentions: segments that mention it.
        is_stale: whether its mentions are others now, so that it is to be resolved again.
    """

    was: str = ""
    now: str = ""
    forms: dict[str, int] = field(default_factory=dict)
    mentions: int = 0
    is_stale: bool = False

    def count(self, forms: Iterable[tuple[str, int]], sign: int) -> None:
        """Count a mention in (1) or out (-1)."""
        self.mentions += sign
        self.is_stale = True
        for form, number in forms:
            self.forms[form] = self.forms.get(form, 0) + sign * number

    def properties(self) -> Properties:
        """Return what is kept of it beside its keys."""
        ranked = by_frequency(self.forms)
        return {
            "forms": [form for form, _ in ranked],
            "counts": [number for _, number in ranked],
            "mentions": self.mentions,
            "surface": ranked[0][0] if ranked else "",
            "count": sum(number for _, number in ranked),
        }


def by_frequency(forms: Mapping[str, int]) -> list[tuple[str, int]]:
    """Return surface forms that occur, most frequent first, then longer, then smaller."""
    pairs = [(form, number) for form, number in forms.items() if number > 0]
    return sorted(pairs, key=lambda pair: (-pair[1], -len(pair[0]), pair[0]))


async def apply(work: Work, revision: int, change: Change) -> int:
    """Apply a change if nobody else did since; return the new revision."""
    found = await work.lock()
    if found != revision:
        raise StoreConflict(
            f"namespace {work.ns!r} is at revision {found}, not {revision}: somebody else did it"
        )
    segments = shortened(written_segments(change).union(change.clear))
    there = set(await work.gathered("facts.known_segments", sorted(segments)))
    cleared = there.intersection(map(short, change.clear))
    mentions = {(short(row.segment_id), short(row.name)): row for row in change.mentions}
    names, overwritten = await _touched_names(work, change, cleared, mentions)
    await _check(work, change, {segments[key] for key in there}, names)
    for (_, name), row in mentions.items():
        names[name].count(row.forms, 1)
    for key, entity in change.names.items():
        names[short(key)].now = short(entity)
    await work.each("changes.clear", sorted(cleared))
    await work.each("changes.drop_mentions", overwritten)
    await _write_names(work, change, names)
    await _write_rows(work, change, mentions, names, cleared)
    lost = [name.was for name in names.values() if not name.mentions or name.was != name.now]
    await _drop_entities(work, [*lost, *(short(row.key) for row in change.entities)])
    await work.each("changes.resolve", sorted(map(short, change.resolved)))
    (advanced,) = await work.row("namespaces.raise_revision") or (0,)
    return int(advanced)


async def clear(work: Work, segments: Collection[str]) -> list[tuple[str, str]]:
    """Drop the view rows of some segments, given by short key.

    Returns:
        Key and name of the entities that vanished.
    """
    names, _ = await _touched_names(work, Change(), segments, {})
    await work.each("changes.clear", sorted(segments))
    await _write_names(work, Change(), names)
    await words.drop(work, segments)
    return await _drop_entities(work, [name.was for name in names.values() if not name.mentions])


async def _touched_names(
    work: Work, change: Change, cleared: Collection[str], mentions: Mapping[Place, MentionRow]
) -> tuple[dict[str, Name], list[Properties]]:
    """Return names that the change speaks of or takes mentions from, these counted out.

    Returns:
        Names by short key, and the kept mentions that a row takes the place of.
    """
    segments = {segment for segment, _ in mentions}.union(cleared)
    gone, overwritten = [], []
    for segment, name, *forms in await work.gathered("changes.mentions", sorted(segments)):
        if segment in cleared or (segment, name) in mentions:
            gone.append((name, forms))
            if segment not in cleared:
                overwritten.append({"segment": segment, "name": name})
    keys = {*shortened(used_names(change).union(change.names)), *(name for name, _ in gone)}
    names = {key: Name() for key in keys}
    for key, entity, forms, counts, number in await work.each("changes.names", sorted(keys)):
        names[key] = Name(entity, entity, dict(zip(forms, counts, strict=True)), number)
    for name, (forms, counts) in gone:
        names[name].count(zip(forms, counts, strict=True), -1)
    return names, overwritten


async def _check(
    work: Work, change: Change, segments: Collection[str], names: Mapping[str, Name]
) -> None:
    keys = used_names(change)
    targets = shortened(change.names.values())
    entities = set(await work.gathered("changes.known_entities", sorted(targets)))
    check_change(
        change,
        segments=segments,
        names={key for key in keys if names[short(key)].was},
        entities={targets[key] for key in entities},
    )


async def _write_names(work: Work, change: Change, names: Mapping[str, Name]) -> None:
    """Write entities and names; drop names without a mention, with their facts."""
    entities = {short(row.key): row for row in change.entities}
    await work.each(
        "changes.put_entities",
        [
            {
                "key": key,
                "full": full(row.key),
                "name": short(row.name),
                "full_name": full(row.name),
                "type": row.type,
            }
            for key, row in sorted(entities.items())
        ],
    )
    gone = [{"key": k, "was": n.was} for k, n in sorted(names.items()) if n.was and not n.mentions]
    await work.each("changes.mark_stale", [row["key"] for row in gone])
    await work.each("changes.drop_names", gone)
    living = {key: name for key, name in sorted(names.items()) if name.mentions}
    moved = [
        {"key": key, "was": name.was, "now": name.now}
        for key, name in living.items()
        if name.was and name.was != name.now
    ]
    await work.each("changes.move_incoming", moved)
    await work.each("changes.move_outgoing", moved)
    fulls = {short(key): full(key) for key in change.names}
    await work.each(
        "changes.put_names",
        ({"entity": name.now, "name": _name_row(key, name, fulls)} for key, name in living.items()),
    )
    new = [
        key for key in sorted(change.names) if short(key) in living and not names[short(key)].was
    ]
    await work.each(
        "changes.put_blocks", ({"key": short(key), "blocks": sorted(blocks_of(key))} for key in new)
    )
    await work.each("changes.mark_stale", [key for key, name in living.items() if name.is_stale])


def _name_row(key: str, name: Name, fulls: Mapping[str, str | None]) -> Properties:
    row = {"key": key} | name.properties()
    return row if name.was else row | {"full": fulls.get(key)}


async def _write_rows(
    work: Work,
    change: Change,
    mentions: Mapping[Place, MentionRow],
    names: Mapping[str, Name],
    cleared: Collection[str],
) -> None:
    await _write_questions(work, change.questions)
    await _write_mentions(work, mentions, names)
    await _write_facts(work, change.facts, names, cleared)
    await words.drop(work, {*cleared, *(short(row.segment_id) for row in change.index)})
    await words.add(work, change.index)
    digests = [{"segment": short(id_), "digest": d} for id_, d in sorted(change.merged.items())]
    await work.each("changes.put_digests", digests)


async def _write_mentions(
    work: Work, mentions: Mapping[Place, MentionRow], names: Mapping[str, Name]
) -> None:
    rows: dict[str, list[Properties]] = defaultdict(list)
    added: list[Properties] = []
    for (segment, name), row in sorted(mentions.items()):
        entity = names[name].now
        properties = {
            "name": name,
            "forms": [form for form, _ in row.forms],
            "counts": [number for _, number in row.forms],
            "question": row.question,
        }
        rows[segment].append({"entity": entity, "properties": properties})
        if row.question:
            place = {"segment": segment, "question": row.question}
            added.append(place | {"entity": entity, "name": name})
    grouped = ({"segment": segment, "mentions": own} for segment, own in rows.items())
    await work.each("changes.put_mentions", grouped)
    await work.each("changes.link_entities", added)


async def _write_facts(
    work: Work, rows: Sequence[FactRow], names: Mapping[str, Name], cleared: Collection[str]
) -> None:
    """Write facts whose names are mentioned, in place of those of the same number."""
    facts = {(short(row.segment_id), row.n): row for row in rows}
    kept = sorted({segment for segment, _ in facts} - set(cleared))
    replaced = [
        {"segment": segment, "n": n, "key": joined(segment, str(n))}
        for segment, n, *_ in await work.gathered("changes.stated", kept)
        if (segment, n) in facts
    ]
    await work.each("changes.drop_facts", replaced)
    living = [
        (place, row, names[short(row.head)].now, names[short(row.tail)].now)
        for place, row in sorted(facts.items())
        if names[short(row.head)].mentions and names[short(row.tail)].mentions
    ]
    await work.each(
        "changes.put_facts",
        (
            {
                "head": head,
                "tail": tail,
                "properties": {
                    "segment": segment,
                    "n": n,
                    "head": short(row.head),
                    "tail": short(row.tail),
                    "description": row.description,
                    "question": row.question,
                },
            }
            for (segment, n), row, head, tail in living
        ),
    )
    await work.each(
        "changes.link_relations",
        (
            {
                "segment": segment,
                "question": row.question,
                "key": joined(segment, str(n)),
                "description": row.description,
                "head": {"entity": head, "name": short(row.head)},
                "tail": {"entity": tail, "name": short(row.tail)},
            }
            for (segment, n), row, head, tail in living
            if row.question
        ),
    )


async def _write_questions(work: Work, rows: Sequence[Question]) -> None:
    await work.each("changes.put_questions", await _numbered(work, rows))


async def _numbered(work: Work, rows: Sequence[Question]) -> Iterator[Properties]:
    """Return rows for questions; each has a number in its segment, in order of arrival."""
    taken: dict[str, dict[str, int]] = {short(question.segment_id): {} for question in rows}
    for segment, text, n in await work.each("changes.questions", sorted(taken)):
        taken[segment][text] = n
    ready = {}
    for question in rows:
        segment = short(question.segment_id)
        n = taken[segment].setdefault(question.text, len(taken[segment]))
        ready[segment, n] = {
            "segment": segment,
            "key": joined(segment, str(n)),
            "n": n,
            "text": question.text,
            "kind": question.kind,
        }
    return iter(ready.values())


async def _drop_entities(work: Work, keys: Iterable[str]) -> list[tuple[str, str]]:
    """Drop those of the entities that have no name (any more); return their keys and names."""
    gone = await work.each("changes.drop_entities", sorted({*keys} - {""}))
    return [(key, name) for key, name in gone]
