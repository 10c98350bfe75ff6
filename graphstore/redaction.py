"""Blank the words of deleted segments in trails; ids, scores and counts are kept."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

from qrmem.graphstore.codec import dumps, loads
from qrmem.types import Citation, ScoredEdge, ScoredSegment, Step, Trail

REMOVED = "[removed]"
"""Replacement for the words of a deleted document in a trail."""


_Key = TypeVar("_Key")


@dataclass(frozen=True, slots=True)
class Removal:
    """Deleted segments, and the data that is deleted with them.

    Attributes:
        segments: ids of the segments.
        relations: keys of the relations that had a fact in them.
        entities: keys and names of the entities that occurred only in them.
    """

    segments: Collection[str]
    relations: Collection[str] = ()
    entities: Collection[str] = ()


def about(bodies: Iterable[tuple[_Key, str]], removal: Removal) -> Iterator[tuple[_Key, Trail]]:
    """Yield the trails, stored as JSON, that may name something removed.

    A memory keeps thousands of trails, and few of them name a deleted passage. To look for its
    words between the quotation marks of their texts is far faster than to read them.
    """
    words = {*removal.segments, *removal.relations, *removal.entities}
    # A word that has a quotation mark is found by its longest part.
    parts = {max(dumps(word).split('"'), key=len) for word in words}
    for key, body in bodies:
        if not parts.isdisjoint(body.split('"')):
            yield key, loads(body, Trail)


def blanked(trail: Trail, removal: Removal) -> Trail:
    """Return the trail without words of the removed segments; the same object if it has none.

    The answer is blanked if it cites a removed segment, or if it cites nothing and a removed
    segment was read. The model's words are blanked from the first step that read one.
    """
    citations = tuple(_citation(citation, removal) for citation in trail.citations)
    steps, was_read = [], False
    for step in trail.steps:
        was_read = was_read or not _read_by(step).isdisjoint(removal.segments)
        steps.append(_step(step, removal, was_read))
    is_about = citations != trail.citations or (was_read and not citations)
    result = replace(
        trail,
        answer=REMOVED if is_about and trail.answer else trail.answer,
        citations=citations,
        steps=tuple(steps),
    )
    return trail if result == trail else result


def emptied(trail: Trail) -> Trail:
    """Return a trail without words: question, answer, choices, steps and user are removed."""
    answer, choices = REMOVED if trail.answer else "", tuple(REMOVED for _ in trail.choices)
    return replace(
        trail, question=REMOVED, answer=answer, choices=choices, steps=(), citations=(), user=""
    )


def seen(trail: Trail) -> set[str]:
    """Return the ids of the segments that a run cited or read."""
    return {one.segment_id for one in trail.citations}.union(*map(_read_by, trail.steps))


def _citation(citation: Citation, removal: Removal) -> Citation:
    if citation.segment_id not in removal.segments:
        return citation
    return replace(citation, document_id=REMOVED, quote=REMOVED, title="", part="")


def _step(step: Step, removal: Removal, was_read: bool) -> Step:
    return replace(
        step,
        entities=tuple(_name(name, removal) for name in step.entities),
        edges=tuple(_edge(edge, removal) for edge in step.edges),
        read=tuple(_segment(scored, removal) for scored in step.read),
        dropped=tuple(_segment(scored, removal) for scored in step.dropped),
        reason=REMOVED if was_read and step.reason else step.reason,
        query=REMOVED if was_read and step.query else step.query,
        memory=REMOVED if was_read and step.memory else step.memory,
    )


def _read_by(step: Step) -> set[str]:
    """Return the ids of the segments that a step read."""
    return {s.segment_id for s in step.read} | {id for node in step.nodes for id in node.segments}


def _edge(edge: ScoredEdge, removal: Removal) -> ScoredEdge:
    is_touched = edge.relation in removal.relations
    head, tail = _name(edge.head, removal), _name(edge.tail, removal)
    has_lost_end = (head, tail) != (edge.head, edge.tail)
    return replace(
        edge,
        relation=REMOVED if has_lost_end else edge.relation,
        head=head,
        tail=tail,
        description=REMOVED if is_touched or has_lost_end else edge.description,
    )


def _segment(found: ScoredSegment, removal: Removal) -> ScoredSegment:
    """Blank a segment's `via` if it, or a segment on the way to it, is removed."""
    is_told = removal.segments and not {found.segment_id, *found.over}.isdisjoint(removal.segments)
    return replace(found, via=REMOVED) if found.via and is_told else found


def _name(name: str, removal: Removal) -> str:
    return REMOVED if name in removal.entities else name


__all__ = ["REMOVED", "Removal", "about", "blanked"]
