"""One namespace in memory: the given facts, and the view computed from the rows."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import networkx as nx

from qrmem.graphstore.codec import from_plain, to_plain
from qrmem.graphstore.protocol import (
    CacheKind,
    EntityRow,
    Entry,
    FactRow,
    MentionRow,
    NameRow,
    NamespaceInfo,
    ViewUpdate,
    relation_key,
)
from qrmem.graphstore.records import by_frequency
from qrmem.graphstore.redaction import Removal, blanked
from qrmem.text.names import meant_name, split_key
from qrmem.types import (
    CallRecord,
    Contribution,
    Document,
    Entity,
    Fact,
    LedgerRow,
    MergeDecision,
    Property,
    Question,
    Segment,
    Trail,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


Pass = tuple[str, tuple[str, ...]]
"""Kind and questions of a contribution: it replaces the segment's of the same pass."""


@dataclass
class Space:
    """Everything of one namespace.

    Attributes:
        of_document: document id to the ids of its segments, in order.
        entries: what is indexed of each segment, and the revision that it is of.
        contributions: segment id to what its passes added.
    """

    info: NamespaceInfo
    documents: dict[str, Document] = field(default_factory=dict)
    summaries: dict[str, str] = field(default_factory=dict)
    segments: dict[str, Segment] = field(default_factory=dict)
    of_document: dict[str, list[str]] = field(default_factory=dict)
    ledger: dict[str, LedgerRow] = field(default_factory=dict)
    contributions: dict[str, dict[Pass, Contribution]] = field(default_factory=dict)
    decisions: dict[tuple[str, str], MergeDecision] = field(default_factory=dict)
    rows: "Rows" = field(default_factory=lambda: Rows())
    stale: dict[str, str] = field(default_factory=dict)
    vectors: dict[tuple[str, str], "NDArray[np.float32]"] = field(default_factory=dict)
    trails: list[Trail] = field(default_factory=list)
    calls: list[CallRecord] = field(default_factory=list)
    cached: dict[tuple[CacheKind, str], tuple[Mapping[str, Any], frozenset[str]]] = field(
        default_factory=dict
    )
    entries: tuple[int, Mapping[str, Entry]] | None = None
    _view: "View | None" = None

    def place(self, segment_id: str) -> tuple[str, int]:
        """Return what everything is ordered by."""
        segment = self.segments[segment_id]
        return segment.document_id, segment.index

    def in_order(self, segment_ids: Iterable[str]) -> list[str]:
        """Return ids without repeats by document id, then index."""
        return sorted(set(segment_ids), key=self.place)

    def view(self) -> "View":
        """Return the data derived from the rows; it is computed again after each change."""
        if self._view is None or self._view.rows is not self.rows:
            self._view = View(self)
        return self._view

    def apply(self, change: ViewUpdate) -> None:
        """Apply a change that was found right."""
        before = self.rows
        for decision in change.decisions:
            self._decide(decision)
        self.put_contributions(change.edits)
        self.rows = self._changed(change).settled()
        cleared = set(change.clear)
        names = {name for segment_id, name in before.mentions if segment_id in cleared}
        self._mark_stale(names | {row.name for row in change.mentions}, before)
        for name in change.resolved:
            self.stale.pop(name, None)
        self.raise_revision()

    def override_merge(self, decision: MergeDecision) -> None:
        """Store a user's decision; its names must be resolved again."""
        self._decide(decision)
        self.raise_revision()

    def put_contributions(self, made: Iterable[Contribution]) -> None:
        """Store what passes over segments, or the user, added."""
        for one in made:
            self.contributions.setdefault(one.segment_id, {})[one.kind, one.asked] = one

    def _decide(self, decision: MergeDecision) -> None:
        first, second = sorted((decision.first, decision.second))
        self.decisions[first, second] = MergeDecision(first, second, decision.same)
        norms = {meant_name(first), meant_name(second)}
        for key, entity in self.rows.names.items():
            if split_key(key)[0] in norms:
                self.stale.setdefault(key, entity)

    def _mark_stale(self, names: Iterable[str], before: "Rows") -> None:
        """Mark names to resolve again, with their present or former entities."""
        for name in names:
            entity = self.rows.names.get(name) or before.names.get(name)
            if entity is not None:
                self.stale.setdefault(name, entity)

    def _changed(self, change: ViewUpdate) -> "Rows":
        rows = self.rows.without(change.clear)
        rows.mentions |= {(row.segment_id, row.name): row for row in change.mentions}
        rows.facts |= {(row.segment_id, row.n): row for row in change.facts}
        rows.questions |= {(q.segment_id, q.text): q for q in change.questions}
        rows.index |= change.index
        rows.names |= change.names
        rows.entities |= {row.key: row for row in change.entities}
        rows.merged |= change.merged
        return rows

    def raise_revision(self) -> None:
        """Count a change of the view."""
        self.info = replace(self.info, revision=self.info.revision + 1)

    def of_documents(self, document_ids: Iterable[str]) -> list[str]:
        """Return the ids of some documents' segments, in order."""
        return [id_ for document in document_ids for id_ in self.of_document.get(document, ())]

    def put_document(
        self, id_: str, document: Document, segments: Sequence[Segment], *, rebuild: bool
    ) -> None:
        """Write a document that was found right; see `GraphStore.put_document`."""
        new, old = {segment.id for segment in segments}, set(self.of_documents([id_]))
        if rebuild:
            self.summaries.pop(id_, None)
        self.drop_segments(old if rebuild else old - new)
        if id_ in self.documents:
            self.raise_revision()
        self.documents[id_] = from_plain(to_plain(document), Document)
        self.segments |= {s.id: replace(s, document_id=id_) for s in segments}
        self.of_document[id_] = self.in_order(new)

    def drop_segments(self, gone: Collection[str]) -> None:
        """Remove segments with all that hangs on them."""
        if not gone:
            return
        before = self.view()
        stated, words = before.stated(gone), before.words()
        rows = self.rows
        self.rows = rows.without(gone).settled()
        self._mark_stale({name for id_, name in rows.mentions if id_ in gone}, rows)
        tied = {k: kept for k, kept in self.cached.items() if kept[1]}
        self.cached = {k: kept for k, kept in tied.items() if not kept[1] & set(gone)}
        for segment_id in gone:
            self.segments.pop(segment_id)
            self.ledger.pop(segment_id, None)
            self.contributions.pop(segment_id, None)
        self.vectors = {
            (kind, owner): rows
            for (kind, owner), rows in self.vectors.items()
            if kind == "segment" and owner not in gone
        }
        removal = Removal(gone, stated, words - self.view().words())
        self.trails = [blanked(trail, removal) for trail in self.trails]


