"""What can be seen of one namespace without changing it or asking it anything."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING

from qrmem.errors import NotFound, UsageError
from qrmem.graph.folding import fold
from qrmem.graph.name_parents import MOST, Judge, NameUse
from qrmem.graphstore.protocol import GraphStore, NameFilter, NameRow
from qrmem.llm.usage import By, usage, usage_by
from qrmem.text.blocks import own_block
from qrmem.text.code.languages import CODE_KEY
from qrmem.text.names import name_key, normalise_name, split_key
from qrmem.types import (
    Document,
    DocumentInfo,
    Entity,
    EntityView,
    MemoryStatus,
    Merge,
    Relation,
    Scalar,
    Segment,
    Trail,
    UsageRow,
)

if TYPE_CHECKING:
    from qrmem.graphstore.neo4j import SavedQuery
    from qrmem.session import Session

FEW = 0.25
"""Relations in 1,000 characters that are too few.

The local reasoner was seen to find 0.7 to 5 in prose, GPT-3.5 18 in encyclopedia articles.
"""
LONG_ENOUGH = 5_000
"""Characters from which on a document's relations are counted."""
_SHOWN = 5
_UNMERGED = "read, but not merged"


async def status(session: "Session") -> MemoryStatus:
    """Return the namespace in figures, with what is not `ok` and what it cost."""
    store, info = session.store, await session.info()
    ledger = await store.ledger(info.name)
    counts = await store.counts(info.name)
    states: Counter[str] = Counter(row.state for row in ledger)
    merged = set(await store.indexed(info.name))
    failing = {row.segment_id: row.reason or row.state for row in ledger if row.state != "ok"}
    # Stopped between reading and merging: all are "ok", and yet no search finds them.
    failing |= {
        row.segment_id: _UNMERGED
        for row in ledger
        if row.state == "ok" and row.segment_id not in merged
    }
    segments = await store.segments(info.name, list(failing))
    documents = await store.documents(info.name)
    problems = tuple((s.document_id, s.index, failing[s.id]) for s in segments)
    # What is not merged yet has no relations, whatever the replies were.
    waiting = {s.document_id for s in segments if failing[s.id] == _UNMERGED}
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
        usage=usage(await store.calls(info.name)),
        warnings=(
            *low_yields(
                [document for document in documents if document.id not in waiting],
                await store.fact_counts(info.name),
            ),
            *_incomplete(len(problems)),
        ),
        readers=tuple(sorted({row.reasoner for row in ledger if row.reasoner})),
    )


async def usage_rows(session: "Session", by: By) -> Sequence[UsageRow]:
    """Return what all runs used together; see `Memory.usage`."""
    info = await session.info()
    return usage_by(await session.store.calls(info.name), by)


async def documents(
    session: "Session", where: Mapping[str, Scalar] | None
) -> Sequence[DocumentInfo]:
    """Return all documents by id, without their texts."""
    await session.known()
    found = await session.store.documents(session.ns)
    return [info for info in found if has_metadata(info, where)]


async def document(session: "Session", document_id: str) -> Document:
    """Return a document with its text; see `Memory.document`."""
    await session.known()
    found = await session.store.document(session.ns, document_id)
    if found is None:
        raise NotFound(f"no document {document_id!r} in {session.where}")
    return found


async def segments(session: "Session", document: str, ids: Sequence[str]) -> Sequence[Segment]:
    """Return the segments of a document in order, or segments by id; see `Memory.segments`."""
    await session.known()
    if not document:
        return await session.store.segments(session.ns, ids)
    await session.require_documents([document])
    return await session.store.segments_of(session.ns, document)


async def entity(session: "Session", name: str) -> EntityView:
    """Return an entity by any of its names; see `Memory.entity`."""
    await session.info()
    return await view_entity(session.store, session.ns, name)


async def merges(session: "Session") -> Sequence[Merge]:
    """Return which names count as one entity, and why."""
    from qrmem.graph.merging import current_merges

    await session.info()
    return await current_merges(session.store, session.ns, similar=await session.similar())


async def trail(session: "Session", trail_id: str | None) -> Trail:
    """Return a recorded run, or the last; see `Memory.trail`."""
    await session.known()
    found = next(iter(await session.store.trails(session.ns, 1, id=trail_id)), None)
    if found is None:
        what = f"no trail {trail_id!r}" if trail_id else "no trail yet"
        raise NotFound(f"{what} in {session.where}")
    return found


async def neo4j_queries(session: "Session", name: str) -> "Sequence[SavedQuery]":
    """Return ready queries for Neo4j Browser; see `Memory.neo4j_queries`."""
    from qrmem.graphstore.neo4j import Neo4jStore, browser_queries

    if not isinstance(session.store, Neo4jStore):
        raise UsageError(f"{session.store.location} is no memory in Neo4j")
    await session.info()
    return browser_queries(session.ns, name=name)


