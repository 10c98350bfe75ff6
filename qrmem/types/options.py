"""Options of runs: one frozen object for each kind of run, validated when it is created.

The methods of a memory take the same options as keywords; see `qrmem.memory.Memory`.
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import date
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar, cast, get_args

from qrmem.errors import UsageError, clean_name, require_count, require_text
from qrmem.types.documents import TreeKind, Where

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver

Strategy = Literal[
    "reflection",
    "graph-expansion",
    "entity-trial",
    "fragment",
    "inner-loop",
    "overview",
    "raptor",
    "raptor-layered",
    "temp-mem",
    "passages",
]
"""Names of strategies; see `Memory.ask`."""
Orientation = Literal["none", "local", "full"]
BuildMode = Literal["compact", "paper"]


# Settings of FragRel; the paper's choices for each kind of text.

Score = Literal["auto", "cosine", "bm25", "jaccard", "search"]
Order = Literal["position", "score", "reverse"]
Relate = Callable[[Any], Any]
"""A relation of your own: a function from `qrmem.retrieval.fragments.Fragments` to their
`Relation`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FragmentSettings:
    """Settings for scoring and choosing fragments.

    Attributes:
        relation: `structure` (Eq. 7), `semantic` (Eq. 6), `code` (Eq. 8), the name of an entry
            point in the group `qrmem.relations`, a function of your own, or several of these, whose
            mean counts.
        w_rel: weight of the structural relation, in [0, 1]; 0 ranks fragments independently.
        alpha: weight of the environment score (Eq. 10); 0 ranks fragments independently.
        score: the independent score: `cosine`, `bm25`, `jaccard` (over sets of tokens), `search`
            (the ranking of `Memory.search`); `auto` is the cosine if there are vectors, else BM25.
        pieces: tokenizer for `jaccard`: `builtin`, or `tiktoken:p50k_base` as in RepoCoder.
        top: maximum number of fragments; `None`: as many as fit the window and `words`.
        words: maximum number of words by LongBench's count (the paper's context limits); `None`:
            any.
        order: order of reading: by position, best first, or best last.
        with_self: whether a fragment is part of its own environment.
        printed: use the semantic relation as the paper prints it, `1 - cosine`.
        cutoff: least strength of a path in the code relation; weaker paths count only over folders.
    """

    relation: str | Relate | Sequence[str | Relate] = "structure"
    w_rel: float = 0.3
    alpha: float = 0.5
    score: Score = "auto"
    pieces: str = "builtin"
    top: int | None = None
    words: int | None = None
    order: Order = "position"
    with_self: bool = True
    printed: bool = False
    cutoff: float = 0.025

    def __post_init__(self) -> None:
        if not 0 <= self.w_rel <= 1:
            raise UsageError(f"w_rel must be between 0 and 1, not {self.w_rel}")
        if not 0 <= self.alpha < math.inf:
            raise UsageError(f"alpha must be a number of at least 0, not {self.alpha}")
        if not 0 < self.cutoff <= 1:
            raise UsageError(f"cutoff must be above 0 and at most 1, not {self.cutoff}")
        for name, allowed in (("score", get_args(Score)), ("order", get_args(Order))):
            if getattr(self, name) not in allowed:
                value = getattr(self, name)
                raise UsageError(f"{name} is {value!r}; choose one of {', '.join(allowed)}")
        for name in ("top", "words"):
            if getattr(self, name) is not None and getattr(self, name) < 1:
                raise UsageError(f"{name} must be at least 1")
        if not self.relations:
            raise UsageError("name at least one relation")

    @property
    def relations(self) -> tuple[str | Relate, ...]:
        """The relations that count, as a tuple."""
        if isinstance(self.relation, str) or callable(self.relation):
            return (self.relation,)
        return tuple(self.relation)


STORY = FragmentSettings()
"""Books and other running text (paper, B.1)."""
CODE = FragmentSettings(relation="code", score="bm25", top=10, order="reverse")
"""A source tree (paper, B.2)."""
CHAT = FragmentSettings(w_rel=0.8, top=8)
"""Turns of a conversation (paper, B.3)."""


RecallMethod = Literal["turns", "fragrel"]


