"""The dependencies and the outcome of a build.

`BuildDeps` holds live objects: nodes get them as LangGraph's context, never in the state.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from qrmem.graphstore.protocol import GraphStore
from qrmem.types import (
    CallRecord,
    Embedder,
    EntityTagger,
    Event,
    Executor,
    Listener,
    Reasoner,
)


def silent(event: Event) -> None:
    """Ignore an event."""


def no_calls(segment_id: str) -> Sequence[CallRecord]:
    """Return no calls, for a model whose calls the caller stores itself."""
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildDeps:
    """The dependencies of a build.

    Attributes:
        tagger: its entities are added to the reasoner's; a local reasoner needs none.
        embedder: the namespace's embedder; `None` if it has none.
        concurrency: maximum number of segments that a chat model reads at the same time.
        similar_names: least cosine to merge two names of a type; 0 turns it off.
        fold_by_reasoner: fold parallel relations by the paper's prompt (mode `paper`).
        take_calls: returns the calls about a segment since the last time; they are committed
            together with their results.
        open_entity: `False` uses only the tagger's entities (ablation of section 3.5).
        executor: reads the segments; `None` reads them in this process.
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
    executor: Executor | None = None


@dataclass(frozen=True, slots=True)
class BuildOutcome:
    """The outcome of a build.

    Attributes:
        read: number of segments that were read for the first time in this run.
        states: number of segments of the given documents in each ledger state.
        problems: `(document id, segment index, reason)` of all segments that are not `ok`.
        left_out: number of entities and relations in this run without any type of a closed schema.
        boilerplate: number of segments in `read` that are only boilerplate and gave no entities.
    """

    read: int = 0
    states: Mapping[str, int] = field(default_factory=dict)
    problems: tuple[tuple[str, int, str], ...] = ()
    left_out: int = 0
    boilerplate: int = 0
