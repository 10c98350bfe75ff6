"""Sentences hidden in long texts: M-NIAH's needles, and bAbI's facts as in BABILong."""

import random
import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, cycle, product
from pathlib import Path
from typing import Any, Literal

from qrmem.errors import UsageError
from qrmem.eval.builders.writing import counter_of, lengths_of, write_cases
from qrmem.eval.registry import builder
from qrmem.text.decoding import decode
from qrmem.text.normalise import normalise
from qrmem.text.sentences import sentences
from qrmem.types import Tokenizer

# --- M-NIAH: several needles in a long text, at a mean depth (ILM-TR, section 4)

NEEDLES = (
    "Figs are one of the secret ingredients needed to build the perfect pizza.|"
    "Prosciutto is one of the secret ingredients needed to build the perfect pizza.|"
    "Goat cheese is one of the secret ingredients needed to build the perfect pizza."
)
KEYWORDS = "figs|prosciutto|goat cheese"
QUESTION = "What is the first letter of each secret ingredient needed to build the perfect pizza?"


@builder("niah", "M-NIAH: needles hidden in a long text of your own, at a mean depth (ILM-TR)")
def build_niah(
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


# --- BABILong: bAbI's facts among the sentences of other texts (Kuratov et al., 2024)


_TASK = re.compile(r"qa(\d{1,2})_[a-z-]+_(train|test)\.txt\Z")
_LINE = re.compile(r"(\d+) (.*)\Z")


@dataclass(frozen=True, slots=True)
class BabiQuestion:
    """A question of bAbI with the preceding facts.

    Attributes:
        supporting: indices of the supporting facts.
    """

    facts: tuple[str, ...]
    question: str
    answer: str
    supporting: tuple[int, ...]


@builder("babilong", "BABILong: bAbI's facts, in order, among the sentences of other texts")
def build_babilong(
    data: Path,
    out: Path,
    *,
    background: str = "",
    tasks: str = "1,2,3,4,5",
    length: str = "0k,1k,2k,4k,8k,16k,32k,64k,128k",
    cases: int = 10,
    part: Literal["test", "train"] = "test",
    seed: int = 0,
    tokenizer: str = "auto",
) -> None:
    """Write `babilong.jsonl` with a number of cases for each task and length.

    Every length has the same questions. A case whose facts alone exceed the length has only the
    facts.

    Args:
        data: the folder of bAbI's tasks, `qa1_single-supporting-fact_test.txt` and so on.
        background: a text, or a folder of texts; required for all lengths but 0k.
        tasks: numbers from 1 to 20, separated by commas.
        length: numbers of tokens, separated by commas; `0k` for only the facts.
        cases: number of cases per task and length.
        part: part of bAbI.
        seed: seed of the questions, the places and the start of the background.
        tokenizer: see `counter_of`.
    """
    counter = counter_of(tokenizer)
    files = _files(data, part)
    numbers = list(dict.fromkeys(word.strip().removeprefix("qa") for word in tasks.split(",")))
    if missing := [n for n in numbers if n not in files]:
        there = ",".join(sorted(files, key=int))
        others = f"; take tasks={there}" if there else ""
        name = f"qa{missing[0]}_…_{part}.txt"
        raise UsageError(f"{data} has no file of task {missing[0]!r} ({name}){others}")
    lengths = _lengths(length)
    hay = _background(background, max(lengths.values()), counter)
    samples = _sampled({n: files[n] for n in numbers}, cases, seed)
    made = (one for sample in samples for one in _cases(*sample, lengths, hay, counter))
    write_cases(out / "babilong.jsonl", made)


def _lengths(named: str) -> dict[str, int]:
    """Return numbers of tokens by name; `0k` is 0."""
    wanted = [one.strip().lower() for one in named.split(",")]
    lengths = {"0k": 0} if "0k" in wanted else {}
    others = ",".join(one for one in wanted if one != "0k")
    return lengths | (lengths_of(others) if others else {})


def _background(named: str, tokens: int, counter: Tokenizer) -> tuple[list[str], list[int]]:
    """Return sentences of texts, up to a number of tokens, and their sizes.

    Raises:
        UsageError: no text is named, or there is none at the path.
    """
    if tokens and not named:
        raise UsageError("name texts to hide the facts in: background=PATH")
    if named and not Path(named).exists():
        raise UsageError(f"no such file or folder: {named}")
    books = texts_in(Path(named)) if named else []
    hay = haystack(books, tokens, counter) if books else []
    return hay, [counter.count(sentence) for sentence in hay]


def _sampled(
    files: Mapping[str, Path], cases: int, seed: int
) -> Iterator[tuple[str, list[BabiQuestion], random.Random]]:
    """Yield each task's number with some of its questions and the task's source of chance."""
    for number, file in files.items():
        chance = random.Random(f"{seed} {number}")
        questions = list(_questions_of(file))
        yield number, chance.sample(questions, min(cases, len(questions))), chance


def _cases(
    number: str,
    questions: Sequence[BabiQuestion],
    chance: random.Random,
    lengths: Mapping[str, int],
    hay: tuple[Sequence[str], Sequence[int]],
    counter: Tokenizer,
) -> Iterator[dict[str, Any]]:
    """Yield the cases of a task: every question at every length."""
    for name, tokens in lengths.items():
        for n, one in enumerate(questions):
            tokens_left = tokens - sum(counter.count(fact) for fact in one.facts)
            around = _around(*hay, tokens_left, chance)
            text, spans = _hidden(around, one.facts, chance)
            yield {
                "id": f"qa{number}-{name}-{n}",
                "task": f"qa{number}",
                "length": name,
                "question": one.question,
                "answers": [one.answer],
                "text": text,
                "spans": [spans[place] for place in one.supporting],
            }


def _files(data: Path, part: str) -> dict[str, Path]:
    folder = data if data.is_dir() else data.parent
    matches = ((match, file) for file in folder.iterdir() if (match := _TASK.match(file.name)))
    return {match[1]: file for match, file in matches if match[2] == part}


def _questions_of(file: Path) -> Iterator[BabiQuestion]:
    """Yield the questions of a file of bAbI.

    Raises:
        UsageError: it is no text, or a line is not in bAbI's form.
    """
    facts: dict[int, str] = {}
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as exc:
        raise UsageError(f"{file} is not UTF-8 text: {exc}") from exc
    for n, line in enumerate(lines, 1):
        match = _LINE.match(line.strip())
        if match is None:
            raise UsageError(f"{file}, line {n}: no line of bAbI: {line[:60]!r}")
        place, task_name = int(match[1]), match[2]
        if place == 1:
            facts = {}
        if "\t" not in task_name:
            facts[place] = task_name.strip()
            continue
        question, answer, supporting = (*task_name.split("\t"), "")[:3]
        order = list(facts)
        fact_places = [order.index(int(p)) for p in supporting.split() if int(p) in facts]
        yield BabiQuestion(
            tuple(facts.values()), question.strip(), answer.strip(), tuple(fact_places)
        )


def _around(
    hay: Sequence[str], sizes: Sequence[int], tokens: int, chance: random.Random
) -> list[str]:
    """Return sentences of the background from a random start, up to a number of tokens."""
    sentences_around: list[str] = []
    if not hay:
        return sentences_around
    at = chance.randrange(len(hay))
    while (tokens := tokens - sizes[at % len(hay)]) >= 0:
        sentences_around.append(hay[at % len(hay)])
        at += 1
    return sentences_around


def _hidden(
    hay: Sequence[str], facts: Sequence[str], chance: random.Random
) -> tuple[str, list[tuple[int, int]]]:
    """Return a text with facts, in order, after random sentences, and the spans of the facts."""
    gaps = sorted(chance.randrange(len(hay) + 1) for _ in facts)
    return inserted(hay, list(zip(gaps, facts, strict=True)))
