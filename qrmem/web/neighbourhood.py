"""What is near an entity, a part at a time: a common name may have thousands of relations."""

from typing import Any

from qrmem.types import EntityView, Relation

LONGEST = 600
"""Characters of a relation's description; one of two common names may have thousands."""


def neighbourhood(view: EntityView, offset: int, limit: int) -> dict[str, Any]:
    """Return a part of an entity's view in few bytes, and how much there is in all.

    Args:
        offset: how many names are passed over; relations and segments are a part already.
    """
    entity = view.entity
    return {
        "key": entity.key,
        "name": entity.name,
        "type": entity.type,
        "forms": entity.forms[offset : offset + limit],
        "relations": [_row(relation) for relation in view.relations],
        "neighbours": view.neighbours,
        "questions": view.questions,
        "segments": view.segments,
        "totals": {
            "forms": len(entity.forms),
            "relations": view.relation_count,
            "segments": len(entity.segments),
        },
    }


def _row(relation: Relation) -> dict[str, Any]:
    told = relation.description
    return {
        "key": relation.key,
        "head": relation.head,
        "tail": relation.tail,
        "description": told if len(told) <= LONGEST else f"{told[:LONGEST]}…",
        "statements": len(relation.facts),
    }
