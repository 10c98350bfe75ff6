"""Reading by rules: sentences with their entities, the relations that they state, and a summary.

A relation is open: its description is the sentence that names two entities, or a clause of it. If
one name is the subject of a verb and the other follows in the same simple clause, it is that
clause, directed from the subject; else it is the whole sentence. The summary of a document is its
most central sentences.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import fsum, log

from qrmem.extraction import vocabulary as voc
from qrmem.extraction.rules_tagger import Occurrence, Tagged, tagged
from qrmem.text import listed
from qrmem.text.boilerplate import apparatus
from qrmem.text.sentences import sentences
from qrmem.text.words import terms
from qrmem.types import Mention, Segment, Statement
from qrmem.types.knowledge_graph import SPEAKER

# A segment in the local reasoner: its sentences, and the names in them.

FIGURES = frozenset({"DATE", "NUMBER"})
"""Types that the rules do not use as an end of a relation: "1884" and "31 metres"."""

_SELF = re.compile(r"\b(?:I|[Mm]e|[Mm]y|[Mm]ine|[Mm]yself)\b(?![.&])")


@dataclass(frozen=True, slots=True)
class SummarySentence:
    """One sentence of a segment.

    Attributes:
        start: offset in the segment, without leading white space.
        text: the text without white space around it.
        places: occurrences of entities, in order, with offsets in the segment.
    """

    start: int
    end: int
    text: str
    places: tuple[Occurrence, ...]

    @property
    def entities(self) -> tuple[int, ...]:
        """The entities in the sentence, in order of first occurrence."""
        return tuple(dict.fromkeys(place.entity for place in self.places))


@dataclass(frozen=True, slots=True)
class SegmentReading:
    """The entities and sentences of a segment."""

    sentences: tuple[SummarySentence, ...]
    mentions: tuple[Mention, ...]


@lru_cache(maxsize=512)
def read(text: str) -> SegmentReading:
    """Return the sentences of a segment with the entities in each."""
    tags = tagged(text)
    return SegmentReading(tuple(_sentences(text, tags)), tags.mentions)


def read_with(text: str, others: Sequence[Mention], speaker: str = "") -> SegmentReading:
    """Return the reading of a segment with the entities and types of another tagger added.

    Args:
        text: the segment.
        others: entities of the other tagger.
        speaker: name of the person that "I" refers to; this name is always an entity.
    """
    read_result = _read_with(text, others)
    return _said_by(speaker, text, read_result) if speaker else read_result


def _said_by(speaker: str, text: str, found: SegmentReading) -> SegmentReading:
    places = [place for sentence in found.sentences for place in sentence.places]
    spans = [m.span() for m in _SELF.finditer(text) if _is_free(m.span(), places)]
    mentions_of_speaker = (n for n, m in enumerate(found.mentions) if _is_called(m, speaker))
    at = next(mentions_of_speaker, len(found.mentions))
    mentions = list(found.mentions)
    if at == len(mentions):
        mentions.append(Mention(speaker, "PERSON", SPEAKER, max(1, len(spans))))
    places += [Occurrence(a, b, at) for a, b in spans]
    places.sort(key=lambda place: (place.start, place.end))
    tagged_so = Tagged(tuple(mentions), tuple(places))
    return SegmentReading(tuple(_sentences(text, tagged_so)), tuple(mentions))


def _is_called(mention: Mention, name: str) -> bool:
    return name.casefold() in {form.casefold() for form in (mention.name, *mention.forms)}


def _read_with(text: str, others: Sequence[Mention]) -> SegmentReading:
    own_tags = tagged(text)
    if not others or tuple(others) == own_tags.mentions:
        return read(text)
    own_forms = {form.casefold() for mention in own_tags.mentions for form in mention.forms}
    new = [m for m in others if not own_forms & {form.casefold() for form in (m.name, *m.forms)}]
    types = {form.casefold(): m.type for m in others for form in m.forms}
    mentions = [
        m if m.type else replace(m, type=types.get(m.name.casefold(), ""))
        for m in own_tags.mentions
    ]
    if not new and tuple(mentions) == own_tags.mentions:
        return read(text)
    places = list(own_tags.occurrences)
    for mention in new:
        spans = [span for span in _spans(text, mention) if _is_free(span, places)]
        if spans:
            places.extend(Occurrence(a, b, len(mentions)) for a, b in spans)
            mentions.append(mention)
    places.sort(key=lambda place: (place.start, place.end))
    return SegmentReading(
        tuple(_sentences(text, Tagged(tuple(mentions), tuple(places)))), tuple(mentions)
    )


def _spans(text: str, mention: Mention) -> list[tuple[int, int]]:
    forms = sorted({mention.name, *mention.forms}, key=lambda form: (-len(form), form))
    spelled = "|".join(r"\s+".join(map(re.escape, form.split())) for form in forms if form.strip())
    return [m.span() for m in re.finditer(rf"(?<!\w)(?:{spelled})(?!\w)", text)] if spelled else []


def _is_free(span: tuple[int, int], places: Sequence[Occurrence]) -> bool:
    return not any(place.start < span[1] and span[0] < place.end for place in places)


def _sentences(text: str, found: Tagged) -> list[SummarySentence]:
    """Return the sentences of a text, without headings and other boilerplate."""
    result, at, places = [], 0, found.occurrences
    skipped = apparatus(text)
    for start, end in sentences(text):
        raw = text[start:end]
        inner = raw.strip()
        start += len(raw) - len(raw.lstrip())
        first = at
        while at < len(places) and places[at].start < end:
            at += 1
        is_read = not any(a <= start and start + len(inner) <= b for a, b in skipped)
        if inner and is_read:
            result.append(SummarySentence(start, start + len(inner), inner, places[first:at]))
    return result


def flat(text: str) -> str:
    """Return a text with every run of white space as one space."""
    return " ".join(text.split())


LIMIT = 300
"""Maximum number of tokens of a summary T."""

_FULL_LENGTH = 18
_CANDIDATES = 400
"""Maximum number of segments to read; of a longer document an even sample is read."""


def summary(
    title: str, segments: Sequence[Segment], count: Callable[[str], int], limit: int = LIMIT
) -> str:
    """Return the most central sentences in text order, at most `limit` tokens with the title."""
    step = max(1, -(-len(segments) // _CANDIDATES))
    read_sentences = [s for segment in segments[::step] for s in read(segment.text).sentences]
    sentence_terms = [frozenset(terms(s.text)) for s in read_sentences]
    spread = Counter(term for terms_here in sentence_terms for term in terms_here)
    ranked = sorted(
        (-weight(sentence, terms_here, spread), at)
        for at, (sentence, terms_here) in enumerate(
            zip(read_sentences, sentence_terms, strict=True)
        )
    )
    tokens_left = limit - count(f"{title}. ") if title else limit
    sentences_chosen: list[tuple[int, str]] = []
    covered: set[str] = set()
    for _, at in ranked[:200]:
        text = flat(read_sentences[at].text)
        if sentence_terms[at] and len(sentence_terms[at] & covered) > 0.5 * len(sentence_terms[at]):
            continue
        cost = count(f"{text} ")
        if cost <= tokens_left:
            tokens_left -= cost
            sentences_chosen.append((at, text))
            covered |= sentence_terms[at]
    body = " ".join(text for _, text in sorted(sentences_chosen))
    return f"{title}. {body}" if title and body else body


def weight(sentence: SummarySentence, own: frozenset[str], spread: Counter[str]) -> float:
    """Return how central a sentence is to its document; direct speech counts less.

    The weight grows with the logarithm of each word's spread, so that no single word decides. It
    grows with the number of content words up to about twenty.
    """
    if not own:
        return 0.0
    carried = fsum(log(spread[term]) for term in own) / max(len(own), _FULL_LENGTH)
    names = 1 + 0.15 * min(len(sentence.entities), 4)
    return carried * names * (0.6 if sentence.text[0] in '"“‘«„' else 1.0)


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
