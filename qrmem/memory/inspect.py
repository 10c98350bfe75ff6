"""Show a memory: status, documents, entities; and which segments other settings read."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING

from qrmem.config import Settings
from qrmem.errors import NotFound, UsageError, require_count, require_ids, require_text
from qrmem.graph.superseding import kept_endings, place_of
from qrmem.graphstore.protocol import EntityCount, GraphStore
from qrmem.llm.totals import By, usage_by
from qrmem.llm.totals import usage as totals_of
from qrmem.memory.entity_lookup import entity_key, view_entity
from qrmem.memory.session import Session
from qrmem.text.code.languages import CODE_KEY
from qrmem.text.dates import as_of_moment
from qrmem.text.normalise import normalise_id, normalise_where
from qrmem.text.numbers import counted
from qrmem.types import (
    Document,
    DocumentInfo,
    EntityView,
    Fact,
    GraphEdge,
    GraphNode,
    GraphPart,
    MemoryStatus,
    Merge,
    Page,
    Segment,
    Trail,
    UsageRow,
    Where,
)
from qrmem.types.turns import is_read_by_rules, is_turn_id, turn_number
from qrmem.types.usage import CostEstimate

if TYPE_CHECKING:
    from qrmem.graphstore.neo4j import SavedQuery


FEW = 0.25
"""Relations for each 1,000 characters below which a document is reported.

