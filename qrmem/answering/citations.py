"""Locates quotations in the segments that were read, exactly or by alignment."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from rapidfuzz import fuzz

from qrmem.text.code.outline import label_within
from qrmem.text.words import terms
from qrmem.types import Citation, Passage, Quote

ALIKE = 90.0
"""Least alignment, of 100, for a quotation that is not verbatim."""
SHORTEST = 12
"""Minimum length in characters of a quotation that may be aligned: short ones align anywhere."""

_ELISION = re.compile(r"\[?…\]?|\[?\.{3,}\]?")


_MARKS = ("'’‘`´", '"“”„«»', "-‐‑–—")
"""Quotation marks and dashes that models interchange."""
_MARK = re.compile("|".join(rf"\\?[{re.escape(marks)}]" for marks in _MARKS))


def locate(quotes: Sequence[Quote], passages: Sequence[Passage]) -> list[Citation]:
    """Return citations with exact offsets into the documents' texts, in the quotes' order.

    The labelled passage is searched first, then the others, because models confuse labels. A
    quotation with an elision is located part by part. A quotation that is not found is dropped.
    """
    citations: dict[tuple[str, int, int], Citation] = {}
    for quote in quotes:
        for citation in _located(quote, passages):
            key = (citation.segment_id, citation.start, citation.end)
            citations.setdefault(key, citation)
    return list(citations.values())


def whole(passage: Passage) -> Citation:
    """Return a citation of a whole segment, marked as one."""
    segment = passage.segment
    return cite(passage, 0, len(segment.text), is_whole=True)


def supporting(words: str, quotes: Sequence[Quote], passages: Sequence[Passage]) -> list[Passage]:
    """Return the passages to cite whole if no quotation could be located.

    These are the passages that the quotations name, else the one that shares most words with the
    answer and its reason; ties go to the earlier one.
    """
    labels = {quote.label for quote in quotes}
    cited_passages = [passage for passage in passages if passage.label in labels]
    if cited_passages or not passages:
        return cited_passages
    answer_terms = set(terms(words))
    shared = [len(answer_terms & set(terms(passage.segment.text))) for passage in passages]
    return [passages[shared.index(max(shared))]]


def _located(quote: Quote, passages: Sequence[Passage]) -> Iterator[Citation]:
    labelled = [passage for passage in passages if passage.label == quote.label]
    if labelled and (span := _verbatim(quote.text, labelled[0].segment.text)):
        yield replace(cite(labelled[0], *span), matches=quote.matches)
        return
    for part in _parts(quote.text):
        citation = _first(part, quote.label, passages)
        if citation is not None:
            yield citation


def _parts(text: str) -> Iterator[str]:
    parts = [part for one in _ELISION.split(text) if (part := one.strip())]
    # A short piece beside an elision does not identify the place of the quotation.
    yield from (part for part in parts if len(parts) == 1 or len(part) >= SHORTEST)


def _first(text: str, label: str, passages: Sequence[Passage]) -> Citation | None:
    order = sorted(passages, key=lambda passage: passage.label != label)
    for search in (_verbatim, _loosely, _aligned):
        for passage in order:
            span = search(text, passage.segment.text)
            if span is not None:
                return cite(passage, *span)
    return None


def _verbatim(quote: str, text: str) -> tuple[int, int] | None:
    at = text.find(quote)
    return None if at < 0 else (at, at + len(quote))


def _loosely(quote: str, text: str) -> tuple[int, int] | None:
    """Find a quotation that differs only in spaces, case or quotation marks."""
    words = quote.split()
    if not words:
        return None
    pattern = r"\s+".join(_MARK.sub(_any_mark, re.escape(word)) for word in words)
    match = re.search(pattern, text, re.IGNORECASE)
    return match.span() if match else None


def _any_mark(match: "re.Match[str]") -> str:
    char = match.group()[-1]
    return next(f"[{re.escape(marks)}]" for marks in _MARKS if char in marks)


def _aligned(quote: str, text: str) -> tuple[int, int] | None:
    if len(quote) < SHORTEST or len(quote) > len(text) * 1.1:
        return None
    alignment = fuzz.partial_ratio_alignment(quote, text, score_cutoff=ALIKE)
    if alignment is None or alignment.dest_end <= alignment.dest_start:
        return None
    return _to_words(text, alignment.dest_start, alignment.dest_end)


def _to_words(text: str, start: int, end: int) -> tuple[int, int]:
    """Widen a span to whole words, without the space around it."""
    while start > 0 and text[start - 1].isalnum() and text[start].isalnum():
        start -= 1
    while end < len(text) and text[end - 1].isalnum() and text[end].isalnum():
        end += 1
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end


def cite(passage: Passage, start: int, end: int, *, is_whole: bool = False) -> Citation:
    """Return the citation of a part of a passage, given by offsets in the segment's text."""
    segment = passage.segment
    return Citation(
        document_id=segment.document_id,
        segment_id=segment.id,
        start=segment.start + start,
        end=segment.start + end,
        quote=segment.text[start:end],
        title=passage.title,
        part=label_within(segment.part, segment.text, start, end),
        whole=is_whole,
    )
