"""The context of one question's run: the dependencies and caches of its steps."""

import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from qrmem.agents.build_state import silent
from qrmem.agents.search.memory_graph import MemoryGraph
from qrmem.agents.search.state import SearchState, plain_usage, summed
from qrmem.answering.excerpts import absent_names
from qrmem.graph import expansion
from qrmem.graphstore.codec import to_plain
from qrmem.graphstore.protocol import GraphStore
from qrmem.graphstore.reads import BestEffortWriter
from qrmem.llm.run import Run
from qrmem.retrieval.scoring import EdgeScorer
from qrmem.text.names import split_key
from qrmem.text.sentences import sentences
from qrmem.types import (
    AskContext,
    EntityTagger,
    Event,
    Listener,
    Passage,
    Reasoner,
    Relation,
    ScoredSegment,
    Segment,
    Step,
)
from qrmem.types.options import AskOptions

if TYPE_CHECKING:
    from qrmem.llm.prompting import Caller
    from qrmem.retrieval.fragments import FragmentScorer
    from qrmem.retrieval.searcher import Searcher


# Which segments fit the window (QRMeM, section 2.2).


@dataclass(frozen=True, slots=True)
class PackingCandidate:
    """A segment with its score for packing.

    Attributes:
        score: for S_imp the similarity of the segment to the question; for S_add the similarity of
            the edge that led to it.
    """

    segment: Segment
    score: float


@dataclass(frozen=True, slots=True)
class Packed:
    """The result of packing.

    Attributes:
        read: segments in the window, in document order.
        dropped: segments without room, best first.
        tokens: number of tokens of `read`.
    """

    read: tuple[PackingCandidate, ...]
    dropped: tuple[PackingCandidate, ...]
    tokens: int


def pack(
    imp: Sequence[PackingCandidate],
    add: Sequence[PackingCandidate],
    *,
    room: int,
    size: Callable[[Segment], int],
) -> Packed:
    """Fit S_imp and S_add into the window.

    If S_imp fits, it is kept, and the lowest of S_add are dropped until both fit. If S_imp alone
    does not fit, its lowest are dropped and S_add is empty. A segment that is larger than the room
    is dropped first, so that it displaces no other.

    Args:
        imp: S_imp; a repeated segment keeps its best score.
        add: S_add; a segment that is also in S_imp stays there.
        room: tokens for segments; see `Reasoner.room`.
        size: tokens of a segment with label and separators; see `Reasoner.size`.

    Returns:
        The sizes of `read` sum to at most `room`. Of equal scores (rounded to 1e-4) the earlier
        segment in (document id, index) order is kept.
    """
    room = max(room, 0)
    first = _ranked(imp)
    first_ids = {candidate.segment.id for candidate in first}
    second = [candidate for candidate in _ranked(add) if candidate.segment.id not in first_ids]
    sizes = {candidate.segment.id: size(candidate.segment) for candidate in (*first, *second)}
    overflows = sum(sizes[candidate.segment.id] for candidate in first) > room
    read = _fitting(first, room, sizes)
    if not overflows:
        room_left = room - sum(sizes[candidate.segment.id] for candidate in read)
        read += _fitting(second, room_left, sizes)
    ids = {candidate.segment.id for candidate in read}
    return Packed(
        read=tuple(sorted(read, key=_place)),
        dropped=tuple(_ranked(w for w in (*first, *second) if w.segment.id not in ids)),
        tokens=sum(sizes[segment_id] for segment_id in ids),
    )


def _fitting(
    ranked: Sequence[PackingCandidate], room: int, sizes: dict[str, int]
) -> list[PackingCandidate]:
    fitting = [candidate for candidate in ranked if sizes[candidate.segment.id] <= room]
    total = sum(sizes[candidate.segment.id] for candidate in fitting)
    while total > room:
        total -= sizes[fitting.pop().segment.id]
    return fitting