@dataclass
class Rows:
    """The view's rows, as changes brought them."""

    mentions: dict[tuple[str, str], MentionRow] = field(default_factory=dict)
    facts: dict[tuple[str, int], FactRow] = field(default_factory=dict)
    questions: dict[tuple[str, str], Question] = field(default_factory=dict)
    index: dict[str, Mapping[str, int]] = field(default_factory=dict)
    merged: dict[str, str] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    entities: dict[str, EntityRow] = field(default_factory=dict)

    def without(self, gone: Collection[str]) -> "Rows":
        """Return a copy without the rows of some segments."""
        return Rows(
            mentions={k: row for k, row in self.mentions.items() if k[0] not in gone},
            facts={k: row for k, row in self.facts.items() if k[0] not in gone},
            questions={k: row for k, row in self.questions.items() if k[0] not in gone},
            index={k: own for k, own in self.index.items() if k not in gone},
            merged={k: digest for k, digest in self.merged.items() if k not in gone},
            names=dict(self.names),
            entities=dict(self.entities),
        )

    def settled(self) -> "Rows":
        """Return a copy without unmentioned names, their facts, and entities without a name."""
        mentioned = {name for _, name in self.mentions}
        names = {name: entity for name, entity in self.names.items() if name in mentioned}
        living = set(names.values())
        return replace(
            self,
            names=names,
            facts={k: f for k, f in self.facts.items() if {f.head, f.tail} <= names.keys()},
            entities={key: row for key, row in self.entities.items() if key in living},
        )


