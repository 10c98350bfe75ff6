"""Records of runs: trails, calls, cached replies.

`qrmem_body` holds the whole trail; its steps are nodes beside it, for people.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from qrmem.graphstore.codec import dumps, loads
from qrmem.graphstore.neo4j.connection import Properties, Work
from qrmem.graphstore.neo4j.keys import full, in_order, joined, short
from qrmem.graphstore.protocol import CacheEntry, CacheKind
from qrmem.graphstore.redaction import Removal, about, blanked
from qrmem.types import CallRecord, Step, Trail

_FIELD = 4_000
"""Maximum length in characters of the text on a step's or trail's node; `qrmem_body` has all."""

_PORTION = 256
"""Number of trails that are read at once."""

TREE = "tree:"
"""Prefixes of the keys of trees and of their nodes (`qrmem.retrieval.trees.nodes`)."""


async def put_trail(work: Work, trail: Trail) -> None:
    """Write a trail; one of the same id is replaced, in its place."""
    await work.lock()
    await _write(work, trail, await _arrivals(work, 1))


async def _write(work: Work, trail: Trail, arrival: int | None) -> None:
    key = short(trail.id)
    properties = {
        "full": full(trail.id),
        "question": trail.question[:_FIELD],
        "strategy": trail.strategy,
        "status": trail.status,
        "answer": trail.answer[:_FIELD],
        "created": trail.created,
        "qrmem_body": dumps(trail),
    }
    await work.run("runs.put_trail", key=key, properties=properties, arrival=arrival)
    await work.run("runs.drop_steps", key=key)
    await _draw(work, trail, key)


async def _draw(work: Work, trail: Trail, key: str) -> None:
    steps = {joined(trail.id, str(step.n), str(at)): step for at, step in enumerate(trail.steps)}
    await work.each("runs.put_steps", (_step_row(*item) for item in steps.items()), key=key)
    await work.run("runs.chain_steps", key=key)
    await work.each("runs.put_read", _segments(steps, "read"))
    await work.each("runs.put_dropped", _segments(steps, "dropped"))
    words = {short(word) for step in trail.steps for e in step.edges for word in (e.head, e.tail)}
    entities = dict(await work.each("runs.entity_keys", sorted(words)))
    await work.each("runs.put_expanded", _expanded(steps, entities))


def _step_row(key: str, step: Step) -> Properties:
    return {
        "key": key,
        "n": step.n,
        "action": step.action,
        "entities": list(step.entities),
        "verdict": step.verdict,
        "reason": step.reason[:_FIELD],
        "tokens": step.tokens,
    }


def _segments(steps: Mapping[str, Step], field: str) -> Iterator[Properties]:
    for key, step in steps.items():
        for n, scored in enumerate(getattr(step, field), 1):
            properties = {"score": float(scored.score), "tokens": scored.tokens, "n": n}
            yield {"step": key, "segment": short(scored.segment_id), "properties": properties}


def _expanded(steps: Mapping[str, Step], entities: Mapping[str, str]) -> Iterator[Properties]:
    for key, step in steps.items():
        for n, edge in enumerate(step.edges, 1):
            properties = {
                "score": float(edge.score),
                "description": edge.description[:_FIELD],
                "taken": edge.taken,
                "n": n,
            }
            for end in dict.fromkeys((short(edge.head), short(edge.tail))):
                if end in entities:
                    yield {"step": key, "entity": entities[end], "properties": properties}


async def trails(
    work: Work,
    limit: int = 20,
    *,
    id: str | None = None,
    skip: int = 0,
    oldest_first: bool = False,
) -> list[Trail]:
    """Return trails in order of time, or the one of an id."""
    if id is None:
        statement = "runs.trails_oldest_first" if oldest_first else "runs.trails"
        rows = await work.rows(statement, limit=max(limit, 0), skip=skip)
    else:
        rows = (await work.rows("runs.trail", key=short(id)))[skip:][: max(limit, 0)]
    return [loads(body, Trail) for (body,) in rows]


async def has_trails(work: Work) -> bool:
    """Return whether any run was recorded."""
    return bool(await work.rows("runs.has_trails"))


async def blank_trails(work: Work, removal: Removal) -> None:
    """Blank the words of removed segments in all trails, which are read in portions."""
    last = ""
    while rows := await work.rows("runs.trails_after", key=last, limit=_PORTION):
        for _, trail in about(map(tuple, rows), removal):
            after = blanked(trail, removal)
            if after is not trail:
                await _write(work, after, None)
        last = rows[-1][0]


async def add_calls(work: Work, calls: Sequence[CallRecord]) -> None:
    """Append calls in a transaction that holds the lock."""
    if calls:
        last = await _arrivals(work, len(calls))
        numbered = enumerate(calls, last - len(calls) + 1)
        rows = ({"key": f"{n:015d}", "stage": c.stage, "body": dumps(c)} for n, c in numbered)
        await work.each("runs.put_calls", rows)


async def _arrivals(work: Work, count: int) -> int:
    """Return the last of `count` numbers that rise with time."""
    row = await work.row("namespaces.take_arrivals", count=count)
    return int(row[0]) if row else 0


async def calls(work: Work) -> list[CallRecord]:
    """Return all calls, in the order of writing."""
    return [loads(body, CallRecord) for (body,) in await work.rows("runs.calls")]


async def put_cache_entry(
    work: Work,
    kind: CacheKind,
    key: str,
    value: Mapping[str, Any],
    *,
    segments: Sequence[str] = (),
    calls: Sequence[CallRecord] = (),
) -> None:
    """Cache a value until one of the segments is deleted, and append the calls that made it."""
    await work.lock()
    ties, node = sorted(set(segments)), _cache_key(kind, key)
    properties = {"qrmem_key": key, "qrmem_value": dumps(value), "qrmem_segments": ties}
    await work.run("runs.put_cache_entry", key=node, properties=properties)
    if ties:
        await work.each("runs.tie_cached", sorted(map(short, ties)), key=node)
    else:
        await work.run("runs.tie_to_all", key=node)
    if kind == "tree" and "summary" in value:
        await _draw_node(work, node, value)
    await add_calls(work, calls)


def _cache_key(kind: CacheKind, key: str) -> str:
    return short(f"{kind}:{key}")


async def _draw_node(work: Work, node: str, value: Mapping[str, Any]) -> None:
    """Write a node of a summary tree with links to what it covers, for people."""
    node_properties = {
        "level": value["level"],
        "summary": value["summary"],
        "surprise": "\n".join(value["surprises"]),
    }
    await work.run("runs.draw_node", key=node, shown=node_properties)
    is_over_nodes = any(below.startswith(TREE) for below in value["covers"])
    covers = [_cache_key("tree", id_) if is_over_nodes else short(id_) for id_ in value["covers"]]
    name = "runs.cover_nodes" if is_over_nodes else "runs.cover_segments"
    await work.each(name, covers, key=node)


async def cache_keys(work: Work, kind: CacheKind) -> list[str]:
    """Return the keys of the cached values of a kind, sorted."""
    (row,) = await work.rows("runs.cache_keys", start=f"{kind}:")
    return sorted(row[0])


async def cache_entries(work: Work, kind: CacheKind, keys: Sequence[str]) -> list[CacheEntry]:
    """Return the values that are cached under some keys, in their order."""
    rows = await work.each("runs.cache_entries", sorted({_cache_key(kind, key) for key in keys}))
    entries = {
        key: CacheEntry(key, json.loads(value), tuple(segments)) for key, value, segments in rows
    }
    return in_order(keys, entries)


async def drop_cache_entries(work: Work, kind: CacheKind, keys: Sequence[str]) -> None:
    """Delete the values that are cached under some keys."""
    await work.each("runs.drop_cache_entries", sorted({_cache_key(kind, key) for key in keys}))


async def drop_cached_about(work: Work, segments: Collection[str]) -> None:
    """Delete cached values that depend on one of the segments, or on no segment.

    Args:
        segments: short keys of the segments.
    """
    await work.each("runs.drop_cached_about", segments)
    await work.run("runs.drop_untied")
