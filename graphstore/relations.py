"""Statements merged into relations: by rules, or by a chat model.

A chat model folds the statements of one document about one pair, direction and type from the left,
in segment order. Each intermediate text is a cached value (`fold`) with the questions Q_s that it
settled; its key is a digest of the statements in it. It is deleted with its last segment; after
another deletion the key differs.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from qrmem.graphstore.records import relation_key
from qrmem.text.dates import end_of, start_of
from qrmem.text.words import THRESHOLD, rouge_l, tokens
from qrmem.types import Fact, Relation, Scalar

LONGEST = 600
"""Maximum length in characters of a relation's description; the facts keep the full text."""

SEPARATOR = "; "
BACKWARD = "← "

Told = tuple[Fact, ...]
"""The statements of one segment about a pair of entities, in one direction and of one type."""


def fold(facts: Iterable[Fact]) -> list[Relation]:
    """Merge facts into one relation per unordered pair of entities, by key, without a model.

    Args:
        facts: in (document id, segment index, n) order.

    Returns:
        One relation per pair; facts that join an entity with itself are left out. In the
        description `←` marks a statement from the relation's tail to its head.
    """
    pairs: dict[str, list[Fact]] = {}
    for fact in facts:
        if fact.head != fact.tail:
            pairs.setdefault(relation_key(fact.head, fact.tail), []).append(fact)
    return [
        Relation(
            key, pair_facts[0].head, pair_facts[0].tail, merged_text(pair_facts), tuple(pair_facts)
        )
        for key, pair_facts in sorted(pairs.items())
    ]


def merged_text(facts: Sequence[Fact]) -> str:
    """Join the descriptions of facts in order, without near duplicates, up to `LONGEST` characters.

    Args:
        facts: facts of one pair; at least one.
    """
    texts_kept: list[str] = []
    word_lists: dict[str, list[Sequence[str]]] = {}
    room = LONGEST
    for fact in facts:
        words = tokens(fact.description)
        alike = word_lists.setdefault(fact.head, [])
        text = fact.description if fact.head == facts[0].head else BACKWARD + fact.description
        is_new = text not in texts_kept and not any(_are_alike(words, other) for other in alike)
        if is_new and (not texts_kept or len(text) + len(SEPARATOR) <= room):
            texts_kept.append(text)
            alike.append(words)
            room -= len(text) + len(SEPARATOR)
    joined = SEPARATOR.join(texts_kept)
    return joined if len(joined) <= LONGEST else f"{joined[: LONGEST - 1]}…"


def _are_alike(first: Sequence[str], second: Sequence[str]) -> bool:
    return bool(first) and rouge_l(first, second) >= THRESHOLD


@dataclass(frozen=True, slots=True)
class Chain:
    """The statements of one document about one pair, in one direction and of one type.

    Attributes:
        document_id: id of the document.
        told: statements of each segment, in order, without those of earlier segments.
        facts: all statements.
    """

    document_id: str
    told: tuple[Told, ...]
    facts: tuple[Fact, ...]

    @property
    def key(self) -> str:
        """Cache key of the text that a chat model merged it into; "" for a single segment."""
        return fold_key(self.told) if len(self.told) > 1 else ""


def chains(facts: Iterable[Fact], document_of: Mapping[str, str]) -> list[Chain]:
    """Return the chains of some facts, in the order of their first facts.

    Args:
        facts: in (document id, segment index, n) order; facts that join an entity with itself are
            left out.
        document_of: segment id to document id.
    """
    facts_by_chain: dict[tuple[str, str, str, str], list[Fact]] = {}
    for fact in facts:
        if fact.head != fact.tail:
            document = document_of.get(fact.segment_id, "")
            facts_by_chain.setdefault((document, fact.head, fact.tail, fact.type), []).append(fact)
    return [
        Chain(doc, _by_segment(chain_facts), tuple(chain_facts))
        for (doc, *_), chain_facts in facts_by_chain.items()
    ]


