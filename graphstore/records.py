"""Records that a store takes and returns: rows of the view, and results of reads."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from math import log1p
from typing import TYPE_CHECKING, Any, Literal, Protocol

from qrmem.text.names import normalise_name, split_key
from qrmem.text.names.blocks import form_block
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
"""If more documents than this share a title, it is no name for any of them."""
FIRST_TITLED = 3
"""Number of a document's first segments that its title leads to."""

MERGED = ("extraction", "supplement", "edit")
"""Kinds of contributions that the graph is built from."""

VectorKind = Literal["segment", "relation"]


@dataclass(frozen=True, slots=True)
class NamespaceInfo:
    """Settings and state of a namespace; the first `add` fixes tokenizer and segment size.

    Attributes:
        name: name of the namespace.
        tokenizer: name of the token counter that bounds segments.
        segment_tokens: upper bound of a segment, in tokens of that counter.
        embedder: name of the embedding model, or "none".
        dimension: length of its vectors; 0 without an embedder.
        revision: 0 at first; each applied change, and each replaced or deleted document, raises it.
        importing: token of the import that is filling the namespace; "" if it is complete.
        single: relation types of which an entity has only one at a time, sorted.
        turns: the highest number of a deleted turn: new turns get higher ones.
    """

    name: str
    tokenizer: str
    segment_tokens: int
    embedder: str = "none"
    dimension: int = 0
    revision: int = 0
    importing: str = ""
    single: tuple[str, ...] = ()
    turns: int = 0


Places = Mapping[str, Mapping[str, int]]
"""Name key to its places (`qrmem.types.turns.scope_of`) with the occurrences in each."""


@dataclass(frozen=True, slots=True)
class NameRow:
    """A name of the namespace and the entity that it refers to.

    Attributes:
        key: `<normalised name>|<type>`; see `qrmem.text.names.name_key`.
        entity: key of the entity.
        forms: surface forms with their numbers of occurrences, in the order of `by_frequency`.
        entity_name: the entity's name.
        entity_type: the entity's type.
        said: whether a chat model named it in a segment.
        blocks: the requested blocks that have it, if the store reports them.
    """

    key: str
    entity: str
    forms: tuple[tuple[str, int], ...] = ()
    entity_name: str = ""
    entity_type: str = ""
    said: bool = False
    blocks: Collection[int] | None = field(default=None, compare=False)

    @property
    def surface(self) -> str:
        """The most frequent surface form."""
        return self.forms[0][0] if self.forms else ""

    @property
    def count(self) -> int:
        """Number of occurrences of the name, over all segments."""
        return sum(count for _, count in self.forms)


@dataclass(frozen=True, slots=True)
class NameFilter:
    """A filter on names: a name passes if it matches any of the fields.

    Attributes:
        norms: normalised forms, of names of any type.
        entities: keys of the names' entities.
        blocks: block (see `qrmem.text.names.blocks`) to the least number of its names to return,
            if it has so many; the choice among them is not defined.
    """

    norms: Collection[str] = ()
    entities: Collection[str] = ()
    blocks: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MentionRow:
    """The mention of one name in one segment; it replaces the name's row in the segment.

    Attributes:
        said: whether a chat model named it; then no rule decides which other names it has.
    """

    segment_id: str
    name: str
    forms: tuple[tuple[str, int], ...]
    question: str = ""
    properties: Properties = ()
    said: bool = False


def form_blocks(row: MentionRow) -> frozenset[int]:
    """Return the blocks of the other forms that a chat model gives a name in one segment."""
    if not row.said:
        return frozenset()
    own = split_key(row.name)[0]
    norms = {normalise_name(form) for form, _ in row.forms} - {own, ""}
    return frozenset(map(form_block, norms))


@dataclass(frozen=True, slots=True)
class FactRow:
    """One statement of one segment; head and tail are name keys, `n` is its number in the segment.

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
    """The stored fields of an entity; its forms and segments come from its names' mentions."""

    key: str
    name: str
    type: str


@dataclass(frozen=True, slots=True)
class UserEdit:
    """A user's edit of a statement.

    Attributes:
        user: the user of its document; "" for none.
        made: the edit, a contribution of its segment.
    """

    user: str
    made: Contribution


