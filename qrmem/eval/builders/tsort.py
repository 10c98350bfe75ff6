"""TSort: consecutive pieces of a book in random order, to be sorted (Ada-LEval, section 3.3)."""

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

from qrmem.errors import UsageError
from qrmem.eval.builders.book_paragraphs import Book, book_files, books
from qrmem.eval.builders.writing import BuiltSet, case_files, counter_of, lengths_of
from qrmem.eval.registry import builder

PROMPT = 200
"""Tokens reserved for the instructions: the length minus the sum of Table 11's limits."""
_AROUND = ((2000, 200), (4000, 300), (8000, 400))
_MOST_AROUND = 500
_LONG = 32_000
"""From this length on the distance between cases is doubled."""
_SEAM = 1
"""Tokens of a break between two paragraphs."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Maximum tokens of the text before, of a segment and of the text after; stride of starts."""

    before: int
    segment: int
    after: int
    stride: int


@dataclass(frozen=True, slots=True)
class Cut:
    """A case as bounds in its book: n + 3 paragraph numbers for n segments."""

    start: int
    bounds: tuple[int, ...]
    tokens: int


def limits(length: int, parts: int) -> Limits:
    """Return the limits of Table 11, for any length and number of parts.

    Raises:
        UsageError: the length leaves no room.
    """
    around = next((size for most, size in _AROUND if length <= most), _MOST_AROUND)
    around = min(around, length // 10)
    segment = (length - PROMPT - 2 * around) // parts
    if segment < 20:
        raise UsageError(
            f"a length of {length} tokens leaves no room for {parts} parts beside the prompt's "
            f"{PROMPT}; use a longer one"
        )
    return Limits(around, segment, around, 128 if length >= _LONG else 64)


@builder("tsort", "TSort: parts of a book to be put in order (Ada-LEval)", is_repeatable=True)
def build(
    data: Path,
    out: Path,
    *,
    length: str = "8k",
    seed: int = 0,
    count: int = 0,
    parts: int = 4,
    stride: int = 0,
    tokenizer: str = "auto",
) -> BuiltSet:
    """Write `tsort_LENGTH.jsonl` for each length.

    Args:
        data: a book, or a folder of books (see `qrmem.eval.builders.book_paragraphs`).
        length: number of tokens of a case with its prompt: `8k`, or several separated by commas.
        seed: seed of the order of parts, and of the choice of cases.
        count: maximum number of cases per length; 0 for all.
        parts: number of segments to sort.
        stride: number of paragraphs between the starts of two cases; 0 uses the paper's, 64, or 128
            from 32k on.
        tokenizer: `auto` is cl100k if its file is on the machine, else the built-in counter.

    Raises:
        UsageError: no case can be made; the message says why.
    """
    counter = counter_of(tokenizer)
    if not 2 <= parts <= 7:
        raise UsageError(f"parts are 2 to 7, not {parts}")
    bounds = {name: limits(tokens, parts) for name, tokens in lengths_of(length).items()}
    left_out: Counter[str] = Counter()
    cuts: Places = {name: {} for name in bounds}
    for n, book in enumerate(books(data, left_out)):
        sums = [0, *accumulate(counter.count(text) + _SEAM for text in book.paragraphs)]
        for name, limit in bounds.items():
            for cut in _of_book(book, sums, limit, parts, stride or limit.stride, left_out):
                cuts[name][n, cut.start] = cut
    empty = [name for name, book_cuts in cuts.items() if not book_cuts]
    if empty:
        raise UsageError(_why(data, empty[0], left_out))
    if count:
        cuts = {
            name: _sample_cuts(book_cuts, count, f"{seed}:{name}")
            for name, book_cuts in cuts.items()
        }
    return BuiltSet(counter, book_files(data), _write(data, out, cuts, seed), left_out)


Place = tuple[int, int]
"""Number of the book and of the first paragraph."""
Places = dict[str, dict[Place, Cut]]
"""Length to start to case; texts are not kept."""


def _sample_cuts(cuts: Mapping[Place, Cut], count: int, seed: str) -> dict[Place, Cut]:
    sampled = random.Random(seed).sample(sorted(cuts), min(count, len(cuts)))
    return {place: cuts[place] for place in sorted(sampled)}


def _of_book(
    book: Book,
    sums: Sequence[int],
    limit: Limits,
    parts: int,
    step: int,
    left_out: Counter[str],
) -> Iterator[Cut]:
    sizes = [limit.before, *[limit.segment] * parts, limit.after]
    last = len(sums) - 1
    for start in range(0, max(1, last), step):
        bounds = [start]
        for size in sizes:
            bounds.append(_reach(sums, bounds[-1], size))
        inner = bounds[1:-1]
        if bounds[-2] >= last:
            left_out["starts too near to the end of the text"] += 1
        elif any(a == b for a, b in pairwise(bounds)):
            left_out["starts with a paragraph longer than its part may be"] += 1
        elif _has_twins(book, inner):
            left_out["starts with paragraphs that occur twice"] += 1
        else:
            yield Cut(start, tuple(bounds), sums[bounds[-1]] - sums[start] + PROMPT)


def _reach(sums: Sequence[int], start: int, size: int) -> int:
    """Return the end of whole paragraphs from `start` with at most `size` tokens."""
    end = start
    while end + 1 < len(sums) and sums[end + 1] - sums[start] <= size:
        end += 1
    return end


def _has_twins(book: Book, inner: Sequence[int]) -> bool:
    """Return whether two parts have mostly the same paragraphs, so that no order is right."""
    parts = [set(book.paragraphs[a:b]) for a, b in pairwise(inner)]
    return any(
        2 * len(one & other) >= min(len(one), len(other))
        for n, one in enumerate(parts)
        for other in parts[n + 1 :]
    )


def _write(data: Path, out: Path, cuts: Places, seed: int) -> list[dict[str, Any]]:
    by_book: dict[int, list[tuple[str, Cut]]] = {}
    for name, book_cuts in cuts.items():
        for (n, _), cut in book_cuts.items():
            by_book.setdefault(n, []).append((name, cut))
    with case_files(out, "tsort", cuts) as files:
        for n, book in enumerate(books(data, Counter())):
            for name, cut in by_book.get(n, ()):
                files[name].add(_case(book, cut, seed))
    return [file.about for file in files.values()]


def _case(book: Book, cut: Cut, seed: int) -> dict[str, Any]:
    """Return a case; `answer` names the parts in the right order, from 1."""
    pieces = ["\n\n".join(book.paragraphs[a:b]) for a, b in pairwise(cut.bounds)]
    order_shown = list(range(len(pieces) - 2))
    random.Random(f"{seed}:{book.id}:{cut.start}").shuffle(order_shown)
    return {
        "book_id": book.id,
        "para_offset": cut.start,
        "before": pieces[0],
        "segments": [pieces[1 + at] for at in order_shown],
        "after": pieces[-1],
        "answer": [1 + order_shown.index(at) for at in range(len(order_shown))],
        "tokens": cut.tokens,
    }


def _why(data: Path, length: str, left_out: Counter[str]) -> str:
    causes = ", ".join(f"{count} {reason}" for reason, count in left_out.most_common())
    return (
        f"{data} gives no case of {length}: {causes or 'it holds no text'}; give longer prose in "
        "paragraphs, or a shorter length"
    )
