"""What the caller hands in (`…Deps`, `AskOptions`) and gets back (`…Outcome`).

Deps are live objects: nodes get them as LangGraph's context, and no state ever holds one.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from qrmem.graphstore.aside import Aside
from qrmem.graphstore.protocol import GraphStore
from qrmem.types import (
    CallRecord,
    Citation,
    Embedder,
    EntityTagger,
    Event,
    Executor,
    Listener,
    Reasoner,
    Status,
    Step,
)

if TYPE_CHECKING:
    from qrmem.retrieval.fragments import FragmentScorer, FragmentSettings
    from qrmem.retrieval.searcher import Searcher
    from qrmem.retrieval.similarity import EdgeScorer


def silent(event: Event) -> None:
    """Take an event and do nothing."""


def no_calls(segment_id: str) -> Sequence[CallRecord]:
    """Return nothing: whoever wired the model keeps its calls himself."""
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildDeps:
    """What building a memory needs.

    Attributes:
        tagger: its entities are united with the reasoner's (Q05); a local reasoner needs none.
        embedder: the namespace's own; `None` where it has none.
        concurrency: segments that are with a chat model at the same time.
        similar_names: cosine from which two names of a type count as one; 0 turns it off.
        fold_by_reasoner: fold parallel relations by Q12's prompt (mode `paper`).
        take_calls: returns the calls about a segment that were made since it was asked last; they
            are committed together with what the calls brought.
        open_entity: `False` leaves the reasoner's entities out (ablation, Q24).
        graph_update: `False` leaves generated questions out (ablation, Q24).
        executor: reads the segments; `None`: in this process.
    """

    store: GraphStore
    ns: str
    reasoner: Reasoner
    tagger: EntityTagger | None = None
    embedder: Embedder | None = None
    listener: Listener = silent
    concurrency: int = 8
    similar_names: float = 0.0
    fold_by_reasoner: bool = False
    take_calls: Callable[[str], Sequence[CallRecord]] = no_calls
    open_entity: bool = True
    graph_update: bool = True
    executor: Executor | None = None


@dataclass(frozen=True, slots=True)
class BuildOutcome:
    """What a build did.

    Attributes:
        read: segments whose first reading was made in this run.
        states: all segments of the given documents by ledger state.
        problems: `(document id, segment index, reason)` of all that are not `ok`.
    """

    read: int = 0
    states: Mapping[str, int] = field(default_factory=dict)
    problems: tuple[tuple[str, int, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AskDeps:
    """What answering needs.

    Attributes:
        listener: gets an event of kind `step` as each step is done; `data["step"]` is the `Step`.
        folded_by_reasoner: whether the memory was built in mode `paper`: relations then have the
            descriptions that were folded for them (Q12).
        aside: takes what an answer can do without; `None`: one of its own.
        fragments: what `fragment` assesses by; `None`: one of its own.
    """

    store: GraphStore
    ns: str
    reasoner: Reasoner
    searcher: "Searcher"
    scorer: "EdgeScorer"
    tagger: EntityTagger | None = None
    listener: Listener = silent
    concurrency: int = 8
    folded_by_reasoner: bool = False
    aside: Aside | None = None
    fragments: "FragmentScorer | None" = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AskOptions:
    """How a question is answered.

    Attributes:
        max_trials: how often segments are read at most (Q22), a last forced call not counted.
        start: `search`: the searcher's hits and their entities; `entities`: those that the question
            names, and their segments (Q14).
        on_exhausted: what to do when nothing answered: say so, or force an answer.
        orient: read the segments nearest to the question again with it first (`local`).
        share_orientation: see what other questions' orientation added.
        documents: ids of the only documents to read; `None`: all.
        hits: how many hits a search starts from.
        nearest: how many segments are oriented.
        expansions: nodes that `reflection` takes in at most.
        width: edges that `graph-expansion` takes per step.
        depth: its steps at most.
        threshold: cosine that an edge needs there; without an embedder its mean plus one deviation.
        reflection: `False` leaves the reason out of the query (ablation, Q24).
        fragments: how `fragment` assesses; `None`: as the paper does for what most fragments are.
        navigation: `False` answers from where it starts (ablation, Q24).
    """

    max_trials: int = 5
    start: Literal["search", "entities"] = "search"
    on_exhausted: Literal["abstain", "force"] = "abstain"
    orient: bool = False
    share_orientation: bool = False
    documents: frozenset[str] | None = None
    hits: int = 10
    nearest: int = 5
    expansions: int = 40
    width: int = 3
    depth: int = 3
    threshold: float = 0.3
    fragments: "FragmentSettings | None" = None
    reflection: bool = True
    navigation: bool = True


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a strategy found.

    Attributes:
        text: the answer; the option's text where options were given; "" when unanswerable.
        choice: index of the chosen option, or `None`.
        reason: the reasoner's words for the last verdict.
    """

    text: str
    status: Status
    choice: int | None
    reason: str
    citations: tuple[Citation, ...]
    steps: tuple[Step, ...]
