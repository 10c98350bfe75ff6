"""Cuts a document into segments, the static memory (QRMeM, section 2.1).

Whole sentences are packed up to the limit. A segment never crosses a part of the document (page,
chapter) or a passage of a joined context. A sentence whose text hashes to a fixed
value starts a new segment early. So after an edit the old cuts soon recur, and only
the segments near the edit are new.
"""

import hashlib
import re
import zlib
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from qrmem.text.code import Definition, Outline
from qrmem.text.code.outline import Lines
from qrmem.text.headings import headings
from qrmem.text.sentences import sentences
from qrmem.types import Contribution, Document, Mention, Part, Segment, Statement, Tokenizer

# LongBench's words and chunks, which are FragRel's fragments (FragRel, section 4.1).

_WORD = re.compile(
    r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]|[^\W\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+"
)
_SENTENCE = re.compile(r"[^.!?;\n。！？；]*(?:[.!?;\n。！？；]|$)")


def longbench_words(text: str) -> list[str]:
    """Return the words of a text in lower case; every CJK character is one."""
    return _WORD.findall(text.lower())


def chunks(text: str, size: int) -> Iterator[tuple[int, int]]:
    """Yield the spans of whole sentences with at most `size` words; together they cover the text.

    A sentence ends with its mark, a semicolon or a line; a longer sentence is its own chunk.
    """
    start = end = total = 0
    for match in _SENTENCE.finditer(text):
        count = len(longbench_words(match[0]))
        if total and total + count > size:
            yield start, end
            start, total = end, 0
        end, total = match.end(), total + count
    if end > start:
        yield start, end


MILESTONE = 256
"""One of this many sentences starts a segment early, if the previous one is at least half full."""

_SLACK = 2
_SOLID = re.compile(r"\S")
_WINDOW = 8
_SHORT = 3
"""A section smaller than this share of the limit is one segment."""


def cut(document_id: str, document: Document, tokenizer: Tokenizer, limit: int) -> list[Segment]:
    """Cut a document into segments of at most `limit` tokens, in order.

    Together the segments cover the text: white space belongs to the segment before it. A sentence
    above the limit is cut between words, a word above the limit between characters.

    Args:
        document_id: part of the segments' ids, with text and number of the occurrence.
        document: a document with normalised text; without parts, its headings are used as parts.
        tokenizer: counts the segments' sizes.
        limit: upper bound of a segment in tokens.

    Returns:
        The segments in order; none for a text of white space.
    """
    text, headings_found = document.text, headings(document.text)
    parts = document.parts or headings_found
    packing = _Packing(text, tokenizer, limit)
    pieces = (
        piece
        for start, end in _sections(text, [*document.parts, *headings_found])
        for piece in packing.pieces(start, end)
    )
    return _numbered(document_id, text, parts, pieces)


def cut_words(
    document_id: str, document: Document, tokenizer: Tokenizer, words: int
) -> list[Segment]:
    """Cut a document like LongBench: whole sentences up to a number of words.

    A longer sentence is its own segment, whatever its size.
    """
    text = document.text
    parts = document.parts or headings(text)
    pieces = (
        Piece(start, end, tokenizer.count(text[start:end]))
        for start, end in chunks(text, words)
        if text[start:end].strip()
    )
    return _numbered(document_id, text, parts, pieces)


def _numbered(
    document_id: str, text: str, parts: Sequence[Part], pieces: Iterable["Piece"]
) -> list[Segment]:
    return numbered(
        document_id, text, pieces, lambda piece: _label(parts, piece.end - _solid(text, piece))
    )


def _solid(text: str, piece: "Piece") -> int:
    return len(text[piece.start : piece.end].lstrip())


def numbered(
    document_id: str, text: str, pieces: Iterable["Piece"], part: Callable[["Piece"], str]
) -> list[Segment]:
    """Return pieces of a document's text as its segments.

    Args:
        document_id: id of the document.
        text: text of the document.
        pieces: the pieces.
        part: returns the `part` of a piece.
    """
    segments: list[Segment] = []
    counts: Counter[str] = Counter()
    for piece in pieces:
        piece_text = text[piece.start : piece.end]
        segments.append(
            Segment(
                id=_identity(document_id, piece_text, counts[piece_text]),
                document_id=document_id,
                index=len(segments),
                start=piece.start,
                end=piece.end,
                text=piece_text,
                tokens=piece.tokens,
                part=part(piece),
            )
        )
        counts[piece_text] += 1
    return segments


