"""Orientation `local`: segments near a question are read again with it, once, and that is kept."""

from dataclasses import replace
from typing import TYPE_CHECKING

from qrmem.agents.executor import tagged, united
from qrmem.agents.search.state import SearchState
from qrmem.errors import ModelOutputError, WindowTooSmall
from qrmem.graph.merging import near_names
from qrmem.graph.overlay import Overlay, names_in, overlaid
from qrmem.graphstore.codec import from_plain, to_plain
from qrmem.graphstore.reads import BestEffortWriter
from qrmem.llm.parallel import each
from qrmem.text.numbers import counted
from qrmem.types import Contribution, Event, Reading, Segment

if TYPE_CHECKING:
    from qrmem.agents.search.run import Search


SHARED_HITS = 50
"""Hits in whose documents other questions' orientation is looked up."""


async def orient(run: "Search") -> SearchState:
    """Read segments with the question that were not yet read with it, and take in what they add.

    A segment and a question are paid for once, even if nothing comes of it. In a read-only store
    nothing could be kept, so nothing is read; what was kept before is used. A store that turns out
    to take nothing (a lock, a full disk) ends the reading, and what was read serves this answer.
    """
    near = await _nearest(run, run.options.nearest)
    made = await _read_missing(run, near) if run.options.orientation == "local" else []
    if run.options.share_orientation:
        near = await _nearest(run, SHARED_HITS)
    await _take_in(run, near, made)
    return {"oriented": [s.id for s in near], "unkept": [to_plain(one) for one in made]}


async def recall(run: "Search", state: SearchState) -> None:
    """Take in what was read before the run was interrupted."""
    near = await run.graph.segments(state["oriented"])
    made = [from_plain(one, Contribution) for one in state.get("unkept", ())]
    await _take_in(run, near, made)


async def _take_in(run: "Search", near: list[Segment], made: list[Contribution]) -> None:
    run.graph.overlay = await _overlay(run, near, made)
    run.is_oriented = True


async def _nearest(run: "Search", k: int) -> list[Segment]:
    hits = await run.searcher.search(run.context.question, k=k, documents=run.options.documents)
    return await run.graph.segments(hit.segment_id for hit in hits)


async def _read_missing(run: "Search", near: list[Segment]) -> list[Contribution]:
    """Read what was not read with this question; returns what could not be kept."""
    best_effort = run.best_effort or BestEffortWriter(run.store, run.listener)
    asked = (run.context.question,)
    done = {made.segment_id for made in await _kept(run, near) if made.asked == asked}
    missing = [segment for segment in near if segment.id not in done]
    if missing and run.store.is_read_only:
        message = f"{run.store.location} is read-only: the question is not read into it"
        run.listener(Event("warning", {"message": message}))
        return []
    if not missing:
        return []
    readings = await _readings(run, missing)
    known = await run.store.ledger(run.ns, *readings)
    rows = {row.segment_id: row for row in known}
    read: list[Contribution] = []

    async def work(segment: Segment) -> None:
        if not best_effort.is_open:
            return
        made = await _read(run, segment, readings[segment.document_id])
        if made is not None:
            await best_effort.write(lambda: run.store.record(run.ns, [(rows[segment.id], made)]))
            read.append(made)

    await each(missing, work, concurrency=1 if run.reasoner.is_local else run.concurrency)
    run.tell("orient", reason=f"{counted(len(read), 'passages')} read again with the question")
    return [] if best_effort.is_open else read


async def _kept(run: "Search", near: list[Segment]) -> list[Contribution]:
    """Return what was read with this question, or with any where orientation is shared."""
    documents = dict.fromkeys(segment.document_id for segment in near)
    found = await run.store.contributions(run.ns, *documents, kinds=("oriented",))
    if run.options.share_orientation:
        return list(found)
    return [made for made in found if made.asked == (run.context.question,)]


async def _overlay(run: "Search", near: list[Segment], made: list[Contribution]) -> Overlay:
    kept = list(dict.fromkeys([*await _kept(run, near), *made]))
    if not kept:
        return Overlay()
    segments = await run.graph.segments(dict.fromkeys(made.segment_id for made in kept))
    segments.sort(key=lambda segment: (segment.document_id, segment.index))
    known = await near_names(run.store, run.ns, names_in(segments, kept))
    return overlaid(segments, kept, known, (await run.store.unmerged(run.ns)).decisions)


async def _read(run: "Search", segment: Segment, reading: Reading) -> Contribution | None:
    found = await tagged(run.tagger, segment.text)
    try:
        made = await run.reasoner.extract(segment, replace(reading, tagged=found.mentions))
    except (ModelOutputError, WindowTooSmall) as exc:
        message = f"segment {segment.index} of {segment.document_id} was not oriented: {exc}"
        run.listener(Event("warning", {"message": message}))
        return None
    if run.tagger is not None:
        made = united(made, found)
    for loss in found.losses:
        run.listener(Event("warning", {"message": loss.reason}))
    return replace(made, kind="oriented", asked=(run.context.question,), questions=())


async def _readings(run: "Search", segments: list[Segment]) -> dict[str, Reading]:
    wanted = {segment.document_id for segment in segments}
    infos = await run.store.documents(run.ns, wanted)
    question = run.context.question
    window = run.context.window
    return {i.id: Reading(i.title, i.summary, question, window=window) for i in infos}
