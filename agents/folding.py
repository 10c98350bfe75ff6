"""Parallel relations folded by the reasoner, in mode `paper`: made once, kept in the store.

Facts of one pair of entities are folded from the left in segment order, document by document, as
the prompt knows one document's summary. What is folded so far is kept under the facts that went in,
so that a later fact costs one more call, and a build that was stopped goes on where it was.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from qrmem.agents.pool import each
from qrmem.agents.state import BuildDeps
from qrmem.graph.folding import fold
from qrmem.graphstore.protocol import GraphStore
from qrmem.types import Event, Fact, Relation, Segment


@dataclass(frozen=True, slots=True)
class Chain:
    """Facts of one pair in one document that say different things, and the document's summary."""

    facts: tuple[Fact, ...]
    summary: str


async def fold_documents(
    deps: BuildDeps, segments: Mapping[str, Segment], summaries: Mapping[str, str]
) -> None:
    """Fold the parallel relations of some documents, as far as that was not done yet.

    Args:
        segments: all of the documents, by id, in order.
        summaries: by document id.
    """
    inside = await deps.store.entities_in(deps.ns, list(segments))
    keys = list(dict.fromkeys(key for found in inside.values() for key in found))
    facts = [fact for fact in await deps.store.facts(deps.ns, keys) if fact.segment_id in segments]
    chains = []
    for document_id, summary in summaries.items():
        own = [f for f in facts if segments[f.segment_id].document_id == document_id]
        told = (distinct(relation.facts) for relation in fold(dict.fromkeys(own)))
        chains += [Chain(found, summary) for found in told if len(found) > 1]
    if not chains:
        return
    deps.listener(Event("phase", {"phase": "folding", "relations": len(chains)}))

    async def work(chain: Chain) -> None:
        await _fold_chain(deps, chain, segments)

    await each(chains, work, concurrency=deps.concurrency)


async def current_keys(store: GraphStore, ns: str) -> set[str]:
    """Return the keys of all folded descriptions that a namespace's facts, as they are, may use."""
    documents = [info.id for info in await store.documents(ns)]
    document_of = {row.id: row.document_id for row in await store.segments_of(ns, *documents)}
    keys = list(dict.fromkeys(row.entity for row in await store.names(ns)))
    apart: dict[str, list[Fact]] = {}
    for fact in await store.facts(ns, keys):
        apart.setdefault(document_of.get(fact.segment_id, ""), []).append(fact)
    chains = [distinct(edge.facts) for facts in apart.values() for edge in fold(facts)]
    return {fold_key(told[:n]) for told in chains for n in range(2, len(told) + 1)}


async def folded_by_reasoner(
    store: GraphStore, ns: str, edge: Relation, document_of: Mapping[str, str]
) -> Relation:
    """Return a relation with the descriptions that were folded for its documents, if they were.

    Args:
        document_of: document id by segment id, for the segments of its facts.
    """
    apart: dict[str, list[Fact]] = {}
    for fact in edge.facts:
        apart.setdefault(document_of.get(fact.segment_id, ""), []).append(fact)
    said: list[Fact] = []
    for facts in apart.values():
        told = distinct(facts)
        kept = await store.cached(ns, fold_key(told)) if len(told) > 1 else None
        said += [replace(told[0], description=str(kept["description"]))] if kept else facts
    return replace(edge, description=fold(said)[0].description)


def distinct(facts: Sequence[Fact]) -> tuple[Fact, ...]:
    """Return the first fact of each description."""
    first: dict[str, Fact] = {}
    for fact in facts:
        first.setdefault(fact.description, fact)
    return tuple(first.values())


def fold_key(facts: Sequence[Fact]) -> str:
    """Return the key under which a folded description is kept."""
    made = repr([(f.head, f.tail, f.description, f.segment_id) for f in facts])
    return "fold:" + hashlib.sha256(made.encode("utf-8", "surrogatepass")).hexdigest()


async def _fold_chain(deps: BuildDeps, chain: Chain, segments: Mapping[str, Segment]) -> None:
    merged, *later = chain.facts
    for n, fact in enumerate(later, 2):
        key = fold_key(chain.facts[:n])
        kept = await deps.store.cached(deps.ns, key)
        if kept is None:
            texts = segments[merged.segment_id].text, segments[fact.segment_id].text
            said = await deps.reasoner.fold(merged, fact, chain.summary, texts=texts)
            kept = {"description": said}
            await deps.store.put_cached(deps.ns, key, kept, segment_id=fact.segment_id)
        merged = replace(merged, description=str(kept["description"]))
