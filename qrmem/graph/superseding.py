"""Superseded statements: a view over all statements, computed on reading.

Only a chat model's verdicts on pairs (`judgement`) are stored; they are deleted with the segment of
either statement. So statements that a deleted document superseded become valid again.
"""

import hashlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, NamedTuple

from qrmem.graphstore.protocol import GraphStore
from qrmem.text.dates import end_of, is_said_by, start_of, today
from qrmem.text.names import split_key
from qrmem.text.words import terms
from qrmem.types import Fact

Place = tuple[str, int]
"""A statement's segment, and its number in the segment."""

_NEAR = 0.3
"""Least share of the shorter description's words, without names, that two statements with a
possible conflict have in common."""


class Ending(NamedTuple):
    """The end of a statement by a later one.

    Attributes:
        by: the later statement.
        since: date or time in ISO form of the replacement; "" if unknown.
        is_over: whether the later statement only ends the relation; then `since` is the last time.
    """

    by: Fact
    since: str
    is_over: bool = False


def place_of(fact: Fact) -> Place:
    """Return the identifier of a statement in the namespace."""
    return fact.segment_id, fact.n


def held_by(facts: Iterable[Fact], as_of: str) -> list[Fact]:
    """Return the statements that were made by a time; undated statements are included.

    Args:
        facts: the statements.
        as_of: a date or time in ISO form; "" returns all.
    """
    return [fact for fact in facts if is_said_by(fact.said_at, as_of)]


def holds(fact: Fact, ending: Ending | None, at: str) -> bool:
    """Return whether a statement holds at a time, as far as is known.

    Args:
        fact: the statement.
        ending: its end by a later statement, or `None`.
        at: a date or time in ISO form.
    """
    if is_ahead(fact, at):
        return False
    if fact.valid_until and end_of(fact.valid_until) < start_of(at):
        return False
    if ending is not None and ending.is_over:
        return end_of(ending.since) >= start_of(at)
    return ending is None or bool(ending.since and start_of(ending.since) > end_of(at))


def endings(
    facts: Iterable[Fact], single: Collection[str], judged: Collection[tuple[Place, Place]] = ()
) -> dict[Place, Ending]:
    """Return the superseded statements, each with the first statement that replaces it.

    A statement of a `single` type is replaced by the next one with the same head and type and
    another tail that is valid later, or was made later. A statement without an end is over when a
    later one with the same head, type and tail says so. Replacements never form a cycle.

    Args:
        facts: all statements of their heads.
        single: relation types that an entity has only one of at a time.
        judged: pairs of which a chat model said that the second replaces the first.
    """
    by_place = {place_of(fact): fact for fact in facts}
    replaced = list(_of_single_types(by_place.values(), single))
    replaced += [
        (by_place[old], by_place[new])
        for old, new in judged
        if old in by_place and new in by_place and is_later(by_place[new], by_place[old])
    ]
    pairs = [(old, Ending(new, new.valid_from or new.said_at)) for old, new in replaced]
    pairs += [
        (old, Ending(new, new.valid_until, is_over=True))
        for old, new in _over(by_place.values(), single)
    ]
    ending_by_place: dict[Place, Ending] = {}
    for old, ending in sorted(pairs, key=lambda pair: _ends_at(pair[1])):
        if place_of(old) not in ending_by_place and not _leads(ending_by_place, ending.by, old):
            ending_by_place[place_of(old)] = ending
    return ending_by_place


def is_later(new: Fact, old: Fact) -> bool:
    """Return whether a statement is valid later than another, or else was made later.

    A statement about the time ahead counts from its beginning: what is said before then and is
    true at once does not replace it.
    """
    if new.valid_from and old.valid_from:
        first, other = start_of(new.valid_from), start_of(old.valid_from)
        if first != other:
            return first > other
    if not new.said_at or not old.said_at or _order(new) <= _order(old):
        return False
    # A statement that was over when it was made replaces nothing.
    return not new.valid_until or end_of(new.valid_until) >= start_of(new.said_at)


def _order(fact: Fact) -> tuple[str, str]:
    """Return the time from which a dated statement counts, and the time when it was made."""
    said = start_of(fact.said_at)
    return max(said, start_of(fact.valid_from)) if fact.valid_from else said, said


def may_clash(facts: Iterable[Fact]) -> list[tuple[Fact, Fact]]:
    """Return pairs of an earlier and a later statement of one head with similar descriptions.

    They are in the order of the later statements. Equal descriptions do not conflict.
    """
    by_head: dict[str, list[Fact]] = defaultdict(list)
    for fact in facts:
        if fact.said_at:
            by_head[fact.head].append(fact)
    pairs = [
        (old, new)
        for facts_of_head in by_head.values()
        for new in facts_of_head
        for old in facts_of_head
        if is_later(new, old) and not old.valid_until and _is_near(old, new)
    ]
    return sorted(pairs, key=lambda pair: (_moment(pair[1]), place_of(pair[1]), place_of(pair[0])))


