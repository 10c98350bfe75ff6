"""Extractions from segments, the merged graph, and decisions on names."""

from dataclasses import dataclass, field
from typing import Literal

from qrmem.types.documents import Properties, Scalar
from qrmem.types.shown import Short

# Extractions from a segment and its state: the facts that a store keeps.

SegmentState = Literal["pending", "extracted", "ok", "partial", "failed"]
ContributionKind = Literal["extraction", "supplement", "oriented", "edit"]
SPEAKER = ("I",)
"""The forms of a mention of the speaker."""


@dataclass(frozen=True, slots=True)
class Mention:
    """An entity in one segment.

    Attributes:
        name: the fullest form in the segment; a chat model may name it as the title, the lines
            before or another segment of the call does.
        type: `PERSON`, `PLACE`, `ORGANISATION`, `DATE`, `NUMBER`, `WORK`, …, a type of the schema
            (`ShipYard` is `SHIP_YARD`), or "" if unknown.
        forms: all surface forms in the segment, each found in it up to white space; includes
            `name`. `SPEAKER`: the speaker of the segment, named in it or not.
        count: how often any of the forms occurs, at least 1.
        question: text of the generated question that added it, "" for the first extraction.
        properties: properties of its type that the segment states.
    """

    name: str
    type: str = ""
    forms: tuple[str, ...] = ()
    count: int = 1
    question: str = ""
    properties: Properties = ()


@dataclass(frozen=True, slots=True)
class Statement:
    """An open relation in one segment: two names and a description in plain words.

    The direction is that of the description; the folded relation has none.

    Attributes:
        valid_from: first day, month or year of its validity, `2026-05-03`, `2026-05` or `2026`;
            "" if unknown.
        valid_until: last day, month or year of its validity, in the same form.
        type: a relation type of the schema (`WorksFor` is `WORKS_FOR`), or "".
        properties: properties of its type that the segment states.
    """

    head: str
    tail: str
    description: str
    question: str = ""
    valid_from: str = ""
    valid_until: str = ""
    type: str = ""
    properties: Properties = ()


@dataclass(frozen=True, slots=True)
class Loss:
    """A model's reply of which a part could not be used.

    Attributes:
        reason: what was left out, and why.
        raw: the reply.
        attempt: number of the last attempt.
    """

    reason: str
    raw: str
    attempt: int = 0


@dataclass(frozen=True, slots=True)
class Contribution:
    """The result of one pass over one segment: the only facts that a store keeps of it.

    Attributes:
        kind: `extraction` (first pass), `supplement` (asked with accepted questions),
            `oriented` (asked with the user's question), or `edit` (a user's edit of one statement:
            its new form, or no statement if it is deleted).
        asked: the questions of the pass, in order; `()` for an extraction. For an edit: head and
            tail, normalised, and description of the original statement.
        questions: questions that the pass proposes, in order; only an extraction proposes any.
        tagger: the tagger whose entities are included, or ""; `!name` if it failed.
        losses: parts of replies that could not be used; then the segment is `partial`.
        left_out: number of entities and relations that a closed schema excludes.
        type: type of the statement that an edit deletes, or "".
        by_model: whether it holds only what a chat model said; then no rule adds to it, joins its
            names with others, or dates it.
        dropped: items of the reply that could not be used, each with its reason.
    """

    segment_id: str
    kind: ContributionKind
    mentions: tuple[Mention, ...] = ()
    statements: tuple[Statement, ...] = ()
    questions: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()
    tagger: str = ""
    losses: tuple[Loss, ...] = ()
    left_out: int = 0
    type: str = ""
    by_model: bool = False
    dropped: tuple[str, ...] = ()

    @property
    def next_attempt(self) -> int:
        """Number of the next attempt, if the pass is repeated."""
        return max((loss.attempt + 1 for loss in self.losses), default=0)


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """The state of one segment; the ledger is the truth about progress.

    Attributes:
        reason: why it is, or will be, `partial` or `failed`, else "".
        reasoner: the reasoner, build mode and prompt versions that read it.
        merged: digest of the contributions from which its part of the graph was built; "" if it is
            not merged. A store computes it; it is not written with the row.
    """

    segment_id: str
    state: SegmentState
    reason: str = ""
    reasoner: str = ""
    merged: str = ""


@dataclass(frozen=True, slots=True)
class Property:
    """A value of an entity's property in one segment."""

    name: str
    value: Scalar
    segment_id: str


@dataclass(frozen=True, slots=True, repr=False)
class Entity(Short):
    """A node of the structured memory: canonical name e', mentions M, segments N.

    Attributes:
        key: stable id within the namespace.
        forms: surface forms with their counts, most frequent first.
        segments: ids of the segments that it occurs in, in (document id, index) order.
        questions: generated questions that added it, in the same order.
        properties: all values that segments give to the properties of its type, in the same order;
            in the view of an entity the one said last is last.
    """

    key: str
    name: str
    type: str
    forms: tuple[tuple[str, int], ...]
    segments: tuple[str, ...]
    questions: tuple[str, ...] = ()
    properties: tuple[Property, ...] = ()

    def values(self) -> dict[str, dict[str, str]]:
        """Return the values of each property as texts, latest first, each with its last segment."""
        found: dict[str, dict[str, str]] = {}
        for one in reversed(self.properties):
            found.setdefault(one.name, {}).setdefault(str(one.value), one.segment_id)
        return dict(sorted(found.items()))


