"""Building a memory as a LangGraph state machine (QRMeM, section 2.1).

    plan -> take -> summarise -> extract -> accept -> supplement -> merge -> fold -> embed
             ^------------------------------------------|

The ledger is the checkpoint: every phase of a segment is committed when it ends, and each node does
what is missing in the store. So a stopped run is resumed by a second run. With a chat model all
documents are read at once. Without one they are read in portions, so that the second pass over a
segment finds the first one in the cache.
"""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime

from qrmem.agents.build_state import Build, BuildOutcome
from qrmem.agents.embedding import alike_by, embed_segments
from qrmem.agents.executor import InProcess
from qrmem.agents.folding import fold_documents
from qrmem.agents.reading import Reader, shares
from qrmem.errors import CapReached, OutOfReach
from qrmem.graph.merging import merge_documents
from qrmem.graph.view_rows import decided
from qrmem.graphstore.relations import folded_key
from qrmem.llm.parallel import each
from qrmem.text.sentences import last_lines
from qrmem.types import (
    Contribution,
    DocumentInfo,
    Event,
    Job,
    Reading,
    Segment,
    SegmentState,
    Sharer,
)

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph


class BuildState(TypedDict, total=False):
    """The progress of a build, as ids; a node returns its changes.

    Attributes:
        documents: ids, in the given order.
        source: ids of all documents of the source, with complete ones.
        question: the user's question (orientation `full`), or "".
        later: documents of later portions.
        portion: documents of the current portion.
        unread: its segments without a first pass.
        lacking: its segments to read again with their accepted questions, or to close without any.
    """

    documents: list[str]
    source: list[str]
    question: str
    later: list[str]
    portion: list[str]
    unread: list[str]
    lacking: list[str]


PORTION = 512
"""Number of segments per portion and process without a chat model."""
MOST_STEPS = 100_000
"""LangGraph's limit is for state machines that may loop forever; this one always ends."""


@dataclass(frozen=True, slots=True)
class BuildRun:
    """The context of a run: dependencies of its nodes, and texts that are loaded once.

    Attributes:
        segments: segment id to segment of the given documents, in order.
        of_document: document id to the ids of its segments.
        lossy: segments whose first pass in an earlier run lost a part; they are read again.
        again: the second pass of each lacking segment of the portion, from `accept`.
        questioned: all segments with accepted questions.
    """

    build: Build
    reader: Reader
    infos: dict[str, DocumentInfo] = field(default_factory=dict)
    segments: dict[str, Segment] = field(default_factory=dict)
    of_document: dict[str, list[str]] = field(default_factory=dict)
    lossy: dict[str, Contribution] = field(default_factory=dict)
    again: dict[str, Job] = field(default_factory=dict)
    questioned: set[str] = field(default_factory=set)

    def job(self, segment_id: str, question: str) -> Job:
        """Return the job of a first pass."""
        segment = self.segments[segment_id]
        info = self.infos[segment.document_id]
        contribution = self.lossy.get(segment_id)
        attempt = contribution.next_attempt if contribution else 0
        ids = self.of_document[segment.document_id]
        at = ids.index(segment_id, segment.index) if segment.index < len(ids) else 0
        before = last_lines(self.segments[ids[at - 1]].text) if at else ""
        reading = Reading(info.title, info.summary, question, attempt=attempt, before=before)
        return Job(segment, reading, contribution)

    def job_again(
        self, first: Contribution, question: str, accepted: tuple[str, ...] = (), attempt: int = 0
    ) -> Job:
        """Return the job of a second pass, or a segment to close if it has no accepted question."""
        job = self.job(first.segment_id, question)
        reading = replace(job.reading, attempt=attempt)
        return replace(job, reading=reading, known=first, questions=accepted)

    def state_of(self, segment_id: str) -> SegmentState:
        """Return the state of a segment."""
        row = self.reader.rows.get(segment_id)
        return row.state if row else "pending"

    def is_unread(self, segment_id: str) -> bool:
        """Return whether a segment needs a first pass."""
        state = self.state_of(segment_id)
        return state in ("pending", "failed") or (state == "partial" and segment_id in self.lossy)

    async def share(self, source: Sequence[str]) -> None:
        """Decide which segments share a call."""
        reasoner = self.build.parts.reasoner
        if not isinstance(reasoner, Sharer) or not reasoner.shared_tokens:
            return
        of = {
            document: [self.segments[id] for id in ids]
            for document, ids in self.of_document.items()
        }
        others = [document_id for document_id in source if document_id not in of]
        for segment in await self.build.store.segments(
            self.build.ns, documents=list(dict.fromkeys(others))
        ):
            of.setdefault(segment.document_id, []).append(segment)
        segments = [segment for id_ in dict.fromkeys(source) for segment in of.get(id_, ())]
        self.reader.shared = shares(segments, reasoner.shared_tokens)

    async def summarise(self, info: DocumentInfo) -> None:
        """Summarise a document and store the summary."""
        store, ns = self.build.store, self.build.ns
        segments = [self.segments[id] for id in self.of_document[info.id]]
        summary = await self.build.parts.reasoner.summarise(info.title, segments)
        await store.record(ns, (), summaries={info.id: summary})
        self.infos[info.id] = replace(info, summary=summary)

    async def keep_folded(self) -> None:
        """Record which documents are folded, so that a stopped build resumes there."""
        for id, info in self.infos.items():
            segments = self.of_document[id]
            if all(self.state_of(one) == "ok" for one in segments):
                store, key = self.build.store, folded_key(id, info.digest)
                await store.put_cache_entry(self.build.ns, "fold", key, {}, segments=segments)

    def outcome(self) -> BuildOutcome:
        """Return the outcome."""
        states = Counter[str](self.state_of(id) for id in self.segments)
        problems = [
            (segment.document_id, segment.index, row.reason)
            for id, segment in self.segments.items()
            if (row := self.reader.rows.get(id)) is not None and row.state != "ok"
        ]
        return BuildOutcome(
            self.reader.first_readings,
            dict(states),
            tuple(problems),
            self.reader.left_out,
            self.reader.boilerplate,
            tuple(self.reader.dropped),
        )


