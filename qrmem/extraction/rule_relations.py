"""Open relations by rules: the sentence that names two entities, or a clause of it.

If one name is the subject of a verb and the other follows in the same simple clause, the
description is that clause, directed from the subject; else it is the whole sentence.
"""

import re
from collections.abc import Iterable, Iterator

from qrmem.extraction import vocabulary as voc
from qrmem.extraction.extractive_summary import FIGURES, SegmentReading, SummarySentence, flat
from qrmem.extraction.rules_tagger import Occurrence
from qrmem.text import listed
from qrmem.types import Statement

MOST_PAIRS = 6
"""Maximum number of statements per sentence: all pairs of four names, the nearest of more."""

LONGEST = 280
"""Maximum length of a description in characters."""

_WORDS_BETWEEN = 9
"""Maximum number of words between two names for a clause of their own."""
_WORDS_AFTER = 7
"""Maximum number of words after the second name that belong to the clause; more are left out."""
_LEAD = re.compile(r"(?:^|[,;:—“]\s*|,\s(?:and|but)\s|^\W+)((?:[Tt]he\s)?)\Z")
"""Pattern of the text that may precede the subject of a clause."""
_BREAK = re.compile(r"[^\w\s'’-]|--|\s-\s")
_CLAUSE_WORDS = frozenset(listed("words-of-another-clause").split())
"""Words between two names that begin another clause."""
_PASSIVE = re.compile(r"\s(?:was|were|is|are|been)\s(?:\w+ly\s)?\w+\sby\s(?:the\s|an?\s)?")


def statements(reading: SegmentReading) -> tuple[Statement, ...]:
    """Return the statements of a segment in text order, without duplicates.

    Dates and numbers are not ends of statements; times are separate fields.
    """
    statements_by_key: dict[tuple[str, str, str], Statement] = {}
    for sentence in reading.sentences:
        for statement in _of_sentence(reading, sentence):
            statements_by_key.setdefault(
                (statement.head, statement.tail, statement.description), statement
            )
    return tuple(statements_by_key.values())


def _of_sentence(reading: SegmentReading, sentence: SummarySentence) -> Iterator[Statement]:
    name_places = [p for p in sentence.places if reading.mentions[p.entity].type not in FIGURES]
    places = _first_places(name_places)
    if len(places) < 2:
        return
    text = flat(sentence.text)
    for head, tail in _nearest(places):
        clause = _clause(sentence, head, tail)
        if clause:
            ends = (tail, head) if _is_passive(sentence, head, tail) else (head, tail)
            names = [reading.mentions[place.entity].name for place in ends]
            yield Statement(names[0], names[1], clause)
            continue
        description = text
        if len(text) > LONGEST:
            a, b = head.start - sentence.start, tail.end - sentence.start
            description = around(sentence.text, min(a, b), max(a, b))
        yield Statement(
            reading.mentions[head.entity].name, reading.mentions[tail.entity].name, description
        )


def _clause(sentence: SummarySentence, head: Occurrence, tail: Occurrence) -> str:
    """Return the clause from one name to another whose subject is the first name, or ""."""
    lead = _LEAD.search(sentence.text, 0, head.start - sentence.start)
    between = sentence.text[head.end - sentence.start : tail.start - sentence.start]
    words = between.casefold().split()
    if not lead or not words or len(words) > _WORDS_BETWEEN or not between[0].isspace():
        return ""
    if _BREAK.search(between) or not _CLAUSE_WORDS.isdisjoint(words) or not _is_verb(words[0]):
        return ""
    end = tail.end - sentence.start
    rest = _BREAK.search(sentence.text, end)
    after = rest.start() if rest else len(sentence.text)
    is_short = len(sentence.text[end:after].split()) <= _WORDS_AFTER
    clause = flat(sentence.text[lead.start(1) : after if is_short else end])
    whole = flat(sentence.text)
    return whole if whole.rstrip(".!") == clause else clause


def _is_verb(word: str) -> bool:
    """Return whether a word looks like the verb of a preceding subject."""
    if word in voc.FINITE_VERBS or (word.islower() and len(word) > 3 and word.endswith("ed")):
        return True
    is_third = word.islower() and len(word) > 3 and word[-1] == "s"
    return is_third and word[-2:] not in {"ss", "us"} and word not in voc.FUNCTION_WORDS


def _is_passive(sentence: SummarySentence, head: Occurrence, tail: Occurrence) -> bool:
    between = sentence.text[head.end - sentence.start : tail.start - sentence.start]
    return _PASSIVE.fullmatch(between) is not None


def _first_places(places: Iterable[Occurrence]) -> list[Occurrence]:
    first: dict[int, Occurrence] = {}
    for place in places:
        first.setdefault(place.entity, place)
    return list(first.values())


def _nearest(places: list[Occurrence]) -> list[tuple[Occurrence, Occurrence]]:
    """Return the pairs with the smallest distances, in text order."""
    pairs: list[tuple[int, int, int]] = []
    for step in range(1, len(places)):
        for i in range(len(places) - step):
            pairs.append((places[i + step].start - places[i].end, i, i + step))
        if len(pairs) >= MOST_PAIRS:
            break
    nearest = sorted(sorted(pairs)[:MOST_PAIRS], key=lambda pair: pair[1:])
    return [(places[i], places[j]) for _, i, j in nearest]


def around(text: str, start: int, end: int, limit: int = LONGEST) -> str:
    """Return at most `limit` characters of a text around a span, cut between words, with `…`.

    A longer span loses its middle, as both its ends matter.
    """
    if end - start > limit:
        half = limit // 2 - 2
        words_before = flat(text[start : start + half]).rpartition(" ")[0]
        right = flat(text[end - half : end]).partition(" ")[2]
        return f"{words_before} … {right}"
    spare = (limit - (end - start)) // 2
    first, last = max(0, start - spare), min(len(text), end + spare)
    while first > 0 and not text[first - 1].isspace() and first < start:
        first += 1
    while last < len(text) and not text[last].isspace() and last > end:
        last -= 1
    text_around = flat(text[first:last])
    return f"{'… ' * bool(text[:first].strip())}{text_around}{' …' * bool(text[last:].strip())}"
