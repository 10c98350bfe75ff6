"""What one step of a search asks for, in one read."""

import sqlite3
from collections.abc import Sequence

from qrmem.graphstore.protocol import Around
from qrmem.graphstore.sqlite import documents, view
from qrmem.graphstore.sqlite.lookup import entity_numbers, namespace_number, pick


def around(db: sqlite3.Connection, ns: str, keys: Sequence[str], texts: bool) -> Around:
    """Return some entities' facts, names and segments."""
    facts = view.facts(db, ns, keys)
    places = view.segments_with(db, ns, keys)
    ends = {end for fact in facts for end in (fact.head, fact.tail)}
    pick(db, entity_numbers(db, namespace_number(db, ns), ends | places.keys()).values())
    names = dict(db.execute("SELECT key, name FROM picked CROSS JOIN entity USING (num)"))
    if not texts:
        return Around(names, facts, places)
    found = documents.segments(db, ns, sorted({id_ for ids in places.values() for id_ in ids}))
    found.sort(key=lambda segment: (segment.document_id, segment.index))
    return Around(names, facts, places, found)