def pair_key(old: Fact, new: Fact) -> str:
    """Return the cache key of a verdict on two statements.

    A sentence with statements about several names is judged once.
    """
    serialised = repr([(fact.segment_id, fact.description) for fact in (old, new)])
    return "judged:" + hashlib.sha256(serialised.encode("utf-8", "surrogatepass")).hexdigest()


async def judged_pairs(store: GraphStore, ns: str) -> frozenset[str]:
    """Return the keys of the judged pairs."""
    return frozenset(await store.cache_keys(ns, "judgement"))


async def _replacements(
    store: GraphStore, ns: str, facts: Sequence[Fact], judged: Collection[str]
) -> list[tuple[Place, Place]]:
    """Return the pairs of statements of which a stored verdict says that one replaces the other."""
    keys = _pair_keys(facts).intersection(judged) if judged else ()
    entries = await store.cache_entries(ns, "judgement", sorted(keys)) if keys else ()
    return _judged_replacements(facts, {entry.key: entry.value for entry in entries})


def _pair_keys(facts: Iterable[Fact]) -> set[str]:
    return {pair_key(old, new) for old, new in may_clash(facts)}


def _judged_replacements(
    facts: Iterable[Fact], verdicts: Mapping[str, Mapping[str, Any]]
) -> list[tuple[Place, Place]]:
    replacing_keys = {key for key, value in verdicts.items() if value.get("verdict") == "replaces"}
    pairs = may_clash(facts) if replacing_keys else []
    return [
        (place_of(old), place_of(new)) for old, new in pairs if pair_key(old, new) in replacing_keys
    ]


@dataclass(frozen=True, slots=True)
class Shown:
    """Superseding for a store that displays edges; see `qrmem.graphstore.protocol.Superseding`."""

    def asked(self, facts: Sequence[Fact]) -> Collection[str]:
        """Return the cache keys of a chat model's verdicts on pairs of some facts."""
        return _pair_keys(facts)

    def since(
        self,
        facts: Sequence[Fact],
        single: Collection[str],
        verdicts: Mapping[str, Mapping[str, Any]],
    ) -> Mapping[Place, str]:
        """Return the superseded facts with the date of their replacement."""
        endings_found = endings(facts, single, _judged_replacements(facts, verdicts))
        return {place: ending.since for place, ending in endings_found.items()}


async def kept_endings(
    store: GraphStore,
    ns: str,
    facts: Sequence[Fact],
    single: Collection[str] = (),
    as_of: str = "",
    judged: Collection[str] | None = None,
) -> dict[Place, Ending]:
    """Return the superseded ones of some statements; other statements of their heads are read.

    A replacement that begins later than `as_of`, or than today, replaces nothing yet.

    Args:
        store: the store.
        ns: the namespace.
        facts: the statements.
        single: as in `endings`.
        as_of: only statements made by this time count; "" for all.
        judged: the result of `judged_pairs`, if the caller has it; else it is read.
    """
    if judged is None:
        judged = await judged_pairs(store, ns) if facts else ()
    heads = {fact.head for fact in facts if judged or fact.type in single}
    if not heads:
        return {}
    around = await store.around(ns, sorted(heads))
    facts_held = held_by((fact for fact in around.facts if fact.head in heads), as_of)
    replacements = await _replacements(store, ns, facts_held, judged)
    at = end_of(as_of or today())
    return {
        place: ending
        for place, ending in endings(facts_held, single, replacements).items()
        if ending.is_over or not ending.since or start_of(ending.since) <= at
    }


def is_ahead(fact: Fact, at: str) -> bool:
    """Return whether a statement is valid only after a time."""
    return bool(fact.valid_from) and start_of(fact.valid_from) > end_of(at)


def with_end(fact: Fact, ending: Ending | None) -> Fact:
    """Return a statement with its end, if a later one only ends it."""
    is_over = ending is not None and ending.is_over and not fact.valid_until
    return replace(fact, valid_until=ending.since) if ending and is_over else fact


