"""The names of one document by the word of a chat model: what it calls the same is one entity.

A reply gives an entity a name, a type, and the other forms by which its segment calls it. Within a
document these forms are evidence: if another segment uses one of them as a name, both are one
entity, under the name that is used most. No rule decides. Across documents equal names are equal;
what else is the same there is asked (`qrmem.graph.same_names`), or said by the user.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from qrmem.text.names import name_key, normalise_name, split_key
from qrmem.types import Contribution, Mention

THING = "THING"
"""The type of what has no other: it agrees with any type of the same name."""
FREQUENT = 3
"""Two names that so many segments use are not joined by a form that one segment gives."""


def mention_key(mention: Mention) -> str:
    """Return the key of the name of a mention."""
    return name_key(normalise_name(mention.name), " ".join(mention.type.split()).upper())


def said_names(contributions: Iterable[Contribution]) -> Mapping[str, Mention]:
    """Return what a document mostly calls the entity of each name.

    Args:
        contributions: what a chat model said of the segments of one document, in order.

    Returns:
        Key of a name to a mention with the name and the type of its entity; names that stay as
        they are, are left out.
    """
    mentions = [m for made in contributions for m in made.mentions]
    uses = Counter(map(mention_key, mentions))
    first: dict[str, Mention] = {}
    for mention in mentions:
        first.setdefault(mention_key(mention), mention)
    by_norm: dict[str, list[str]] = defaultdict(list)
    for key in uses:
        by_norm[split_key(key)[0]].append(key)
    evidence: Counter[tuple[str, str]] = Counter()
    for key in uses:  # a thing is the one other entity of its name
        alike = [other for other in by_norm[split_key(key)[0]] if other != key]
        if split_key(key)[1] in ("", THING) and len(alike) == 1:
            evidence[key, alike[0]] += FREQUENT
    for mention in mentions:
        key = mention_key(mention)
        norms = {normalise_name(form) for form in mention.forms} - {split_key(key)[0]}
        for norm in sorted(norms):
            for other in by_norm.get(norm, ()):
                if _agree(key, other):
                    evidence[min(key, other), max(key, other)] += 1
    groups = _Groups(uses)
    for (one, other), count in sorted(evidence.items(), key=lambda pair: (-pair[1], pair[0])):
        groups.unite(one, other, is_sure=count > 1)
    return groups.called(first)


def _agree(one: str, other: str) -> bool:
    kinds = {split_key(one)[1], split_key(other)[1]} - {"", THING}
    return len(kinds) < 2


class _Groups:
    """Names of a document that are being united."""

    def __init__(self, uses: Mapping[str, int]) -> None:
        self._uses = uses
        self._of = {key: [key] for key in uses}

    def unite(self, one: str, other: str, *, is_sure: bool) -> None:
        first, second = self._of[one], self._of[other]
        if first is second or not all(_agree(a, b) for a in first for b in second):
            return
        least = min(max(self._uses[key] for key in group) for group in (first, second))
        if is_sure or least < FREQUENT:
            first.extend(second)
            for key in second:
                self._of[key] = first

    def called(self, first: Mapping[str, Mention]) -> dict[str, Mention]:
        """Return the main name of each name that has another one."""
        result = {}
        for key, group in self._of.items():
            main = min(group, key=lambda k: (-self._uses[k], -len(split_key(k)[0]), k))
            kinds = [split_key(k)[1] for k in sorted(group, key=lambda k: (-self._uses[k], k))]
            kind = next((kind for kind in kinds if kind not in ("", THING)), kinds[0])
            called = Mention(first[main].name, kind)
            if mention_key(called) != key:
                result[key] = called
        return result
