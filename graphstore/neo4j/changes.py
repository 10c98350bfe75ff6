"""Writing the view: read what a change touches, work out what comes of it, write that.

Names and entities that would vanish at the end are never written.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from qrmem.errors import StoreConflict
from qrmem.graphstore.checking import check_change, used_names, written_segments
from qrmem.graphstore.neo4j import words
from qrmem.graphstore.neo4j.connection import Work
from qrmem.graphstore.neo4j.keys import full, joined, short, shortened
from qrmem.graphstore.neo4j.tallies import Known, Tallies, Tally, packed
from qrmem.graphstore.protocol import Change, FactRow, MentionRow
from qrmem.records import Question


@dataclass(slots=True)
class Plan:
    """A change as it will be written.

    Attributes:
        segments: short keys of the segments that rows are added for.
        cleared: short keys of the segments that are cleared.
        names: every name that the change speaks of, by short key.
        fresh: short keys of the names that are new.
        touched: short keys of the names whose mentions or entity may differ afterwards.
        entities: short keys of the entities that are there.
        overwritten: (segment, name) of kept mentions that a row takes the place of.
    """

    segments: set[str] = field(default_factory=set)
    cleared: set[str] = field(default_factory=set)
    names: dict[str, Tally] = field(default_factory=dict)
    fresh: set[str] = field(default_factory=set)
    touched: set[str] = field(default_factory=set)
    entities: set[str] = field(default_factory=set)
    overwritten: set[tuple[str, str]] = field(default_factory=set)


async def apply(
    work: Work, revision: int, change: Change, known: Mapping[str, Known]
) -> tuple[int, dict[str, Known]]:
    """Apply a change if nobody else did since.

    Args:
        known: names, by short key, as the change before this one left them; they are not read.

    Returns:
        The new revision, and the names of this change as it leaves them.
    """
    await work.lock()
    (*_, found, _), *_ = await work.rows("namespaces.get")
    if found != revision:
        raise StoreConflict(
            f"namespace {work.ns!r} is at revision {found}, not {revision}: somebody else did it"
        )
    plan = await _planned(work, change, known)
    await _clear_rows(work, plan.cleared)
    await _write_entities(work, change, plan)
    await _write_names(work, plan)
    await _write_mentions(work, change.mentions, plan)
    await _write_facts(work, change.facts, plan)
    await _write_questions(work, change.questions)
    await words.drop(work, plan.cleared | {short(row.segment_id) for row in change.index})
    await words.add(work, change.index)
    digests = [[short(id_), digest] for id_, digest in sorted(change.merged.items())]
    await work.each("changes.put_digests", digests)
    await _settle_entities(work, plan)
    row = await work.row("namespaces.raise_revision")
    assert row is not None
    living = {key: tally for key, tally in plan.names.items() if tally.is_living}
    return int(row[0]), {key: (t.entity, t.kept, t.mentions) for key, t in living.items()}


async def clear(work: Work, segments: Collection[str]) -> list[tuple[str, str]]:
    """Drop the view rows of some segments, given by short key.

    Returns:
        Key and name of the entities that vanished.
    """
    plan, tallies = Plan(cleared=set(segments)), Tallies()
    await _uncount(work, plan, tallies)
    plan.names = tallies.settled(await _names(work, tallies.mentions, {}), {})
    plan.touched = set(tallies.mentions)
    await _clear_rows(work, plan.cleared)
    await _write_names(work, plan)
    await words.drop(work, plan.cleared)
    return await _settle_entities(work, plan)


# --- reading -------------------------------------------------------------------------------------


async def _planned(work: Work, change: Change, before: Mapping[str, Known]) -> Plan:
    segments = shortened(written_segments(change).union(change.clear))
    known = set(await work.gathered("facts.known_segments", sorted(segments)))
    plan = Plan(cleared=known & set(map(short, change.clear)))
    plan.segments = known & set(map(short, written_segments(change)))
    tallies = Tallies()
    await _uncount(work, plan, tallies, change.mentions)
    keys = shortened(used_names(change).union(change.names))
    found = await _names(work, {*tallies.mentions, *keys}, before)
    targets = set(map(short, {*change.names.values(), *(e.key for e in change.entities)}))
    plan.entities = set(await work.gathered("changes.known_entities", sorted(targets)))
    check_change(
        change,
        segments={segments[key] for key in known},
        names={keys[key] for key in found.keys() & keys.keys()},
        entities={key for key in change.names.values() if short(key) in plan.entities},
    )
    _assign(plan, change.names, found)
    plan.touched = {*tallies.mentions, *map(short, change.names)}
    tallies.forms |= {key: Counter() for key in plan.touched - tallies.forms.keys()}
    plan.names = tallies.settled(found, plan.names)
    return plan


def _assign(plan: Plan, names: Mapping[str, str], found: dict[str, Tally]) -> None:
    """Let names stand for what the change says."""
    for key, entity in names.items():
        tally = found.get(short(key))
        if tally is None:
            tally = plan.names[short(key)] = Tally()
            plan.fresh.add(short(key))
        tally.key, tally.entity = key, entity


async def _names(work: Work, keys: Collection[str], known: Mapping[str, Known]) -> dict[str, Tally]:
    found = {key: known[key] for key in keys if key in known}
    missing = sorted(key for key in keys if key not in known)
    found |= {key: rest for key, *rest in await work.gathered("changes.names", missing)}
    return {
        key: Tally("", short(entity), entity, mentions=mentions, kept=kept)
        for key, (entity, kept, mentions) in found.items()
    }


async def _uncount(
    work: Work, plan: Plan, tallies: Tallies, rows: Sequence[MentionRow] = ()
) -> None:
    """Count out the mentions that go, and in those that come."""
    latest = {(short(row.segment_id), short(row.name)): row for row in rows}
    written = {segment for segment, _ in latest} & plan.segments
    kept = await work.gathered("changes.mentions", sorted(plan.cleared | written))
    for segment, name, forms in kept:
        is_overwritten = (segment, name) in latest and segment not in plan.cleared
        if is_overwritten:
            plan.overwritten.add((segment, name))
        if is_overwritten or segment in plan.cleared:
            tallies.uncount(name, forms)
    for (_, name), row in latest.items():
        tallies.count(name, row.forms, 1)


# --- writing -------------------------------------------------------------------------------------


async def _clear_rows(work: Work, segments: Collection[str]) -> None:
    for part in ("mentions", "facts", "questions", "digests"):
        await work.each(f"changes.clear_{part}", sorted(segments))


async def _write_entities(work: Work, change: Change, plan: Plan) -> None:
    counts: dict[str, int] = defaultdict(int)
    living = set()
    for tally in plan.names.values():
        if tally.is_living:
            living.add(tally.entity)
            counts[tally.entity] += sum(tally.forms.values())
    rows = {
        short(e.key): [short(e.key), full(e.key), e.name, e.type, counts[e.key]]
        for e in change.entities
        if e.key in living or short(e.key) in plan.entities
    }
    fresh = [row for key, row in sorted(rows.items()) if key not in plan.entities]
    await work.each("changes.add_entities", fresh)
    known = [row for key, row in sorted(rows.items()) if key in plan.entities]
    await work.each("changes.update_entities", known)


async def _write_names(work: Work, plan: Plan) -> None:
    known = {key: plan.names[key] for key in sorted(plan.touched - plan.fresh)}
    gone = [[key, tally.old] for key, tally in known.items() if not tally.is_living]
    await work.each("changes.drop_facts_of_names", gone)
    await work.each("changes.drop_names", gone)
    moved = [
        [key, tally.old, short(tally.entity)]
        for key, tally in known.items()
        if tally.is_living and tally.has_moved
    ]
    for part in ("names", "mentions", "heads", "tails"):
        await work.each(f"changes.move_{part}", moved)
    fresh = {key: plan.names[key] for key in sorted(plan.fresh)}
    rows = ([*row, full(tally.key), short(tally.entity)] for row, tally in _name_rows(fresh))
    await work.each("changes.add_names", rows)
    await work.each("changes.update_names", ([*r, t.more] for r, t in _name_rows(known)))


def _name_rows(names: Mapping[str, Tally]) -> Iterator[tuple[list[object], Tally]]:
    """Yield what is kept of each name that lives, and its tally."""
    for key, tally in names.items():
        if tally.is_living:
            ranked = tally.ranked
            surface = ranked[0][0] if ranked else ""
            total = sum(count for _, count in ranked)
            yield [key, tally.kept, tally.mentions, surface, total], tally


async def _write_mentions(work: Work, rows: Sequence[MentionRow], plan: Plan) -> None:
    await work.each("changes.drop_mentions", sorted(map(list, plan.overwritten)))
    latest = {(short(row.segment_id), short(row.name)): row for row in rows}
    await work.each("changes.add_mentions", _mention_rows(latest, plan))


def _mention_rows(
    latest: Mapping[tuple[str, str], MentionRow], plan: Plan
) -> Iterator[list[object]]:
    # A batch at a time: rows that live long are looked through by every garbage collection.
    for segment, name in sorted(latest):
        row, entity = latest[segment, name], plan.names[name].entity
        yield [segment, name, short(entity), packed(row.forms), row.question]


async def _write_facts(work: Work, rows: Sequence[FactRow], plan: Plan) -> None:
    latest = {(short(row.segment_id), row.n): row for row in rows}
    stated = sorted({segment for segment, _ in latest} - plan.cleared)
    kept = await work.gathered("changes.stated", stated)
    taken = [[segment, n] for segment, n, *_ in kept if (segment, n) in latest]
    await work.each("changes.drop_facts", taken)
    await work.each("changes.add_facts", _fact_rows(latest, plan))


def _fact_rows(latest: Mapping[tuple[str, int], FactRow], plan: Plan) -> Iterator[list[object]]:
    for segment, n in sorted(latest):
        row = latest[segment, n]
        head, tail = plan.names[short(row.head)], plan.names[short(row.tail)]
        if head.is_living and tail.is_living:
            names = [short(row.head), short(row.tail)]
            ends = [short(head.entity), short(tail.entity)]
            yield [segment, n, *names, *ends, row.description, row.question]


async def _write_questions(work: Work, rows: Sequence[Question]) -> None:
    taken: dict[str, dict[str, int]] = {short(q.segment_id): {} for q in rows}
    for segment, text, n in await work.each("changes.questions", sorted(taken)):
        taken[segment][text] = n
    ready = {}
    for question in rows:
        segment = short(question.segment_id)
        n = taken[segment].setdefault(question.text, len(taken[segment]))
        key = joined(segment, str(n))
        ready[key] = [segment, key, n, question.text, question.kind]
    await work.each("changes.put_questions", list(ready.values()))


async def _settle_entities(work: Work, plan: Plan) -> list[tuple[str, str]]:
    """Count anew where names came or went; drop entities without one."""
    names = [plan.names[key] for key in plan.touched]
    lost = [tally for tally in names if tally.has_moved or not tally.is_living]
    touched = {end for tally in lost for end in (tally.old, short(tally.entity))} | plan.entities
    gone = await work.each("changes.recount", sorted(touched - {""}))
    await work.each("changes.drop_entities", sorted(short(key) for key, _ in gone))
    return [(key, name) for key, name in gone]
