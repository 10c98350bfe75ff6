"""The merged memory, which follows from what was read, and the user's word on names."""

from dataclasses import dataclass
from typing import Literal

from qrmem.types.shown import Short


@dataclass(frozen=True, slots=True, repr=False)
class Entity(Short):
    """A node of the structured memory: canonical name e', mentions M, segments N.

    Attributes:
        key: stable id within the namespace.
        forms: surface forms with how often each occurs, most frequent first.
        segments: ids of the segments that it occurs in, in (document id, index) order.
        questions: generated questions that added it, in the same order.
    """

    key: str
    name: str
    type: str
    forms: tuple[tuple[str, int], ...]
    segments: tuple[str, ...]
    questions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Fact:
    """A statement with its names resolved to entities, and where it stands.

    Attributes:
        head: entity key.
        tail: entity key.
        segment_id: the segment that states it.
    """

    head: str
    tail: str
    description: str
    segment_id: str
    question: str = ""


@dataclass(frozen=True, slots=True, repr=False)
class Relation(Short):
    """An edge of the structured memory: all facts between one unordered pair of entities.

    Attributes:
        key: `<smaller entity key>|<larger entity key>`.
        head: entity key of the first fact's head.
        tail: entity key of the first fact's tail.
        description: the folded description.
        facts: what it was folded from, in (document id, segment index) order.
    """

    key: str
    head: str
    tail: str
    description: str
    facts: tuple[Fact, ...]

    @property
    def segments(self) -> tuple[str, ...]:
        """Ids of the segments that state it, without repeats."""
        return tuple(dict.fromkeys(fact.segment_id for fact in self.facts))


@dataclass(frozen=True, slots=True)
class Question:
    """A generated question that was accepted into its document's pool."""

    text: str
    segment_id: str
    kind: Literal["generated", "user"] = "generated"


@dataclass(frozen=True, slots=True)
class Merge:
    """Why one name counts as another; shown by `show --merges`.

    Attributes:
        name: the name that was folded in.
        into: canonical name of the entity.
        entity: its key.
        reason: `exact`, `alias`, `similar` or `user`.
        score: in [0, 1]; 1 for everything but `similar`.
    """

    name: str
    into: str
    entity: str
    reason: Literal["exact", "alias", "similar", "user"]
    score: float = 1.0


@dataclass(frozen=True, slots=True)
class MergeDecision:
    """A user's decision on two names: it overrides the rules and is kept."""

    first: str
    second: str
    same: bool