Measured: the built-in rules find 0.7 to 5 in prose, GPT-3.5 18 in encyclopedia articles.
"""
LONG_ENOUGH = 5_000
"""Minimum length in characters of a document whose relations are counted."""
_SHOWN = 5
_UNMERGED = "read, but not merged"


async def status(session: Session) -> MemoryStatus:
    """Return figures, problems and warnings, without the cost of reading again."""
    store, info = session.store, await session.info()
    ledger = await store.ledger(info.name)
    counts = await store.counts(info.name)
    states: Counter[str] = Counter(row.state for row in ledger)
    failing = {row.segment_id: row.reason or row.state for row in ledger if row.state != "ok"}
    # A run that stops between reading and merging leaves segments "ok" that no search finds.
    failing |= {row.segment_id: _UNMERGED for row in ledger if row.state == "ok" and not row.merged}
    segments = await store.segments(info.name, list(failing))
    # Turns are not checked: they are short, and there may be many.
    ids = [id_ for id_ in await store.document_ids(info.name) if not is_turn_id(id_)]
    documents = await store.documents(info.name, ids) if ids else ()
    problems = tuple((s.document_id, s.index, failing[s.id]) for s in segments)
    # Segments that are not merged yet have no relations, whatever the replies were.
    waiting = {s.document_id for s in segments if failing[s.id] == _UNMERGED}
    read = [document for document in documents if document.id not in waiting]
    warnings = [*low_yields(read)]
    if problems:
        of_turns = sum(is_turn_id(document_id) for document_id, *_ in problems)
        hints = ["run the same `add` again"] * (of_turns < len(problems))
        hints += ["the next turn that is kept completes turns"] * bool(of_turns)
        are = "is" if len(problems) == 1 else "are"
        number = counted(len(problems), "segments")
        warnings.append(f"{number} {are} not complete: {'; '.join(hints)}")
    if info.embedder != "none":
        bare = {row.segment_id for row in ledger if row.merged}
        bare.difference_update(await store.owners(info.name, "segment"))
        if bare:
            segments_in_words = counted(len(bare), "segments")
            warnings.append(
                f"{segments_in_words} without a vector: run `reembed` with {info.embedder}"
            )
    return MemoryStatus(
        location=store.location,
        namespace=info.name,
        tokenizer=info.tokenizer,
        segment_tokens=info.segment_tokens,
        embedder=info.embedder,
        dimension=info.dimension,
        revision=info.revision,
        counts=counts,
        states=dict(states),
        problems=problems,
        usage=totals_of(await store.calls(info.name)),
        warnings=tuple(warnings),
        readers=tuple(sorted({row.reasoner for row in ledger if row.reasoner})),
    )


async def usage(session: Session, by: By = "stage") -> Sequence[UsageRow]:
    """Return the usage of all runs, in rows."""
    info = await session.info()
    return usage_by(await session.store.calls(info.name), by)


async def documents(
    session: Session,
    where: Where | None,
    turns: bool | None,
    offset: int,
    limit: int | None,
) -> Page[DocumentInfo]:
    """Return a page of documents."""
    await session.known()
    store, ns, condition = session.store, session.ns, normalise_where(where)
    if not condition and turns is None and (offset, limit) == (0, None):
        every = await store.documents(ns)
        return Page(every, len(every))
    ids = await store.document_ids(ns, where=condition)
    if turns is not None:
        # Ids alone do not identify turns, but they leave few other documents to look at.
        likely = [id_ for id_ in ids if is_turn_id(id_)]
        infos = await store.documents(ns, likely) if likely else ()
        turn_infos = {info.id: info for info in infos if turn_number(info.id, info.metadata)}
        if turns and (offset, limit) == (0, None):
            return Page(turn_infos.values(), len(turn_infos))
        ids = [id_ for id_ in ids if (id_ in turn_infos) == turns]
    part = ids[offset : None if limit is None else offset + limit]
    return Page(await store.documents(ns, part) if part else (), len(ids))


async def document(session: Session, document_id: str) -> Document:
    """Return a document with its text."""
    await session.known()
    stored_document = await session.store.document(session.ns, normalise_id(document_id))
    if stored_document is None:
        raise NotFound(f"no document {document_id!r} in {session.where}")
    return stored_document


async def segments(session: Session, document: str, ids: Iterable[str]) -> Sequence[Segment]:
    """Return the segments of a document, or those with these ids."""
    await session.known()
    require_ids(ids)
    if not document:
        return await session.store.segments(session.ns, list(ids))
    ids = await session.require_documents([document])
    return await session.store.segments(session.ns, documents=ids)


async def entities(session: Session, limit: int = 100) -> Sequence[EntityCount]:
    """Return the entities with most segments."""
    require_count(limit, "limit")
    await session.info()
    return await session.store.list_entities(session.ns, limit)


async def entity(
    session: Session,
    name: str,
    offset: int = 0,
    limit: int | None = None,
    as_of: str | date = "",
) -> EntityView:
    """Return the entity of a name."""
    require_text(name, "the name")
    require_count(limit or 1, "limit")
    require_count(offset or 1, "offset")
    at = as_of_moment(as_of)
    await session.info()
    store, types = session.store, await session.single_types()
    return await view_entity(store, session.ns, name, offset, limit, at, types)


async def graph(session: Session, name: str, limit: int) -> GraphPart:
    """Return an entity, its nearest neighbours and their edges."""
    require_count(limit, "limit")
    await session.info()
    store, ns = session.store, session.ns
    key = await entity_key(store, ns, name) if name else ""
    key = key or next((one.key for one in await store.list_entities(ns, 1)), "")
    if not key:
        return GraphPart("", (), (), 0)
    entity_view = await store.around(ns, [key])
    times = Counter(end for fact in entity_view.facts for end in {fact.head, fact.tail} - {key})
    neighbours = sorted(times, key=lambda end: (-times[end], end))[:limit]
    around = await store.around(ns, neighbours) if neighbours else entity_view
    facts = list({place_of(fact): fact for fact in (*entity_view.facts, *around.facts)}.values())
    linked: dict[str, set[str]] = {}
    for fact in facts:
        linked.setdefault(fact.head, set()).add(fact.tail)
        linked.setdefault(fact.tail, set()).add(fact.head)
    nodes = [
        GraphNode(one.key, one.name, one.type, len(linked.get(one.key, set()) - {one.key}))
        for one in await store.entities(ns, [key, *neighbours])
    ]
    keys_shown = {key, *neighbours}
    facts_shown = [
        fact for fact in facts if {fact.head, fact.tail} <= keys_shown and fact.head != fact.tail
    ]
    edges = await _edges(session, facts_shown)
    return GraphPart(key, tuple(nodes), tuple(edges), len(times))


async def _edges(session: Session, facts: Sequence[Fact]) -> list[GraphEdge]:
    """Return one edge for each pair of entities, those with most statements first."""
    timed = [fact for fact in facts if fact.said_at or fact.valid_from or fact.valid_until]
    ends = await kept_endings(session.store, session.ns, timed, await session.single_types())
    until = {place: ending.since for place, ending in ends.items()}
    pairs: dict[frozenset[str], list[Fact]] = {}
    for fact in facts:
        pairs.setdefault(frozenset((fact.head, fact.tail)), []).append(fact)
    edges = []
    for facts_of_pair in sorted(pairs.values(), key=len, reverse=True):
        spans = {
            (fact.valid_from or fact.said_at, fact.valid_until or until.get(place_of(fact), ""))
            for fact in facts_of_pair
        }
        # An undated statement holds at all times, and so does the edge.
        places = () if ("", "") in spans else tuple(sorted(spans))
        edges.append(
            GraphEdge(
                facts_of_pair[0].head,
                facts_of_pair[0].tail,
                facts_of_pair[0].description,
                len(facts_of_pair),
                places,
            )
        )
    return edges


async def merges(session: Session) -> Sequence[Merge]:
    """Return merged names, each pair once."""
    from qrmem.graph.merging import current_merges

    await session.info()
    decisions = await current_merges(session.store, session.ns, similar=await session.similar())
    merge_of = {(m.name, m.into): m for m in reversed(decisions) if m.name != m.into}
    return list(reversed(merge_of.values()))


async def trail(session: Session, trail_id: str | None = None) -> Trail:
    """Return a recorded run, or the last."""
    await session.known()
    trail_stored = next(iter(await session.store.trails(session.ns, 1, id=trail_id)), None)
    if trail_stored is None:
        await session.info()  # raises if the namespace does not exist, and lists those that do
        what = f"no trail {trail_id!r}" if trail_id else "no trail yet"
        raise NotFound(f"{what} in {session.where}")
    return trail_stored


async def trails(session: Session, limit: int = 20) -> Sequence[Trail]:
    """Return recorded runs, newest first."""
    require_count(limit, "limit")
    await session.known()
    return await session.store.trails(session.ns, limit)


async def neo4j_queries(session: Session, name: str = "") -> "Sequence[SavedQuery]":
    """Return queries for Neo4j Browser."""
    from qrmem.graphstore.neo4j import Neo4jStore, browser_queries

    if not isinstance(session.store, Neo4jStore):
        raise UsageError(f"{session.store.location} is not a memory in Neo4j")
    await session.info()
    entity_name = (await entity(session, name, limit=1)).entity.name if name else ""
    return browser_queries(session.ns, name=entity_name)


def low_yields(documents: Iterable[DocumentInfo]) -> tuple[str, ...]:
    """Return warnings about complete documents with far fewer relations than usual."""
    poor = [
        info
        for info in documents
        if info.characters >= LONG_ENOUGH
        and info.facts < FEW * info.characters / 1000
        and CODE_KEY not in info.metadata
        and _is_read(info)
    ]
    lines = [_yield_line(f"document {i.id!r}", [i]) for i in poor[:_SHOWN]]
    if len(poor) > _SHOWN:
        lines.append(_yield_line(f"{len(poor) - _SHOWN} more documents", poor[_SHOWN:]))
    return tuple(lines)


def _is_read(info: DocumentInfo) -> bool:
    is_complete = info.segments > 0 and info.states.keys() <= {"ok", "partial"}
    return is_complete and not is_read_by_rules(info.id, info.metadata)


def _yield_line(what: str, documents: Sequence[DocumentInfo]) -> str:
    relations = sum(info.facts for info in documents)
    segments = sum(info.segments for info in documents)
    thousands = sum(info.characters for info in documents) // 1000
    return (
        f"{what}: only {relations:,} relations in {counted(segments, 'segments')} "
        f"({thousands * 1000:,} characters), where {thousands:,} and more are usual. "
        "If a chat model read it, `qrmem doctor --model` tests the model"
    )


# Segments that were read with other settings: another schema, other prompts, no model.

RULES, SCHEMA, NO_SCHEMA, LOST_SCHEMA, PROMPTS = (
    "without a model",
    "under another schema",
    "without a schema",
    "under a schema, and none is given now",
    "by other prompts",
)


async def read_otherwise(
    store: GraphStore, ns: str, settings: Settings, infos: Sequence[DocumentInfo]
) -> tuple[Mapping[str, int], Sequence[DocumentInfo]]:
    """Count segments that were read with other settings, by the difference; return their documents.

    Without a model there are none: rules would read nothing better. Turns, items of a LangGraph
    store and source code do not count: no model reads them.
    """
    if not settings.model:
        return {}, ()
    from qrmem.prompts import load_prompts
    from qrmem.schema import load_schema

    schema, prompts = load_schema(settings.schema), load_prompts(settings.prompts).checksum
    causes: Counter[str] = Counter()
    affected = []
    for info in infos:
        if CODE_KEY in info.metadata or is_read_by_rules(info.id, info.metadata):
            continue
        rows = await store.ledger(ns, info.id)
        hows = [_how(row.reasoner, prompts, schema.checksum if schema else "") for row in rows]
        causes.update(how for how in hows if how)
        affected += [info] if any(hows) else []
    return dict(causes), affected


def otherwise(found: Mapping[str, int], price: CostEstimate | None) -> str:
    """Return in words how much was read with other settings, and what reading it again costs."""
    parts = ", ".join(f"{count:,} {how}" for how, count in sorted(found.items()))
    return (
        f"{counted(sum(found.values()), 'segments')} read with other settings than the present "
        f"ones ({parts}); {_how_to_read_again(found, price)}"
    )


def _how_to_read_again(found: Mapping[str, int], price: CostEstimate | None) -> str:
    if LOST_SCHEMA in found:
        return (
            "give their schema (--schema FILE, or QRMEM_SCHEMA=FILE for all commands): --rebuild"
            " without it drops their types"
        )
    if price is None:
        return "--rebuild reads them again"
    parts = [counted(price.calls, "calls"), f"{price.tokens:,} tokens"]
    parts += [] if price.cost is None else [f"{price.cost:,.4f} USD"]
    return f"reading them again (--rebuild) takes about {', '.join(parts)}"


def _how(reader: str, prompts: str, schema: str) -> str:
    """Return how a segment was read differently; "" if it was not, or was not read."""
    if reader.startswith("local."):
        return RULES
    kind, _, rest = reader.partition(":")
    if kind != "prompted":
        return ""
    by, _, schema_version = rest.rpartition(":")[2].partition(", schema ")
    if schema_version != schema:
        return NO_SCHEMA if not schema_version else SCHEMA if schema else LOST_SCHEMA
    return PROMPTS if by.rpartition(" ")[2] != prompts else ""
