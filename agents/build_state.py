"""What a build is handed, and what it gives back.

`BuildDeps` are live objects: nodes get them as LangGraph's context, and no state holds one.
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
    """Take an event and do nothing."""


def no_calls(segment_id: str) -> Sequence[CallRecord]:
    """Return nothing: the caller who wired the model keeps its calls."""
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildDeps:
    """What building a memory needs.

    Attributes:
        tagger: its entities are united with the reasoner's; a local reasoner needs none.
        embedder: the namespace's own; `None` where it has none.
        concurrency: segments that are with a chat model at the same time.
        similar_names: cosine from which two names of a type count as one; 0 turns it off.
        fold_by_reasoner: fold parallel relations by the paper's prompt (mode `paper`).
        take_calls: returns the calls about a segment that were made since it was asked last; they
            are committed together with what the calls brought.
        open_entity: `False` takes entities from the tagger alone (ablation of section 3.5).
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
    executor: Executor | None = None


@dataclass(frozen=True, slots=True)
class BuildOutcome:
    """What a build did.

    Attributes:
        read: segments whose first reading was made in this run.
        states: all segments of the given documents by ledger state.
        problems: `(document id, segment index, reason)` of all that are not `ok`.
        left_out: entities and relations of none of the types of a closed schema, in this run.
    """

    read: int = 0
    states: Mapping[str, int] = field(default_factory=dict)
    problems: tuple[tuple[str, int, str], ...] = ()
    left_out: int = 0
