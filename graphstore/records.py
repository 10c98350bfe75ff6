"""What travels to a store and back: the rows of the view, and what its reads return."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from math import log1p
from typing import TYPE_CHECKING, Any, Literal, Protocol

from qrmem.types import (
    Contribution,
    Fact,
    MergeDecision,
    MetaValue,
    Properties,
    Question,
    Segment,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST_TITLED = 40
"""Documents of one title from which on it is no name of any of them."""
FIRST_TITLED = 3
"""Segments of a document that a title leads to: its first."""

MERGED = ("extraction", "supplement", "edit")
"""Kinds of the contributions that the graph is made of."""

VectorKind = Literal["segment", "relation"]


@dataclass(frozen=True, slots=True)
class NamespaceInfo:
    """What a namespace was made with; fixed at the first `add`.

    Attributes:
        tokenizer: name of the counter that segments are cut with.
        segment_tokens: upper bound of a segment, in that counter.
        embedder: name of the embedding model, or "none".
        dimension: length of its vectors; 0 without one.
        revision: raised by one with every applied change, and when a document is replaced or
            deleted; 0 at first.
        importing: token of the import that fills it, "" once it is whole.
    """

    name: str
    tokenizer: str
    segment_tokens: int
    embedder: str = "none"
    dimension: int = 0
    revision: int = 0
    importing: str = ""


@dataclass(frozen=True, slots=True)
class NameRow:
    """A name of the namespace and the entity it stands for.

    Attributes:
        key: `<normalised name>|<type>`; see `qrmem.text.names.name_key`.
        entity: key of its entity.
        forms: all its surface forms and how often each occurs, as `by_frequency` has them.
        entity_name: the entity's name.
        entity_type: the entity's type.
    """

    key: str
    entity: str
    forms: tuple[tuple[str, int], ...] = ()
    entity_name: str = ""
    entity_type: str = ""

    @property
    def surface(self) -> str:
        """Its most frequent surface form."""
        return self.forms[0][0] if self.forms else ""

    @property
    def count(self) -> int:
        """How often it occurs, over all segments."""
        return sum(count for _, count in self.forms)


@dataclass(frozen=True, slots=True)
class NameFilter:
    """Which names are wanted: those that fit any of these.

    Attributes:
        norms: normalised forms; names of any type are found.
        entities: keys of entities whose names are wanted.
        blocks: block (see `qrmem.text.blocks`) to how many of its names are wanted at least, if it
            has so many; which ones these are is not defined.
    """

    norms: Collection[str] = ()
    entities: Collection[str] = ()
    blocks: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MentionRow:
    """One name in one segment; takes the place of that name's row in the segment."""

    segment_id: str
    name: str
    forms: tuple[tuple[str, int], ...]
    question: str = ""
    properties: Properties = ()


@dataclass(frozen=True, slots=True)
class FactRow:
    """One statement of one segment; head and tail are name keys, `n` its number in the segment.

    The other fields are those of `qrmem.types.Fact`.
    """

    segment_id: str
    n: int
    head: str
    tail: str
    description: str
    question: str = ""
    said_at: str = ""
    valid_from: str = ""
    valid_until: str = ""
    type: str = ""
    properties: Properties = ()


@dataclass(frozen=True, slots=True)
class EntityRow:
    """An entity's own fields; its forms and segments follow from its names' mentions."""

    key: str
    name: str
    type: str


@dataclass(frozen=True, slots=True)
class ViewUpdate:
    """A new state of the view for some segments, and what it does to the names.

    A name whose mentions change is stale from then on, until a change names it in `resolved`: what
    it stands for has to be decided again.

    Applied in this order: `clear`, then rows are added, then `names` are assigned and `entities`
    written. Names without a mention vanish by themselves, and with them their facts, and entities
    without a name. Rows that speak of a segment, name or entity that is neither there nor in the
    change are a mistake of the caller (`ValueError`); in `clear` they are passed over.

    Attributes:
        clear: segments whose mentions, facts, accepted questions, postings and digest are dropped
            first.
        index: id of each segment to be searched to the terms of its text, each with its frequency.
        names: name key to entity key, for every name that is new or moved.
        entities: every entity that is new or whose name or type changed.
        merged: segment id to a digest of the contributions that its rows were made from.
        resolved: names that are no longer stale, with what this change brings.
    """

    clear: Sequence[str] = ()
    mentions: Sequence[MentionRow] = ()
    facts: Sequence[FactRow] = ()
    questions: Sequence[Question] = ()
    index: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    entities: Sequence[EntityRow] = ()
    merged: Mapping[str, str] = field(default_factory=dict)
    resolved: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Unmerged:
    """What has to be known to bring the view up to date, read from one snapshot.

    Attributes:
        revision: of the namespace; 0 if there is none.
        segments: of the documents asked for, each one's in order.
        contributions: theirs: extractions, supplements, and the user's edits of statements.
        merged: id of each merged segment to the digest last applied with `ViewUpdate.merged`.
        stale: names to resolve again, by key, and the entity that each stood for; some of them may
            be gone, as the last mention of a name goes with its segment.
        decisions: the user's, sorted by names.
        said_at: document id to when it was said (`qrmem.text.dates.said_at`), where it has a date.
    """

    revision: int
    segments: Sequence[Segment]
    contributions: Sequence[Contribution]
    merged: Mapping[str, str]
    stale: Mapping[str, str]
    decisions: Sequence[MergeDecision]
    said_at: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Entry:
    """What a search knows of one indexed segment, without reading its text.

    Attributes:
        id: of the segment.
        index: its position in its document.
        title: of its document, "" if it has none.
        metadata: of its document.
        terms: the terms of title and text, repeats kept, in any order.
    """

    id: str
    document_id: str
    index: int
    title: str
    metadata: Mapping[str, MetaValue]
    terms: Sequence[str]


