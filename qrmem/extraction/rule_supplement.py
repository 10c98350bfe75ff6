"""What an accepted question adds to a segment's sub-graph.

The question points at the sentences that answer it. The first pass kept names only; here the things
without a capital in those sentences become entities, and a sentence that goes on about the one
before ("He …") ties the names of both together.
"""

import re
from collections.abc import Sequence

from qrmem.extraction.named_sentences import FIGURES, SegmentReading, Sentence, flat
from qrmem.extraction.noun_phrases import Thing, forms_of, things
from qrmem.extraction.rule_relations import LONGEST, around
from qrmem.text.words import terms
from qrmem.types import Contribution, Mention, Segment, Statement

MOST_THINGS = 2
"""Entities that one question adds."""

MOST_TIES = 2
"""Statements between neighbouring sentences that one question adds."""

_GOES_ON = re.compile(
    r"[\"'“‘*_]*(?:He|She|It|They|His|Her|Its|Their|This|That|These|Those|There|Then|But|And)\b"
)


def supplement(
    segment: Segment, reading: SegmentReading, known: Contribution, questions: Sequence[str]
) -> tuple[tuple[Mention, ...], tuple[Statement, ...]]:
    """Return mentions and statements that are not in `known`, in the order of the questions."""
    text = flat(segment.text)
    sentence_terms = [frozenset(terms(s.text)) for s in reading.sentences]
    names = {form.casefold() for m in known.mentions for form in m.forms}
    said = {(s.head, s.tail, s.description) for s in known.statements}
    mentions: list[Mention] = []
    statements: list[Statement] = []
    for question in questions:
        asked = frozenset(terms(question))
        at = _answer(asked, sentence_terms)
        if at is None:
            continue
        sentence = reading.sentences[at]
        for thing in _told(sentence, asked, text):
            if thing.text not in names:
                names.add(thing.text)
                mentions.append(_mention(text, thing.text, question))
                statements.extend(_tied(reading, sentence, thing, question))
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


def _told(sentence: Sentence, asked: frozenset[str], text: str) -> list[Thing]:
    """The things worth an entity: asked for, of several words, or coming back in the segment."""
    found = []
    for thing in things(sentence):
        is_asked = asked.issuperset(terms(thing.text))
        if " " in thing.text or is_asked or len(forms_of(thing.text, text)) > 1:
            found.append(thing)
    return found[:MOST_THINGS]


def _mention(text: str, thing: str, question: str) -> Mention:
    forms = forms_of(thing, text) or [thing]
    ordered = dict.fromkeys([thing, *sorted(set(forms) - {thing})])
    return Mention(thing, "", tuple(ordered), len(forms), question)


def _tied(
    reading: SegmentReading, sentence: Sentence, thing: Thing, question: str
) -> list[Statement]:
    """The thing with the nearest name of its sentence, rather than with a date or number."""
    if not sentence.places:
        return []
    at = sentence.start + thing.start
    nearest = min(
        sentence.places,
        key=lambda p: (reading.mentions[p.entity].type in FIGURES, abs(p.start - at), p.start),
    )
    c, d = nearest.start - sentence.start, nearest.end - sentence.start
    description = around(sentence.text, min(thing.start, c), max(thing.end, d))
    return [Statement(reading.mentions[nearest.entity].name, thing.text, description, question)]


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
