"""Looking at a memory: figures, one entity, the graph as a file."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path

from qrmem.errors import NotFound, StoreUnavailable
from qrmem.graph.folding import fold
from qrmem.graphstore.protocol import GraphStore, NameRow, NamespaceInfo
from qrmem.llm.account import usage
from qrmem.text.code.languages import CODE_KEY
from qrmem.text.names import normalise_name, split_key
from qrmem.types import DocumentInfo, Entity, EntityView, MemoryStatus, Relation

FEW = 0.25
"""Relations in 1,000 characters that are too few.

The local reasoner was seen to find 0.7 to 5 in prose, GPT-3.5 18 in encyclopedia articles.
"""
LONG_ENOUGH = 5_000
"""Characters from which on a document's relations are counted."""
_SHOWN = 5
_ALL = 2**31 - 1


async def describe(store: GraphStore, info: NamespaceInfo) -> MemoryStatus:
    """Return a namespace in figures, with what is not `ok` and what it cost."""
    ledger = await store.ledger(info.name)
    counts = await store.counts(info.name)
    states: Counter[str] = Counter(row.state for row in ledger)
    merged = set((await store.catalog(info.name)).segment_ids)
    failing = {row.segment_id: row.reason or row.state for row in ledger if row.state != "ok"}
    # Stopped between reading and merging: all are "ok", and yet no search finds them.
    failing |= {
        row.segment_id: "read, but not merged"
        for row in ledger
        if row.state == "ok" and row.segment_id not in merged
    }
    segments = await store.segments(info.name, list(failing))
    documents = await store.documents(info.name)
    problems = tuple((s.document_id, s.index, failing[s.id]) for s in segments)
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
            *low_yields(documents, await store.fact_counts(info.name)),
            *_incomplete(len(problems)),
        ),
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
    key = _find(name, await store.names(ns))
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


def _find(name: str, names: Sequence[NameRow]) -> str:
    """Return the key of the entity called so: by normalised name, most frequent first."""
    wanted = normalise_name(name)
    by_norm: dict[str, NameRow] = {}
    for row in sorted(names, key=lambda row: (-row.count, row.key)):
        by_norm.setdefault(split_key(row.key)[0], row)
        if row.entity == name:
            return row.entity
    if wanted in by_norm:
        return by_norm[wanted].entity
    near = get_close_matches(wanted, by_norm, n=5, cutoff=0.6)
    near += [norm for norm in by_norm if wanted and wanted in norm and norm not in near][:5]
    hint = ", ".join(by_norm[norm].surface for norm in near[:5])
    raise NotFound(f"no entity is called {name!r}" + (f"; near: {hint}" if hint else ""))


def _concerns(question: str, entity: Entity, relations: Sequence[Relation]) -> bool:
    added = set(entity.questions) | {fact.question for r in relations for fact in r.facts}
    text = question.casefold()
    return question in added or any(form.casefold() in text for form, _ in entity.forms)


async def write_graphml(store: GraphStore, ns: str, path: str) -> int:
    """Write entities and folded relations as GraphML; returns how many entities were written."""
    import networkx

    graph: networkx.Graph[str] = networkx.Graph(name=ns)
    listed = await store.list_entities(ns, _ALL)
    for entity in listed:
        graph.add_node(
            entity.key, label=_xml(entity.name), type=_xml(entity.type), segments=entity.segments
        )
    for relation in fold(await store.facts(ns, [entity.key for entity in listed])):
        if relation.head in graph and relation.tail in graph:
            graph.add_edge(
                relation.head,
                relation.tail,
                label=_xml(relation.description),
                weight=len(relation.facts),
                segments=" ".join(relation.segments),
            )
    try:
        networkx.write_graphml(graph, Path(path))
    except OSError as exc:
        raise StoreUnavailable(f"cannot write {path}: {exc.strerror or exc}") from exc
    return len(listed)


def _xml(text: str) -> str:
    """Leave out what no XML file may hold; everything else is escaped by the writer."""
    return "".join(c for c in text if c >= " " and c not in "\ufffe\uffff")
