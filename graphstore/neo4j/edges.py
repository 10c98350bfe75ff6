"""The edges between entities: one for each pair, direction and type, made of its statements.

They are written in the transaction that changes the statements, so that nobody sees an edge that
says what no text says any more.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from qrmem.graphstore.neo4j import runs
from qrmem.graphstore.neo4j.connection import Properties, Work
from qrmem.graphstore.neo4j.keys import short
from qrmem.graphstore.neo4j.schema import relationship_type
from qrmem.graphstore.protocol import CacheKind
from qrmem.graphstore.relations import chains, relations_of
from qrmem.text.dates import end_of, start_of
from qrmem.types import CallRecord, Fact, Relation

Pair = tuple[str, str]
"""Short keys of two entities: head and tail."""


async def draw(work: Work, pairs: Collection[Pair]) -> None:
    """Write the edges of some pairs anew, from what is stated of them now."""
    wanted = sorted({pair for pair in pairs if pair[0] and pair[1] and pair[0] != pair[1]})
    if not wanted:
        return
    stated: dict[Pair, list[tuple[str, int, int, Fact]]] = defaultdict(list)
    document_of: dict[str, str] = {}
    for row in await work.gathered("changes.statements", [list(pair) for pair in wanted]):
        head, tail, document, index, n, *said, type_, own = row
        properties = tuple((name, value) for name, value in own)
        fact = replace(Fact(*said), type=type_, properties=properties)
        stated[head, tail].append((document, index, n, fact))
        document_of[fact.segment_id] = document
    facts = [
        fact for pair in wanted for *_, fact in sorted(stated[pair], key=lambda place: place[:3])
    ]
    found = chains(facts, document_of)
    keys = sorted({chain.key for chain in found} - {""})
    kept = {entry.key: entry.value for entry in await runs.cached(work, "fold", keys)}
    rows: dict[str, Properties] = {}
    for head, tail in wanted:
        row = rows.setdefault(head, {"head": head, "tails": [], "relations": []})
        row["tails"].append(tail)
    for relation in relations_of(found, kept):
        rows[short(relation.head)]["relations"].append(_edge(relation))
    await work.together([("changes.put_relations", list(rows.values()))])


async def put_cached(
    work: Work,
    kind: CacheKind,
    key: str,
    value: Mapping[str, Any],
    *,
    segments: Sequence[str] = (),
    calls: Sequence[CallRecord] = (),
) -> None:
    """Keep a value; what a chat model merged statements into is what their edge says."""
    await runs.put_cached(work, kind, key, value, segments=segments, calls=calls)
    if kind == "fold" and "description" in value:
        await _draw_stated(work, segments)


async def drop_cached(work: Work, kind: CacheKind, keys: Sequence[str]) -> None:
    """Forget what is cached under some keys."""
    dropped = await runs.cached(work, kind, keys) if kind == "fold" else []
    await runs.drop_cached(work, kind, keys)
    await _draw_stated(work, (segment for entry in dropped for segment in entry.segments))


async def _draw_stated(work: Work, segments: Iterable[str]) -> None:
    rows = await work.gathered("changes.stated", sorted(set(map(short, segments))))
    await draw(work, {(short(head), short(tail)) for _, _, head, tail in rows})


def _edge(relation: Relation) -> Properties:
    """Return an edge as a person reads it."""
    starts = [fact.valid_from for fact in relation.facts if fact.valid_from]
    ends = [fact.valid_until for fact in relation.facts]
    own = {name: value for fact in relation.facts for name, value in fact.properties}
    return {
        "tail": short(relation.tail),
        "label": relationship_type(relation.type),
        "properties": own
        | {
            "description": relation.description,
            "questions": list(relation.questions) or None,
            "statements": len(relation.facts),
            "type": relation.type or None,
            "said_at": max(fact.said_at for fact in relation.facts) or None,
            "valid_from": min(starts, key=start_of) if starts else None,
            # It holds as long as one of its statements does.
            "valid_until": max(ends, key=end_of) if all(ends) else None,
        },
    }


def own_properties(properties: Sequence[tuple[str, object]]) -> Properties:
    """Return properties of a schema's type as a database has them, and which these are."""
    return dict(properties) | {"own": [name for name, _ in properties]} if properties else {}
