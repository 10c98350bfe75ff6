"""Open relations: the sentence in which two entities meet is what is said of them."""

from collections.abc import Iterable, Iterator

from qrmem.extraction.named_sentences import FIGURES, SegmentReading, Sentence, flat
from qrmem.extraction.rules_tagger import Occurrence
from qrmem.types import Statement

MOST_PAIRS = 6
"""Statements of one sentence: all pairs of four names, the nearest pairs of more."""

LONGEST = 280
"""Characters of a description."""


def statements(reading: SegmentReading) -> tuple[Statement, ...]:
    """Return the statements of a segment in text order, without repeats."""
    found: dict[tuple[str, str, str], Statement] = {}
    for sentence in reading.sentences:
        for statement in _of_sentence(reading, sentence):
            found.setdefault((statement.head, statement.tail, statement.description), statement)
    return tuple(found.values())


def _of_sentence(reading: SegmentReading, sentence: Sentence) -> Iterator[Statement]:
    places = _first_places(sentence.places)
    if len(places) < 2:
        return
    text = flat(sentence.text)
    for head, tail in _nearest(reading, places):
        description = text
        if len(text) > LONGEST:
            a, b = head.start - sentence.start, tail.end - sentence.start
            description = around(sentence.text, min(a, b), max(a, b))
        yield Statement(
            reading.mentions[head.entity].name, reading.mentions[tail.entity].name, description
        )


def _first_places(places: Iterable[Occurrence]) -> list[Occurrence]:
    first: dict[int, Occurrence] = {}
    for place in places:
        first.setdefault(place.entity, place)
    return list(first.values())


def _nearest(
    reading: SegmentReading, places: list[Occurrence]
) -> list[tuple[Occurrence, Occurrence]]:
    """The pairs that stand nearest to each other, in text order."""
    pairs: list[tuple[int, int, int]] = []
    for step in range(1, len(places)):
        for i in range(len(places) - step):
            if not _are_figures(reading, places[i], places[i + step]):
                pairs.append((places[i + step].start - places[i].end, i, i + step))
        if len(pairs) >= MOST_PAIRS:
            break
    nearest = sorted(sorted(pairs)[:MOST_PAIRS], key=lambda pair: pair[1:])
    return [(places[i], places[j]) for _, i, j in nearest]


def _are_figures(reading: SegmentReading, *places: Occurrence) -> bool:
    return all(reading.mentions[place.entity].type in FIGURES for place in places)


def around(text: str, start: int, end: int, limit: int = LONGEST) -> str:
    """Return the part of a text around a span, cut at word borders, at most `limit` characters.

    A span that is longer itself loses its middle: both its ends are what matters.
    """
    if end - start > limit:
        half = limit // 2 - 2
        left = flat(text[start : start + half]).rpartition(" ")[0]
        right = flat(text[end - half : end]).partition(" ")[2]
        return f"{left} … {right}"
    spare = (limit - (end - start)) // 2
    first, last = max(0, start - spare), min(len(text), end + spare)
    while first > 0 and not text[first - 1].isspace() and first < start:
        first += 1
    while last < len(text) and not text[last].isspace() and last > end:
        last -= 1
    return flat(text[first:last])