def _identity(document_id: str, text: str, occurrence: int) -> str:
    whole = f"{document_id}\0{text}\0{occurrence}"
    return hashlib.sha256(whole.encode()).hexdigest()[:16]


def _label(parts: Sequence[Part], place: int) -> str:
    at = bisect_right(parts, place, key=lambda part: part.start)
    return parts[at - 1].label if at else ""


def _sections(text: str, parts: Sequence[Part]) -> Iterator[tuple[int, int]]:
    """Yield the spans that no segment may cross; none is blank."""
    solid = (_SOLID.search(text, part.start) for part in parts)
    blank = len(text) - len(text.lstrip())
    starts = {match.start() for match in solid if match and match.start() > blank}
    if blank < len(text):
        yield from pairwise([0, *sorted(starts), len(text)])


@dataclass(frozen=True, slots=True)
class Piece:
    """A span with its size: exact, or for a sentence with the white space before it."""

    start: int
    end: int
    tokens: int


@dataclass(frozen=True, slots=True)
class _Packing:
    text: str
    tokenizer: Tokenizer
    limit: int

    def pieces(self, start: int, end: int) -> Iterator[Piece]:
        """Yield the segments of a section: sentences are counted once, each segment once more."""
        if end - start <= self.limit * _SHORT:
            tokens = self.tokenizer.count(self.text[start:end])
            if tokens * _SHORT <= self.limit:  # far below the size at which a segment may end
                yield Piece(start, end, tokens)
                return
        pending: list[Piece] = []
        total = 0
        for unit in self._units(start, end):
            while pending and self._is_full(total, unit):
                closed = self._closed(pending)
                yield closed
                pending = [piece for piece in pending if piece.start >= closed.end]
                total = sum(piece.tokens for piece in pending)
            pending.append(unit)
            total += unit.tokens
        while pending:
            closed = self._closed(pending)
            yield closed
            pending = [piece for piece in pending if piece.start >= closed.end]

    def _is_full(self, total: int, unit: Piece) -> bool:
        if total + unit.tokens > self.limit - _SLACK:
            return True
        if total * 2 < self.limit:
            return False
        unit_text = self.text[unit.start : unit.end].strip()
        return zlib.crc32(unit_text.encode()) % MILESTONE == 0

    def _closed(self, pending: Sequence[Piece]) -> Piece:
        """Return as many of the sentences as fit by an exact count; at least the first."""
        for last in range(len(pending) - 1, -1, -1):
            span = Piece(pending[0].start, pending[last].end, 0)
            tokens = self.tokenizer.count(self.text[span.start : span.end])
            if tokens <= self.limit or not last:
                break
        return Piece(span.start, span.end, tokens)

    def _units(self, start: int, end: int) -> Iterator[Piece]:
        """Yield sentences, and the pieces of those that are too long.

        A sentence is counted with the white space before it instead of after it. Tokens begin with
        a space, so the counts add up to that of the whole.
        """
        text = self.text[start:end]
        before = 0
        for first, after in sentences(text):
            content = first + len(text[first:after].rstrip())
            tokens = self.tokenizer.count(text[before:content])
            if tokens > self.limit - _SLACK or after - content > self.limit:
                yield from self._cut_up(start + first, start + after)
            else:
                yield Piece(start + first, start + after, tokens)
            before = content

    def _cut_up(self, start: int, end: int) -> Iterator[Piece]:
        """Yield pieces within the limit, cut at words where there are any."""
        while start < end:
            window = self.text[start : min(end, start + self.limit * _WINDOW)]
            piece = self.tokenizer.cut(window, self.limit) or window[0]
            if start + len(piece) < end:
                piece = _to_word(piece, self.text[start + len(piece)])
            yield Piece(start, start + len(piece), self.tokenizer.count(piece))
            start += len(piece)


def _to_word(piece: str, following: str) -> str:
    """Return a piece without the word that it cuts through, if it has another."""
    if piece[-1].isspace() or following.isspace():
        return piece
    whole = piece[: len(piece) - len(piece.rsplit(None, 1)[-1])]
    return whole if whole.strip() else piece


# --- Source files: fragments by lines or by definition, with definitions and calls


LINES = 20
"""Number of lines of a fragment (FragRel, B.2)."""
OVERLAP = 10

CodeFragments = Literal["lines", "definitions"]


