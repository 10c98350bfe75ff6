"""Parallel relations folded by the reasoner (mode `paper`), once, with the results in the cache.

The statements of a pair, direction and type are folded from the left in segment order, separately
for each document, as the prompt has the summary of one document. The cache key of a result is a
digest of its facts. So a later fact costs one more call, and a stopped build resumes.
"""

from collections.abc import Mapping
from dataclasses import replace

from qrmem.agents.build_state import Build
from qrmem.graphstore.protocol import GraphStore
from qrmem.graphstore.reads import cached_value, entities_in, kept_folds
from qrmem.graphstore.relations import (
    Chain,
    Told,
    chains,
    fold_key,
    folded_facts,
    merged_text,
)
from qrmem.llm.parallel import each
from qrmem.types import Event, Relation, Segment


async def fold_documents(
    build: Build,
    segments: Mapping[str, Segment],
    summaries: Mapping[str, str],
    question: str = "",
) -> None:
    """Fold the parallel relations of some documents, as far as they are not in the cache.

    Args:
        build: what carries it.
        segments: all segments of the documents, by id, in order.
        summaries: document id to summary.
        question: the user's question, if the memory is built for one.
    """
    inside = await entities_in(build.store, build.ns, list(segments))
    keys = list(dict.fromkeys(key for entity_keys in inside.values() for key in entity_keys))
    around = await build.store.around(build.ns, keys)
    facts = [fact for fact in around.facts if fact.segment_id in segments]
    document_of = {id: segment.document_id for id, segment in segments.items()}
    entity_keys = [one for one in chains(dict.fromkeys(facts), document_of) if one.key]
    entity_keys = [one for one in entity_keys if one.document_id in summaries]
    if not entity_keys:
        return
    build.listener(Event("phase", {"phase": "folding", "relations": len(entity_keys)}))

    async def work(chain: Chain) -> None:
        about = summaries[chain.document_id], question
        await _fold_chain(build, chain.told, about, segments, around.names)

    await each(entity_keys, work, concurrency=build.parts.settings.concurrency)


async def folded_by_reasoner(
    store: GraphStore, ns: str, edge: Relation, document_of: Mapping[str, str]
) -> Relation:
    """Return a relation with the folded descriptions of its documents, if the cache has them.

    Args:
        store: the store.
        ns: the namespace.
        edge: the relation.
        document_of: segment id to document id, for the segments of its facts.
    """
    chains_found = chains(edge.facts, document_of)
    folds = await kept_folds(store, ns, chains_found)
    return (
        replace(edge, description=merged_text(folded_facts(chains_found, folds))) if folds else edge
    )


async def _fold_chain(
    build: Build,
    told: tuple[Told, ...],
    about: tuple[str, str],
    segments: Mapping[str, Segment],
    names: Mapping[str, str],
) -> None:
    """Merge the statements of several segments of one document, one segment after the other.

    Args:
        about: the document's summary, and the user's question or "".
    """
    merged, read = told[0], list[str]()
    for n, statement in enumerate(told[1:], 2):
        read.append(segments[told[n - 2][0].segment_id].text)
        key = fold_key(told[:n])
        fold = await cached_value(build.store, build.ns, "fold", key)
        if fold is None:
            folded = await build.parts.reasoner.fold(
                (_lines(merged, names), _lines(statement, names)),
                ("\n\n".join(read), segments[statement[0].segment_id].text),
                summary=about[0],
                question=about[1],
            )
            # If no reply parses, both descriptions are joined.
            description = folded.description or merged_text([*merged, *statement])
            fold = {"description": description, "questions": list(folded.questions)}
            segment_id = statement[0].segment_id
            await build.store.put_cache_entry(build.ns, "fold", key, fold, segments=[segment_id])
        merged = (replace(merged[0], description=str(fold["description"])),)


def _lines(told: Told, names: Mapping[str, str]) -> str:
    """Return facts as lines of a prompt, with the entities' names: who does what to whom."""
    ends = {key: names.get(key, key) for fact in told for key in (fact.head, fact.tail)}
    return "\n".join(f"{ends[f.head]} - {f.description} - {ends[f.tail]}" for f in told)