class CapOptions(TypedDict, total=False):
    """Caps of one run; they have the names of the settings that they override."""

    max_calls: int | None
    max_tokens: int | None
    max_cost: float | None
    max_seconds: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AddOptions:
    """Options of reading a source; see `Memory.add`.

    Attributes:
        user: for messages, like `session` and `extract`.
        open_entity: whether to use other entities than the tagger's; only evaluation turns it off
            (ablation of section 3.5).
    """

    update: bool = False
    rebuild: bool = False
    glob: str | None = None
    follow_links: bool = False
    question: str = ""
    user: str = ""
    session: str = ""
    extract: bool = False
    caps: CapOptions = field(default_factory=CapOptions)
    open_entity: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class AskOptions:
    """A question with its options; see `Memory.ask`.

    Empty options are filled in from the settings (`qrmem.memory.ask.resolved`). Those from `hits`
    on are for evaluation and the papers' presets only.

    Attributes:
        strategy: "": read everything if it fits the window, else `reflection`.
        window: L in tokens; 0: that of the settings.
        documents: ids of the only documents to read; `None`: all.
        where: conditions on a document's metadata; resolved into `documents`.
        types: types of entities and relations; resolved into `segments`.
        segments: ids of the only segments to read; `None`: all.
        as_of: date of the view on the memory; "": now.
        single_types: relation types of which an entity has only one at a time.
        orientation: "": that of the settings.
        max_trials: maximum number of readings, without a final forced call.
        start: `search`: the searcher's hits and their entities; `entities`: those that the question
            names, and their segments.
        on_exhausted: what to do if no reading answers: abstain, or force an answer.
        keep_trail: whether to store the trail; `None`: by the setting `keep_trails`.
        fragments: settings of `fragment`; `None`: the paper's for the kind of most fragments.
        reranker: named as in the setting; "": that of the settings, and none with `paper_exact`.
        checkpointer: a LangGraph checkpointer, which saves the state after each step.
        caps: caps of this run only.
        hits: number of search hits to start from.
        nearest: number of segments to read again with the question (orientation `local`).
        expansions: maximum number of nodes that `reflection` adds.
        width: maximum number of edges that `graph-expansion` follows per step.
        depth: maximum number of its steps.
        threshold: minimum cosine of an edge there; without an embedder the mean plus one standard
            deviation.
        reflection: `False` leaves the reason out of the query (ablation of section 3.5).
        navigation: `False` answers from the start only (ablation of section 3.5).
        paper_exact: search exactly as in QRMeM's paper: start at the question's entities, one
            expansion between two readings, edge scores only, S_imp before S_add, and force an
            answer at the end.
        surprise: `False` ignores surprises in a tree search (ablation of ILM-TR).
    """

    question: str
    strategy: str = ""
    window: int = 0
    choices: Sequence[str] = ()
    documents: Collection[str] | None = None
    where: Where | None = None
    types: Sequence[str] | None = None
    segments: Collection[str] | None = None
    as_of: str | date = ""
    single_types: Collection[str] = ()
    orientation: Orientation | Literal[""] = ""
    share_orientation: bool = False
    max_trials: int = 5
    start: Literal["search", "entities"] = "search"
    on_exhausted: Literal["abstain", "force"] = "abstain"
    keep_trail: bool | None = None
    fragments: FragmentSettings | None = None
    reranker: str = ""
    checkpointer: "BaseCheckpointSaver[Any] | None" = None
    caps: CapOptions = field(default_factory=CapOptions)
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
            object.__setattr__(self, "reranker", "none")
        require_text(self.question, "the question")
        require_strategy(self.strategy)
        for name, allowed in _ALLOWED.items():
            if getattr(self, name) not in allowed:
                value, names_allowed = getattr(self, name), ", ".join(filter(None, allowed))
                raise UsageError(f"{name} is {value!r}; choose one of {names_allowed}")
        if self.orientation == "full":
            raise UsageError("orientation full shapes a memory while it is built: add(question=…)")
        if self.types is not None and self.strategy in _WHOLE:
            raise UsageError(
                f"strategy {self.strategy} does not support types; leave types"
                " out, or choose another strategy"
            )
        self._require_choices()
        require_count(self.max_trials, "max_trials")
        require_count(self.window or 1, "window")

    def _require_choices(self) -> None:
        if isinstance(self.choices, str):
            raise UsageError("choices are a list of texts, not one text")
        object.__setattr__(self, "choices", tuple(self.choices))
        for choice in self.choices:
            require_text(choice, "a choice")
        if len(self.choices) == 1 or len(set(self.choices)) != len(self.choices):
            raise UsageError("give at least two choices, all different")

    @property
    def is_walk(self) -> bool:
        """Whether an option needs a walk over the graph."""
        return self.start == "entities" or self.orientation == "local" or self.share_orientation

    @property
    def shape(self) -> str:
        """All options that affect the answer, as one text; equal calls have equal texts."""
        documents = None if self.documents is None else sorted(self.documents)
        plain = {one.name: getattr(self, one.name) for one in fields(self)}
        plain |= {"documents": documents, "where": None, "segments": None, "keep_trail": None}
        plain |= {"checkpointer": None, "caps": None, "single_types": sorted(self.single_types)}
        return repr(plain)


