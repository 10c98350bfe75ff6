"""The outline of a file's syntax tree for relations between fragments (FragRel, appendix A)."""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from typing import NamedTuple

# Lines of a text by number, and labels such as `lines 21-40`.

_LABEL = re.compile(r"lines? (\d+)")


class Lines:
    """The starts of a text's lines; the last item of `starts` is the end of the text."""

    def __init__(self, text: str) -> None:
        lengths = [len(line) + 1 for line in text.split("\n")]
        starts = list(accumulate(lengths, initial=0))
        starts[-1] = len(text)
        self.starts = starts if len(starts) < 3 or starts[-2] < len(text) else starts[:-1]

    @property
    def count(self) -> int:
        """Number of lines; an empty rest after the last line end does not count."""
        return len(self.starts) - 1

    def at(self, offset: int) -> int:
        """Return the line of a character, from 0."""
        return min(bisect_right(self.starts, offset), self.count) - 1

    def label(self, start: int, end: int) -> str:
        """Return the label of a span's lines, counted from 1."""
        first, last = self.at(start) + 1, self.at(max(start, end - 1)) + 1
        return f"lines {first}-{last}" if last > first else f"line {first}"


def label_within(label: str, text: str, start: int, end: int) -> str:
    """Return the line label of a part of a fragment, from the label of the fragment.

    Args:
        label: label of the fragment; one without lines is returned unchanged.
        text: text of the fragment.
        start: first character of the part.
        end: the character after its last.
    """
    match = _LABEL.match(label)
    if match is None:
        return label
    first = int(match[1]) + text.count("\n", 0, start)
    last = first + text.count("\n", start, max(start, end - 1))
    return f"lines {first}-{last}" if last > first else f"line {first}"


class Definition(NamedTuple):
    """A name that can be called, and the node that defines it; `owner` is its class, or ""."""

    name: str
    node: int
    kind: str = "function"
    owner: str = ""


class CallSite(NamedTuple):
    """A call: its node in the outline, and the called name.

    Attributes:
        base: text before the dot; "" for a plain name, "?" for a computed value.
    """

    node: int
    name: str
    base: str = ""


class Import(NamedTuple):
    """An imported name: its name here, its module, and its name there.

    Attributes:
        module: parts of a path; leading dots are parts of their own, as in `..`, `a`.
        original: "" if the name is the module itself.
    """

    name: str
    module: tuple[str, ...]
    original: str = ""


@dataclass(frozen=True, slots=True)
class Outline:
    """The nodes that can be the largest within some lines, and definitions, calls and imports.

    The nodes are the root, nodes that span lines, and their children. All other nodes are on one
    line with their parent; of these, only calls are kept, with the nodes above them.

    Attributes:
        parents: parent of each node; parents come before children, and the root (-1) is first.
        starts: first character of each node.
        ends: the character after its last.
        is_broken: whether the text has syntax errors; the readable part is included.
    """

    language: str
    parents: list[int] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    definitions: list[Definition] = field(default_factory=list)
    calls: list[CallSite] = field(default_factory=list)
    imports: list[Import] = field(default_factory=list)
    is_broken: bool = False

    def depths(self) -> list[int]:
        """Return the number of definitions around each node, including itself."""
        defined = {definition.node for definition in self.definitions}
        depths: list[int] = []
        for node, parent in enumerate(self.parents):
            depths.append((depths[parent] if parent >= 0 else 0) + (node in defined))
        return depths


class Cover:
    """The nodes that represent a piece of a file: the largest fully in it, and those that span it.

    Text between them belongs to the deepest node that spans it.
    """

    def __init__(self, outline: Outline, text: str) -> None:
        self._outline = outline
        self._text = text
        self._children: list[list[int]] = [[] for _ in outline.parents]
        self._ends: list[list[int]] = [[] for _ in outline.parents]
        order = sorted(
            range(len(outline.parents)), key=lambda n: (outline.starts[n], -outline.ends[n])
        )
        for node in order:
            parent = outline.parents[node]
            # Of overlapping nodes, such as parts of an f-string, the first one counts.
            if parent >= 0 and outline.starts[node] >= (self._ends[parent] or [0])[-1]:
                self._children[parent].append(node)
                self._ends[parent].append(outline.ends[node])

    def of(self, start: int, end: int) -> dict[int, int]:
        """Return node to length, in characters, for the text from `start` to `end`."""
        lengths: dict[int, int] = {}
        for node, length in self._within(start, end):
            lengths[node] = lengths.get(node, 0) + length
        return lengths

    def _within(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield nodes with lengths; uses a stack, as code nests deeper than Python's limit."""
        stack = [0]
        while stack:
            node = stack.pop()
            first, after = self._outline.starts[node], self._outline.ends[node]
            if start <= first and after <= end:
                if after > first:
                    yield node, after - first
                continue
            at = max(start, first)
            for child in self._children[node][bisect_right(self._ends[node], start) :]:
                if self._outline.starts[child] >= end:
                    break
                yield from self._gap(node, at, self._outline.starts[child])
                stack.append(child)
                at = max(at, self._outline.ends[child])
            yield from self._gap(node, at, min(end, after))

    def _gap(self, node: int, start: int, end: int) -> Iterator[tuple[int, int]]:
        length = len(self._text[start:end].strip()) if start < end else 0
        if length:
            yield node, length
