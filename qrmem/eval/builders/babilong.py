"""BABILong: bAbI's facts among the sentences of other texts (Kuratov et al., 2024)."""

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from qrmem.errors import UsageError
from qrmem.eval.builders.niah import haystack, inserted, texts_in
from qrmem.eval.builders.writing import counter_of, lengths_of, write_cases
from qrmem.eval.registry import builder

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
def build(
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
    wanted = [one.strip().lower() for one in length.split(",")]
    lengths = {"0k": 0} if "0k" in wanted else {}
    others = ",".join(one for one in wanted if one != "0k")
    lengths |= lengths_of(others) if others else {}
    if max(lengths.values()) and not background:
        raise UsageError("name texts to hide the facts in: background=PATH")
    if background and not Path(background).exists():
        raise UsageError(f"no such file or folder: {background}")
    books = texts_in(Path(background)) if background else []
    hay = haystack(books, max(lengths.values()), counter) if books else []
    sizes = [counter.count(sentence) for sentence in hay]

    def made() -> Iterator[dict[str, Any]]:
        for number in numbers:
            chance = random.Random(f"{seed} {number}")
            questions = list(_questions_of(files[number]))
            sampled = chance.sample(questions, min(cases, len(questions)))
            for name, tokens in lengths.items():
                for n, one in enumerate(sampled):
                    tokens_left = tokens - sum(counter.count(fact) for fact in one.facts)
                    around = _around(hay, sizes, tokens_left, chance)
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

    write_cases(out / "babilong.jsonl", made())


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