class View:
    """What follows from the rows of a namespace.

    Attributes:
        rows: what it follows from.
    """

    def __init__(self, space: Space) -> None:
        self.rows = space.rows
        self._space = space

    @cached_property
    def graph(self) -> "nx.MultiGraph[str]":
        """Entities as nodes, facts as edges."""
        graph: nx.MultiGraph[str] = nx.MultiGraph()
        graph.add_nodes_from(self.rows.entities)
        for place, row in self.rows.facts.items():
            fact = Fact(
                head=self.rows.names[row.head],
                tail=self.rows.names[row.tail],
                description=row.description,
                segment_id=row.segment_id,
                question=row.question,
                said_at=row.said_at,
                valid_from=row.valid_from,
                valid_until=row.valid_until,
                n=row.n,
                type=row.type,
                properties=row.properties,
            )
            graph.add_edge(fact.head, fact.tail, key=place, fact=fact)
        return graph

    def facts(self, keys: Collection[str]) -> list[Fact]:
        """Return the edges at some entities, in order."""
        at = set(keys)
        edges = {
            place: data["fact"] for _, _, place, data in self.graph.edges(at, data=True, keys=True)
        }
        ordered = sorted(edges, key=lambda place: (self._space.place(place[0]), place[1]))
        return [edges[place] for place in ordered]

    def stated(self, segments: Collection[str]) -> set[str]:
        """Return the keys of the relations that some segments state."""
        facts = self.facts(self.graph.nodes)
        return {relation_key(f.head, f.tail) for f in facts if f.segment_id in segments}

    def words(self) -> set[str]:
        """Return keys and names of all entities."""
        return {word for row in self.rows.entities.values() for word in (row.key, row.name)}

    def names(self, keys: Iterable[str] | None = None) -> list[NameRow]:
        """Return every name, or some, by key."""
        found = []
        for key in sorted(self.rows.names if keys is None else keys):
            forms = by_frequency(self._forms([key]))
            entity = self.rows.entities[self.rows.names[key]]
            said = any(row.said for row in self._mentions_of[key])
            found.append(NameRow(key, entity.key, forms, entity.name, entity.type, said))
        return found

    def entity(self, key: str) -> Entity:
        """Return one entity."""
        names = self._names_of[key]
        rows = [row for name in names for row in self._mentions_of[name]]
        rows.sort(key=lambda row: (self._space.place(row.segment_id), row.name))
        return Entity(
            key=key,
            name=self.rows.entities[key].name,
            type=self.rows.entities[key].type,
            forms=by_frequency(self._forms(names)),
            segments=tuple(dict.fromkeys(row.segment_id for row in rows)),
            questions=tuple(dict.fromkeys(row.question for row in rows if row.question)),
            properties=tuple(
                Property(name, value, row.segment_id)
                for row in rows
                for name, value in row.properties
            ),
        )

    @cached_property
    def _names_of(self) -> Mapping[str, Sequence[str]]:
        """Entity key to the keys of its names."""
        found: defaultdict[str, list[str]] = defaultdict(list)
        for name, entity in self.rows.names.items():
            found[entity].append(name)
        return found

    @cached_property
    def _mentions_of(self) -> Mapping[str, Sequence[MentionRow]]:
        """Name key to its rows in all segments."""
        found: defaultdict[str, list[MentionRow]] = defaultdict(list)
        for row in self.rows.mentions.values():
            found[row.name].append(row)
        return found

    def _forms(self, names: Iterable[str]) -> Counter[str]:
        counts: Counter[str] = Counter()
        for name in names:
            for row in self._mentions_of[name]:
                for form, count in row.forms:
                    counts[form] += count
        return counts
