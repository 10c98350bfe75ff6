"""Parallel facts folded into one relation per pair of entities, without a model."""

from collections.abc import Iterable, Sequence

from qrmem.graph.questions import THRESHOLD, rouge_l
from qrmem.graphstore.protocol import relation_key
from qrmem.text.words import tokens
from qrmem.types import Fact, Relation

LONGEST = 600
"""Characters of a folded description; the facts keep the rest."""

SEPARATOR = "; "
BACKWARD = "← "


def fold(facts: Iterable[Fact]) -> list[Relation]:
    """Return the relations of some facts, by key.

    Args:
        facts: in (document id, segment index, n) order, as a store gives them.

    Returns:
        One relation for each unordered pair of entities; facts of an entity with itself are left
        out. In the description `←` stands before what goes from the relation's tail to its head.
    """
    pairs: dict[str, list[Fact]] = {}
    for fact in facts:
        if fact.head != fact.tail:
            pairs.setdefault(relation_key(fact.head, fact.tail), []).append(fact)
    return [
        Relation(key, found[0].head, found[0].tail, _description(found), tuple(found))
        for key, found in sorted(pairs.items())
    ]


def _description(facts: Sequence[Fact]) -> str:
    """Join the descriptions that say something new, in order, as far as they fit."""
    kept: list[str] = []
    said: dict[str, list[Sequence[str]]] = {}
    room = LONGEST
    for fact in facts:
        words = tokens(fact.description)
        alike = said.setdefault(fact.head, [])
        text = fact.description if fact.head == facts[0].head else BACKWARD + fact.description
        is_new = text not in kept and not any(_are_alike(words, other) for other in alike)
        if is_new and (not kept or len(text) + len(SEPARATOR) <= room):
            kept.append(text)
            alike.append(words)
            room -= len(text) + len(SEPARATOR)
    joined = SEPARATOR.join(kept)
    return joined if len(joined) <= LONGEST else f"{joined[: LONGEST - 1]}…"


def _are_alike(first: Sequence[str], second: Sequence[str]) -> bool:
    return bool(first) and rouge_l(first, second) >= THRESHOLD


def folded_key(document_id: str, digest: str) -> str:
    """Return the key under which is kept that all relations of a document's text are folded."""
    return f"folded:{digest}:{document_id}"
