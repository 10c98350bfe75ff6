"""The short answer to a question: the span of what was read that it asks for.

Three rules, the most certain first: a comparison of two things that the question names; its
relations followed from a name in it, where they are all that it asks; else the candidate that
most speaks for, by a few weights, for the question as a whole and for its parts in turn.
"""

import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from qrmem.language.local.brief.candidates import Field
from qrmem.language.local.brief.comparing import compare, is_closed
from qrmem.language.local.brief.following import (
    Anchor,
    Path,
    anchors,
    asked_relations,
    follow,
    is_all,
)
from qrmem.language.local.brief.parts import Nested, nested
from qrmem.language.local.brief.told import Told, told
from qrmem.language.local.brief.weights import WEIGHTS
from qrmem.language.local.evidence import Evidence
from qrmem.language.local.query import query
from qrmem.types import Passage

_NO = re.compile(r"\b(?:no|not|never|neither|nor|none)\b", re.IGNORECASE)
_MOST_ANCHORS = 3
_MOST_INNER = 3
"""Answers to a question inside a question that are tried in its place."""

WHOLE = 0.5
"""What the question as a whole counts where there are questions inside it; those count the rest."""

Stated = tuple[tuple[Passage, str], ...]


@dataclass(frozen=True, slots=True)
class Brief:
    """A short answer, with the sentences that it rests on by their passages."""

    text: str
    stated: Stated = ()


@dataclass(frozen=True, slots=True)
class _Likely:
    """An answer and how likely it is among all that could be one."""

    brief: Brief
    share: float


def brief(question: str, passages: Sequence[Passage]) -> Brief:
    """Return the short answer to a question from passages; "" where nothing could be one."""
    among = told(passages)
    named = anchors(question, among)
    if len(named) < 2:
        named = sorted([*named, *_offered(question, named, among)], key=lambda a: a.start)
    compared = compare(question, named, among)
    if compared is not None:
        return Brief(compared.text, _passages(compared.stated))
    followed = _followed(question, named, _paths(question, named, among))
    if followed is not None:
        return followed
    if is_closed(question):
        ranked = Evidence(query(question), passages).ranked()
        said = ranked[0].text if ranked else ""
        return Brief("no" if _NO.search(said) else "yes" if said else "")
    return _best(_likely(question, passages, among), _by_parts(question, passages, among))


def _best(whole: Sequence[_Likely], by_parts: Sequence[_Likely]) -> Brief:
    """Return what is most likely as an answer to the whole and to the parts together."""
    shares: dict[str, float] = defaultdict(float)
    briefs: dict[str, Brief] = {}
    for found, weight in ((whole, WHOLE if by_parts else 1.0), (by_parts, 1 - WHOLE)):
        for likely in found:
            shares[likely.brief.text] += weight * likely.share
            briefs.setdefault(likely.brief.text, likely.brief)
    text = max(shares, key=lambda text: (round(shares[text], 9), text), default="")
    return briefs.get(text, Brief(""))


def _by_parts(question: str, passages: Sequence[Passage], among: Sequence[Told]) -> list[_Likely]:
    """Answer a question by those inside it: each answered first, its answers put in its place."""
    parts = nested(question)
    found: list[_Likely] = []
    for part in parts:
        found += _outer(part, passages, among, 1 / len(parts))
    return found


def _outer(
    part: Nested, passages: Sequence[Passage], among: Sequence[Told], share: float
) -> list[_Likely]:
    inner = sorted(_likely(part.inner, passages, among), key=lambda likely: -likely.share)
    total = sum(likely.share for likely in inner[:_MOST_INNER]) or 1.0
    found = []
    for first in inner[:_MOST_INNER]:
        weight = share * first.share / total
        for then in _likely(part.outer(first.brief.text), passages, among):
            found.append(_Likely(then.brief, weight * then.share))
    return found


def _likely(question: str, passages: Sequence[Passage], among: Sequence[Told]) -> list[_Likely]:
    """Return what could answer one question; the places of one text count together."""
    named = anchors(question, among)
    paths = _paths(question, named, among)
    followed = _followed(question, named, paths)
    if followed is not None:
        return [_Likely(followed, 1.0)]
    field = Field(Evidence(query(question), passages), among, named, paths)
    found = [(candidate, _score(candidate.features)) for candidate in field.candidates()]
    most = max((score for _, score in found), default=0.0)
    shares: dict[str, float] = defaultdict(float)
    best: dict[str, tuple[float, Brief]] = {}
    for candidate, score in found:
        key = candidate.text.casefold()
        shares[key] += math.exp(score - most)
        if key not in best or score > best[key][0]:
            stated = ((candidate.clue.passage, candidate.clue.text),)
            best[key] = score, Brief(candidate.text, stated)
    total = sum(shares.values())
    return [_Likely(best[key][1], share / total) for key, share in shares.items()]


def _score(features: Mapping[str, float]) -> float:
    return sum(WEIGHTS.get(name, 0.0) * value for name, value in features.items())


def _paths(question: str, named: Sequence[Anchor], among: Sequence[Told]) -> list[Path]:
    return [
        follow(anchor.told, asked_relations(question, (anchor.start, anchor.end)), among)
        for anchor in named[:_MOST_ANCHORS]
    ]


def _followed(question: str, named: Sequence[Anchor], paths: Sequence[Path]) -> Brief | None:
    """Return where relations led that are all that a question asks."""
    for path, anchor in zip(paths, named, strict=False):
        if path.is_through and is_all(question, anchor, path):
            return Brief(path.value, _passages(path.stated))
    return None


def _offered(question: str, named: Sequence[Anchor], among: Sequence[Told]) -> list[Anchor]:
    """Return the names that a question offers, "A or B", as what all passages tell of each."""
    found = []
    for name in query(question).names if re.search(r"\bor\b|\bboth\b", question) else ():
        at = question.find(name)
        is_taken = any(a.start < at + len(name) and at < a.end for a in named)
        last = re.compile(rf"\b{re.escape(name.split()[-1])}\b")
        telling = [
            (one, s[m.start() :]) for one in among for s in one.sentences if (m := last.search(s))
        ]
        if at >= 0 and not is_taken and among:
            passage = telling[0][0].passage if telling else among[0].passage
            own = Told(passage, name, tuple(s for _, s in telling))
            found.append(Anchor(own, at, at + len(name)))
    return found


def _passages(stated: Sequence[tuple[Told, str]]) -> Stated:
    return tuple((one.passage, sentence) for one, sentence in stated)
