"""Parallel facts folded into one relation per pair of entities (Q12), without a model."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from qrmem.graph.questions import THRESHOLD, rouge_l
from qrmem.graphstore.protocol import relation_key
from qrmem.text.words import tokens
from qrmem.types import Fact, Relation, Segment

LONGEST = 600
"""Characters of a folded description; the facts keep the rest."""

SEPARATOR = "; "
BACKWARD = "← "

DISTANT = 3
"""Segments of one document so far apart may contradict each other without saying so."""


_WEIGHED = 200
"""Facts of one relation that are compared with each other, all pairs."""


@dataclass(frozen=True, slots=True)
class Parallel:
    """Two facts of one pair of entities, from places far apart, that do not say the same.

    Whether they contradict each other is for a reader to judge.
    """

    first: Fact
    second: Fact


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


def contradictions(relation: Relation, segments: Iterable[Segment]) -> list[Parallel]:
    """Return pairs of facts that may contradict each other.

    Args:
        segments: those that state the relation.

    Returns:
        Facts of two documents, or of segments at least `DISTANT` apart, whose descriptions are not
        alike, in order; of very many facts the first are compared.
    """
    places = {segment.id: (segment.document_id, segment.index) for segment in segments}
    known = [fact for fact in relation.facts if fact.segment_id in places][:_WEIGHED]
    return [
        Parallel(first, second)
        for n, first in enumerate(known)
        for second in known[n + 1 :]
        if _are_distant(places[first.segment_id], places[second.segment_id])
        and not _are_alike(tokens(first.description), tokens(second.description))
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
    return SEPARATOR.join(kept)[:LONGEST]


def _are_alike(first: Sequence[str], second: Sequence[str]) -> bool:
    return bool(first) and rouge_l(first, second) >= THRESHOLD


def _are_distant(first: tuple[str, int], second: tuple[str, int]) -> bool:
    return first[0] != second[0] or abs(first[1] - second[1]) >= DISTANT