async def build_documents(
    build: Build,
    document_ids: Sequence[str],
    *,
    source: Sequence[str] = (),
) -> BuildOutcome:
    """Read documents of the store, and merge their contributions into the graph.

    Segments of all documents are read in parallel; decisions follow in document and segment order.
    Results in the store are neither requested nor paid for again.

    Args:
        build: what carries it.
        document_ids: documents that are in the store.
        source: all documents of the source in order, with complete ones. They determine which short
            segments share a call, so that a resumed run makes the same calls. Empty:
            `document_ids`.

    Returns:
        The state of every segment; a segment with unusable replies is a problem, not an error.

    Raises:
        AccessRefused: at once; contributions are kept, and the rest stays pending.
        ModelUnavailable: as above; contributions are merged, so that questions can use them.
        ModelUnusable: as above.
        CapReached: as above.
        WindowTooSmall: a segment and the prompt alone exceed the window.
    """
    executor = build.executor or InProcess(
        build.parts.reasoner,
        build.tagger,
        concurrency=build.parts.settings.concurrency,
        open_entity=build.options.open_entity,
    )
    run = BuildRun(build, Reader(build, executor))
    start: BuildState = {
        "documents": list(document_ids),
        "source": list(source or document_ids),
        "question": build.options.question,
        "later": [],
        "portion": [],
        "unread": [],
        "lacking": [],
    }
    try:
        await build_graph().ainvoke(start, {"recursion_limit": MOST_STEPS}, context=run)
    except (OutOfReach, CapReached):
        await merge_view(build, start["documents"])
        raise
    return run.outcome()


@cache
def build_graph() -> "CompiledStateGraph[BuildState, BuildRun, BuildState, BuildState]":
    """Return the state machine; each run supplies its dependencies as context."""
    graph = StateGraph(BuildState, context_schema=BuildRun)
    reading = [plan, take, summarise, extract, accept, supplement]
    closing = [merge, fold, embed]
    for node in (*reading, *closing):
        graph.add_node(node.__name__, node)
    graph.add_edge(START, "plan")
    for before, after in (*pairwise(reading), *pairwise(closing)):
        graph.add_edge(before.__name__, after.__name__)
    graph.add_conditional_edges("supplement", _goes_on, ["take", "merge"])
    graph.add_edge("embed", END)
    # Nor a surrounding graph's checkpointer: a run resumes from the ledger.
    return graph.compile(checkpointer=False)


def _goes_on(state: BuildState) -> str:
    return "take" if state["later"] else "merge"


# --- nodes ---------------------------------------------------------------------------------------


async def plan(state: BuildState, runtime: Runtime[BuildRun]) -> BuildState:
    """Find the documents and segments that are incomplete."""
    run, build = runtime.context, runtime.context.build
    documents = dict.fromkeys(state["documents"])
    infos, segments, rows = await asyncio.gather(
        build.store.documents(build.ns, documents),
        build.store.segments(build.ns, documents=list(documents)),
        build.store.ledger(build.ns, *documents),
    )
    run.infos.update({info.id: info for info in infos})
    run.segments.update({segment.id: segment for segment in segments})
    for segment in segments:
        run.of_document.setdefault(segment.document_id, []).append(segment.id)
    run.reader.rows.update({row.segment_id: row for row in rows})
    if lossy := {run.segments[r.segment_id].document_id for r in rows if r.state == "partial"}:
        contributions = await build.store.contributions(build.ns, *lossy, kinds=("extraction",))
        run.lossy.update(
            {
                contribution.segment_id: contribution
                for contribution in contributions
                if contribution.losses
            }
        )
    await run.share(state["source"])
    return {"later": [id for id in documents if id in run.of_document]}