def with_time(fact: Fact, ending: Ending | None, told: str = "", at: str = "") -> str:
    """Return a description with notes on its time for a reader.

    Args:
        fact: the statement.
        ending: its end by a later statement, or `None`.
        told: text of the later statement.
        at: date or time of the view, to say that a statement is not valid yet; "" says nothing.
    """
    fact = with_end(fact, ending)
    if ending is not None and not ending.is_over:
        until = fact.valid_until or ending.since[:10]
        later = f"; then: {told or ending.by.description}"
        return f"{fact.description} (until {until or 'later'}{later})"
    if fact.valid_from or fact.valid_until:
        not_yet = "not yet: " if at and is_ahead(fact, at) else ""
        first = f"{not_yet}from {fact.valid_from}" if fact.valid_from else ""
        last = f"until {fact.valid_until}" if fact.valid_until else ""
        return f"{fact.description} ({' '.join(filter(None, (first, last)))})"
    return fact.description


def dated(
    facts: Iterable[Fact],
    ends: Mapping[Place, Ending],
    names: Mapping[str, str],
    as_of: str = "",
) -> list[Fact]:
    """Add notes to the descriptions of statements that are superseded or do not hold.

    Args:
        facts: the statements.
        ends: their ends by later statements.
        names: entity key to name.
        as_of: a date or time in ISO form; "" is now.
    """
    at = as_of or today()
    result = []
    for fact in facts:
        ending = ends.get(place_of(fact))
        if not holds(fact, ending, at):
            ending_in_words = f"{ending.by.description} {names[ending.by.tail]}" if ending else ""
            fact = replace(fact, description=with_time(fact, ending, ending_in_words, at))
        result.append(fact)
    return result


def _of_single_types(facts: Iterable[Fact], single: Collection[str]) -> Iterator[tuple[Fact, Fact]]:
    groups: dict[tuple[str, str], list[Fact]] = defaultdict(list)
    for fact in facts:
        if fact.type in single:
            groups[fact.head, fact.type].append(fact)
    for group in groups.values():
        if all(fact.said_at and not fact.valid_from and not fact.valid_until for fact in group):
            yield from _next_ones(group)
        else:
            for old in group:
                later = (new for new in group if new.tail != old.tail and is_later(new, old))
                yield from ((old, new) for new in later)


def _next_ones(group: Iterable[Fact]) -> Iterator[tuple[Fact, Fact]]:
    """Yield each statement with the next one of another tail; all have a date, and no period.

    Other later ones are not needed: such pairs form no cycle, so none of them is left out.
    """
    ordered = sorted(group, key=lambda fact: (start_of(fact.said_at), place_of(fact)))
    moments = [list(some) for _, some in groupby(ordered, lambda fact: start_of(fact.said_at))]
    after: list[Fact] = []  # the next one, and the next one of another tail
    for facts in reversed(moments):
        for fact in facts:
            yield from ((fact, new) for new in after if new.tail != fact.tail)
        by_tail: dict[str, Fact] = {}
        for fact in (*facts, *after):
            by_tail.setdefault(fact.tail, fact)
        after = list(by_tail.values())[:2]


def _over(facts: Iterable[Fact], single: Collection[str]) -> Iterator[tuple[Fact, Fact]]:
    """Yield statements without an end, each with a later one about the same pair that has one."""
    groups: dict[tuple[str, str, str], list[Fact]] = defaultdict(list)
    for fact in facts:
        if fact.type in single and fact.said_at:
            groups[fact.head, fact.type, fact.tail].append(fact)
    for own in groups.values():
        for new in (fact for fact in own if fact.valid_until):
            for old in own:
                is_before = start_of(old.said_at) < start_of(new.said_at)
                # A statement that begins after that end is another period of the same relation.
                began = old.valid_from and start_of(old.valid_from) > end_of(new.valid_until)
                if is_before and not old.valid_until and not began:
                    yield old, new


def _leads(found: Mapping[Place, Ending], start: Fact, end: Fact) -> bool:
    """Return whether a statement is replaced by another one, directly or through others."""
    now: Fact | None = start
    while now is not None:
        if place_of(now) == place_of(end):
            return True
        after = found.get(place_of(now))
        now = after.by if after else None
    return False


def _ends_at(ending: Ending) -> tuple[str, Place]:
    return start_of(ending.since) if ending.since else "", place_of(ending.by)


def _moment(fact: Fact) -> str:
    when = fact.valid_from or fact.said_at
    return start_of(when) if when else ""


def _words(fact: Fact) -> set[str]:
    """Return the terms of a description without those of the names of its ends."""
    names = {term for end in (fact.head, fact.tail) for term in terms(split_key(end)[0])}
    return set(terms(fact.description)) - names


def _is_near(old: Fact, new: Fact) -> bool:
    if old.segment_id == new.segment_id:
        return False
    if (old.tail, old.description) == (new.tail, new.description):
        return False
    if old.type or new.type:
        return old.type == new.type
    first, second = _words(old), _words(new)
    return len(first & second) >= _NEAR * max(1, min(len(first), len(second)))
