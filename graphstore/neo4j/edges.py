"""The edges between entities: one for each pair, direction and type, made from its statements.

They are written in the transaction that changes the statements, so that no reader sees an
outdated edge.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from qrmem.graphstore.neo4j import runs
from qrmem.graphstore.neo4j.connection import Properties, Work
from qrmem.graphstore.neo4j.database_schema import relationship_type
from qrmem.graphstore.neo4j.keys import short
from qrmem.graphstore.protocol import CacheKind
from qrmem.graphstore.relations import chains, properties_of, relations_of, times_of
from qrmem.types import CallRecord, Fact, Relation

Pair = tuple[str, str]
"""Short keys of two entities: head and tail."""


async def draw(work: Work, pairs: Collection[Pair]) -> None:
    """Rewrite the edges of some pairs from their present statements.

    A statement and the one that replaces it have the same head. If statements may be replaced,
    the other edges from the same heads are rewritten, too.
    """
    pairs_wanted = {pair for pair in pairs if pair[0] and pair[1] and pair[0] != pair[1]}
    if not pairs_wanted:
        return
    rules = await _rules(work)
    if rules.single or rules.is_judged:
        heads = sorted({head for head, _ in pairs_wanted})
        types = None if rules.is_judged else rules.single
        beside = await work.each("view_writes.pairs_beside", heads, types=types)
        pairs_wanted |= {(head, tail) for head, tail in beside if head != tail}
    await work.together([("view_writes.put_relations", await _edges(work, pairs_wanted, rules))])


async def set_single(work: Work, single: Collection[str]) -> None:
    """Record the types of which an entity has one at a time; draw their edges again."""
    await work.lock()
    changed = {*(await _rules(work)).single} ^ {*single}
    await work.run("namespaces.set_single", single=sorted(single))
    pairs = await work.each("view_writes.pairs_of_type", sorted(changed))
    await draw(work, {(head, tail) for head, tail in pairs})


async def misdrawn(work: Work) -> int:
    """Return the number of edges that are missing or differ from their statements."""
    ((edges_drawn, edges_stated),) = await work.rows("view_writes.drawn")
    edges_counted = Counter(
        _comparable(head, tail, type_, dict(properties))
        for head, tail, type_, properties in edges_drawn
    )
    pairs = {(head, tail) for head, tail, *_ in (*edges_drawn, *edges_stated)}
    expected = Counter(
        _comparable(row["head"], edge["tail"], edge["label"], edge["properties"])
        for row in await _edges(work, pairs, await _rules(work))
        for edge in row["relations"]
    )
    return max((expected - edges_counted).total(), (edges_counted - expected).total())


def _comparable(head: str, tail: str, label: str, properties: Properties) -> str:
    properties_given = sorted(
        (name, value) for name, value in properties.items() if value is not None
    )
    return repr((head, tail, label, properties_given))


class _Rules(NamedTuple):
    """By which a namespace's statements replace each other: single types, and judgements."""

    single: Sequence[str]
    is_judged: bool


async def _rules(work: Work) -> _Rules:
    row = await work.row("namespaces.replacing") if work.superseding else None
    return _Rules(*row) if row else _Rules((), is_judged=False)


async def _edges(work: Work, wanted: Collection[Pair], rules: _Rules) -> list[Properties]:
    """Return the edges of some pairs in the form to write, by head."""
    superseding = work.superseding
    facts, document_of = await _facts_of_pairs(work, sorted(wanted))
    chains_found = chains(facts, document_of)
    folds = await _cached_values(work, "fold", (chain.key for chain in chains_found))
    verdicts = (
        await _cached_values(work, "judgement", superseding.asked(facts))
        if superseding and rules.is_judged
        else {}
    )
    since = superseding.since(facts, rules.single, verdicts) if superseding else {}
    rows: dict[str, Properties] = {}
    for head, tail in sorted(wanted):
        row = rows.setdefault(head, {"head": head, "tails": [], "relations": []})
        row["tails"].append(tail)
    for relation in relations_of(chains_found, folds):
        rows[short(relation.head)]["relations"].append(_edge(relation, since))
    return list(rows.values())


async def _facts_of_pairs(work: Work, pairs: Sequence[Pair]) -> tuple[list[Fact], dict[str, str]]:
    """Return the statements about some pairs, by pair, and the document of each segment."""
    facts_by_pair: dict[Pair, list[tuple[str, int, int, Fact]]] = defaultdict(list)
    document_of: dict[str, str] = {}
    for row in await work.gathered("view_writes.statements", [list(pair) for pair in pairs]):
        head, tail, document, index, n, *words, type_, own = row
        properties = tuple((name, value) for name, value in own)
        fact = replace(Fact(*words), type=type_, properties=properties)
        facts_by_pair[head, tail].append((document, index, n, fact))
        document_of[fact.segment_id] = document
    facts = [
        fact
        for pair in pairs
        for *_, fact in sorted(facts_by_pair[pair], key=lambda place: place[:3])
    ]
    return facts, document_of


async def _cached_values(
    work: Work, kind: CacheKind, keys: Iterable[str]
) -> dict[str, Mapping[str, Any]]:
    entries = await runs.cache_entries(work, kind, sorted({*keys} - {""}))
    return {entry.key: entry.value for entry in entries}


async def put_cache_entry(
    work: Work,
    kind: CacheKind,
    key: str,
    value: Mapping[str, Any],
    *,
    segments: Sequence[str] = (),
    calls: Sequence[CallRecord] = (),
) -> None:
    """Cache a value; a description that a chat model merged is also written to its edge."""
    await runs.put_cache_entry(work, kind, key, value, segments=segments, calls=calls)
    if kind == "judgement" or (kind == "fold" and "description" in value):
        await _draw_stated(work, segments)


async def drop_cache_entries(work: Work, kind: CacheKind, keys: Sequence[str]) -> None:
    """Delete the values that are cached under some keys."""
    dropped = await runs.cache_entries(work, kind, keys) if kind in ("fold", "judgement") else []
    await runs.drop_cache_entries(work, kind, keys)
    await _draw_stated(work, (segment for entry in dropped for segment in entry.segments))


async def _draw_stated(work: Work, segments: Iterable[str]) -> None:
    rows = await work.gathered("view_writes.stated", sorted(set(map(short, segments))))
    await draw(work, {(short(head), short(tail)) for _, _, head, tail in rows})


def _edge(relation: Relation, since: Mapping[tuple[str, int], str]) -> Properties:
    """Return an edge in a form for people.

    Args:
        since: date from which a statement, given by segment and number, is replaced.
    """
    return {
        "tail": short(relation.tail),
        "label": relationship_type(relation.type),
        "properties": properties_of(relation)
        | {
            "description": relation.description,
            "questions": list(relation.questions) or None,
            "statements": len(relation.facts),
            "type": relation.type or None,
            **{name: when or None for name, when in times_of(relation, since).items()},
        },
    }


def own_properties(properties: Sequence[tuple[str, object]]) -> Properties:
    """Return properties of a schema's type as the database stores them, and their names."""
    return dict(properties) | {"qrmem_own": [name for name, _ in properties]} if properties else {}
