"""Source files in a memory: fragments by lines or by definition, with definitions and calls."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from qrmem.graph.segmenting import Piece, numbered
from qrmem.text.code import Definition, Outline
from qrmem.text.code.outline import Lines
from qrmem.types import Contribution, Document, Mention, Segment, Statement, Tokenizer

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
