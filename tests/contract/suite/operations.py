"""Random operations, for comparing a store with the oracle (needs Hypothesis)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from contract.suite.runs import TRAIL
from contract.suite.samples import INFO, change, contents, text
from hypothesis import strategies as st

from qrmem.errors import QrmemError
from qrmem.graphstore.protocol import (
    EntityRow,
    FactRow,
    GraphStore,
    MentionRow,
    VectorKind,
    ViewUpdate,
    relation_key,
)
from qrmem.graphstore.reads import cached_value
from qrmem.types import (
    CallRecord,
    Citation,
    Contribution,
    ContributionKind,
    LedgerRow,
    MergeDecision,
    ScoredEdge,
    ScoredSegment,
    SegmentState,
    Step,
)

NAMESPACES = ("n", "m")
WORDS = ("Ann ", "Bob ", "Cy ", "Éa ", "ran ", "why? ", "how? ")

_names = st.sampled_from([word.strip() for word in WORDS[:4]])
_numbers = st.integers(0, 50)


class Operation(Protocol):
    """Something done to a store; reads what it needs from that store alone."""

    async def run(self, store: GraphStore, ns: str) -> Any:
        """Do it; return what can be compared."""
        ...


async def _ids(store: GraphStore, ns: str) -> list[str]:
    return [row.segment_id for row in await store.ledger(ns)]


async def _picked(store: GraphStore, ns: str, picks: Sequence[int]) -> list[str]:
    """Return segment ids for numbers; now and then one that is not there."""
    ids = [*await _ids(store, ns), "unknown"]
    return [ids[pick % len(ids)] for pick in picks]


@dataclass(frozen=True)
class PutDocument:
    """Put or replace a document."""

    id: str
    pieces: tuple[str, ...]
    title: str

    async def run(self, store: GraphStore, ns: str) -> None:
        await store.put_documents(ns, [text(self.id, *self.pieces, title=self.title)])


@dataclass(frozen=True)
class DeleteDocument:
    """Delete a document that may be there."""

    id: str

    async def run(self, store: GraphStore, ns: str) -> None:
        await store.delete_documents(ns, self.id)
        await store.record(ns, (), summaries={"d": f"without {self.id}"})


@dataclass(frozen=True)
class Merge:
    """Apply what the plain reader makes of some segments, on a revision that may be stale."""

    picks: tuple[int, ...]
    moves: tuple[tuple[str, str], ...]
    clear: tuple[int, ...]
    age: int

    async def run(self, store: GraphStore, ns: str) -> int:
        info = await store.namespace(ns)
        known = {row.key for row in await store.names(ns)}
        ids = await _picked(store, ns, self.picks)
        made = change(dict.fromkeys(await store.segments(ns, ids)), known)
        entities = {row.key: row for row in made.entities}
        names = dict(made.names)
        for name, key in self.moves:
            names[name] = key
            entities[key] = EntityRow(key, f"The {key}", "PERSON")
        cleared = await _picked(store, ns, self.clear)
        made = replace(
            made,
            mentions=[_with_properties(row) for row in made.mentions],
            facts=[_typed(row) for row in made.facts],
            clear=[*made.clear, *cleared] if self.clear else (),
            names=names,
            entities=list(entities.values()),
        )
        revision = info.revision - self.age if info else 0
        return await store.apply(ns, revision, made)


def _with_properties(row: MentionRow) -> MentionRow:
    """Give some names properties, as a schema's types have them."""
    return replace(row, properties=(("born", 1800), ("rôle", row.name))) if "B" in row.name else row


def _typed(row: FactRow) -> FactRow:
    """Give some facts a type, and some of these properties."""
    properties = (("since", 1.5), ("sure", True)) if row.n else ()
    return replace(row, type="KNOWS_WELL", properties=properties) if "A" in row.head else row


@dataclass(frozen=True)
class ClearOnly:
    """Drop the view rows of some segments."""

    picks: tuple[int, ...]

    async def run(self, store: GraphStore, ns: str) -> int:
        info = await store.namespace(ns)
        given = ViewUpdate(clear=await _picked(store, ns, self.picks))
        return await store.apply(ns, info.revision if info else 0, given)


@dataclass(frozen=True)
class Record:
    """Record a phase of some segments."""

    picks: tuple[int, ...]
    state: SegmentState
    kind: ContributionKind
    asked: tuple[str, ...]

    async def run(self, store: GraphStore, ns: str) -> None:
        call = CallRecord(self.kind, "extract", "construction", "p", "m")
        for id_ in await _picked(store, ns, self.picks):
            given = Contribution(id_, self.kind, questions=(self.state,), asked=self.asked)
            await store.record(ns, [(LedgerRow(id_, self.state), given)], [call])


