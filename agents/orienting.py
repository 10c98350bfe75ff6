"""Orientation `local`: segments near a question are read again with it, once, and that is kept."""

from dataclasses import replace
from typing import TYPE_CHECKING

from qrmem.agents.pool import each
from qrmem.agents.tagging import tagged, united
from qrmem.errors import ModelOutputError
from qrmem.ports import Event, Reading
from qrmem.records import Contribution, LedgerRow, Segment

if TYPE_CHECKING:
    from qrmem.agents.nodes import AskRun


async def orient(run: "AskRun") -> None:
    """Read what was not yet read with this question; what it adds is an overlay of the question's.

    A segment and a question are paid for once, even if nothing comes of it. In a read-only store
    nothing could be kept, so nothing is read.
    """
    deps = run.deps
    if deps.store.is_read_only:
        message = f"{deps.store.location} is read-only: the question is not read into it"
        deps.listener(Event("warning", {"message": message}))
        return
    hits = await deps.searcher.search(
        run.context.question, k=run.options.nearest, documents=run.options.documents
    )
    segments = await run.graph.segments(hit.segment_id for hit in hits)
    missing = [segment for segment in segments if not await _is_oriented(run, segment)]
    readings = await _readings(run, missing)
    rows = await _rows(run, missing)
    read: list[str] = []

    async def work(segment: Segment) -> None:
        made = await _read(run, segment, readings[segment.document_id])
        if made is not None:
            await deps.store.record(deps.ns, rows[segment.id], made)
            read.append(segment.id)

    await each(missing, work, concurrency=1 if deps.reasoner.is_local else deps.concurrency)
    if missing:
        run.recorder.add("orient", reason=f"{len(read)} passages read again with the question")


async def _read(run: "AskRun", segment: Segment, reading: Reading) -> Contribution | None:
    found, tagger = await tagged(run.deps.tagger, segment.text)
    try:
        made = await run.deps.reasoner.extract(segment, replace(reading, tagged=found))
    except ModelOutputError as exc:
        message = f"segment {segment.index} of {segment.document_id} was not oriented: {exc}"
        run.deps.listener(Event("warning", {"message": message}))
        return None
    if run.deps.tagger is not None:
        made = united(made, found, tagger)
    return replace(made, kind="oriented", asked=(run.context.question,), questions=())


async def _is_oriented(run: "AskRun", segment: Segment) -> bool:
    kept = await run.deps.store.contributions(run.deps.ns, segment.document_id, kinds=("oriented",))
    asked = (run.context.question,)
    return any(made.segment_id == segment.id and made.asked == asked for made in kept)


async def _readings(run: "AskRun", segments: list[Segment]) -> dict[str, Reading]:
    wanted = {segment.document_id for segment in segments}
    infos = await run.deps.store.documents(run.deps.ns) if wanted else ()
    question = run.context.question
    return {i.id: Reading(i.title, i.summary, question) for i in infos if i.id in wanted}


async def _rows(run: "AskRun", segments: list[Segment]) -> dict[str, LedgerRow]:
    rows: dict[str, LedgerRow] = {}
    for document_id in dict.fromkeys(segment.document_id for segment in segments):
        found = await run.deps.store.ledger(run.deps.ns, document_id)
        rows.update({row.segment_id: row for row in found})
    return rows
