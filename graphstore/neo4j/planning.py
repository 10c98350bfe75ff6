"""What a change will do to what is there, worked out before anything is written."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from qrmem.graphstore.checking import check_change, used_names, written_segments
from qrmem.graphstore.neo4j.connection import Row, Work
from qrmem.graphstore.neo4j.keys import short, shortened
from qrmem.graphstore.neo4j.parts import Part
from qrmem.graphstore.neo4j.tallies import Tallies, Tally, by_segment
from qrmem.graphstore.protocol import MentionRow


@dataclass(slots=True)
class Plan:
    """A change as it will be written; all keys are short.

    Attributes:
        cleared: segments that are cleared.
        mentions: rows that are added, by segment and name.
        overwritten: segment and name of kept mentions that a row takes the place of.
        names: every name whose mentions or entity may differ afterwards.
        fresh: those that are new.
        ends: name to the entity that it will stand for, "" for one that goes; of every name that
            the change speaks of and that `known` does not have.
        known: the same of names that earlier parts wrote.
        entities: those that are there.
    """

    cleared: set[str] = field(default_factory=set)
    mentions: dict[str, dict[str, MentionRow]] = field(default_factory=dict)
    overwritten: list[tuple[str, str]] = field(default_factory=list)
    names: dict[str, Tally] = field(default_factory=dict)
    fresh: set[str] = field(default_factory=set)
    ends: dict[str, str] = field(default_factory=dict)
    known: Mapping[str, str] = field(default_factory=dict)
    entities: set[str] = field(default_factory=set)

    def end(self, name: str) -> str:
        """Return the entity that a name will stand for, or ""."""
        return self.ends[name] if name in self.ends else self.known[name]


async def planned(work: Work, part: Part, known: Mapping[str, str]) -> Plan:
    """Read what a change touches, and work out what comes of it.

    Raises:
        ValueError: it speaks of what is neither there nor in it.
    """
    change = part.change
    segments = shortened(written_segments(change).union(change.clear))
    there = set(await work.gathered("facts.known_segments", sorted(segments)))
    plan = Plan(there & set(map(short, change.clear)), by_segment(change.mentions), known=known)
    gone = await _uncounted(work, plan)
    keys = shortened(used_names(change).union(change.names))
    touched = {*part.counted.mentions, *gone.mentions, *map(short, change.names)}
    found = await _found(work, touched.union(keys.keys() - known.keys()))
    targets = set(map(short, {*change.names.values(), *(e.key for e in change.entities)}))
    plan.entities = set(await work.gathered("changes.known_entities", sorted(targets)))
    check_change(
        change,
        segments={segments[key] for key in there},
        names={keys[key] for key in keys if key in found or key in known},
        entities={key for key in change.names.values() if short(key) in plan.entities},
    )
    plan.fresh = touched - found.keys()
    _settle(plan, touched, found, change.names, (part.counted, gone))
    return plan


async def planned_clearing(work: Work, segments: Collection[str]) -> Plan:
    """Return what comes of dropping the rows of some segments."""
    plan = Plan(cleared=set(segments))
    gone = await _uncounted(work, plan)
    _settle(plan, gone.mentions, await _found(work, gone.mentions), {}, (gone,))
    return plan


async def _uncounted(work: Work, plan: Plan) -> Tallies:
    """Return the mentions that go."""
    gone = Tallies()
    kept = await work.gathered("changes.mentions", sorted(plan.cleared | plan.mentions.keys()))
    for segment, name, forms in kept:
        if segment in plan.cleared:
            gone.recount(name, forms, -1)
        elif name in plan.mentions[segment]:
            plan.overwritten.append((segment, name))
            gone.recount(name, forms, -1)
    return gone


async def _found(work: Work, names: Collection[str]) -> dict[str, Row]:
    """Return entity, forms and mentions of the names that are there."""
    rows = await work.gathered("changes.names", sorted(names))
    return {key: [short(entity), *rest] for key, entity, *rest in rows}


def _settle(
    plan: Plan,
    touched: Collection[str],
    found: Mapping[str, Row],
    given: Mapping[str, str],
    counts: Collection[Tallies],
) -> None:
    """Let every name that is touched be what it will be."""
    moves = {short(name): (name, short(entity)) for name, entity in given.items()}
    plan.ends = {name: entity for name, (entity, *_) in found.items()}
    for name in touched:
        old, kept, mentions = found.get(name, ("", "", 0))
        key, entity = moves.get(name, ("", old))
        tally = Tally(key, old, entity, mentions, kept)
        tally.settle(*(tallies.of(name) for tallies in counts))
        plan.names[name] = tally
        plan.ends[name] = entity if tally.is_living else ""