async def take(state: BuildState, runtime: Runtime[BuildRun]) -> BuildState:
    """Take the next portion of documents: all of them, or as many as the cache holds."""
    run, later = runtime.context, state["later"]
    count, count_taken = 0, 0
    while count_taken < len(later) and (count < PORTION or not run.build.parts.reasoner.is_local):
        count += len(run.of_document[later[count_taken]])
        count_taken += 1
    unread = [id for d in later[:count_taken] for id in run.of_document[d] if run.is_unread(id)]
    # Documents that failed before come last: a run that stops there has read all others.
    unread.sort(key=lambda id: run.state_of(id) == "failed")
    return {"later": later[count_taken:], "portion": later[:count_taken], "unread": unread}


async def summarise(state: BuildState, runtime: Runtime[BuildRun]) -> None:
    """Make the summary T of each document with at least two segments."""
    run = runtime.context
    reading = {run.segments[id].document_id for id in state["unread"]}
    waiting = [
        info
        for document_id in state["portion"]
        if (info := run.infos[document_id]).segments > 1
        and not info.summary
        and (document_id in reading or run.build.parts.reasoner.is_local)
    ]
    if waiting:
        run.build.listener(Event("phase", {"phase": "summarising", "documents": len(waiting)}))
        await each(waiting, run.summarise, concurrency=run.build.parts.settings.concurrency)
        run.reader.was_answered = True


async def extract(state: BuildState, runtime: Runtime[BuildRun]) -> None:
    """Run the first pass over unread segments: entities, statements, proposed questions."""
    run, unread = runtime.context, state["unread"]
    if unread:
        run.build.listener(Event("phase", {"phase": "reading", "segments": len(unread)}))
        await run.reader.read("extract", [run.job(id, state["question"]) for id in unread])


async def accept(state: BuildState, runtime: Runtime[BuildRun]) -> BuildState:
    """Accept or reject the proposed questions, one pool per document, in segment order."""
    run, portion, question = runtime.context, state["portion"], state["question"]
    contributions = await run.build.store.contributions(run.build.ns, *portion) if portion else ()
    extractions = [c for c in contributions if c.kind == "extraction"]
    supplements = {(c.segment_id, c.asked): c for c in contributions if c.kind == "supplement"}
    for _, document_contributions in groupby(
        extractions, key=lambda c: run.segments[c.segment_id].document_id
    ):
        firsts = list(document_contributions)
        for first, questions in zip(firsts, decided(firsts), strict=True):
            if questions:
                run.questioned.add(first.segment_id)
            before = supplements.get((first.segment_id, questions))
            if questions and (before is None or before.losses):
                attempt = before.next_attempt if before else 0
                run.again[first.segment_id] = run.job_again(first, question, questions, attempt)
            elif run.state_of(first.segment_id) != "ok":
                run.again[first.segment_id] = run.job_again(first, question)
    ids = (id for document in portion for id in run.of_document[document])
    return {"lacking": [id for id in ids if id in run.again]}


async def supplement(state: BuildState, runtime: Runtime[BuildRun]) -> None:
    """Run the second pass over segments with accepted questions."""
    run, lacking = runtime.context, state["lacking"]
    if not lacking:
        return
    run.build.listener(Event("phase", {"phase": "questioning", "segments": len(lacking)}))
    again = [run.again[id] for id in lacking]
    await run.reader.close([job for job in again if not job.questions])
    jobs_with_questions = [job for job in again if job.questions]
    await run.reader.read("supplement", jobs_with_questions, run.questioned)
    run.again.clear()  # with all first readings


async def merge(state: BuildState, runtime: Runtime[BuildRun]) -> None:
    """Bring the view of the memory up to date."""
    run = runtime.context
    run.build.listener(Event("phase", {"phase": "merging"}))
    await merge_view(run.build, state["documents"])


async def fold(state: BuildState, runtime: Runtime[BuildRun]) -> None:
    """Fold parallel relations by the reasoner, in the mode `paper`."""
    run = runtime.context
    if run.build.parts.is_folded:
        summaries = {id: info.summary for id, info in run.infos.items()}
        await fold_documents(run.build, run.segments, summaries, state["question"])
        await run.keep_folded()


async def embed(state: BuildState, runtime: Runtime[BuildRun]) -> None:
    """Compute the missing vectors."""
    run, build = runtime.context, runtime.context.build
    if build.parts.embedder is not None:
        ids = list(run.segments)
        await embed_segments(
            build.store, build.ns, build.parts.embedder, ids, listener=build.listener
        )


# --- merging -------------------------------------------------------------------------------------


async def merge_view(build: Build, document_ids: Sequence[str]) -> None:
    """Update the view with the contributions of some documents."""
    await merge_documents(
        build.store,
        build.ns,
        document_ids,
        similar=alike_by(
            build.store, build.ns, build.parts.embedder, build.parts.settings.similar_names
        ),
    )
