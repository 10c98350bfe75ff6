"""Finds the name that a name is short for, from the names of its block (QRMeM, section 2.1)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from qrmem.graphstore.protocol import NameRow
from qrmem.text.names import best_form, differ_in_number, spells, split_key
from qrmem.text.names.aliases import BEFORE_GIVEN, core_of, is_alias, plain_spelling, sex, titled
from qrmem.text.names.aliases import titles_clash as clash

MOST = 32
"""Maximum number of names in a block; a larger block decides nothing."""
DOMINANCE = 4
"""A name means what is named so many times as often as all else that it may mean."""
RARE = 10
"""A name with more words that is so many times rarer than a name is not its fuller name."""
NUMERIC = frozenset(
    "DATE TIME DURATION SET NUMBER ORDINAL CARDINAL QUANTITY PERCENT MONEY".split()  # noqa: SIM905
)
"""Types whose names match only if they are equal."""


@dataclass(frozen=True)
class NameUse:
    """A name of the namespace.

    Attributes:
        key: see `qrmem.text.names.name_key`.
        surface: the most frequent form that spells it; any form if none does.
        count: occurrences over all segments.
    """

    key: str
    surface: str
    count: int

    @classmethod
    def of(cls, row: NameRow) -> "NameUse":
        """Return the data of a stored name that resolution needs."""
        return cls(row.key, best_form(row.key, row.forms) or row.surface, row.count)

    @cached_property
    def display(self) -> str:
        """The name for display: its form in the text, or else its key with capitals."""
        if spells(self.surface, self.key):
            return " ".join(self.surface.split())
        return split_key(self.key)[0].title()

    @cached_property
    def parts(self) -> tuple[str, str, tuple[str, ...], tuple[str, ...]]:
        """The normalised name, its type, its titles, and its other words without accents."""
        norm, kind = split_key(self.key)
        words = tuple((plain_spelling(core_of(norm)) or norm).split())
        return norm, kind, titled(norm)[0], words

    @property
    def is_person(self) -> bool:
        """Whether it is a person's name by its type, or else by a title or a given name."""
        kind, (titles, words) = self.parts[1], titled(self.parts[0])
        return kind == "PERSON" or (not kind and bool(words) and bool(titles or sex((), words)))


def parent_of(
    uses: Mapping[str, NameUse], key: str, block: Sequence[str] | None, equal: Sequence[str]
) -> str:
    """Return the name that a name joins, or "".

    Args:
        block: the names of its own block; `None` if there are too many.
        equal: equal names with other types.
    """
    use, typed = uses[key], [other for other in equal if other != key and split_key(other)[1]]
    norm, kind, titles, words = use.parts
    if not kind and typed:
        return typed[0] if len(typed) == 1 else ""
    if not block or kind in NUMERIC:
        return ""
    others = [uses[other] for other in block if other != key]
    count = use.count + sum(one.count for one in others if one.parts[0] == norm)
    meanings = [one for one in others if _may_mean(use, one)]
    weights = {
        one: sum(other.count for other in meanings if _are_one(other, one))
        for one in meanings
        if _is_short_for(use, one)
        # Neither Parsee nor Ahab, named often, is short for "Parsee Ahab", seen once.
        and (one.parts[3] == words or one.count * RARE > count)
    }
    if not weights:
        return ""
    parent = max(weights, key=lambda one: (weights[one], one.count, by_fullness(one.key)))
    rest = sum(one.count for one in meanings) - weights[parent]
    is_shared = any(
        _is_short_for(one, parent) if one.parts[3] == words else one.parts[3] == parent.parts[3]
        for one in others
        if clash(titles, one.parts[2]) or not types_agree(key, one.key)
    )
    return "" if is_shared or rest * DOMINANCE > weights[parent] else parent.key


def _may_mean(use: NameUse, other: NameUse) -> bool:
    """Whether a reader may take a name for a fuller one: Mary could be Mary King."""
    (norm, _, titles, few), (fuller, kind, _, many) = use.parts, other.parts
    is_part = fullness(fuller) > fullness(norm) and few in (many[: len(few)], many[-len(few) :])
    return (is_part and kind == "PERSON" and not titles) or _is_short_for(use, other)


def _are_one(use: NameUse, other: NameUse) -> bool:
    is_equal = use.parts[0] == other.parts[0] and types_agree(use.key, other.key)
    return is_equal or _is_short_for(use, other) or _is_short_for(other, use)


def _is_short_for(use: NameUse, other: NameUse) -> bool:
    """Whether a name can be short for a fuller one, by their words, types and titles."""
    (norm, kind, titles, few), (fuller, other_kind, others, many) = use.parts, other.parts
    if NUMERIC & {kind, other_kind} or not types_agree(use.key, other.key):
        return False
    if fullness(fuller) <= fullness(norm) or differ_in_number(norm, fuller):
        return False
    if few == many:  # Ford is no Mrs. Ford, and Catherine no Lady Catherine; Emma is Miss Emma
        is_miss = "miss" in others and bool(sex((), (few[0], "")))
        if not titles and sex(others, ()) == "f" and not is_miss:
            return False
    elif len(few) > 1 or few[0] in many:
        is_surname = few == many[-len(few) :] and not BEFORE_GIVEN.intersection(titles) - {"miss"}
        if titles and not is_surname and not set(titles) & set(others):
            return False  # Prince Harry is no Harry Styles
        is_typed = bool(kind) and kind == other_kind and fuller.startswith(f"{norm} ")
        if len(few) < len(many) and not (is_typed or use.is_person or other.is_person):
            return False  # Wyoming is no Wyoming State Senate
    is_word = use.display.islower() and not other.display.islower()
    return not is_word and not "".join(few).isdigit() and is_alias(use.display, other.display)


def types_agree(key: str, other: str) -> bool:
    """Return whether two names do not have two known types."""
    return len({split_key(key)[1], split_key(other)[1]} - {""}) < 2


def by_fullness(key: str) -> tuple[tuple[int, int, str], bool, str]:
    """Return a sort key of name keys: by fullness, typed names last."""
    norm, kind = split_key(key)
    return fullness(norm), bool(kind), key


@lru_cache(maxsize=1 << 13)
def fullness(norm: str) -> tuple[int, int, str]:
    """Return a sort key for the fullness of a normalised name: full words, letters, text."""
    titles, rest = titled(norm)
    return sum(len(word) > 1 for word in rest or titles), len(norm), norm
