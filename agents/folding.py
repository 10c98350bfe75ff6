"""Parallel relations folded by the reasoner, in mode `paper`: made once, kept in the store.

What each segment states of a pair of entities is folded from the left in segment order, document by
document, as the prompt knows one document's summary. What is folded so far is kept under the facts
that went in, so that a later fact costs one more call, and a build that was stopped goes on where
it was.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from qrmem.agents.state import BuildDeps
from qrmem.graph.folding import fold
from qrmem.graphstore.protocol import GraphStore
from qrmem.graphstore.reads import cached_value, entities_in, facts_of
from qrmem.llm.parallel import each
from qrmem.types import Event, Fact, Relation, Segment

Told = tuple[Fact, ...]
"""What one segment states of a pair of entities."""


@dataclass(frozen=True, slots=True)
class Chain:
    """What several segments of one document state of one pair, and the document's summary."""

    told: tuple[Told, ...]
    summary: str


async def fold_documents(
    deps: BuildDeps,
    segments: Mapping[str, Segment],
    summaries: Mapping[str, str],
    question: str = "",
) -> None:
    """Fold the parallel relations of some documents, as far as that was not done yet.

    Args:
        segments: all of the documents, by id, in order.
        summaries: by document id.
        question: the user's, where the memory is built for it.
    """
    inside = await entities_in(deps.store, deps.ns, list(segments))
    keys = list(dict.fromkeys(key for found in inside.values() for key in found))
    around = await deps.store.around(deps.ns, keys)
    facts = [fact for fact in around.facts if fact.segment_id in segments]
    apart = _apart(facts, {id: segment.document_id for id, segment in segments.items()})
    chains = []
    for document_id, summary in summaries.items():
        own = dict.fromkeys(apart.get(document_id, ()))
        told = (by_segment(relation.facts) for relation in fold(own))
        chains += [Chain(found, summary) for found in told if len(found) > 1]
    if not chains:
        return
    deps.listener(Event("phase", {"phase": "folding", "relations": len(chains)}))

    async def work(chain: Chain) -> None:
        await _fold_chain(deps, chain, segments, around.names, question)

    await each(chains, work, concurrency=deps.concurrency)


async def current_keys(store: GraphStore, ns: str) -> set[str]:
    """Return the keys of all folded descriptions that a namespace's facts, as they are, may use."""
    documents = await store.document_ids(ns)
    document_of = {row.id: row.document_id for row in await store.segments(ns, documents=documents)}
    keys = list(dict.fromkeys(row.entity for row in await store.names(ns)))
    apart = _apart(await facts_of(store, ns, keys), document_of)
    chains = [by_segment(edge.facts) for facts in apart.values() for edge in fold(facts)]
    return {fold_key(told[:n]) for told in chains for n in range(2, len(told) + 1)}


async def folded_by_reasoner(
    store: GraphStore, ns: str, edge: Relation, document_of: Mapping[str, str]
) -> Relation:
    """Return a relation with the descriptions that were folded for its documents, if they were.

    Args:
        document_of: document id by segment id, for the segments of its facts.
    """
    said: list[Fact] = []
    for facts in _apart(edge.facts, document_of).values():
        told = by_segment(facts)
        kept = await cached_value(store, ns, "fold", fold_key(told)) if len(told) > 1 else None
        said += [replace(told[0][0], description=str(kept["description"]))] if kept else facts
    return replace(edge, description=fold(said)[0].description)


def _apart(facts: Iterable[Fact], document_of: Mapping[str, str]) -> dict[str, list[Fact]]:
    """Return facts by the document that states them."""
    apart: dict[str, list[Fact]] = {}
    for fact in facts:
        apart.setdefault(document_of.get(fact.segment_id, ""), []).append(fact)
    return apart


def by_segment(facts: Sequence[Fact]) -> tuple[Told, ...]:
    """Return what each segment states that no earlier one does, in order.

    Who does it counts: `a killed b` and `b killed a` are two statements.
    """
    first: dict[tuple[str, str], Fact] = {}
    for fact in facts:
        first.setdefault((fact.head, fact.description), fact)
    told: dict[str, list[Fact]] = {}
    for fact in first.values():
        told.setdefault(fact.segment_id, []).append(fact)
    return tuple(map(tuple, told.values()))


def fold_key(told: Sequence[Told]) -> str:
    """Return the key under which a folded description is kept."""
    facts = [fact for stated in told for fact in stated]
    made = repr([(f.head, f.tail, f.description, f.segment_id) for f in facts])
    return "fold:" + hashlib.sha256(made.encode("utf-8", "surrogatepass")).hexdigest()


async def _fold_chain(
    deps: BuildDeps,
    chain: Chain,
    segments: Mapping[str, Segment],
    names: Mapping[str, str],
    question: str,
) -> None:
    merged, read = chain.told[0], list[str]()
    for n, stated in enumerate(chain.told[1:], 2):
        read.append(segments[chain.told[n - 2][0].segment_id].text)
        key = fold_key(chain.told[:n])
        kept = await cached_value(deps.store, deps.ns, "fold", key)
        if kept is None:
            made = await deps.reasoner.fold(
                (_lines(merged, names), _lines(stated, names)),
                ("\n\n".join(read), segments[stated[0].segment_id].text),
                summary=chain.summary,
                question=question,
            )
            # Without a reply that can be used both stand side by side.
            said = made.description or fold([*merged, *stated])[0].description
            kept = {"description": said, "questions": list(made.questions)}
            segment_id = stated[0].segment_id
            await deps.store.put_cached(deps.ns, "fold", key, kept, segments=[segment_id])
        merged = (replace(merged[0], description=str(kept["description"])),)


def _lines(told: Told, names: Mapping[str, str]) -> str:
    """Return facts as a prompt shows them, by the entities' names: who does what to whom."""
    ends = {key: names.get(key, key) for fact in told for key in (fact.head, fact.tail)}
    return "\n".join(f"{ends[f.head]} - {f.description} - {ends[f.tail]}" for f in told)