def _by_segment(facts: Iterable[Fact]) -> tuple[Told, ...]:
    first: dict[str, Fact] = {}
    for fact in facts:
        first.setdefault(fact.description, fact)
    facts_by_segment: dict[str, list[Fact]] = {}
    for fact in first.values():
        facts_by_segment.setdefault(fact.segment_id, []).append(fact)
    return tuple(map(tuple, facts_by_segment.values()))


def fold_key(told: Sequence[Told]) -> str:
    """Return the cache key of a folded description."""
    facts = [fact for segment_facts in told for fact in segment_facts]
    serialised = repr([(f.head, f.tail, f.description, f.segment_id) for f in facts])
    return "fold:" + hashlib.sha256(serialised.encode("utf-8", "surrogatepass")).hexdigest()


def folded_key(document_id: str, digest: str) -> str:
    """Return the cache key of the mark that all relations of a document are folded."""
    return f"folded:{digest}:{document_id}"


def folded_facts(found: Iterable[Chain], kept: Mapping[str, Mapping[str, Any]]) -> list[Fact]:
    """Return the facts of chains; a chain that a chat model merged gives one fact with its text.

    Args:
        found: the chains.
        kept: cached values by the keys of chains.
    """
    facts: list[Fact] = []
    for chain in found:
        value = kept.get(chain.key)
        first_fact = chain.told[0][0]
        facts += (
            [replace(first_fact, description=str(value["description"]))] if value else chain.facts
        )
    return facts


def relation_id(head: str, tail: str, type: str = "") -> str:
    """Return the key of the relation of a pair, direction and type."""
    return f"{head}|{tail}|{type}" if type else f"{head}|{tail}"


def relations_of(found: Iterable[Chain], kept: Mapping[str, Mapping[str, Any]]) -> list[Relation]:
    """Return the relations of some chains: one per pair, direction and type, by key.

    Args:
        found: all chains of these pairs, in the order of documents.
        kept: cached values by the keys of chains.
    """
    grouped: dict[tuple[str, str, str], list[Chain]] = {}
    for chain in found:
        first = chain.facts[0]
        grouped.setdefault((first.head, first.tail, first.type), []).append(chain)
    relations = []
    for (head, tail, type_), pair_chains in grouped.items():
        question_lists = (
            kept[chain.key].get("questions", ()) for chain in pair_chains if chain.key in kept
        )
        relations.append(
            Relation(
                key=relation_id(head, tail, type_),
                head=head,
                tail=tail,
                description=merged_text(folded_facts(pair_chains, kept)),
                facts=tuple(fact for chain in pair_chains for fact in chain.facts),
                type=type_,
                questions=tuple(
                    dict.fromkeys(q for questions in question_lists for q in questions)
                ),
            )
        )
    return sorted(relations, key=lambda relation: relation.key)


def properties_of(relation: Relation) -> dict[str, Scalar]:
    """Return a relation's properties, each with the value that was said last."""
    facts = sorted(relation.facts, key=lambda fact: start_of(fact.said_at) if fact.said_at else "")
    return {name: value for fact in facts for name, value in fact.properties}


def times_of(relation: Relation, since: Mapping[tuple[str, int], str]) -> dict[str, str]:
    """Return the last date of a relation's statements, and the dates from and until it holds.

    Unknown dates are "". A relation holds as long as one of its statements does.

    Args:
        since: dates from which statements, by segment and number, are replaced.
    """
    starts = [fact.valid_from for fact in relation.facts if fact.valid_from]
    ends = [f.valid_until or since.get((f.segment_id, f.n), "")[:10] for f in relation.facts]
    return {
        "said_at": max(fact.said_at for fact in relation.facts),
        "valid_from": min(starts, key=start_of) if starts else "",
        "valid_until": max(ends, key=end_of) if all(ends) else "",
    }
