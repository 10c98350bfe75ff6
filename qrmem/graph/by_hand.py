"""The user's edits of statements, and what they say about passages."""

from collections import defaultdict
from collections.abc import Collection

from qrmem.graphstore.protocol import GraphStore
from qrmem.text.dates import end_of, start_of
from qrmem.text.names import normalise_name
from qrmem.types import Contribution, Statement


async def all_edits(store: GraphStore, ns: str) -> list[Contribution]:
    """Return the user's edits; one of an archive that identifies no statement is left out."""
    return [edit.made for edit in await store.edits(ns) if len(edit.made.asked) == 3]


async def ended_by_hand(
    store: GraphStore, ns: str, segment_ids: Collection[str], now: str
) -> dict[str, tuple[str, ...]]:
    """Return, in words, the statements of some segments that the user ended or deleted.

    Args:
        store: the store.
        ns: the namespace.
        segment_ids: the segments.
        now: date or moment of the view, in ISO form.
    """
    ids = set(segment_ids)
    edits = [made for made in await all_edits(store, ns) if made.segment_id in ids]
    named = (await store.mentions(ns, [m.segment_id for m in edits])).named if edits else {}
    ended: dict[str, list[str]] = defaultdict(list)
    shown = set()
    for made in edits:
        head, tail, description = made.asked
        said = made.statements[-1] if made.statements else Statement(head, tail, description)
        is_over = said.valid_until and end_of(said.valid_until) < start_of(now)
        key = made.segment_id, head, tail, normalise_name(said.description)
        if (made.statements and not is_over) or key in shown:
            continue
        shown.add(key)
        forms = {normalise_name(form): form for form, _ in named.get(made.segment_id, ())}
        words = said.description
        if not (head in key[-1] and tail in key[-1]):
            words = f"{forms.get(head, head)} {words} {forms.get(tail, tail)}"
        how = f"until {said.valid_until}" if made.statements else "deleted by hand"
        ended[made.segment_id].append(f"{words} ({how})")
    return {id: tuple(words) for id, words in ended.items()}