@dataclass(frozen=True)
class Decide:
    """Keep a user's word."""

    first: str
    second: str
    same: bool

    async def run(self, store: GraphStore, ns: str) -> None:
        await store.override_merge(ns, MergeDecision(self.first, self.second, self.same))


@dataclass(frozen=True)
class PutVectors:
    """Put vectors of segments or relations."""

    kind: VectorKind
    picks: tuple[int, ...]

    async def run(self, store: GraphStore, ns: str) -> None:
        info = await store.namespace(ns)
        owners = await _picked(store, ns, self.picks)
        shape = (len(owners), info.dimension if info else 3)
        rows = np.arange(shape[0] * shape[1], dtype=np.float32).reshape(shape)
        await store.put_vectors(ns, self.kind, owners, rows + sum(self.picks))


@dataclass(frozen=True)
class SetEmbedder:
    """Change the embedder."""

    dimension: int

    async def run(self, store: GraphStore, ns: str) -> None:
        await store.set_embedder(ns, "e", self.dimension)


@dataclass(frozen=True)
class PutRun:
    """Write a trail over some segments, and keep a reply made from them."""

    id: str
    picks: tuple[int, ...]
    ends: tuple[str, str]

    async def run(self, store: GraphStore, ns: str) -> None:
        ids = await _picked(store, ns, self.picks)
        edge = ScoredEdge(relation_key(*self.ends), *self.ends, f"{self.ends} meet", 0.5)
        steps = tuple(
            Step(n, "read", self.ends, (edge,), (ScoredSegment(id_, 0.5, 1),), reason=f"reason {n}")
            for n, id_ in enumerate(ids, 1)
        )
        citations = tuple(Citation("d", id_, 0, 1, f"quote {id_}") for id_ in ids[1:])
        await store.put_trail(ns, replace(TRAIL, id=self.id, steps=steps, citations=citations))
        await store.put_cache_entry(ns, "reply", self.id, {"segments": ids}, segments=ids)


@dataclass(frozen=True)
class Recreate:
    """Delete the namespace and make it again."""

    async def run(self, store: GraphStore, ns: str) -> None:
        await store.delete_namespace(ns)
        await store.create_namespace(ns, INFO)


_picks = st.lists(_numbers, max_size=6).map(tuple)
_documents = st.sampled_from(["d", "e", "c"])
_piece = st.lists(st.sampled_from(WORDS), max_size=5).map("".join)
_pair = st.tuples(_names, _names)

operations: st.SearchStrategy[tuple[str, Operation]] = st.tuples(
    st.sampled_from(NAMESPACES),
    st.one_of(
        st.builds(
            PutDocument, _documents, st.lists(_piece, max_size=5).map(tuple), st.sampled_from("tu")
        ),
        st.builds(
            Merge,
            _picks,
            st.lists(_pair, max_size=2).map(tuple),
            st.lists(_numbers, max_size=1).map(tuple),
            st.sampled_from([0, 0, 0, 0, 1]),
        ),
        st.builds(DeleteDocument, _documents),
        st.builds(ClearOnly, _picks),
        st.builds(
            Record,
            _picks,
            st.sampled_from(["extracted", "ok", "failed"]),
            st.sampled_from(["extraction", "supplement", "oriented"]),
            st.lists(st.sampled_from(["a?", "b?"]), max_size=2).map(tuple),
        ),
        st.builds(Decide, _names, _names, st.booleans()),
        st.builds(PutVectors, st.sampled_from(["segment", "relation"]), _picks),
        st.builds(SetEmbedder, st.sampled_from([2, 3])),
        st.builds(PutRun, st.sampled_from(["t", "u"]), _picks, _pair),
        st.builds(Recreate),
    ),
)


async def play(stores: Sequence[GraphStore], script: Sequence[tuple[str, Operation]]) -> None:
    """Do the same to all stores and see that they agree with the first, the oracle.

    Raises:
        AssertionError: they do not.
    """
    for ns in NAMESPACES:
        _same([await store.create_namespace(ns, INFO) for store in stores], ns)
    for ns, operation in script:
        _same([await _outcome(operation, store, ns) for store in stores], operation)
    for ns in NAMESPACES:
        found = [await contents(store, ns) for store in stores]
        for part in found[0]:
            _same([kept[part] for kept in found], part)
        _same([await store.namespace(ns) for store in stores], ns)
        for key in ("t", "u"):
            _same([await cached_value(store, ns, "reply", key) for store in stores], key)


def _same(found: Sequence[Any], what: object) -> None:
    expected, *others = found
    for other in others:
        assert other == expected, what


async def _outcome(operation: Operation, store: GraphStore, ns: str) -> Any:
    """Return what came out, or the class of what was raised."""
    try:
        return await operation.run(store, ns)
    except (QrmemError, ValueError) as exc:
        return type(exc)
