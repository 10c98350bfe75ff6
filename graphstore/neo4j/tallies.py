"""What a change does to names: how often each is mentioned, and which ones are left."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from qrmem.graphstore.neo4j.keys import short

Forms = Iterable[tuple[str, int]]
Known = tuple[str, str, int]
"""A name as it lies there: its entity's key, its surface forms, how many segments mention it."""

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


@dataclass(slots=True)
class Tally:
    """One name, by its short key.

    Attributes:
        key: the name's own key, or "" where only its node was touched.
        old: short key of the entity that it stands for in the database; "" for a new name.
        entity: key of the entity that it stands for now.
        forms: how often each surface form occurs.
        mentions: segments that mention it.
        kept: surface forms as they are kept.
        more: occurrences that the change adds; less than 0 where it takes some away.
    """

    key: str = ""
    old: str = ""
    entity: str = ""
    forms: Counter[str] = field(default_factory=Counter)
    mentions: int = 0
    kept: str = ""
    more: int = 0

    @property
    def is_living(self) -> bool:
        """Whether any segment mentions it."""
        return self.mentions > 0

    @property
    def has_moved(self) -> bool:
        """Whether it was there and stands for another entity now."""
        return bool(self.old) and self.old != short(self.entity)

    @property
    def ranked(self) -> list[tuple[str, int]]:
        """Surface forms, most frequent first, then longer, then smaller."""
        pairs = [(form, count) for form, count in self.forms.items() if count > 0]
        return sorted(pairs, key=lambda pair: (-pair[1], -len(pair[0]), pair[0]))


class Tallies:
    """All names that a change touches."""

    def __init__(self) -> None:
        self.forms: dict[str, Counter[str]] = defaultdict(Counter)
        self.mentions: Counter[str] = Counter()

    def count(self, name: str, forms: Forms, sign: int) -> None:
        """Count a mention in or out."""
        tally = self.forms[name]
        for form, number in forms:
            tally[form] += sign * number
        self.mentions[name] += sign

    def uncount(self, name: str, forms: str) -> None:
        """Count a kept mention out."""
        self.count(name, json.loads(forms), -1)

    def settled(self, found: Mapping[str, Tally], names: Mapping[str, Tally]) -> dict[str, Tally]:
        """Return every name as it will be.

        Args:
            found: names as the database has them.
            names: names that are new.
        """
        result = {**names, **found}
        for key, change in self.forms.items():
            tally = result[key]
            tally.forms = unpacked(tally.kept)
            tally.forms.update(change)
            tally.kept = packed(tally.ranked)
            tally.mentions += self.mentions[key]
            tally.more = sum(change.values())
        return result


def packed(forms: Forms) -> str:
    """Return surface forms as they are kept."""
    return _encode(list(forms))


def unpacked(forms: str) -> Counter[str]:
    """Return surface forms as they are counted."""
    return Counter(dict(json.loads(forms)) if forms else {})
