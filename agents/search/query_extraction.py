"""Orientation `local`: segments near a question are read again with it; results are stored."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from qrmem.agents.executor import tagged, united
from qrmem.agents.search.state import SearchState
from qrmem.errors import ModelOutputError, WindowTooSmall
from qrmem.graph.merging import resolved_beside
from qrmem.graph.view_rows import Read, Rows, rows_of
from qrmem.graphstore.codec import from_plain, to_plain
from qrmem.graphstore.protocol import EntityRow, GraphStore, NameFilter, NameRow
from qrmem.llm.parallel import each
from qrmem.text.names import split_key
from qrmem.text.numbers import counted
from qrmem.types import Contribution, Event, Fact, Reading, Segment

if TYPE_CHECKING:
    from qrmem.agents.search.run import Search


# What orientation `local` adds to the memory for one question's run.
#
# The stored view does not change, so that other questions never see the additions.


@dataclass(frozen=True, slots=True)
class Overlay:
    """Mentions and facts in addition to the stored ones; empty unless made by `overlaid`.

    Attributes:
        mentioned: segment id to entity keys.
        stated: facts, in the order of the segments.
        entities: key to entity, for entities that the stored view does not have.
        said: entity key to its name in the mentions.
    """

    mentioned: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    stated: tuple[Fact, ...] = ()
    entities: Mapping[str, EntityRow] = field(default_factory=dict)
    said: Mapping[str, str] = field(default_factory=dict)

    def entities_in(self, segment_id: str) -> tuple[str, ...]:
        """Return the keys of the additional entities of a segment."""
        return self.mentioned.get(segment_id, ())

    def segments_with(self, key: str) -> list[str]:
        """Return the ids of the additional segments of an entity."""
        return [segment_id for segment_id, keys in self.mentioned.items() if key in keys]

    def facts(self, keys: Collection[str]) -> list[Fact]:
        """Return the additional facts of some entities."""
        wanted_keys = set(keys)
        return [
            fact for fact in self.stated if fact.head in wanted_keys or fact.tail in wanted_keys
        ]


async def overlaid(
    store: GraphStore, ns: str, segments: Sequence[Segment], contributions: Iterable[Contribution]
) -> Overlay:
    """Return the overlay of oriented contributions, with names resolved against the namespace.

    Args:
        segments: segments that were read with the question, in order.
        contributions: oriented contributions of one question; other kinds are ignored.

    Returns:
        Known names keep their entity. A new name joins the entity that it would join if it were
        stored, or becomes an entity.
    """
    rows = _rows(segments, contributions)
    entity_of, entities = await _resolved(store, ns, rows, segments)
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


def _rows(segments: Sequence[Segment], contributions: Iterable[Contribution]) -> Rows:
    contributions_of: dict[str, list[Contribution]] = defaultdict(list)
    for contribution in contributions:
        if contribution.kind == "oriented":
            contributions_of[contribution.segment_id].append(contribution)
    rows = Rows()
    for segment in segments:
        questions = dict.fromkeys(
            question for c in contributions_of[segment.id] for question in c.asked
        )
        rows.add(rows_of(Read(segment, tuple(contributions_of[segment.id]), tuple(questions))))
    return rows


async def _resolved(
    store: GraphStore, ns: str, rows: Rows, segments: Sequence[Segment]
) -> tuple[dict[str, str], dict[str, EntityRow]]:
    """Return the entity of each name in the rows, and the entities that are new."""
    names_used = {row.name for row in rows.mentions}
    known = await store.names(ns, NameFilter(norms={split_key(key)[0] for key in names_used}))
    entity_of = {name.key: name.entity for name in known if name.key in names_used}
    new = Rows(mentions=[row for row in rows.mentions if row.name not in entity_of])
    near, resolution = await resolved_beside(store, ns, new, segments)
    stored_entities = _stored_entities(near, resolution.names)
    entities: dict[str, EntityRow] = {}
    for row in new.mentions:
        key = resolution.names[row.name]
        entity_of[row.name] = stored_entities.get(key, key)
        if key not in stored_entities:
            entities[key] = resolution.entities[key]
    return entity_of, entities


def _stored_entities(names: Sequence[NameRow], resolution: Mapping[str, str]) -> dict[str, str]:
    """Return for each resolved entity the stored entity that most uses of its names refer to."""
    weight: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for name in names:
        weight[resolution[name.key]][name.entity] += name.count
    return {
        key: min(weights, key=lambda entity: (-weights[entity], entity))
        for key, weights in weight.items()
    }


SHARED_HITS = 50
"""Number of hits whose documents are checked for contributions of other questions."""


async def orient(run: "Search") -> SearchState:
    """Read the nearest segments with the question, unless done before, and set the overlay.

    Each segment and question is paid for once, even if the result is empty. With a read-only store
    only stored results are used, and no segment is read. If a write fails (a lock, a full disk), no
    further segment is read, and the results so far are used for this answer.
    """
    nearest = await _nearest(run, run.options.nearest)
    contributions = await _read_missing(run, nearest) if run.options.orientation == "local" else []
    if run.options.share_orientation:
        nearest = await _nearest(run, SHARED_HITS)
    await _take_in(run, nearest, contributions)
    return {"oriented": [s.id for s in nearest], "unkept": [to_plain(one) for one in contributions]}


async def recall(run: "Search", state: SearchState) -> None:
    """Restore the overlay of an interrupted run."""
    segments = await run.graph.segments(state["oriented"])
    contributions = [from_plain(one, Contribution) for one in state.get("unkept", ())]
    await _take_in(run, segments, contributions)


async def _take_in(run: "Search", near: list[Segment], made: list[Contribution]) -> None:
    run.graph.overlay = await _overlay(run, near, made)
    run.is_oriented = True


async def _nearest(run: "Search", k: int) -> list[Segment]:
    hits = await run.searcher.search(run.context.question, k=k, documents=run.options.documents)
    return await run.graph.segments(hit.segment_id for hit in hits)


async def _read_missing(run: "Search", near: list[Segment]) -> list[Contribution]:
    """Read the segments that were not read with this question; return unstored contributions."""
    question = (run.context.question,)
    segments_done = {
        contribution.segment_id
        for contribution in await _stored_contributions(run, near)
        if contribution.asked == question
    }
    missing = [segment for segment in near if segment.id not in segments_done]
    if missing and run.store.is_read_only:
        message = f"{run.store.location} is read-only: the question is not read into it"
        run.listener(Event("warning", {"message": message}))
        return []
    if not missing:
        return []
    readings = await _readings(run, missing)
    ledger = await run.store.ledger(run.ns, *readings)
    rows = {row.segment_id: row for row in ledger}
    read: list[Contribution] = []

    async def work(segment: Segment) -> None:
        if not run.writer.is_open:
            return
        contribution = await _read(run, segment, readings[segment.document_id])
        if contribution is not None:
            await run.writer.write(
                lambda: run.store.record(run.ns, [(rows[segment.id], contribution)])
            )
            read.append(contribution)

    await each(
        missing, work, concurrency=1 if run.reasoner.is_local else run.parts.settings.concurrency
    )
    run.tell("orient", reason=f"{counted(len(read), 'passages')} read again with the question")
    return [] if run.writer.is_open else read


async def _stored_contributions(run: "Search", near: list[Segment]) -> list[Contribution]:
    """Return contributions for this question, or, if orientation is shared, for any."""
    documents = dict.fromkeys(segment.document_id for segment in near)
    contributions = await run.store.contributions(run.ns, *documents, kinds=("oriented",))
    if run.options.share_orientation:
        return list(contributions)
    return [
        contribution
        for contribution in contributions
        if contribution.asked == (run.context.question,)
    ]


async def _overlay(run: "Search", near: list[Segment], made: list[Contribution]) -> Overlay:
    contributions = list(dict.fromkeys([*await _stored_contributions(run, near), *made]))
    if not contributions:
        return Overlay()
    segments = await run.graph.segments(dict.fromkeys(made.segment_id for made in contributions))
    segments.sort(key=lambda segment: (segment.document_id, segment.index))
    return await overlaid(run.store, run.ns, segments, contributions)


async def _read(run: "Search", segment: Segment, reading: Reading) -> Contribution | None:
    tags = await tagged(run.tagger, segment.text)
    try:
        contribution = await run.reasoner.extract(segment, replace(reading, tagged=tags.mentions))
    except (ModelOutputError, WindowTooSmall) as exc:
        message = f"segment {segment.index} of {segment.document_id} was not oriented: {exc}"
        run.listener(Event("warning", {"message": message}))
        return None
    if run.tagger is not None:
        contribution = united(contribution, tags)
    for loss in tags.losses:
        run.listener(Event("warning", {"message": loss.reason}))
    return replace(contribution, kind="oriented", asked=(run.context.question,), questions=())


async def _readings(run: "Search", segments: list[Segment]) -> dict[str, Reading]:
    document_ids = {segment.document_id for segment in segments}
    infos = await run.store.documents(run.ns, document_ids)
    question = run.context.question
    window = run.context.window
    return {i.id: Reading(i.title, i.summary, question, window=window) for i in infos}
