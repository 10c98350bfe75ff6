"""What a change does to names: how often each is mentioned, and which ones are left."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from qrmem.graphstore.neo4j.keys import short
from qrmem.graphstore.protocol import MentionRow

Forms = Iterable[tuple[str, int]]

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


@dataclass(frozen=True, slots=True)
class Tallies:
    """How often names are mentioned, by short key; less than 0 where mentions go.

    Attributes:
        forms: how often in each surface form.
        mentions: in how many segments.
    """

    forms: dict[str, dict[str, int]] = field(default_factory=dict)
    mentions: dict[str, int] = field(default_factory=dict)

    def count(self, name: str, forms: Forms, sign: int = 1) -> None:
        """Count a mention in or out."""
        tally = self.forms.setdefault(name, {})
        for form, number in forms:
            tally[form] = tally.get(form, 0) + sign * number
        self.mentions[name] = self.mentions.get(name, 0) + sign

    def recount(self, name: str, forms: str, sign: int = 1) -> None:
        """Count a mention in or out that was kept."""
        self.count(name, json.loads(forms), sign)

    def of(self, name: str) -> tuple[int, Mapping[str, int]]:
        """Return what a name has."""
        return self.mentions.get(name, 0), self.forms.get(name, {})

    def give(self, name: str, other: "Tallies") -> None:
        """Let others have what a name has."""
        other.forms[name], other.mentions[name] = self.forms[name], self.mentions[name]


def by_segment(rows: Iterable[MentionRow]) -> dict[str, dict[str, MentionRow]]:
    """Return mentions by short keys of segment and name; the last of two for the same."""
    found: dict[str, dict[str, MentionRow]] = {}
    for row in rows:
        found.setdefault(short(row.segment_id), {})[short(row.name)] = row
    return found


def counted(rows: Iterable[MentionRow]) -> Tallies:
    """Return how often names are mentioned."""
    tallies = Tallies()
    for own in by_segment(rows).values():
        for name, row in own.items():
            tallies.count(name, row.forms)
    return tallies


@dataclass(slots=True)
class Tally:
    """One name, by its short key.

    Attributes:
        key: the name's own key, or "" where only its node was touched.
        old: short key of the entity that it stands for in the database; "" for a new name.
        entity: short key of the entity that it stands for now.
        mentions: segments that mention it.
        kept: surface forms as they are kept.
        surface: the most frequent one.
        total: how often it occurs.
        more: occurrences that the change adds; less than 0 where it takes some away.
    """

    key: str = ""
    old: str = ""
    entity: str = ""
    mentions: int = 0
    kept: str = ""
    surface: str = ""
    total: int = 0
    more: int = 0

    @property
    def is_living(self) -> bool:
        """Whether any segment mentions it."""
        return self.mentions > 0

    @property
    def has_moved(self) -> bool:
        """Whether it was there and stands for another entity now."""
        return bool(self.old) and self.old != self.entity

    @property
    def row(self) -> list[object]:
        """What is kept of it beside its keys."""
        return [self.kept, self.mentions, self.surface, self.total]

    def settle(self, *changes: tuple[int, Mapping[str, int]]) -> None:
        """Let it be what it will be after changes to its mentions."""
        forms = unpacked(self.kept)
        for mentions, numbers in changes:
            self.mentions += mentions
            for form, number in numbers.items():
                forms[form] = forms.get(form, 0) + number
                self.more += number
        pairs = ranked(forms)
        self.kept = packed(pairs)
        self.surface = pairs[0][0] if pairs else ""
        self.total = sum(number for _, number in pairs)


def ranked(forms: Mapping[str, int]) -> list[tuple[str, int]]:
    """Return surface forms that occur, most frequent first, then longer, then smaller."""
    pairs = [(form, number) for form, number in forms.items() if number > 0]
    return sorted(pairs, key=lambda pair: (-pair[1], -len(pair[0]), pair[0]))


def packed(forms: Forms) -> str:
    """Return surface forms as they are kept."""
    return _encode(list(forms))


def unpacked(forms: str) -> dict[str, int]:
    """Return surface forms as they are counted."""
    return dict(json.loads(forms)) if forms else {}
