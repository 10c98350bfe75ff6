"""Usage and plans of runs: calls, tokens, money, seconds; the events of a run."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from qrmem.types.shown import Short

__all__ = ["CostEstimate", "Course", "Plan", "Range", "StagePlan", "total"]


@dataclass(frozen=True, slots=True, repr=False)
class StageUsage(Short):
    """The usage of one stage of one run."""

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cached_tokens: int = 0
    cost: float | None = None
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, repr=False)
class Usage(Short):
    """The usage of a run by stage; construction and online are summed separately (Table 6).

    Attributes:
        construction: stages that read documents into the memory.
        online: stages that answer questions.
    """

    construction: Mapping[str, StageUsage] = field(default_factory=dict)
    online: Mapping[str, StageUsage] = field(default_factory=dict)

    @property
    def calls(self) -> int:
        """Chat calls of all stages."""
        return sum(s.calls for part in (self.construction, self.online) for s in part.values())

    @property
    def tokens_in(self) -> int:
        """Prompt tokens of all stages."""
        return sum(s.tokens_in for part in (self.construction, self.online) for s in part.values())

    @property
    def tokens_out(self) -> int:
        """Reply tokens of all stages."""
        return sum(s.tokens_out for part in (self.construction, self.online) for s in part.values())


@dataclass(frozen=True, slots=True, repr=False)
class UsageRow(Short):
    """The usage of all runs together, in one stage, in one run or on one day.

    Attributes:
        key: the stage, the run's id, or the day (UTC).
        calls: calls that were sent; replies from the cache are counted separately.
        failed: calls without a reply.
        requests: requests that were sent for the calls, including retries.
        cached_tokens: prompt tokens that the server had cached.
        cost: cost of the calls with a known price, or `None`.
        unpriced: number of calls with an unknown price.
        seconds: sum over the calls, many of which ran at the same time.
        began: when the first of them ended.
    """

    phase: Literal["construction", "online"]
    key: str
    models: tuple[str, ...]
    calls: int
    from_cache: int
    failed: int
    requests: int
    tokens_in: int
    tokens_out: int
    cached_tokens: int
    cost: float | None
    unpriced: int
    seconds: float
    began: str


# Plans: ranges, by stage and model.

Course = Literal["shortest", "longest"]
"""The shortest and the longest course that a run can take, depending on the replies."""


@dataclass(frozen=True, slots=True)
class Range:
    """An estimate: lowest, most likely and highest value."""

    low: float = 0.0
    likely: float = 0.0
    high: float = 0.0

    def __add__(self, other: "Range") -> "Range":
        return Range(self.low + other.low, self.likely + other.likely, self.high + other.high)

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high


@dataclass(frozen=True, slots=True)
class StagePlan:
    """The estimated usage of one stage of a run.

    Attributes:
        cost: `None` if the model's price is not known.
    """

    stage: str
    model: str
    calls: Range
    tokens_in: Range
    tokens_out: Range
    cost: Range | None


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """The likely price of a piece of work.

    Attributes:
        cost: in USD; `None` if the price of a model is not known.
    """

    calls: int
    tokens: int
    cost: float | None


@dataclass(frozen=True, slots=True, repr=False)
class Plan(Short):
    """The estimated usage of an `add`, an `ask` or trees, before the first call.

    Attributes:
        documents: number of given documents that will be read.
        segments: number of segments that will be read; for `ask` all of the memory.
        sampled: number of segments that the figures were computed from; fewer than `segments` for a
            large text.
        seconds: wall time at the set concurrency; money and tokens do not depend on it.
        basis: the source of the times, in words.
        concurrency: chat calls in flight.
        prices_date: of the newest price file.
        unpriced: models whose price is not known; the money of the others is in `cost`.
        problems: `(name, reason)` of documents that cannot be read.
        strategy: the strategy of an `ask`; "" for other runs.
        window: token limit of each call of an `ask`; 0 for other runs.
        readers: readers of those documents of an `add` that are not read again.
        read_otherwise: number of their segments by difference; see `MemoryStatus`.
        reading_again: estimated cost of reading those again, or `None`.
        workers: whether more workers would make an `add` faster, and by how much, in words.
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
    reading_again: CostEstimate | None = None
    workers: str = ""

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
        """Money of the stages whose price is known, or `None` if no price is known."""
        costs = [stage.cost for stage in self.stages if stage.cost is not None]
        return total(costs) if costs or not self.stages else None


def total(ranges: Iterable[Range]) -> Range:
    """Return the sum of ranges."""
    return sum(ranges, Range())


# Events of a run.


@dataclass(frozen=True, slots=True)
class Event:
    """An event of a run; logging, the progress bar and streams read the same events.

    Attributes:
        kind: `document`, `segment`, `phase`, `step`, `call`, `words` or `warning`.
        data: primitive values.
    """

    kind: str
    data: Mapping[str, Any] = field(default_factory=dict)


class Listener(Protocol):
    """A function that gets events; it must not raise and must not block."""

    def __call__(self, event: Event, /) -> None:
        """Take one event."""
        ...