K1, B = 1.5, 0.75
"""BM25: saturation of a term's count, and how much length is held against a text."""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What BM25 needs to know of a namespace.

    Attributes:
        segments: number of indexed segments.
        terms: number of terms in all of them together, titles included.
        frequencies: term to the number of segments that have it; terms that occur nowhere are out.
    """

    segments: int
    terms: int
    frequencies: Mapping[str, int]

    @property
    def mean_length(self) -> float:
        """Terms of a segment; 1 at least."""
        return max(self.terms / self.segments, 1.0) if self.segments else 1.0

    def rarity(self, term: str) -> float:
        """Return a term's inverse document frequency, above 0; of one that occurs nowhere, too."""
        found = self.frequencies.get(term, 0)
        return log1p((self.segments - found + 0.5) / (found + 0.5))


@dataclass(frozen=True, slots=True)
class Titled:
    """A document that a name may mean.

    Attributes:
        sure: how surely it does, in (0, 1].
        segments: ids of its first indexed segments, in order.
    """

    document_id: str
    sure: float
    segments: Sequence[str]


@dataclass(frozen=True, slots=True)
class Vectors:
    """Vectors of one kind: `matrix[i]` belongs to `owners[i]`; an owner may have several rows."""

    owners: Sequence[str]
    matrix: "NDArray[np.float32]"


CacheKind = Literal["reply", "fold", "tree", "facts", "judgement", "code", "raw"]
"""What a cached value is.

`reply` of a chat model; `fold`: a description that parallel relations were folded into; `tree`: a
tree of summaries, its nodes and groupings; `facts`: how many facts were drawn from a turn; `code`:
outlines and relations of source files; `raw`: a reply that could not be used.
"""


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """A cached value, and the ids of the segments that it goes with, sorted."""

    key: str
    value: Mapping[str, Any]
    segments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Around:
    """What lies around some entities: what one step of a search asks for.

    Attributes:
        names: entity key to name, of those asked for and of the other ends of their facts.
        facts: those with an end in them, in (document id, segment index, n) order.
        places: key of each of them that is there to the ids of its segments, in order.
        segments: those segments, in (document id, index) order, if their texts were asked for.
    """

    names: Mapping[str, str]
    facts: Sequence[Fact]
    places: Mapping[str, Sequence[str]]
    segments: Sequence[Segment] = ()


@dataclass(frozen=True, slots=True)
class Mentions:
    """Who is named in some segments.

    Attributes:
        named: id of each segment that is there to pairs of a surface form in it and the key of its
            entity.
        places: entity key to the ids of its segments, in order, where these were asked for.
    """

    named: Mapping[str, Sequence[tuple[str, str]]]
    places: Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class EntityCount:
    """An entity in a listing: how many segments it occurs in."""

    key: str
    name: str
    type: str
    segments: int


def by_frequency(forms: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    """Return surface forms, most frequent first, then longer, then smaller."""
    return tuple(sorted(forms.items(), key=lambda pair: (-pair[1], -len(pair[0]), pair[0])))


def relation_key(first: str, second: str) -> str:
    """Return the key of the relation between two entities, given by key in any order."""
    return "|".join(sorted((first, second)))


class Superseding(Protocol):
    """Tells a store that shows edges which statements are replaced; see `graph.superseding`.

    Attributes:
        single: relation types of which an entity has one at a time.
    """

    @property
    def single(self) -> Collection[str]:
        """See above."""

    def asked(self, facts: Sequence[Fact]) -> Collection[str]:
        """Return the keys under which a chat model's word on pairs of some facts is kept."""

    def since(
        self, facts: Sequence[Fact], verdicts: Mapping[str, Mapping[str, Any]]
    ) -> Mapping[tuple[str, int], str]:
        """Return from when on which facts are replaced, by segment and number.

        Args:
            facts: all of their heads that may replace each other.
            verdicts: what is kept of pairs.
        """
