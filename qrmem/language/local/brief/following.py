"""Following a question's relations from the names in it: who is meant by "the director of …"."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from qrmem.language.local.brief.relations import BY_NAME, KIN, RELATIONS, Relation
from qrmem.language.local.brief.told import NAME, Told, bare, of
from qrmem.language.local.content import content


@dataclass(frozen=True, slots=True)
class Anchor:
    """A passage that a question names, and where."""

    told: Told
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Path:
    """Where following led.

    Attributes:
        value: what the last relation came to; "" if it, or one before it, is not stated.
        focus: the last passage that was reached.
        stated: the sentences that state each step, with their passages.
        is_through: whether all relations were followed.
    """

    value: str
    focus: Told
    stated: tuple[tuple[Told, str], ...]
    is_through: bool


def anchors(question: str, among: Sequence[Told]) -> list[Anchor]:
    """Return the passages whose titles a question names, in its order, the longest first."""
    found: list[Anchor] = []
    for one in sorted(among, key=lambda one: -len(one.passage.title or one.about)):
        names = {one.passage.title, bare(one.passage.title), one.about} - {""}
        for name in sorted(names, key=len, reverse=True):
            match = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", question, re.IGNORECASE)
            if match and _is_name(match[0]) and _is_free(match, found):
                found.append(Anchor(one, *match.span()))
                break
    return sorted(found, key=lambda anchor: anchor.start)


def _is_name(text: str) -> bool:
    return text[:1].isupper() or text[:1].isdigit()


def _is_free(match: "re.Match[str]", found: Sequence[Anchor]) -> bool:
    return not any(a.start < match.end() and match.start() < a.end for a in found)


def asked_relations(question: str, anchor: tuple[int, int]) -> list[Relation]:
    """Return the relations that a question asks along from a name in it, the nearest first."""
    start, end = anchor
    masked = question[:start] + " " * (end - start) + question[end:]
    before, behind = _named(masked[:start]), _named(masked[end:])
    ends = _ends(masked)
    possessive = bool(re.match(r"\s*(?:’s|'s|’|')", question[end:]))
    near = [r for _, r in reversed(before)]
    far = [r for _, r in behind]
    ordered = [*far, *near] if possessive else [*near, *far]
    chain: list[Relation] = []
    for relation in ordered:
        chain.extend(relation)
    if ends is not None:
        chain = [r for r in chain if not r.is_end and r.name not in _PLACES] + [ends]
    return chain


_PLACES = frozenset({"birthplace", "deathplace", "burial"})
_ENDS = tuple(
    BY_NAME[name]
    for name in ("cause", "birthdate", "deathdate", "birthplace", "deathplace", "burial", "country")
)


def _ends(question: str) -> Relation | None:
    return next((r for r in _ENDS if r.asked.search(question)), None)


def _named(text: str) -> list[tuple[int, list[Relation]]]:
    """Return the relations that a text names with their places; kinship taken apart."""
    found: list[tuple[int, list[Relation]]] = []
    for pattern, parts in KIN.items():
        for match in re.finditer(rf"\b{pattern}\b", text, re.IGNORECASE):
            found.append((match.start(), [BY_NAME[part] for part in parts]))
            text = text[: match.start()] + " " * len(match[0]) + text[match.end() :]
    for relation in RELATIONS:
        if relation in _ENDS:
            continue
        named = relation.asked.search(text)
        if named:
            found.append((named.start(), [relation]))
    return sorted(found, key=lambda pair: pair[0])


def _onward(value: str, sentence: str, others: Sequence[Told]) -> Told | None:
    """Return the passage about a name, or about one of those that follow it: "A and B"."""
    names = [value, *NAME.findall(sentence[sentence.find(value) + len(value) :])]
    return next(filter(None, (of(name, others) for name in names)), None)


def follow(begin: Told, chain: Sequence[Relation], among: Sequence[Told]) -> Path:
    """Follow relations from a passage, from passage to passage."""
    focus, value = begin, ""
    stated: list[tuple[Told, str]] = []
    for relation in chain:
        if stated:
            others = [one for one in among if one is not focus]
            onward = _onward(value, stated[-1][1], others)
            if onward is None:
                return Path("", focus, tuple(stated), False)
            focus = onward
        found = relation.find(focus)
        if found is None:
            return Path("", focus, tuple(stated), False)
        value = found[0]
        stated.append((focus, found[1]))
    return Path(value, focus, tuple(stated), bool(chain))


_SPARE = frozenset(
    content(
        "which what who whom whose when where how date place year day name city country town birth "
        "death born die died from of is the come was person s"
    )
)


def is_all(question: str, anchor: Anchor, path: Path) -> bool:
    """Whether a question asks along its relations and for nothing more.

    What a thing is called, "the film X", is in what is told of it and asks for nothing.
    """
    rest = question[: anchor.start] + " " + question[anchor.end :]
    for pattern in (*KIN, *(r.asked.pattern for r in RELATIONS)):
        rest = re.sub(pattern, _words_between, rest, flags=re.IGNORECASE)
    opening = " ".join(path.stated[0][0].sentences[:2]) if path.stated else ""
    known = set(content(f"{opening} {anchor.told.passage.title}"))
    return not set(content(rest)) - known - _SPARE


def _words_between(match: "re.Match[str]") -> str:
    """Leave what a pattern leaps over: of "when was … born" the words in between."""
    words = match[0].split()
    return " ".join(words[1:-1]) if len(words) > 3 else " "