@dataclass(frozen=True, slots=True)
class ViewUpdate:
    """A new state of the view for some segments, and its effect on names.

    A name whose mentions change becomes stale: it must be resolved to an entity again. It stays
    stale until an update lists it in `resolved`.

    Order: `clear` is applied first, then rows are added, then `names` are assigned and `entities`
    written. A name without mentions is deleted with its facts, an entity without names is deleted,
    too. A row with an unknown segment, name or entity is an error of the caller (`ValueError`);
    `clear` ignores unknown segments.

    Attributes:
        clear: segments whose mentions, facts, accepted questions, postings and digest are deleted
            first.
        mentions: rows to add.
        facts: rows to add.
        questions: accepted questions to add.
        index: segment id to the terms of its text, each with its frequency.
        names: name key to entity key, for every name that is new or has another entity.
        entities: every entity that is new or has another name or type.
        merged: segment id to a digest of the contributions that its rows come from.
        resolved: keys of names that are no longer stale after this update.
        edits: the user's edits of statements that the rows contain, to be stored with them.
        decisions: the user's decisions on names that `names` follows; see `override_merge`.
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
    edits: Sequence[Contribution] = ()
    decisions: Sequence[MergeDecision] = ()


@dataclass(frozen=True, slots=True)
class Unmerged:
    """The data that a merge needs to bring the view up to date, read from one snapshot.

    Attributes:
        revision: revision of the namespace; 0 if it does not exist.
        segments: segments of the requested documents, in order.
        contributions: extractions, supplements and the user's edits of these segments.
        merged: id of each merged segment to its latest digest from `ViewUpdate.merged`.
        stale: key of each name to resolve again, to its former entity. A name may no longer exist,
            as its last mention is deleted with its segment.
        decisions: the user's merge decisions, sorted by names.
        edits: all edits of the namespace, as `FactStore.edits` returns them.
        said_at: document id to its date (`qrmem.text.dates.said_at`), if it has one.
        users: document id to its user, if it has one.
    """

    revision: int
    segments: Sequence[Segment]
    contributions: Sequence[Contribution]
    merged: Mapping[str, str]
    stale: Mapping[str, str]
    decisions: Sequence[MergeDecision]
    edits: Sequence[UserEdit] = ()
    said_at: Mapping[str, str] = field(default_factory=dict)
    users: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Entry:
    """The index entry of a segment: what a search knows without reading the text.

    Attributes:
        id: segment id.
        document_id: id of the document.
        index: position of the segment in its document, from 0.
        title: title of the document, "" if it has none.
        metadata: metadata of the document.
        terms: terms of title and text, with repeats, in any order.
    """

    id: str
    document_id: str
    index: int
    title: str
    metadata: Mapping[str, MetaValue]
    terms: Sequence[str]


K1, B = 1.5, 0.75
"""Parameters of BM25: saturation of the term frequency, and length normalisation."""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The statistics of a namespace that BM25 needs.

    Attributes:
        segments: number of indexed segments.
        terms: number of terms of all segments, with titles.
        frequencies: term to the number of segments with it; a term without segments is left out.
    """

    segments: int
    terms: int
    frequencies: Mapping[str, int]

    @property
    def mean_length(self) -> float:
        """Mean number of terms per segment, at least 1."""
        return max(self.terms / self.segments, 1.0) if self.segments else 1.0

    def rarity(self, term: str) -> float:
        """Return a term's inverse document frequency, above 0, also if no segment has the term."""
        frequency = self.frequencies.get(term, 0)
        return log1p((self.segments - frequency + 0.5) / (frequency + 0.5))


@dataclass(frozen=True, slots=True)
class Titled:
    """A document that a name may refer to by its title.

    Attributes:
        document_id: id of the document.
        sure: confidence, in (0, 1].
        segments: ids of the document's first indexed segments, in order.
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
"""Kinds of cached values.

`reply`: a reply of a chat model; `fold`: a description that parallel relations were folded into;
`tree`: a tree of summaries, its nodes and groupings; `facts`: the number of facts extracted from a
turn; `judgement`: a chat model's verdict on whether one fact supersedes another; `code`: outlines
and relations of source files; `raw`: a reply that could not be parsed.
"""


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """A cached value with the sorted ids of its segments; it is deleted with any of them."""

    key: str
    value: Mapping[str, Any]
    segments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Around:
    """The neighbourhood of some entities, for one step of a search.

    Attributes:
        names: entity key to name, for the entities and the other ends of their facts.
        facts: facts that start or end at one of the entities, in (document id, segment index, n)
            order.
        places: key of each existing entity to the ids of its segments, in order.
        segments: these segments in (document id, index) order, if texts were requested.
    """

    names: Mapping[str, str]
    facts: Sequence[Fact]
    places: Mapping[str, Sequence[str]]
    segments: Sequence[Segment] = ()


@dataclass(frozen=True, slots=True)
class Mentions:
    """The entities that occur in some segments.

    Attributes:
        named: id of each existing segment to pairs of a surface form and its entity's key.
        places: entity key to the ids of all its segments, in order, where requested.
    """

    named: Mapping[str, Sequence[tuple[str, str]]]
    places: Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class EntityCount:
    """An entity in a listing, with the number of its segments."""

    key: str
    name: str
    type: str
    segments: int


def by_frequency(forms: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    """Return surface forms, most frequent first, then longest, then alphabetically."""
    if len(forms) == 1:  # as most names have
        return tuple(forms.items())
    return tuple(sorted(forms.items(), key=lambda pair: (-pair[1], -len(pair[0]), pair[0])))


def relation_key(first: str, second: str) -> str:
    """Return the key of the relation between two entities, given by key in any order."""
    return "|".join(sorted((first, second)))


class Superseding(Protocol):
    """Tells a store that displays edges which statements are replaced; see `graph.superseding`."""

    def asked(self, facts: Sequence[Fact]) -> Collection[str]:
        """Return the cache keys of a chat model's verdicts on pairs of some facts."""

    def since(
        self,
        facts: Sequence[Fact],
        single: Collection[str],
        verdicts: Mapping[str, Mapping[str, Any]],
    ) -> Mapping[tuple[str, int], str]:
        """Return the dates from which facts are replaced, by segment and number.

        Args:
            facts: all facts of some heads; they may replace each other.
            single: relation types of which an entity has only one at a time.
            verdicts: cached verdicts on pairs, by key.
        """
