"""What carries a build, and its outcome.

`Build` holds live objects: nodes get them as LangGraph's context, never in the state.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from qrmem.graphstore.protocol import GraphStore
from qrmem.llm.run import Run
from qrmem.types import EntityTagger, Event, Executor, Listener
from qrmem.types.options import AddOptions


def silent(event: Event) -> None:
    """Ignore an event."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """What carries one build; all its steps share it.

    Attributes:
        parts: the reasoner, the embedder and the settings, and the calls that are not stored yet.
        options: those of the `add`; its question shapes every pass (orientation `full`).
        tagger: its entities are added to the reasoner's; a local reasoner needs none.
        executor: reads the segments; `None` reads them in this process.
    """

    store: GraphStore
    ns: str
    parts: Run
    options: AddOptions = field(default_factory=AddOptions)
    tagger: EntityTagger | None = None
    listener: Listener = silent
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
        dropped: `(document id, segment index, reason)` of items of replies that could not be used.
    """

    read: int = 0
    states: Mapping[str, int] = field(default_factory=dict)
    problems: tuple[tuple[str, int, str], ...] = ()
    left_out: int = 0
    boilerplate: int = 0
    dropped: tuple[tuple[str, int, str], ...] = ()
