"""What runs use: calls, tokens, money, seconds."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from qrmem.types.shown import Short


@dataclass(frozen=True, slots=True, repr=False)
class StageUsage(Short):
    """What one stage of one run used."""

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cached_tokens: int = 0
    cost: float | None = None
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, repr=False)
class Usage(Short):
    """What a run used, by stage; construction and online are summed up apart (Table 6).

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
    """What all runs used together, in one stage, in one run or on one day.

    Attributes:
        key: the stage, the run's id, or the day (UTC).
        calls: those that were sent; replies from the cache are counted apart.
        failed: calls to which no reply came.
        requests: what was sent for the calls, retries included.
        cached_tokens: prompt tokens that the server had cached.
        cost: of the calls whose price was known, or `None`.
        unpriced: calls whose price was not.
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
