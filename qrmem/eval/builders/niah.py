"""M-NIAH: several needles in a long text, at a mean depth (ILM-TR, section 4)."""

import random
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate, cycle, product
from pathlib import Path
from typing import Any

from qrmem.errors import UsageError
from qrmem.eval.builders.writing import counter_of, lengths_of, write_cases
from qrmem.eval.registry import builder
from qrmem.text.decoding import decode
from qrmem.text.normalise import normalise
from qrmem.text.sentences import sentences
from qrmem.types import Tokenizer

NEEDLES = (
    "Figs are one of the secret ingredients needed to build the perfect pizza.|"
    "Prosciutto is one of the secret ingredients needed to build the perfect pizza.|"
    "Goat cheese is one of the secret ingredients needed to build the perfect pizza."
)
KEYWORDS = "figs|prosciutto|goat cheese"
QUESTION = "What is the first letter of each secret ingredient needed to build the perfect pizza?"


@builder("niah", "M-NIAH: needles hidden in a long text of your own, at a mean depth (ILM-TR)")
def build(
    data: Path,
    out: Path,
    *,
    length: str = "150k",
    depths: str = "0,25,50,75,100",
    cases: int = 1,
    needles: str = NEEDLES,
    keywords: str = KEYWORDS,
    question: str = QUESTION,
    seed: int = 0,
    tokenizer: str = "auto",
) -> None:
    """Write `niah.jsonl`: one text for each length, depth and case.

    Texts are repeated until they are long enough. Needles are inserted at ends of sentences so that
    their mean depth, in tokens, is the requested one; near the middle they are further apart. At
    depth 100 all needles are at the end.

    Args:
        data: a text, or a folder of texts.
        length: number of tokens: `150k`, or several separated by commas.
        depths: mean depths in percent, separated by commas.
        cases: number of texts per length and depth.
        needles: sentences, separated by `|`.
        keywords: one per needle; the score of an answer is the number that it names.
        question: the question.
        seed: seed of the places.
        tokenizer: see `counter_of`.
    """
    counter, needle_texts = counter_of(tokenizer), [n.strip() for n in needles.split("|")]
    words = [word.strip() for word in keywords.split("|")]
    if not all(needle_texts) or len(needle_texts) != len(words):
        raise UsageError("give as many keywords as needles, with | between them")
    places = percents(depths)
    chance = random.Random(seed)
    needle_tokens = sum(map(counter.count, needle_texts))

    def made() -> Iterator[dict[str, Any]]:
        for name, tokens in lengths_of(length).items():
            if tokens <= needle_tokens:
                raise UsageError(
                    f"the needles have {needle_tokens} tokens, which leaves {name} no text"
                )
            hay = haystack(texts_in(data), tokens - needle_tokens, counter)
            ends = list(accumulate(map(counter.count, hay)))
            for depth, n in product(places, range(cases)):
                text, spans = hidden(hay, ends, needle_texts, depth, chance)
                yield {
                    "id": f"niah-{name}-{depth:g}-{n}",
                    "task": "niah",
                    "length": name,
                    "depth": f"{depth:g}",
                    "question": question,
                    "answers": words,
                    "text": text,
                    "spans": spans,
                }

    write_cases(out / "niah.jsonl", made())


def percents(words: str) -> list[float]:
    """Parse depths in percent, without duplicates.

    Raises:
        UsageError: a depth is not a number from 0 to 100.
    """
    try:
        depths = list(dict.fromkeys(float(word) for word in words.split(",")))
    except ValueError:
        depths = [-1.0]
    if not all(0 <= one <= 100 for one in depths):
        raise UsageError(f"depths are numbers from 0 to 100, with commas: {words!r}")
    return depths


def texts_in(data: Path) -> list[str]:
    """Return the texts of a file or folder, by name.

    Raises:
        UsageError: there is no text.
        BadDocument: a text cannot be read.
    """
    paths = sorted(data.rglob("*.txt")) if data.is_dir() else [data]
    read = ((path, path.read_bytes()) for path in paths)
    texts = [normalise(decode(data, str(path))[0]) for path, data in read if data.strip()]
    if not texts:
        raise UsageError(f"{data} holds no text")
    return texts


def haystack(texts: Sequence[str], tokens: int, counter: Tokenizer) -> list[str]:
    """Return sentences of repeated texts, up to a number of tokens."""
    pieces: list[str] = []
    for sentence, size in cycle(_sized(texts, counter)):
        tokens -= size
        if tokens < 0:
            break
        pieces.append(sentence)
    return pieces


def _sized(texts: Sequence[str], counter: Tokenizer) -> Iterator[tuple[str, int]]:
    for text in texts:
        whole = text.strip() + "\n\n"
        for start, end in sentences(whole):
            yield whole[start:end], counter.count(whole[start:end])


def hidden(
    hay: Sequence[str],
    ends: Sequence[int],
    needles: Sequence[str],
    depth: float,
    chance: random.Random,
) -> tuple[str, list[tuple[int, int]]]:
    """Return a text with needles at a mean depth in percent, and the span of each needle.

    Args:
        hay: sentences.
        ends: number of tokens up to the end of each sentence.
        needles: the needles.
        depth: mean depth in percent.
        chance: random number generator.
    """
    reach = min(depth, 100 - depth) * chance.random()
    n = len(needles)
    steps = [0.0] if n == 1 else [reach * (2 * k / (n - 1) - 1) for k in range(n)]
    starts = [0, *ends]
    gaps = [_nearest(starts, (depth + step) / 100 * starts[-1]) for step in steps]
    return inserted(hay, sorted(zip(gaps, needles, strict=True), key=lambda pair: pair[0]))


def _nearest(rising: Sequence[int], value: float) -> int:
    """Return the index of the number that is nearest to a value."""
    at = bisect_left(rising, value)
    is_before = at and (at == len(rising) or value - rising[at - 1] < rising[at] - value)
    return at - 1 if is_before else at


def inserted(
    hay: Sequence[str], placed: Sequence[tuple[int, str]]
) -> tuple[str, list[tuple[int, int]]]:
    """Return a text of sentences with other sentences inserted, and the spans of these.

    Args:
        hay: sentences.
        placed: index of the sentence to insert before, ascending, and the text to insert.
    """
    pieces: list[str] = []
    spans: list[tuple[int, int]] = []
    at = size = 0
    for gap, text in placed:
        before = "".join(hay[at:gap])
        space = "" if not (pieces or before) or before.endswith((" ", "\n")) else " "
        if not before and pieces:
            space = ""
        start = size + len(before) + len(space)
        pieces += [before, space, text, " "]
        spans.append((start, start + len(text)))
        size, at = start + len(text) + 1, gap
    return "".join([*pieces, *hay[at:]]), spans
