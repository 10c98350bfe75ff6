"""What is asked, where a search stands, and what it found: plain data, so that it can be kept."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import add
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict, get_args

from qrmem.errors import UsageError, require_count, require_text
from qrmem.graphstore.codec import from_plain, to_plain
from qrmem.types import (
    AskContext,
    Citation,
    Orientation,
    StageUsage,
    Status,
    Step,
    Usage,
)

if TYPE_CHECKING:
    from qrmem.retrieval.fragments import FragmentSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """A question with everything that was chosen for it; see `Memory.ask`.

    Attributes:
        strategy: "": all that may be read where it fits the window, else `reflection`.
        window: L in tokens.
        max_trials: how often segments are read at most, a last forced call not counted.
        start: `search`: the searcher's hits and their entities; `entities`: those that the question
            names, and their segments.
        on_exhausted: what to do when nothing answered: say so, or force an answer.
        documents: ids of the only documents to read; `None`: all.
        fragments: how `fragment` assesses; `None`: as the paper does for what most fragments are.
        hits: how many hits a search starts from.
        nearest: how many segments are read again with the question (orientation `local`).
        expansions: nodes that `reflection` takes in at most.
        width: edges that `graph-expansion` takes per step.
        depth: its steps at most.
        threshold: cosine that an edge needs there; without an embedder its mean plus one deviation.
        reflection: `False` leaves the reason out of the query (ablation of section 3.5).
        navigation: `False` answers from where it starts (ablation of section 3.5).
        paper_exact: as QRMeM has it: start at the question's entities, one expansion between two
            readings, edge scores alone, S_imp before S_add, and an answer is forced in the end.
        surprise: `False` leaves surprises out of what a tree is searched by (ablation of ILM-TR).
    """

    question: str
    strategy: str = ""
    window: int = 4096
    choices: tuple[str, ...] = ()
    documents: frozenset[str] | None = None
    orientation: Orientation = "none"
    share_orientation: bool = False
    max_trials: int = 5
    start: Literal["search", "entities"] = "search"
    on_exhausted: Literal["abstain", "force"] = "abstain"
    fragments: "FragmentSettings | None" = None
    hits: int = 10
    nearest: int = 5
    expansions: int = 40
    width: int = 3
    depth: int = 3
    threshold: float = 0.3
    reflection: bool = True
    navigation: bool = True
    paper_exact: bool = False
    surprise: bool = True

    def __post_init__(self) -> None:
        if self.paper_exact:
            object.__setattr__(self, "start", "entities")
            object.__setattr__(self, "on_exhausted", "force")
        for name, allowed in _ALLOWED.items():
            if getattr(self, name) not in allowed:
                chosen = getattr(self, name)
                raise UsageError(f"{name} is {chosen!r}; choose one of {', '.join(allowed)}")
        require_text(self.question, "the question")
        for choice in self.choices:
            require_text(choice, "a choice")
        require_count(self.max_trials, "max_trials")
        require_count(self.window, "window")
        if len(self.choices) == 1 or len(set(self.choices)) != len(self.choices):
            raise UsageError("give at least two choices, all different")
        if self.orientation == "full":
            raise UsageError("orientation full shapes a memory while it is built: add(question=…)")

    @property
    def context(self) -> AskContext:
        """What stays the same in all calls of the question."""
        return AskContext(self.question, self.choices, self.window)


_ALLOWED: Mapping[str, tuple[str, ...]] = {
    "start": ("search", "entities"),
    "on_exhausted": ("abstain", "force"),
    "orientation": get_args(Orientation),
}


def summed(before: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Add usage by stage, as plain data, to what was used before."""
    total = dict(before)
    for stage, used in new.items():
        known = total.get(stage)
        total[stage] = used if known is None else _sum(known, used)
    return total


def _sum(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Add two stages' figures; money is known where both know it."""
    figures = {
        name: one.get(name, 0) + other.get(name, 0)
        for name in (one.keys() | other.keys()) - {"cost"}
    }
    costs = [used.get("cost") for used in (one, other)]
    if None not in costs:
        figures["cost"] = sum(costs)
    return figures


class SearchState(TypedDict, total=False):
    """Where a search stands: ids, spans, scores, verdicts and counters; texts are in the store.

    Attributes:
        strategy: what is followed.
        entities: E, keys in the order in which they came in.
        taken: keys of the relations that led here.
        important: S_imp, segment id to score.
        added: S_add, segment id to score.
        read: S_mix as it was last read.
        order: in which order passages are read: by place, best first, or best last.
        hits: what the search said of segments that no step has told yet: `[via, over]` by id.
        oriented: segments near the question, where it was to be read into them.
        unkept: what came of that and could not be kept in the store.
        trials: how often passages were read and judged.
        moves: expansions so far.
        reason: the reasoner's words for the last verdict, R.
        has_moved: whether the last move brought anything new to read.
        memory: what the rounds before noted (`inner-loop`).
        parts: ids of the segments of each part that is still to be read (`overview`).
        notes: what was noted of the parts: `text` and `citations`.
        answer: text, choice and reason of the verdict that answered.
        citations: where it stands, without the quoted texts.
        steps: what was done, as the trail has it.
        used: what the calls used, by stage.
        status: set once the search is over.
    """

    strategy: str
    entities: list[str]
    taken: list[str]
    important: dict[str, float]
    added: dict[str, float]
    read: list[str]
    order: str
    hits: dict[str, list[Any]]
    oriented: list[str]
    unkept: list[dict[str, Any]]
    trials: Annotated[int, add]
    moves: Annotated[int, add]
    reason: str
    has_moved: bool
    memory: str
    parts: list[list[str]]
    notes: list[dict[str, Any]]
    answer: dict[str, Any]
    citations: list[dict[str, Any]]
    steps: Annotated[list[dict[str, Any]], add]
    used: dict[str, Any]
    status: Status


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a strategy found.

    Attributes:
        text: the answer; the option's text where options were given; "" when unanswerable.
        choice: index of the chosen option, or `None`.
        reason: the reasoner's words for the last verdict.
        usage: what all its steps used, those before an interruption included.
        strategy: the one that was followed.
    """

    text: str
    status: Status
    choice: int | None
    reason: str
    citations: tuple[Citation, ...]
    steps: tuple[Step, ...]
    usage: Usage
    strategy: str


def segments_of(state: SearchState) -> set[str]:
    """Return the ids of all segments that a state speaks of, but for the edges that it weighed."""
    found = {*state.get("important", ()), *state.get("added", ()), *state.get("oriented", ())}
    found.update(*state.get("parts", ()), *(over for _, over in state.get("hits", {}).values()))
    for step in steps_of(state):
        for one in (*step.read, *step.dropped):
            found.update((one.segment_id, *one.over))
        found.update(*(node.segments for node in step.nodes))
    return found


def plain_usage(usage: Usage) -> dict[str, Any]:
    """Return what answering used, as a state keeps it."""
    return {stage: to_plain(used) for stage, used in usage.online.items()}


def usage_of(used: Mapping[str, Any]) -> Usage:
    """Return what a state keeps of usage."""
    return Usage(online={stage: from_plain(value, StageUsage) for stage, value in used.items()})


def steps_of(state: SearchState) -> Sequence[Step]:
    """Return a state's steps."""
    return [from_plain(step, Step) for step in state.get("steps", ())]
