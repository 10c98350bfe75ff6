"""The steps of one run, told to the listener as they happen."""

import time
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field

from qrmem.graph.budget import Weighed
from qrmem.types import Event, Hit, Listener, ScoredEdge, ScoredSegment, Step


@dataclass(slots=True)
class Recorder:
    """Collects steps; the time of a step is what passed since the one before."""

    listener: Listener
    steps: list[Step] = field(default_factory=list)
    since: float = field(default_factory=time.monotonic)

    def add(
        self,
        action: str,
        *,
        entities: Sequence[str] = (),
        edges: Sequence[ScoredEdge] = (),
        read: Sequence[ScoredSegment] = (),
        dropped: Sequence[ScoredSegment] = (),
        verdict: str = "",
        reason: str = "",
        tokens: int = 0,
    ) -> None:
        """Record a step and emit it as an event of kind `step`."""
        now = time.monotonic()
        step = Step(
            n=len(self.steps) + 1,
            action=action,
            entities=tuple(entities),
            edges=tuple(edges),
            read=tuple(read),
            dropped=tuple(dropped),
            verdict=verdict,
            reason=reason,
            tokens=tokens,
            seconds=round(now - self.since, 6),
        )
        self.since = now
        self.steps.append(step)
        self.listener(Event("step", {"step": step}))


def scored(
    weighed: Sequence[Weighed], scores: Mapping[str, float], hits: MutableMapping[str, Hit]
) -> list[ScoredSegment]:
    """Return segments as a trail keeps them, with the scores that they came in with.

    Args:
        hits: what a search found; those that are told here are taken out, and told once.
    """
    return [_scored(w, scores, hits.pop(w.segment.id, None)) for w in weighed]


def _scored(weighed: Weighed, scores: Mapping[str, float], hit: Hit | None) -> ScoredSegment:
    id_, tokens = weighed.segment.id, weighed.segment.tokens
    via, over = (hit.via, hit.over) if hit else ("", ())
    return ScoredSegment(id_, round(scores.get(id_, 0.0), 4), tokens, via, over)