def _ranked(weighed: Iterable[PackingCandidate]) -> list[PackingCandidate]:
    best: dict[str, PackingCandidate] = {}
    for candidate in weighed:
        previous = best.get(candidate.segment.id)
        if previous is None or candidate.score > previous.score:
            best[candidate.segment.id] = candidate
    return sorted(best.values(), key=lambda w: (-round(w.score, 4), _place(w)))


def _place(weighed: PackingCandidate) -> tuple[str, int, str]:
    return weighed.segment.document_id, weighed.segment.index, weighed.segment.id


NAME_HITS = 5
"""Number of hits of a search for a name that are checked for it."""

_WORDS = re.compile(r"\S+")
BELOW = 1e6
"""Subtracted from a score, it ranks below all others."""


@dataclass(slots=True, kw_only=True)
class Search:
    """The context of one run.

    Attributes:
        parts: the models of the run, and its budget.
        searcher: searches the namespace on the budget of the run, in the segments of the options.
        options: the question with its options; see `qrmem.memory.ask.resolved`.
        writer: writes data that the answer does not need.
        tagger: finds entities in segments that are read again with the question.
        listener: gets an event of kind `step` after each step; `data["step"]` is the `Step`.
        fragments: scorer of the strategy `fragment`; `None` creates one.
        kept: a strategy's cache between steps; it can be computed again.
        thread: id of the trail and of the checkpointer's thread; "" for a trail without id.
        begun: strategy of the interrupted run to resume, or "".
        context: the question, as the reasoner gets it.
        graph: the part of the memory that the run may see.
        scorer: scores edges and segments.
        room: tokens for passages in every judging call.
        room_beside: tokens for statements of the graph, within `room`.
        is_reading_on: whether each reading holds passages that no earlier one had; see
            `qrmem.agents.search.reading_on`.
        is_oriented: whether `graph` has the overlay of the question.
    """

    parts: Run
    searcher: "Searcher"
    options: AskOptions
    writer: BestEffortWriter
    tagger: EntityTagger | None = None
    listener: Listener = silent
    fragments: "FragmentScorer | None" = None
    kept: Any = None
    thread: str = ""
    begun: str = ""
    context: AskContext = field(init=False)
    graph: MemoryGraph = field(init=False)
    scorer: EdgeScorer = field(init=False)
    room: int = field(init=False)
    room_beside: int = 0
    is_reading_on: bool = False
    is_oriented: bool = False
    _write: Callable[[Any], None] | None = None
    _told: list[Step] = field(default_factory=list)
    _before: int = 0
    _since: float = field(default_factory=time.monotonic)
    _earlier: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        options = self.options
        as_of = "" if options.paper_exact else str(options.as_of)[:10]
        self.context = AskContext(
            options.question, tuple(options.choices), options.window, as_of=as_of
        )
        self.graph = MemoryGraph(self.searcher, options, self.parts.settings.mode == "paper")
        self.scorer = EdgeScorer(self.searcher, self.writer)
        self.room = self.reasoner.room(self.context)

    @property
    def room_for_passages(self) -> int:
        """Tokens for passages beside the statements of the graph."""
        return self.room - self.room_beside

    @property
    def store(self) -> GraphStore:
        """The store of the namespace."""
        return self.searcher.store

    @property
    def ns(self) -> str:
        """The namespace."""
        return self.searcher.ns

    @property
    def reasoner(self) -> Reasoner:
        """Reads and answers, with a chat model or by rules."""
        return self.parts.reasoner

    @property
    def caller(self) -> "Caller | None":
        """Sends prompts to the chat model; `None` without one."""
        return self.parts.caller

    # --- events -----------------------------------------------------------------------------

    def enter(self, state: SearchState, write: Callable[[Any], None]) -> None:
        """Begin a step of the state machine.

        Args:
            state: the state.
            write: gets each step if the run is streamed.
        """
        self._told, self._before, self._write = [], len(state.get("steps", ())), write
        if self._earlier is None:  # the usage before an interruption
            self._earlier = state.get("used", {})

    def leave(self, update: SearchState) -> SearchState:
        """Add the recorded steps and the usage to a step's update."""
        usage = summed(self._earlier or {}, plain_usage(self.parts.usage))
        return {**update, "steps": [to_plain(step) for step in self._told], "used": usage}

    def tell(self, action: str, **found: Any) -> None:
        """Record a step for the trail, and send it to the listener and the stream.

        Args:
            action: the action.
            found: further fields of `Step`.
        """
        now = time.monotonic()
        n = self._before + len(self._told) + 1
        found = {k: tuple(v) if isinstance(v, list) else v for k, v in found.items()}
        step = Step(n, action, seconds=round(now - self._since, 6), **found)
        self._since = now
        self._told.append(step)
        self.listener(Event("step", {"step": step}))
        self.show(step)

    def show(self, item: Any) -> None:
        """Send an item to the stream at once."""
        if self._write is not None:
            self._write(item)

    # --- the window -------------------------------------------------------------------------------

    async def packed(self, state: Mapping[str, Any]) -> Packed:
        """Fit S_imp and S_add into the window.

        If S_imp fits, it is kept, as in the paper. If it does not (many hits, or frequent entities)
        and S_add is not empty, the best of S_imp keep half of the window; S_add comes next, then
        the rest of S_imp. The paper does not define this case; with S_imp alone in the window a
        search could never move. With `paper_exact` only S_imp is kept, best first.

        A search that reads on takes passages that were not read: those that the last move ranked,
        else S_imp.
        """
        imp = await self.candidates_of(state["important"])
        add = await self.candidates_of(state["added"])
        if self.is_reading_on:
            seen = set(state.get("seen", ()))
            imp = [one for one in add or imp if one.segment.id not in seen]
            add = []
        packed = await self._packed(imp, add)
        if not packed.read and packed.dropped and self.room_beside:
            self.room_beside = 0  # a whole passage says more than statements of others
            packed = await self._packed(imp, add)
        if packed.read or not packed.dropped:
            return packed
        cut = await self._cut(packed.dropped[0])
        return packed if cut is None else replace(packed, read=(cut,), dropped=packed.dropped[1:])

    async def _cut(self, weighed: PackingCandidate) -> PackingCandidate | None:
        """Return a segment that is larger than the window as its first sentences that fit."""
        segment, best = weighed.segment, None
        ends = [end for _, end in sentences(segment.text)]
        ends = [*(m.end() for m in _WORDS.finditer(segment.text, 0, ends[0])), *ends]
        low, high = 0, len(ends)
        while low < high:
            middle = (low + high) // 2
            shorter = replace(segment, text=segment.text[: ends[middle]])
            if (await self.sizes([shorter]))[0] <= self.room_for_passages:
                best, low = shorter, middle + 1
            else:
                high = middle
        return None if best is None else PackingCandidate(best, weighed.score)

    async def _packed(
        self, imp: Sequence[PackingCandidate], add: Sequence[PackingCandidate]
    ) -> Packed:
        segments = [candidate.segment for candidate in (*imp, *add)]
        ids = [segment.id for segment in segments]
        sizes = dict(zip(ids, await self.sizes(segments), strict=True))

        def size(segment: Segment) -> int:
            return sizes[segment.id]

        room = self.room_for_passages
        is_plain = self.options.paper_exact or not add
        if is_plain or sum(size(candidate.segment) for candidate in imp) <= room:
            return pack(imp, add, room=room, size=size)
        sure = pack(imp, (), room=room // 2, size=size).read or imp[:1]
        sure_ids = {candidate.segment.id for candidate in sure}
        # Scores of hits and of edges are not comparable: the other hits rank below every edge.
        rest = [
            PackingCandidate(w.segment, w.score - BELOW)
            for w in imp
            if w.segment.id not in sure_ids
        ]
        return pack(sure, [*add, *rest], room=room, size=size)

    async def sizes(self, segments: Sequence[Segment]) -> list[int]:
        """Return the number of tokens of segments in a prompt."""
        passages = await self.graph.passages(segments)
        # Room for a label of three characters; the real labels follow when the pack is known.
        return [self.reasoner.size(replace(p, label="S99")) for p in passages]

    async def candidates_of(self, scores: Mapping[str, float]) -> list[PackingCandidate]:
        """Return segments with their scores, best first."""
        ranked = sorted(scores, key=lambda id: -scores[id])
        return [PackingCandidate(s, scores[s.id]) for s in await self.graph.segments(ranked)]

    async def all_segments(self, most: int) -> Sequence[Segment]:
        """Return all segments that the question may use, in order; none if more than `most`."""
        documents, only = self.options.documents, self.options.segments
        if only is not None:
            segments = await self.store.segments(self.ns, sorted(only)) if len(only) <= most else ()
            inside = [s for s in segments if documents is None or s.document_id in documents]
            return sorted(inside, key=lambda s: (s.document_id, s.index))
        if documents is None:
            if sum((await self.store.states(self.ns)).values()) > most:
                return ()
            documents = frozenset(await self.store.document_ids(self.ns))
        elif len(documents) > most:
            return ()
        segments = await self.store.segments(self.ns, documents=sorted(documents))
        return segments if len(segments) <= most else ()

    # --- without a chat model ---------------------------------------------------------------------

    async def absent_names(self, passages: Sequence[Passage]) -> list[str]:
        """Return the names in the question that occur in no segment that it may use."""
        question = self.context.question
        texts = [f"{passage.title} {passage.segment.text}" for passage in passages]
        if not absent_names(question, texts):
            return []
        # The speaker of a turn is an entity of it, even if the turn does not have the name.
        entities_by_segment = await self.graph.entities_in(
            [passage.segment.id for passage in passages]
        )
        texts += [
            split_key(key)[0].title() for keys in entities_by_segment.values() for key in keys
        ]
        for name in absent_names(question, texts):
            hits = await self.searcher.search(
                name, k=NAME_HITS, documents=self.options.documents, is_reranked=False
            )
            texts += [f"{hit.title} {hit.text}" for hit in hits]
        return absent_names(question, texts)

    # --- the walk ---------------------------------------------------------------------------------

    async def edge_scores(self, query: str, edges: Sequence[Relation]) -> dict[str, float]:
        """Return the similarity of edges to a query, by key."""
        names = self.graph.known_names(edges)
        texts = {edge.key: expansion.edge_text(edge, names) for edge in edges}
        return await self.scorer.score_edges(query, texts)

    async def tell_expansion(
        self,
        walk: expansion.Walk,
        edges: Sequence[Relation],
        scores: Mapping[str, float],
        taken: Set[str],
        *,
        query: str,
        brought: Mapping[str, float],
    ) -> None:
        """Record an expansion: the state of the walk, and the frontier that it chose from.

        Args:
            walk: the state.
            edges: edges of the frontier.
            scores: edge key to score.
            taken: the chosen edges.
            query: the text that the edges were compared with.
            brought: segments of the new node, with their scores.
        """
        edges_shown = expansion.ranked(edges, scores)[: expansion.TRAIL_EDGES]
        # Only shown ends need their proper name; others use the name in their key.
        await self.graph.names([end for edge in edges_shown for end in (edge.head, edge.tail)])
        self.tell(
            "expand",
            entities=await self.graph.names(walk.entities),
            edges=expansion.weighed_edges(edges, scores, self.graph.known_names(edges), taken),
            query=query,
            brought=scored(await self.candidates_of(brought), brought, {}),
        )


def scored(
    weighed: Sequence[PackingCandidate], scores: Mapping[str, float], hits: dict[str, list[Any]]
) -> list[ScoredSegment]:
    """Return segments in the form of a trail, with their scores.

    Args:
        weighed: the segments.
        scores: segment id to score.
        hits: `[via, over]` by segment id; used entries are removed, so that each appears once.
    """
    scored_segments = []
    for one in weighed:
        segment = one.segment
        via, over = hits.pop(segment.id, ("", ()))
        score = round(scores.get(segment.id, 0.0), 4)
        scored_segments.append(ScoredSegment(segment.id, score, segment.tokens, via, tuple(over)))
    return scored_segments