@dataclass(frozen=True, slots=True)
class Fact:
    """A statement with its names resolved to entities, and its place.

    Attributes:
        head: entity key.
        tail: entity key.
        segment_id: the segment that states it.
        said_at: time by its document's metadata (`at`, `date`), in ISO form; "" if undated.
        valid_from: first day, month or year of its validity, `2026-05-03`, `2026-05` or `2026`;
            "" if unknown.
        valid_until: last day, month or year of its validity, in the same form.
        n: its number in the segment.
        type: a relation type of the schema, or "".
        properties: properties of its type that the segment states.
    """

    head: str
    tail: str
    description: str
    segment_id: str
    question: str = ""
    said_at: str = ""
    valid_from: str = ""
    valid_until: str = ""
    n: int = field(default=0, compare=False)
    type: str = ""
    properties: Properties = ()

    @property
    def id(self) -> str:
        """The id for users."""
        return f"{self.segment_id}:{self.n}"


@dataclass(frozen=True, slots=True, repr=False)
class FactView(Short):
    """A statement for people, with its place, its times and its replacement.

    Attributes:
        id: the id for `edit_fact`, `end_fact`, `delete_fact` and `restore_fact`.
        head: name of the entity that it is about.
        tail: name of the other entity.
        quotation: the sentence that states it.
        said_at: time of the statement, in ISO form; "" if its document is undated.
        valid_from: first day, month or year of its validity, `2026-05-03`, `2026-05` or `2026`;
            "" if unknown.
        valid_until: last day, month or year of its validity, in the same form.
        superseded_by: id of the statement that replaces it, or "".
        superseded_at: the date or moment of the replacement, in ISO form.
        then: description of the replacement.
        type: a relation type of the schema, or "".
        is_ahead: whether it is not valid yet: it begins after the date of the view, or after today.
    """

    id: str
    head: str
    tail: str
    description: str
    document_id: str
    segment_id: str
    quotation: str
    said_at: str = ""
    valid_from: str = ""
    valid_until: str = ""
    superseded_by: str = ""
    superseded_at: str = ""
    then: str = ""
    type: str = ""
    is_ahead: bool = False


@dataclass(frozen=True, slots=True, repr=False)
class Relation(Short):
    """An edge of the structured memory: the merged statements of a pair of entities.

    In a shown memory a relation has one direction and one type; in a search it covers both
    directions and all types.

    Attributes:
        key: unique key: the ends, `<head>|<tail>`, and the type, if there is one; in a search
            `<smaller entity key>|<larger entity key>`.
        head: entity key of the first fact's head.
        tail: entity key of the first fact's tail.
        description: the merged description.
        facts: the statements that were merged, in (document id, segment index) order.
        type: a relation type of the schema, or "".
        questions: the questions that a chat model resolved when it merged them, Q_s.
    """

    key: str
    head: str
    tail: str
    description: str
    facts: tuple[Fact, ...]
    type: str = ""
    questions: tuple[str, ...] = ()

    @property
    def segments(self) -> tuple[str, ...]:
        """Ids of the segments that state it, without repeats."""
        return tuple(dict.fromkeys(fact.segment_id for fact in self.facts))


@dataclass(frozen=True, slots=True)
class GraphNode:
    """An entity of a drawn graph.

    Attributes:
        degree: number of entities that it has relations with, within the graph and beyond.
    """

    key: str
    name: str
    type: str
    degree: int


@dataclass(frozen=True, slots=True)
class GraphEdge:
    """All statements between two entities of a drawn graph.

    Attributes:
        head: entity key of the first statement's head.
        tail: entity key of the other end.
        description: the first statement.
        statements: their number.
        spans: start and end of validity of the dated ones, in ISO form; "" if unknown. One without
            a start counts from the time when it was said.
    """

    head: str
    tail: str
    description: str
    statements: int
    spans: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, repr=False)
class GraphPart(Short):
    """An entity, its neighbours, and the edges between all of them.

    Attributes:
        centre: the entity's key; "" if there is none.
        neighbours: number of its neighbours, shown or not.
    """

    centre: str
    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...]
    neighbours: int


@dataclass(frozen=True, slots=True)
class Question:
    """A generated question that was accepted into its document's pool."""

    text: str
    segment_id: str
    kind: Literal["generated", "user"] = "generated"


@dataclass(frozen=True, slots=True)
class Merge:
    """The reason why two names were merged; `show --merges` prints it.

    Attributes:
        name: the name that was merged.
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
