"""What an accepted question adds to a segment's sub-graph (Q10).

The question points at the sentences that answer it. The first pass kept names only; here the things
without a capital in those sentences become entities, and a sentence that goes on about the one
before ("He …") ties the names of both together.
"""

import re
from collections.abc import Sequence

from qrmem.language import vocabulary as voc
from qrmem.language.local.reading import SegmentReading, Sentence, flat
from qrmem.language.local.statements import LONGEST, around
from qrmem.records import Contribution, Mention, Segment, Statement
from qrmem.text.words import terms

MOST_THINGS = 2
"""Entities that one question adds."""

MOST_TIES = 2
"""Statements between neighbouring sentences that one question adds."""

_THING = re.compile(
    r"\b(?:an?|the|his|her|its|their|my|our|your|this|that)\s+"
    r"((?:[a-z]+(?:-[a-z]+)*\s+){0,2}[a-z]+(?:-[a-z]+)*)(?=([^\w\s]|\s+[^\W\d_]+))"
)
_GOES_ON = re.compile(
    r"[\"'“‘*_]*(?:He|She|It|They|His|Her|Its|Their|This|That|These|Those|There|Then|But|And)\b"
)
_VERBAL = re.compile(r".*(?:ed|ing|ly)\Z")


def supplement(
    segment: Segment, reading: SegmentReading, known: Contribution, questions: Sequence[str]
) -> tuple[tuple[Mention, ...], tuple[Statement, ...]]:
    """Return mentions and statements that are not in `known`, in the order of the questions."""
    sentence_terms = [frozenset(terms(s.text)) for s in reading.sentences]
    names = {form.casefold() for m in known.mentions for form in m.forms}
    said = {(s.head, s.tail, s.description) for s in known.statements}
    mentions: list[Mention] = []
    statements: list[Statement] = []
    for question in questions:
        at = _answer(frozenset(terms(question)), sentence_terms)
        if at is None:
            continue
        for thing in _things(reading.sentences[at]):
            if thing.casefold() not in names and len(thing) > 2:
                names.add(thing.casefold())
                mentions.append(_mention(segment.text, thing, question))
                statements.extend(_tied(reading, reading.sentences[at], thing, question))
        for statement in _carried_on(reading, at, question):
            key = (statement.head, statement.tail, statement.description)
            if key not in said:
                said.add(key)
                statements.append(statement)
    return tuple(mentions), tuple(statements)


def _answer(asked: frozenset[str], sentence_terms: Sequence[frozenset[str]]) -> int | None:
    """The sentence that shares most terms with a question; the first of equals."""
    shared = [len(asked & own) for own in sentence_terms]
    best = max(shared, default=0)
    return shared.index(best) if best > 1 else None


def _things(sentence: Sentence) -> list[str]:
    """Nouns after an article or possessive, with what stands between, longest first."""
    found: dict[str, None] = {}
    for match in _THING.finditer(sentence.text):
        words = _noun_phrase(match.group(1).split())
        if words:
            found.setdefault(" ".join(words))
    return sorted(found, key=lambda thing: -len(thing.split()))[:MOST_THINGS]


def _noun_phrase(words: list[str]) -> list[str]:
    """The words up to the first that cannot belong to a noun."""
    kept: list[str] = []
    for word in words:
        if word in voc.FUNCTION_WORDS or (kept and _VERBAL.match(word)):
            break
        kept.append(word)
    return kept if kept and not _VERBAL.match(kept[-1]) else []


def _mention(text: str, thing: str, question: str) -> Mention:
    pattern = re.compile(r"\b" + r"\s+".join(map(re.escape, thing.split())) + r"\b", re.IGNORECASE)
    forms = [flat(form) for form in pattern.findall(text)] or [thing]
    ordered = dict.fromkeys([thing, *sorted(set(forms) - {thing})])
    return Mention(thing, "", tuple(ordered), len(forms), question)


def _tied(
    reading: SegmentReading, sentence: Sentence, thing: str, question: str
) -> list[Statement]:
    """The thing with the nearest name of its sentence."""
    if not sentence.places:
        return []
    match = re.search(r"\s+".join(map(re.escape, thing.split())), sentence.text)
    if match is None:
        return []
    at = sentence.start + match.start()
    nearest = min(sentence.places, key=lambda p: (abs(p.start - at), p.start))
    a, b = match.start(), match.end()
    c, d = nearest.start - sentence.start, nearest.end - sentence.start
    description = around(sentence.text, min(a, c), max(b, d))
    return [Statement(reading.mentions[nearest.entity].name, thing, description, question)]


def _carried_on(reading: SegmentReading, at: int, question: str) -> list[Statement]:
    """Names of the answering sentence with those of a next one that goes on about it."""
    if at + 1 >= len(reading.sentences):
        return []
    first, then = reading.sentences[at], reading.sentences[at + 1]
    if not (first.places and then.places and _GOES_ON.match(then.text)):
        return []
    heads = first.entities[:1]
    tails = [e for e in then.entities if e not in first.entities][:MOST_TIES]
    text = flat(f"{first.text} {then.text}")
    description = text if len(text) <= LONGEST else around(text, 0, len(text))
    return [
        Statement(reading.mentions[h].name, reading.mentions[t].name, description, question)
        for h in heads
        for t in tails
    ]
