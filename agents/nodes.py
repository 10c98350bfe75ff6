"""What all strategies share: their state, starting, packing the window, reading, concluding."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Literal, TypedDict

from langgraph.runtime import Runtime

from qrmem.agents.memory_graph import MemoryGraph
from qrmem.agents.orienting import orient
from qrmem.agents.start import start
from qrmem.agents.state import AskDeps, AskOptions, Outcome
from qrmem.agents.trail import Recorder, scored
from qrmem.answering import citations as quotes
from qrmem.graph import expansion
from qrmem.graph.budget import Packed, Weighed, pack
from qrmem.retrieval.fragments.settings import Order
from qrmem.types import (
    AskContext,
    Citation,
    Event,
    Hit,
    Passage,
    Relation,
    Segment,
    Status,
    Verdict,
)

BELOW = 1e6
"""What puts a score below all others of a ranking."""


class SearchState(TypedDict, total=False):
    """Where a search stands: ids, scores, counters and reasons.

    Attributes:
        entities: E, keys in the order in which they came in.
        taken: keys of the relations that led here.
        important: S_imp, segment id to score.
        added: S_add, segment id to score.
        read: S_mix as it was last read.
        trials: how often it was read and judged.
        moves: expansions so far.
        reason: the reasoner's words for the last verdict, R.
        has_moved: whether the last move brought anything new to read.
        status: set once the search is over.
    """

    entities: list[str]
    taken: list[str]
    important: dict[str, float]
    added: dict[str, float]
    read: list[str]
    trials: int
    moves: int
    reason: str
    has_moved: bool
    status: Status


@dataclass(slots=True)
class AskRun:
    """The context of one run.

    Attributes:
        room: tokens for passages in every judging call.
        order: in which order passages are read: by place, best first, or best last.
        answer: what the last verdict came to; `None` until one answers.
        hits: what the search found, by segment, until the trail has told it.
    """

    deps: AskDeps
    context: AskContext
    options: AskOptions
    graph: MemoryGraph
    recorder: Recorder
    room: int
    order: Order = "position"
    answer: Verdict | None = None
    citations: list[Citation] = field(default_factory=list)
    hits: dict[str, Hit] = field(default_factory=dict)

    def outcome(self, state: SearchState) -> Outcome:
        """Return what the strategy found."""
        answer = self.answer or Verdict(is_answerable=False)
        return Outcome(
            text=answer.answer,
            status=state.get("status", "unanswerable"),
            choice=answer.choice,
            reason=answer.reason or state.get("reason", ""),
            citations=tuple(self.citations),
            steps=tuple(self.recorder.steps),
        )

    async def packed(self, state: SearchState) -> Packed:
        """Fit S_imp and S_add into the window (Q20).

        S_imp is kept whole if it fits, as in the paper. Where it does not, be it the hits of a
        search or the segments of frequent entities, only the best half of the window is sure of its
        place once there is something to add, and the rest of S_imp comes after S_add. Deviation:
        SPEC 1.2 leaves S_add empty then, and a search could never move.
        """
        imp, add = await self.weighed(state["important"]), await self.weighed(state["added"])
        segments = [weighed.segment for weighed in (*imp, *add)]
        ids = [segment.id for segment in segments]
        sizes = dict(zip(ids, await self.sizes(segments), strict=True))

        def size(segment: Segment) -> int:
            return sizes[segment.id]

        if not add or sum(size(weighed.segment) for weighed in imp) <= self.room:
            return pack(imp, add, room=self.room, size=size)
        sure = pack(imp, (), room=self.room // 2, size=size).read or imp[:1]
        kept = {weighed.segment.id for weighed in sure}
        # Scores of hits and of edges do not compare: the other hits rank below every edge.
        rest = [Weighed(w.segment, w.score - BELOW) for w in imp if w.segment.id not in kept]
        return pack(sure, [*add, *rest], room=self.room, size=size)

    async def sizes(self, segments: Sequence[Segment]) -> list[int]:
        """Return the tokens that segments take in a prompt."""
        passages = await self.graph.passages(segments)
        # Room for a label of three characters; those of a pack come once it is known.
        return [self.deps.reasoner.size(replace(p, label="S99")) for p in passages]

    async def edge_scores(self, query: str, edges: Sequence[Relation]) -> dict[str, float]:
        """Return how near edges are to a query, by key."""
        names = self.graph.known_names(edges)
        texts = {edge.key: expansion.edge_text(edge, names) for edge in edges}
        return await self.deps.scorer.score_edges(query, texts)

    async def record_expansion(
        self,
        walk: expansion.Walk,
        edges: Sequence[Relation],
        scores: Mapping[str, float],
        taken: Set[str],
    ) -> None:
        """Record where the walk stands now, and the frontier that it chose from."""
        shown = expansion.ranked(edges, scores)[: expansion.TRAIL_EDGES]
        # Only what is shown needs its proper name; other ends go by the name in their key.
        await self.graph.names([end for edge in shown for end in (edge.head, edge.tail)])
        self.recorder.add(
            "expand",
            entities=await self.graph.names(walk.entities),
            edges=expansion.weighed_edges(edges, scores, self.graph.known_names(edges), taken),
        )

    async def weighed(self, scores: Mapping[str, float]) -> list[Weighed]:
        """Return segments with their scores, best first."""
        ranked = sorted(scores, key=lambda id: -scores[id])
        return [Weighed(s, scores[s.id]) for s in await self.graph.segments(ranked)]


async def begin(state: SearchState, runtime: Runtime[AskRun]) -> SearchState:
    """Orient the segments near the question, if that is wanted, and find where to start."""
    run = runtime.context
    if run.options.orient or run.options.share_orientation:
        await orient(run)
    begun = await start(run)
    names = await run.graph.names(begun.entities)
    run.recorder.add("start", entities=names, reason=begun.how)
    return {
        "entities": begun.entities,
        "important": begun.important,
        "added": {},
        "taken": [],
        "read": [],
        "trials": 0,
        "moves": 0,
        "reason": "",
    }


async def read(state: SearchState, runtime: Runtime[AskRun]) -> SearchState:
    """Read S_mix and judge whether it answers the question (Q15): one call per trial."""
    run = runtime.context
    verdict, packed = await _judged(run, state, force=False)
    names = await run.graph.names(state["entities"])
    scores = {**state["important"], **state["added"]}
    run.recorder.add(
        "read",
        entities=names,
        read=scored(packed.read, scores, run.hits),
        dropped=scored(packed.dropped, scores, run.hits),
        verdict="answerable" if verdict.is_answerable else "unanswerable",
        reason=verdict.reason,
        tokens=verdict.tokens,
    )
    update: SearchState = {
        "read": [weighed.segment.id for weighed in packed.read],
        "trials": state["trials"] + 1,
        "reason": verdict.reason,
    }
    if verdict.is_answerable:
        update["status"] = "answered"
    return update


async def conclude(state: SearchState, runtime: Runtime[AskRun]) -> SearchState:
    """End a search that answered nothing: abstain, or force an answer from what was read (Q22)."""
    run = runtime.context
    if run.options.on_exhausted == "abstain":
        return {"status": "unanswerable"}
    verdict, packed = await _judged(run, state, force=True)
    scores = {**state["important"], **state["added"]}
    run.recorder.add(
        "force",
        entities=await run.graph.names(state["entities"]),
        read=scored(packed.read, scores, run.hits),
        verdict="answerable" if verdict.is_answerable else "unanswerable",
        reason=verdict.reason,
        tokens=verdict.tokens,
    )
    return {"status": "forced" if verdict.is_answerable else "unanswerable"}


def after_reading(
    state: SearchState, runtime: Runtime[AskRun]
) -> Literal["done", "move", "conclude"]:
    """End at an answer; move on while trials are left and moving is allowed."""
    if "status" in state:
        return "done"
    options = runtime.context.options
    is_over = state["trials"] >= options.max_trials or not options.navigation
    return "conclude" if is_over else "move"


def after_moving(state: SearchState) -> Literal["read", "conclude"]:
    """Read again if there is anything new; the same passages would get the same verdict."""
    return "read" if state["has_moved"] else "conclude"


def after_answering(state: SearchState) -> Literal["done", "conclude"]:
    """End after one reading, for strategies that read once."""
    return "done" if "status" in state else "conclude"


async def _judged(run: AskRun, state: SearchState, *, force: bool) -> tuple[Verdict, Packed]:
    packed = await run.packed(state)
    if run.order != "position":
        best_last = sorted(packed.read, key=lambda weighed: weighed.score)
        packed = replace(packed, read=tuple(best_last[:: -1 if run.order == "score" else 1]))
    passages = await run.graph.passages([weighed.segment for weighed in packed.read])
    verdict = await run.deps.reasoner.judge(run.context, passages, force=force)
    if not verdict.is_readable:
        message = "the model's verdict cannot be read; it counts as unanswerable (qrmem doctor)"
        run.deps.listener(Event("warning", {"message": message}))
    if verdict.is_answerable:
        run.answer = verdict
        run.citations = cited(verdict, passages)
    return verdict, packed


def cited(verdict: Verdict, passages: Sequence[Passage]) -> list[Citation]:
    """Return where a verdict's quotations stand, whole segments if none can be located."""
    found = quotes.locate(verdict.quotes, passages)
    if found:
        return found
    words = f"{verdict.answer} {verdict.reason}"
    return [quotes.whole(p) for p in quotes.supporting(words, verdict.quotes, passages)]