_WHOLE = ("fragment", "inner-loop", "raptor", "raptor-layered")
"""Strategies over trees of whole documents, or over all their fragments."""
_ALLOWED: Mapping[str, tuple[str, ...]] = {
    "start": ("search", "entities"),
    "on_exhausted": ("abstain", "force"),
    "orientation": ("", *get_args(Orientation)),
}


def require_strategy(name: str) -> None:
    """Check the name of a strategy; "" is the default.

    Raises:
        UsageError: the strategy is unknown; the message lists the known ones.
    """
    if name and name not in get_args(Strategy):
        strategies = ", ".join(get_args(Strategy))
        raise UsageError(f"no strategy is called {name!r}; choose one of {strategies}")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallOptions:
    """Options of a recall; see `Memory.recall`."""

    prompt: str
    session: str = ""
    tokens: int = 2000
    how: RecallMethod = "turns"
    fragments: FragmentSettings | None = None
    user: str | None = None
    min_score: float = 0.0
    as_of: str = ""
    types: Sequence[str] | None = None
    reranker: str = ""

    def __post_init__(self) -> None:
        require_text(self.prompt, "the prompt")
        require_count(self.tokens, "tokens")
        if isinstance(self.min_score, bool) or not isinstance(self.min_score, int | float):
            raise UsageError(f"min_score must be a number, not {type(self.min_score).__name__}")
        if not self.min_score >= 0 or self.min_score == float("inf"):
            raise UsageError(f"min_score must be at least 0, not {self.min_score}")
        object.__setattr__(self, "session", clean_name(self.session, "session"))
        if self.user is not None:
            object.__setattr__(self, "user", clean_name(self.user, "user"))
        if self.how not in get_args(RecallMethod):
            raise UsageError(f"how is {self.how!r}; choose turns or fragrel")


Options = TypeVar("Options", AddOptions, AskOptions)


def options_of(kind: type[Options], given: Mapping[str, Any], **more: Any) -> Options:
    """Return the options of a run from keywords; `None` means "not given".

    Args:
        given: keywords; caps among them become one `CapOptions`.

    Raises:
        UsageError: an option is unknown.
    """
    caps = {name: given[name] for name in given.keys() & CapOptions.__annotations__.keys()}
    rest = {name: value for name, value in given.items() if name not in caps}
    if unknown := sorted(rest.keys() - {one.name for one in fields(kind)}):
        raise UsageError(f"there is no such option: {unknown[0]!r}")
    values = {name: value for name, value in rest.items() if value is not None}
    return kind(**more, **values, caps=cast(CapOptions, caps))


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions:
    """Options of a plan; see `Memory.plan`.

    Attributes:
        add: options of reading `source`.
        ask: the question, with its options.
        tree: whether to plan trees: of the added documents, or alone.
        documents: ids of the documents of those trees; none means all.
        kind: kind of those trees; `preset` likewise.
    """

    source: Any = None
    add: AddOptions | None = None
    ask: AskOptions | None = None
    tree: bool = False
    documents: tuple[str, ...] = ()
    kind: TreeKind = "ilm"
    preset: Literal["default", "paper"] = "default"

    def __post_init__(self) -> None:
        if self.add is not None and self.add.extract:
            raise UsageError(
                "extracting facts from turns cannot be planned; the caps of the settings apply "
                "(max_calls, …)"
            )


def plan_options(
    source: Any, ask: str | None, tree: bool | Sequence[str], given: Mapping[str, Any]
) -> PlanOptions:
    """Return the options of a plan; see `Memory.plan`.

    Raises:
        UsageError: both or neither of two things are given, or an option is unknown.
    """
    is_tree = tree is not False
    if is_tree and source is None and ask is None:
        if unknown := sorted(given.keys() - {"kind", "preset"}):
            raise UsageError(f"a plan of trees has no option {unknown[0]!r}: kind, preset")
        return PlanOptions(tree=True, documents=() if tree is True else tuple(tree or ()), **given)
    if (source is None) == (ask is None):
        raise UsageError("plan one thing: plan(source), plan(ask=…) or plan(tree=True)")
    if source is not None:
        return PlanOptions(source=source, add=options_of(AddOptions, given), tree=bool(tree))
    return PlanOptions(ask=options_of(AskOptions, given, question=ask))
