"""The dual memory of a run: limited to its documents, oriented by its question."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from qrmem.agents.folding import folded_by_reasoner
from qrmem.agents.search.query_extraction import Overlay
from qrmem.graph.by_hand import ended_by_hand
from qrmem.graph.superseding import (
    Ending,
    Place,
    dated,
    judged_pairs,
    kept_endings,
    place_of,
)
from qrmem.graphstore.protocol import Around, Entry, GraphStore, NameFilter
from qrmem.graphstore.reads import entities_in, names_said
from qrmem.graphstore.relations import fold
from qrmem.text.dates import said_at, today
from qrmem.text.names import split_key
from qrmem.types import Fact, Passage, Relation, Segment
from qrmem.types.options import AskOptions

if TYPE_CHECKING:
    from qrmem.retrieval.searcher import Searcher

BY_MODEL = "prompted:"
"""Beginning of the reasoner's name in the ledger if a chat model read a segment."""


@dataclass(slots=True)
class MemoryGraph:
    """Reads entities, relations and segments of a namespace, each once per run.

    One read returns everything that a step needs of an entity; see `GraphStore.around`.

    Attributes:
        searcher: searches the namespace.
        options: say which documents and segments to show, and at which time facts must hold.
        is_folded: whether relations have descriptions that the reasoner folded.
        overlay: contributions of segments that were read with the question; empty until set.
        labels: segment id to its label, for segments that keep it during the run.
    """

    searcher: "Searcher"
    options: AskOptions
    is_folded: bool = False
    overlay: Overlay = field(default_factory=Overlay)
    labels: dict[str, str] = field(default_factory=dict)
    _judged: Collection[str] | None = None
    _names: dict[str, str] = field(default_factory=dict)
    _relations: dict[str, list[Relation]] = field(default_factory=dict)
    _places: dict[str, list[str]] = field(default_factory=dict)
    _found: dict[str, Around] = field(default_factory=dict)
    _segments: dict[str, Segment] = field(default_factory=dict)
    _indexed: dict[str, Entry] = field(default_factory=dict)
    _ended: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _readers: dict[str, str] = field(default_factory=dict)

    @property
    def store(self) -> GraphStore:
        """The store of the namespace."""
        return self.searcher.store

    @property
    def ns(self) -> str:
        """The namespace."""
        return self.searcher.ns

    async def look(self, keys: Sequence[str], *, texts: bool = False) -> None:
        """Read everything that a step needs of entities in one request, unless it was read before.

        Args:
            keys: keys of the entities.
            texts: also read the texts of their segments.
        """
        missing = [key for key in keys if key not in self._found]
        if not missing:
            return
        await self._may_end()  # the memory's revision is read before the first step
        around = await self.store.around(self.ns, missing, texts=texts)
        self._found.update(dict.fromkeys(missing, around))
        self._segments.update({segment.id: segment for segment in around.segments})
        self._names.update(await self._own_names(around))

    async def _own_names(self, found: Around) -> Mapping[str, str]:
        """Return the names of entities, in the forms of the shown documents."""
        added = {key: row.name for key, row in self.overlay.entities.items()}
        if self.options.documents is None and self.options.segments is None:
            return {**found.names, **added}
        places = [id for segment_ids in found.places.values() for id in segment_ids]
        fact_segments = [fact.segment_id for fact in found.facts]
        inside = await self._within(list(dict.fromkeys((*places, *fact_segments))))
        names = await names_said(self.store, self.ns, found.names, inside)
        return {**self.overlay.said, **names, **added}

    async def segments(self, ids: Iterable[str]) -> list[Segment]:
        """Return segments in the order of `ids`."""
        wanted_ids = list(dict.fromkeys(ids))
        missing = [id for id in wanted_ids if id not in self._segments]
        if missing:
            segments = await self.store.segments(self.ns, missing)
            self._segments.update({segment.id: segment for segment in segments})
        return [self._segments[id] for id in wanted_ids if id in self._segments]

    async def passages(self, segments: Sequence[Segment]) -> list[Passage]:
        """Label segments S1, S2, … in order, with title and day of their documents.

        A segment with a label of the run keeps it; the others follow after these.
        """
        ids = [segment.id for segment in segments]
        entries = await self._entries(ids)
        if missing := [id for id in ids if id not in self._ended]:
            now = str(self.options.as_of) or today()
            found = await ended_by_hand(self.store, self.ns, missing, now)
            self._ended.update({id: found.get(id, ()) for id in missing})
        passages, n = [], len(self.labels)
        for segment in segments:
            if (label := self.labels.get(segment.id)) is None:
                label = f"S{(n := n + 1)}"
            entry = entries.get(segment.id)
            title = entry.title if entry else ""
            is_dated = entry is not None and not self.options.paper_exact
            day = said_at(entry.metadata)[:10] if entry is not None and is_dated else ""
            ended = self._ended[segment.id]
            passages.append(Passage(label, segment, title, date=day, ended=ended))
        return passages

    def label(self, segment_id: str) -> str:
        """Return a segment's label for the whole run; a new one if it has none."""
        return self.labels.setdefault(segment_id, f"S{len(self.labels) + 1}")

    async def read_by_model(self, segment_ids: Collection[str]) -> set[str]:
        """Return those of some segments that a chat model read."""
        entries = await self._entries(segment_ids)
        documents = {entry.document_id for entry in entries.values()}
        if missing := sorted(documents - self._readers.keys()):
            for row in await self.store.ledger(self.ns, *missing):
                self._readers[row.segment_id] = row.reasoner
            self._readers.update(dict.fromkeys(missing, ""))
        return {id for id in segment_ids if self._readers.get(id, "").startswith(BY_MODEL)}

    async def _entries(self, ids: Iterable[str]) -> Mapping[str, Entry]:
        """Return the index entries of segments, by id."""
        wanted_ids = list(dict.fromkeys(ids))
        missing = [id for id in wanted_ids if id not in self._indexed]
        if missing:
            entries = await self.store.entries(self.ns, missing)
            self._indexed.update({entry.id: entry for entry in entries})
        return {id: self._indexed[id] for id in wanted_ids if id in self._indexed}

    async def entities_in(self, segment_ids: Sequence[str]) -> dict[str, list[str]]:
        """Return the keys of each segment's entities."""
        entities = await entities_in(self.store, self.ns, segment_ids)
        return {
            id: list(dict.fromkeys((*entities.get(id, ()), *self.overlay.entities_in(id))))
            for id in segment_ids
        }

    async def places(self, keys: Sequence[str]) -> dict[str, list[str]]:
        """Return the ids of each entity's segments, in order, within the documents."""
        missing = [key for key in keys if key not in self._places]
        if missing:
            await self.look(missing)
            for key in missing:
                segment_ids = self._found[key].places.get(key, ())
                ids = dict.fromkeys((*segment_ids, *self.overlay.segments_with(key)))
                self._places[key] = await self._within(list(ids))
        return {key: self._places[key] for key in keys}

    async def relations(self, keys: Sequence[str]) -> dict[str, Relation]:
        """Return the relations of some entities in the shown documents, by key."""
        missing = [key for key in keys if key not in self._relations]
        if missing:
            await self.look(missing)
            facts = self._facts(missing)
            facts += self.overlay.facts(missing)
            await self._fold(missing, facts)
        return {edge.key: edge for key in keys for edge in self._relations[key]}

    async def names(self, keys: Sequence[str]) -> list[str]:
        """Return names in the order of `keys`: canonical names, or names in the shown documents."""
        missing = [key for key in keys if key not in self._names]
        if missing and not (self.options.documents is None and self.options.segments is None):
            await self.look(missing)
        elif missing:
            names = await self.store.names(self.ns, NameFilter(entities=missing))
            self._names.update({row.entity: row.entity_name for row in names})
            self._names.update({key: row.name for key, row in self.overlay.entities.items()})
        return [self.name(key) for key in keys]

    def name(self, key: str) -> str:
        """Return an entity's name if it was read, else the name in its key."""
        return self._names.get(key) or split_key(key)[0]

    def known_names(self, edges: Iterable[Relation]) -> Mapping[str, str]:
        """Return the name of each end of some edges, by key."""
        return {end: self.name(end) for edge in edges for end in (edge.head, edge.tail)}

    def _facts(self, keys: Sequence[str]) -> list[Fact]:
        """Return the facts with an end in `keys`; those of one relation are in order."""
        ends = set(keys)
        looks = {id(self._found[key]): self._found[key] for key in keys}.values()
        facts = (fact for around in looks for fact in around.facts)
        return [fact for fact in facts if fact.head in ends or fact.tail in ends]

    async def _fold(self, keys: Sequence[str], facts: Sequence[Fact]) -> None:
        allowed_segments = await self._within([fact.segment_id for fact in facts])
        allowed = set(allowed_segments)
        facts = await self._dated([fact for fact in facts if fact.segment_id in allowed])
        for key in keys:
            self._relations[key] = []
        for edge in fold(dict.fromkeys(facts)):
            edge = await self._folded(edge)
            for end in {edge.head, edge.tail} & set(keys):
                self._relations[end].append(edge)

    async def _may_end(self) -> bool:
        """Return whether statements can replace others, by single types or by judgements."""
        if self._judged is None:
            self._judged = await judged_pairs(self.store, self.ns)
        return bool(self._judged or self.options.single_types)

    async def replaced(self, segment_ids: Collection[str]) -> dict[str, dict[str, str]]:
        """Return the superseded statements of segments, in words, by the segment that replaces it.

        Returns:
            Segment id to the ids of the superseding segments, each with one statement.
        """
        if not await self._may_end():
            return {}
        keys_by_segment = await self.entities_in(list(segment_ids))
        keys = list(
            dict.fromkeys(key for segment_keys in keys_by_segment.values() for key in segment_keys)
        )
        await self.look(keys)
        facts = [fact for fact in self._facts(keys) if fact.segment_id in segment_ids]
        ends = await self.endings(facts)
        replaced = [fact for fact in facts if place_of(fact) in ends]
        about = [*replaced, *(ends[place_of(fact)].by for fact in replaced)]
        keys = list(dict.fromkeys(end for fact in about for end in (fact.head, fact.tail)))
        names = dict(zip(keys, await self.names(keys), strict=True))
        by_segment: dict[str, dict[str, str]] = {}
        for fact in replaced:
            ending = ends[place_of(fact)]
            if ending.by.segment_id != fact.segment_id:
                old, new = (
                    f"{names[f.head]} {f.description} {names[f.tail]}" for f in (fact, ending.by)
                )
                since = f"since {ending.since[:10]} " if ending.since else ""
                later = by_segment.setdefault(fact.segment_id, {})
                later.setdefault(ending.by.segment_id, f"{old} → {since}{new}")
        return by_segment

    async def endings(self, facts: Sequence[Fact]) -> dict[Place, Ending]:
        """Return which facts are superseded by later facts of the shown documents."""
        if not await self._may_end():
            return {}
        endings = await kept_endings(
            self.store,
            self.ns,
            facts,
            self.options.single_types,
            str(self.options.as_of),
            self._judged,
        )
        inside = set(await self._within([ending.by.segment_id for ending in endings.values()]))
        return {place: e for place, e in endings.items() if e.by.segment_id in inside}

    async def _dated(self, facts: Sequence[Fact]) -> list[Fact]:
        """Return facts; those that were replaced, or are not true then, are marked."""
        ends = await self.endings(facts)
        tails = [ending.by.tail for ending in ends.values()]
        names = dict(zip(tails, await self.names(tails), strict=True))
        return dated(facts, ends, names, str(self.options.as_of))

    async def _folded(self, edge: Relation) -> Relation:
        if not self.is_folded or len(edge.facts) < 2:
            return edge
        entries = await self._entries(edge.segments)
        places = {id: entry.document_id for id, entry in entries.items()}
        return await folded_by_reasoner(self.store, self.ns, edge, places)

    async def _within(self, segment_ids: Sequence[str]) -> list[str]:
        documents, only = self.options.documents, self.options.segments
        if only is not None:
            segment_ids = [id for id in segment_ids if id in only]
        if documents is None:
            return list(segment_ids)
        entries = await self._entries(segment_ids)
        return [id for id in segment_ids if id in entries and entries[id].document_id in documents]
