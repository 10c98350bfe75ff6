"""The short answer to a question: the span of what was read that it asks for.

Three rules, the most certain first: a comparison of two things that the question names; its
relations followed from a name in it, where they are all that it asks; else the candidate that
most speaks for, by a few weights.
"""

import math
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from qrmem.language.local.brief.candidates import Candidate, Field
from qrmem.language.local.brief.comparing import compare, is_closed
from qrmem.language.local.brief.following import (
    Anchor,
    Path,
    anchors,
    asked_relations,
    follow,
    is_all,
)
from qrmem.language.local.brief.told import Told, told
from qrmem.language.local.brief.weights import WEIGHTS
from qrmem.language.local.evidence import Evidence
from qrmem.language.local.query import query
from qrmem.ports import Passage

_NO = re.compile(r"\b(?:no|not|never|neither|nor|none)\b", re.IGNORECASE)
_MOST_ANCHORS = 3


@dataclass(frozen=True, slots=True)
class Brief:
    """A short answer, with the sentences that it rests on by their passages."""

    text: str
    stated: tuple[tuple[Passage, str], ...] = ()


def brief(question: str, passages: Sequence[Passage]) -> Brief:
    """Return the short answer to a question from passages; "" where nothing could be one."""
    among = told(passages)
    named = anchors(question, among)
    if len(named) < 2:
        named = sorted([*named, *_offered(question, named, among)], key=lambda a: a.start)
    compared = compare(question, named, among)
    if compared is not None:
        return Brief(compared.text, _passages(compared.stated))
    paths = [_path(question, anchor, among) for anchor in named[:_MOST_ANCHORS]]
    for path, anchor in zip(paths, named, strict=False):
        if path.is_through and is_all(question, anchor, path):
            return Brief(path.value, _passages(path.stated))
    evidence = Evidence(query(question), passages)
    best = _best(list(Field(evidence, among, named, paths).candidates()))
    if is_closed(question):
        ranked = evidence.ranked()
        said = ranked[0].text if ranked else ""
        return Brief("no" if _NO.search(said) else "yes" if said else "")
    return Brief(best.text, ((best.clue.passage, best.clue.text),)) if best else Brief("")


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


def _path(question: str, anchor: Anchor, among: Sequence[Told]) -> Path:
    return follow(anchor.told, asked_relations(question, (anchor.start, anchor.end)), among)


def _passages(stated: Sequence[tuple[Told, str]]) -> tuple[tuple[Passage, str], ...]:
    return tuple((one.passage, sentence) for one, sentence in stated)


def _best(found: Sequence[Candidate]) -> Candidate | None:
    """Return the candidate that most speaks for; the places of one text count together."""
    if not found:
        return None
    scores = [
        sum(WEIGHTS.get(name, 0.0) * value for name, value in candidate.features.items())
        for candidate in found
    ]
    most = max(scores)
    totals: dict[str, float] = defaultdict(float)
    for candidate, score in zip(found, scores, strict=True):
        totals[candidate.text.casefold()] += math.exp(score - most)
    text = max(totals, key=lambda name: (round(totals[name], 9), name))
    best = max(range(len(found)), key=lambda n: (found[n].text.casefold() == text, scores[n], -n))
    return found[best]
