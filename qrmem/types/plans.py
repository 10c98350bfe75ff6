"""What a plan says: ranges, by stage and model."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from qrmem.types.shown import Short

Course = Literal["shortest", "longest"]
"""Of all courses that replies can lead a run along, the two ends."""


@dataclass(frozen=True, slots=True)
class Range:
    """A figure that is not known yet: at least, most likely, at most."""

    low: float = 0.0
    likely: float = 0.0
    high: float = 0.0

    def __add__(self, other: "Range") -> "Range":
        return Range(self.low + other.low, self.likely + other.likely, self.high + other.high)

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high


@dataclass(frozen=True, slots=True)
class StagePlan:
    """What one stage of a run will use.

    Attributes:
        cost: `None` where the model's price is not known.
    """

    stage: str
    model: str
    calls: Range
    tokens_in: Range
    tokens_out: Range
    cost: Range | None


@dataclass(frozen=True, slots=True, repr=False)
class Plan(Short):
    """What an `add`, an `ask` or trees will use, before the first call.

    Attributes:
        documents: to be read, of those that were given.
        segments: to be read; for `ask` those of the memory.
        sampled: segments that the figures were worked out on; fewer than `segments` in a large
            text, of which a part stands for the whole.
        seconds: wall time at the set concurrency; money and tokens do not depend on it.
        basis: where the times come from, in words.
        concurrency: chat calls in flight.
        prices_date: of the newest price file.
        unpriced: models whose price is not known; the money of the others is in `cost`.
        problems: `(name, reason)` of documents that cannot be read.
        strategy: that an `ask` will follow; "" for other runs.
        window: tokens that each call of an `ask` may have; 0 for other runs.
        readers: who read the documents of an `add` that are not read again.
        read_otherwise: how to the number of their segments; see `MemoryStatus`.
    """

    run: Literal["add", "ask", "tree"]
    documents: int
    segments: int
    sampled: int
    stages: tuple[StagePlan, ...]
    seconds: Range
    basis: str
    concurrency: int
    prices_date: str
    unpriced: tuple[str, ...] = ()
    problems: tuple[tuple[str, str], ...] = ()
    strategy: str = ""
    window: int = 0
    readers: tuple[str, ...] = ()
    read_otherwise: Mapping[str, int] = field(default_factory=dict)

    @property
    def calls(self) -> Range:
        """Requests of all stages, if none of them fails."""
        return total(stage.calls for stage in self.stages)

    @property
    def tokens_in(self) -> Range:
        """Prompt tokens of all stages."""
        return total(stage.tokens_in for stage in self.stages)

    @property
    def tokens_out(self) -> Range:
        """Reply tokens of all stages."""
        return total(stage.tokens_out for stage in self.stages)

    @property
    def tokens(self) -> Range:
        """Prompt and reply tokens together: what `max_tokens` caps."""
        return self.tokens_in + self.tokens_out

    @property
    def cost(self) -> Range | None:
        """Money of the stages whose price is known, or `None` where no price is."""
        known = [stage.cost for stage in self.stages if stage.cost is not None]
        return total(known) if known or not self.stages else None


def total(ranges: Iterable[Range]) -> Range:
    """Return the sum of ranges."""
    return sum(ranges, Range())


__all__ = ["Course", "Plan", "Range", "StagePlan", "total"]
