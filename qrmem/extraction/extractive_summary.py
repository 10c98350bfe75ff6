"""An extractive summary: the sentences that the document's own words make central."""

from collections import Counter
from collections.abc import Callable, Sequence
from math import fsum, log

from qrmem.extraction.named_sentences import Sentence, flat, read
from qrmem.text.words import terms
from qrmem.types import Segment

LIMIT = 300
"""Tokens of a summary T."""

_FULL_LENGTH = 18
_CANDIDATES = 400
"""Segments looked at; of a longer document an even sample, so that the summary stays cheap."""


def summary(
    title: str, segments: Sequence[Segment], count: Callable[[str], int], limit: int = LIMIT
) -> str:
    """Return the most central sentences in text order, at most `limit` tokens with the title."""
    step = max(1, -(-len(segments) // _CANDIDATES))
    read_sentences = [s for segment in segments[::step] for s in read(segment.text).sentences]
    sentence_terms = [frozenset(terms(s.text)) for s in read_sentences]
    spread = Counter(term for own in sentence_terms for term in own)
    ranked = sorted(
        (-weight(sentence, own, spread), at)
        for at, (sentence, own) in enumerate(zip(read_sentences, sentence_terms, strict=True))
    )
    left = limit - count(f"{title}. ") if title else limit
    chosen: list[tuple[int, str]] = []
    covered: set[str] = set()
    for _, at in ranked[:200]:
        text = flat(read_sentences[at].text)
        if sentence_terms[at] and len(sentence_terms[at] & covered) > 0.5 * len(sentence_terms[at]):
            continue
        cost = count(f"{text} ")
        if cost <= left:
            left -= cost
            chosen.append((at, text))
            covered |= sentence_terms[at]
    body = " ".join(text for _, text in sorted(chosen))
    return f"{title}. {body}" if title and body else body


def weight(sentence: Sentence, own: frozenset[str], spread: Counter[str]) -> float:
    """How much of the document's vocabulary a sentence carries; speech tells less than telling.

    Grows with the logarithm of each word's spread, so that names and themes count and no single
    word decides, and with the sentence's length up to some twenty content words.
    """
    if not own:
        return 0.0
    carried = fsum(log(spread[term]) for term in own) / max(len(own), _FULL_LENGTH)
    names = 1 + 0.15 * min(len(sentence.entities), 4)
    return carried * names * (0.6 if sentence.text[0] in '"“‘«„' else 1.0)
