"""Writing the view: read what a change touches, work out what comes of it, write that.

Names and entities that would vanish at the end are never written.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from qrmem.errors import StoreConflict
from qrmem.graphstore.neo4j import words
from qrmem.graphstore.neo4j.connection import Work
from qrmem.graphstore.neo4j.keys import full, joined, short
from qrmem.graphstore.neo4j.parts import Part
from qrmem.graphstore.neo4j.planning import Plan, planned, planned_clearing
from qrmem.graphstore.neo4j.recounting import LeftHalfWay, recount
from qrmem.graphstore.neo4j.tallies import packed
from qrmem.graphstore.protocol import EntityRow, FactRow
from qrmem.types import Question


async def apply(
    work: Work, revision: int, part: Part, known: Mapping[str, str]
) -> tuple[int, Mapping[str, str]]:
    """Apply a change, or a part of one, if nobody else did since.

    Args:
        known: names, and what they stand for, as the parts before this one left them.

    Returns:
        The new revision, and the same of the names that this part speaks of.

    Raises:
        LeftHalfWay: another change stopped between its parts; count again first.
    """
    found, is_ahead = await work.lock()
    if found != revision:
        raise StoreConflict(
            f"namespace {work.ns!r} is at revision {found}, not {revision}: somebody else did it"
        )
    if is_ahead and part.is_first:
        raise LeftHalfWay(f"a change to namespace {work.ns!r} was left half-way: try again")
    plan, change = await planned(work, part, known), part.change
    await _clear_rows(work, plan.cleared)
    await _write_entities(work, change.entities, plan)
    await _write_names(work, plan)
    await _write_mentions(work, plan)
    await _write_facts(work, change.facts, plan)
    await _write_questions(work, change.questions)
    await words.drop(work, plan.cleared | {short(row.segment_id) for row in change.index})
    await words.add(work, change.index)
    digests = [[short(id_), digest] for id_, digest in sorted(change.merged.items())]
    await work.each("changes.put_digests", digests)
    await _settle_entities(work, plan)
    row = await work.row("namespaces.advance", ahead=None if part.is_last else True)
    assert row is not None
    return int(row[0]), plan.ends


async def clear(work: Work, segments: Collection[str]) -> list[tuple[str, str]]:
    """Drop the view rows of some segments, given by short key.

    Returns:
        Key and name of the entities that vanished.
    """
    await recount(work)
    plan = await planned_clearing(work, segments)
    await _clear_rows(work, plan.cleared)
    await _write_names(work, plan)
    await words.drop(work, plan.cleared)
    return await _settle_entities(work, plan)


async def _clear_rows(work: Work, segments: Collection[str]) -> None:
    for part in ("mentions", "facts", "questions", "digests"):
        await work.each(f"changes.clear_{part}", sorted(segments))


async def _write_entities(work: Work, rows: Iterable[EntityRow], plan: Plan) -> None:
    """Write entities, new ones with their new names; then new names of those that were there."""
    totals: dict[str, int] = defaultdict(int)
    names: dict[str, list[list[object]]] = defaultdict(list)
    for key, tally in sorted(plan.names.items()):
        if tally.is_living:
            totals[tally.entity] += tally.total
            if key in plan.fresh:
                names[tally.entity].append([key, *tally.row, full(tally.key)])
    latest = sorted((short(row.key), row) for row in {row.key: row for row in rows}.values())
    known = [[key, row.name, row.type] for key, row in latest if key in plan.entities]
    fresh = (
        [key, full(row.key), row.name, row.type, totals[key], names.pop(key, [])]
        for key, row in latest
        if key in totals and key not in plan.entities
    )
    await work.each("changes.add_entities", fresh)
    await work.each("changes.update_entities", known)
    more = ([*row, entity] for entity, own in sorted(names.items()) for row in own)
    await work.each("changes.add_names", more)


async def _write_names(work: Work, plan: Plan) -> None:
    """Write names that were there: drop, move, count."""
    known = {key: plan.names[key] for key in sorted(plan.names.keys() - plan.fresh)}
    gone = [[key, tally.old] for key, tally in known.items() if not tally.is_living]
    await work.each("changes.drop_facts_of_names", gone)
    await work.each("changes.drop_names", gone)
    moved = [
        [key, tally.old, tally.entity]
        for key, tally in known.items()
        if tally.is_living and tally.has_moved
    ]
    for part in ("names", "mentions", "heads", "tails"):
        await work.each(f"changes.move_{part}", moved)
    living = ([key, *tally.row, tally.more] for key, tally in known.items() if tally.is_living)
    await work.each("changes.update_names", living)


async def _write_mentions(work: Work, plan: Plan) -> None:
    await work.each("changes.drop_mentions", sorted(map(list, plan.overwritten)))
    await work.each("changes.add_mentions", _mention_rows(plan))


def _mention_rows(plan: Plan) -> Iterator[list[object]]:
    # A batch at a time: rows that live long are looked through by every garbage collection.
    for segment in sorted(plan.mentions):
        own = plan.mentions[segment]
        mentions = []
        for name in sorted(own):
            row, end = own[name], plan.end(name)
            mentions.append([name, _other(end, name), packed(row.forms), row.question])
        yield [segment, mentions]


async def _write_facts(work: Work, rows: Sequence[FactRow], plan: Plan) -> None:
    latest: dict[str, dict[int, FactRow]] = {}
    for row in rows:
        latest.setdefault(short(row.segment_id), {})[row.n] = row
    kept = await work.gathered("changes.stated", sorted(latest.keys() - plan.cleared))
    taken = [[segment, n] for segment, n, *_ in kept if n in latest[segment]]
    await work.each("changes.drop_facts", taken)
    await work.each("changes.add_facts", _fact_rows(latest, plan))


def _fact_rows(latest: Mapping[str, Mapping[int, FactRow]], plan: Plan) -> Iterator[list[object]]:
    for segment in sorted(latest):
        facts = []
        for n, row in sorted(latest[segment].items()):
            head, tail = short(row.head), short(row.tail)
            ends = plan.end(head), plan.end(tail)
            if all(ends):
                others = [_other(ends[0], head), _other(ends[1], tail)]
                facts.append([n, head, tail, *others, row.description, row.question])
        yield [segment, facts]


def _other(entity: str, name: str) -> str | None:
    """Return the entity's key unless it is the name's: most names are their entity's own."""
    return None if entity == name else entity


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
    lost = [t for t in plan.names.values() if t.has_moved or not t.is_living]
    touched = {end for tally in lost for end in (tally.old, tally.entity)} | plan.entities
    gone = await work.each("changes.recount", sorted(touched - {""}))
    await work.each("changes.drop_entities", sorted(short(key) for key, _ in gone))
    return [(key, name) for key, name in gone]
