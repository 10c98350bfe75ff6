"""The dual memory as one run may see it: narrowed to some documents, oriented by its question."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from qrmem.agents.folding import folded_by_reasoner
from qrmem.agents.search.query_extraction import Overlay
from qrmem.graph.superseding import Ending, Place, dated, judged_pairs, kept_endings
from qrmem.graphstore.protocol import Around, Entry, GraphStore, NameFilter
from qrmem.graphstore.reads import entities_in, names_said
from qrmem.graphstore.relations import fold
from qrmem.text.names import split_key
from qrmem.types import Fact, Passage, Relation, Segment

if TYPE_CHECKING:
    from qrmem.retrieval.searcher import Searcher


@dataclass(slots=True)
class MemoryGraph:
    """Reads entities, relations and segments of a namespace, each one once in a run.

    What a step wants to know of an entity comes in one read; see `GraphStore.around`.

    Attributes:
        documents: ids of the only documents that it shows; `None`: all.
        only: the same of segments.
        is_folded: whether relations have descriptions that were folded by the reasoner.
        single_types: relation types of which an entity has one at a time.
        as_of: when it is looked at, a date or moment in ISO form; "": now.
        overlay: what was read out of segments with the question; nothing until it is set.
    """

    store: GraphStore
    ns: str
    searcher: "Searcher"
    documents: Collection[str] | None = None
    only: Collection[str] | None = None
    is_folded: bool = False
    single_types: Collection[str] = ()
    as_of: str = ""
    overlay: Overlay = field(default_factory=Overlay)
    _judged: Collection[str] | None = None
    _names: dict[str, str] = field(default_factory=dict)
    _relations: dict[str, list[Relation]] = field(default_factory=dict)
    _places: dict[str, list[str]] = field(default_factory=dict)
    _found: dict[str, Around] = field(default_factory=dict)
    _segments: dict[str, Segment] = field(default_factory=dict)
    _indexed: dict[str, Entry] = field(default_factory=dict)

    async def look(self, keys: Sequence[str], *, texts: bool = False) -> None:
        """Read all that a step may ask about entities, at once, unless it was read before.

        Args:
            texts: their segments' texts as well; they are going to be read.
        """
        missing = [key for key in keys if key not in self._found]
        if not missing:
            return
        await self._may_end()  # how the memory stands is read before the first step
        found = await self.store.around(self.ns, missing, texts=texts)
        self._found.update(dict.fromkeys(missing, found))
        self._segments.update({segment.id: segment for segment in found.segments})
        self._names.update(await self._own_names(found))

    async def _own_names(self, found: Around) -> Mapping[str, str]:
        """Return the names of entities, as those documents have them that may be looked at."""
        added = {key: row.name for key, row in self.overlay.entities.items()}
        if self.documents is None and self.only is None:
            return {**found.names, **added}
        places = [id for own in found.places.values() for id in own]
        stated = [fact.segment_id for fact in found.facts]
        inside = await self._within(list(dict.fromkeys((*places, *stated))))
        said = await names_said(self.store, self.ns, found.names, inside)
        return {**self.overlay.said, **said, **added}

    async def segments(self, ids: Iterable[str]) -> list[Segment]:
        """Return segments in the order of `ids`."""
        wanted = list(dict.fromkeys(ids))
        missing = [id for id in wanted if id not in self._segments]
        if missing:
            found = await self.store.segments(self.ns, missing)
            self._segments.update({segment.id: segment for segment in found})
        return [self._segments[id] for id in wanted if id in self._segments]

    async def passages(self, segments: Sequence[Segment]) -> list[Passage]:
        """Label segments S1, S2, … in their order, with the titles of their documents."""
        found = await self._entries(segment.id for segment in segments)
        return [
            Passage(f"S{n}", segment, found[segment.id].title if segment.id in found else "")
            for n, segment in enumerate(segments, 1)
        ]

    async def _entries(self, ids: Iterable[str]) -> Mapping[str, Entry]:
        """Return what is indexed of segments, by id."""
        wanted = list(dict.fromkeys(ids))
        missing = [id for id in wanted if id not in self._indexed]
        if missing:
            found = await self.store.entries(self.ns, missing)
            self._indexed.update({entry.id: entry for entry in found})
        return {id: self._indexed[id] for id in wanted if id in self._indexed}

    async def entities_in(self, segment_ids: Sequence[str]) -> dict[str, list[str]]:
        """Return the keys of each segment's entities."""
        found = await entities_in(self.store, self.ns, segment_ids)
        return {
            id: list(dict.fromkeys((*found.get(id, ()), *self.overlay.entities_in(id))))
            for id in segment_ids
        }

    async def places(self, keys: Sequence[str]) -> dict[str, list[str]]:
        """Return the ids of each entity's segments, in order, within the documents."""
        missing = [key for key in keys if key not in self._places]
        if missing:
            await self.look(missing)
            for key in missing:
                found = self._found[key].places.get(key, ())
                ids = dict.fromkeys((*found, *self.overlay.segments_with(key)))
                self._places[key] = await self._within(list(ids))
        return {key: self._places[key] for key in keys}

    async def relations(self, keys: Sequence[str]) -> dict[str, Relation]:
        """Return the relations with an end in `keys` that the documents state, by key."""
        missing = [key for key in keys if key not in self._relations]
        if missing:
            await self.look(missing)
            facts = self._facts(missing)
            facts += self.overlay.facts(missing)
            await self._fold(missing, facts)
        return {edge.key: edge for key in keys for edge in self._relations[key]}

    async def names(self, keys: Sequence[str]) -> list[str]:
        """Return names in the order of `keys`: canonical ones, or those of the documents."""
        missing = [key for key in keys if key not in self._names]
        if missing and not (self.documents is None and self.only is None):
            await self.look(missing)
        elif missing:
            found = await self.store.names(self.ns, NameFilter(entities=missing))
            self._names.update({row.entity: row.entity_name for row in found})
            self._names.update({key: row.name for key, row in self.overlay.entities.items()})
        return [self.name(key) for key in keys]

    def name(self, key: str) -> str:
        """Return the name if it was read, else the name in the key."""
        return self._names.get(key) or split_key(key)[0]

    def known_names(self, edges: Iterable[Relation]) -> Mapping[str, str]:
        """Return a name for each end of some edges."""
        return {end: self.name(end) for edge in edges for end in (edge.head, edge.tail)}

    def _facts(self, keys: Sequence[str]) -> list[Fact]:
        """Return the facts with an end in `keys`; those of one relation are in order."""
        ends = set(keys)
        looks = {id(self._found[key]): self._found[key] for key in keys}.values()
        facts = (fact for found in looks for fact in found.facts)
        return [fact for fact in facts if fact.head in ends or fact.tail in ends]

    async def _fold(self, keys: Sequence[str], facts: Sequence[Fact]) -> None:
        stated = await self._within([fact.segment_id for fact in facts])
        seen = set(stated)
        facts = await self._dated([fact for fact in facts if fact.segment_id in seen])
        for key in keys:
            self._relations[key] = []
        for edge in fold(dict.fromkeys(facts)):
            edge = await self._folded(edge)
            for end in {edge.head, edge.tail} & set(keys):
                self._relations[end].append(edge)

    async def _may_end(self) -> bool:
        """Whether statements may replace others at all, as they do by single types or judgement."""
        if self._judged is None:
            self._judged = await judged_pairs(self.store, self.ns)
        return bool(self._judged or self.single_types)

    async def replaced(self, segment_ids: Collection[str]) -> dict[str, list[str]]:
        """Return the segments with a statement that others replace, each with theirs."""
        if not await self._may_end():
            return {}
        named = await self.entities_in(list(segment_ids))
        keys = list(dict.fromkeys(key for own in named.values() for key in own))
        await self.look(keys)
        facts = [fact for fact in self._facts(keys) if fact.segment_id in segment_ids]
        found: dict[str, dict[str, None]] = {}
        for (segment_id, _), ending in (await self.endings(facts)).items():
            if segment_id in segment_ids and ending.by.segment_id != segment_id:
                found.setdefault(segment_id, {})[ending.by.segment_id] = None
        return {segment_id: list(by) for segment_id, by in found.items()}

    async def endings(self, facts: Sequence[Fact]) -> dict[Place, Ending]:
        """Return which of some facts later ones replace, as far as the documents say."""
        if not await self._may_end():
            return {}
        found = await kept_endings(
            self.store, self.ns, facts, self.single_types, self.as_of, self._judged
        )
        inside = set(await self._within([ending.by.segment_id for ending in found.values()]))
        return {place: e for place, e in found.items() if e.by.segment_id in inside}

    async def _dated(self, facts: Sequence[Fact]) -> list[Fact]:
        """Return facts; those that were replaced, or do not hold, say so."""
        ends = await self.endings(facts)
        tails = [ending.by.tail for ending in ends.values()]
        names = dict(zip(tails, await self.names(tails), strict=True))
        return dated(facts, ends, names, self.as_of)

    async def _folded(self, edge: Relation) -> Relation:
        if not self.is_folded or len(edge.facts) < 2:
            return edge
        found = await self._entries(edge.segments)
        places = {id: entry.document_id for id, entry in found.items()}
        return await folded_by_reasoner(self.store, self.ns, edge, places)

    async def _within(self, segment_ids: Sequence[str]) -> list[str]:
        if self.only is not None:
            segment_ids = [id for id in segment_ids if id in self.only]
        if self.documents is None:
            return list(segment_ids)
        found = await self._entries(segment_ids)
        return [id for id in segment_ids if id in found and found[id].document_id in self.documents]