def has_metadata(info: DocumentInfo, where: Mapping[str, Scalar] | None) -> bool:
    """Whether a document's metadata has all the values of `where`."""
    # A value typed on a command line is a number by its looks alone, so both compare as text.
    return all(
        key in info.metadata and str(info.metadata[key]) == str(value)
        for key, value in (where or {}).items()
    )


def low_yields(documents: Iterable[DocumentInfo], facts: Mapping[str, int]) -> tuple[str, ...]:
    """Say which documents were read whole, and yet gave far fewer relations than is usual.

    Args:
        facts: relations stated by each document, by its id.
    """
    read = [info for info in documents if CODE_KEY not in info.metadata and _is_read(info)]
    poor = [
        info
        for info in read
        if info.characters >= LONG_ENOUGH and facts.get(info.id, 0) < FEW * info.characters / 1000
    ]
    lines = [_yield_line(f"document {i.id!r}", [i], facts) for i in poor[:_SHOWN]]
    if len(poor) > _SHOWN:
        lines.append(_yield_line(f"{len(poor) - _SHOWN} more documents", poor[_SHOWN:], facts))
    return tuple(lines)


def _is_read(info: DocumentInfo) -> bool:
    return info.segments > 0 and info.states.keys() <= {"ok", "partial"}


def _yield_line(what: str, documents: Sequence[DocumentInfo], facts: Mapping[str, int]) -> str:
    relations = sum(facts.get(info.id, 0) for info in documents)
    segments = sum(info.segments for info in documents)
    thousands = sum(info.characters for info in documents) // 1000
    return (
        f"{what}: only {relations} relations in {segments} segments ({thousands},000 characters), "
        f"where {round(thousands)} and more are usual; are the replies of use? "
        "See `qrmem doctor --model`"
    )


def _incomplete(problems: int) -> tuple[str, ...]:
    if not problems:
        return ()
    return (f"{problems} segments are not complete: run the same `add` again",)


async def view_entity(store: GraphStore, ns: str, name: str) -> EntityView:
    """Return the entity of that name with what hangs on it; see `Memory.entity`."""
    key = await _called(store, ns, name) or await _meant(store, ns, name)
    if not key:
        raise _unknown(name, await store.names(ns))
    (entity,) = await store.entities(ns, [key])
    relations = sorted(fold(await store.facts(ns, [key])), key=lambda r: (-len(r.facts), r.key))
    ends = sorted({end for r in relations for end in (r.head, r.tail)} - {key})
    neighbours = {other.key: other.name for other in await store.entities(ns, ends)}
    questions = await store.questions(ns, entity.segments)
    return EntityView(
        entity=entity,
        relations=tuple(relations),
        neighbours=neighbours,
        questions=tuple(q for q in questions if _concerns(q.text, entity, relations)),
        segments=tuple(await store.segments(ns, entity.segments)),
    )


async def _called(store: GraphStore, ns: str, name: str) -> str:
    """Return the entity with that key or name, of several the most frequent one; else ""."""
    norm = normalise_name(name)
    rows = await store.names(ns, NameFilter(norms=[norm], entities=[name]))
    ranked = sorted(rows, key=lambda row: (row.entity != name, -row.count, row.key))
    return ranked[0].entity if ranked else ""


async def _meant(store: GraphStore, ns: str, name: str) -> str:
    """Return the key of the entity that a name which no text uses would stand for, or ""."""
    norm = normalise_name(name)
    if not norm or "|" in name:
        return ""
    key = name_key(norm, "PERSON")
    block = await store.names(ns, NameFilter(blocks={own_block(key): MOST + 1}))
    uses = {row.key: NameUse.of(row) for row in block} | {key: NameUse(key, name, 1)}
    is_crowded = len(block) > MOST
    parent = Judge(uses).parent(key, None if is_crowded else [row.key for row in block], ())
    return next((row.entity for row in block if row.key == parent), "")


def _unknown(name: str, names: Sequence[NameRow]) -> NotFound:
    """Return the error for a name that no entity has, with those that look like it."""
    wanted = normalise_name(name)
    by_norm: dict[str, NameRow] = {}
    for row in sorted(names, key=lambda row: (-row.count, row.key)):
        by_norm.setdefault(split_key(row.key)[0], row)
    near = get_close_matches(wanted, by_norm, n=5, cutoff=0.6)
    near += [norm for norm in by_norm if wanted and wanted in norm and norm not in near][:5]
    hint = ", ".join(by_norm[norm].surface for norm in near[:5])
    return NotFound(f"no entity is called {name!r}" + (f"; near: {hint}" if hint else ""))


def _concerns(question: str, entity: Entity, relations: Sequence[Relation]) -> bool:
    added = set(entity.questions) | {fact.question for r in relations for fact in r.facts}
    text = question.casefold()
    return question in added or any(form.casefold() in text for form, _ in entity.forms)
