"""What FragRel can be told; the paper's choices for each kind of text."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from qrmem.errors import UsageError

Score = Literal["auto", "cosine", "bm25", "jaccard", "search"]
Order = Literal["position", "score", "reverse"]
Relate = Callable[[Any], Any]
"""A relation of one's own: from `qrmem.retrieval.fragments.Fragments` to their `Relation`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FragmentSettings:
    """How fragments are assessed and picked.

    Attributes:
        relation: `structure` (Eq. 7), `semantic` (Eq. 6), `code` (Eq. 8), the name of an entry
            point in the group `qrmem.relations`, a function of one's own, or several of these,
            whose mean counts.
        w_rel: of the structural relation, in [0, 1]; 0 falls back to independent fragments.
        alpha: weight of the environment score (Eq. 10); 0 falls back to independent fragments.
        score: the independent score: `cosine`, `bm25`, `jaccard` (over sets of tokens), `search`
            (what `Memory.search` ranks by); `auto` is the cosine where there are vectors.
        pieces: whose tokens `jaccard` compares: `builtin`, or `tiktoken:p50k_base` as RepoCoder's.
        top: fragments at most; `None` takes what the window, and `words`, have room for.
        words: words at most, as LongBench counts them (the paper's context limits); `None`: any.
        order: in which order fragments are read: by place, best first, or best last.
        with_self: whether a fragment belongs to its own surroundings.
        printed: the semantic relation as the paper prints it, `1 - cosine`.
        cutoff: of the code relation: paths weaker than it count by the tree of folders alone.
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
                chosen = getattr(self, name)
                raise UsageError(f"{name} is {chosen!r}; choose one of {', '.join(allowed)}")
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