def cut_code(
    document_id: str,
    document: Document,
    outline: Outline,
    how: CodeFragments,
    tokenizer: Tokenizer,
    limit: int,
) -> list[Segment]:
    """Cut a source file into fragments, in order; the `part` of each has its lines.

    Args:
        document_id: id of the document.
        document: the source file.
        outline: outline of the file.
        how: by lines, 20 with an overlap of 10; or by definition, from one function or
            class to the next, without overlap.
        tokenizer: counts tokens.
        limit: upper bound of a fragment in tokens; a longer one is halved.
    """
    lines = Lines(document.text)
    spans = _windows(lines.count) if how == "lines" else _definitions(outline, lines)
    cutting = _Cutting(document.text, lines, tokenizer, limit)
    pieces = (piece for first, last in spans for piece in cutting.pieces(first, last))
    return numbered(
        document_id, document.text, pieces, lambda piece: lines.label(piece.start, piece.end)
    )


def _windows(lines: int) -> Iterator[tuple[int, int]]:
    """Yield windows of lines: the first, and the one after the last."""
    for first in range(0, max(lines - OVERLAP, 1), LINES - OVERLAP):
        yield first, min(first + LINES, lines)


def _definitions(outline: Outline, lines: Lines) -> Iterator[tuple[int, int]]:
    depths = outline.depths()
    nodes = [d.node for d in outline.definitions if depths[d.node] <= 2 or d.owner]
    firsts = {lines.at(outline.starts[node]) for node in nodes}
    yield from pairwise([0, *sorted(firsts - {0}), lines.count])


@dataclass(frozen=True, slots=True)
class _Cutting:
    text: str
    lines: Lines
    tokenizer: Tokenizer
    limit: int

    def pieces(self, first: int, last: int) -> Iterator[Piece]:
        """Yield a window of lines: whole, or in as many pieces as the limit requires."""
        start, end = self.lines.starts[first], self.lines.starts[last]
        tokens = self.tokenizer.count(self.text[start:end])
        if not self.text[start:end].strip():
            return
        if tokens <= self.limit:
            yield Piece(start, end, tokens)
        elif last - first > 1:
            middle = (first + last) // 2
            yield from self.pieces(first, middle)
            yield from self.pieces(middle, last)
        else:
            yield from self._characters(start, end)

    def _characters(self, start: int, end: int) -> Iterator[Piece]:
        while start < end:
            piece = self.tokenizer.cut(self.text[start:end], self.limit) or self.text[start]
            yield Piece(start, start + len(piece), self.tokenizer.count(piece))
            start += len(piece)


def read_code(outline: Outline, segments: Sequence[Segment]) -> list[Contribution]:
    """Return the contribution of each fragment: its definitions, and their calls.

    Calls are included if the file determines their target: a definition in it, or an imported name.
    """
    names_known = {d.name for d in outline.definitions} | {i.name for i in outline.imports}
    defined = {d.node: d for d in outline.definitions}
    calls = [
        (outline.starts[call.node], caller.name, call.name)
        for call in outline.calls
        if call.name in names_known and (caller := _around(outline, defined, call.node)) is not None
    ]
    # A constructor is called by the name of its class.
    kinds = {d.name: "FUNCTION" for d in outline.definitions}
    kinds |= {d.name: "CLASS" for d in outline.definitions if d.kind == "class"}
    return [_contribution(outline, calls, kinds, segment) for segment in segments]


def _contribution(
    outline: Outline,
    calls: Sequence[tuple[int, str, str]],
    kinds: Mapping[str, str],
    segment: Segment,
) -> Contribution:
    here = range(segment.start, segment.end)
    names = {d.name for d in outline.definitions if outline.starts[d.node] in here}
    calls_made = {(caller, name) for at, caller, name in calls if at in here and caller != name}
    names |= {name for pair in calls_made for name in pair}
    mentions = [
        Mention(name, kinds.get(name, ""), (name,), count)
        for name in sorted(names)
        if (count := segment.text.count(name))
    ]
    inside = {mention.name for mention in mentions}
    statements = [
        Statement(caller, name, f"{caller} calls {name}")
        for caller, name in sorted(calls_made)
        if {caller, name} <= inside
    ]
    return Contribution(segment.id, "extraction", tuple(mentions), tuple(statements))


def _around(outline: Outline, defined: Mapping[int, Definition], node: int) -> Definition | None:
    """Return the innermost definition around a node."""
    while node >= 0:
        if node in defined:
            return defined[node]
        node = outline.parents[node]
    return None
