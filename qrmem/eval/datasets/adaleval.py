"""Ada-LEval's TSort and BestAnswer, built by `qrmem eval build` or released.

Each part to sort, and each answer to choose from, is a document, so every strategy and
baseline can answer. Scores are computed from the answer's text, not from a choice.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import permutations
from math import factorial
from pathlib import Path
from typing import Any

from qrmem.eval.datasets.data_files import dataset_of, each, text_of, texts_of
from qrmem.eval.items import WHOLE, Context, Dataset, Item, Row, Rule
from qrmem.eval.registry import dataset, metric
from qrmem.text.normalise import normalise
from qrmem.types import Document

METRICS = (
    "strict",
    "official",
    "strict_valid",
    "follows",
    "copies",
    "copies_valid",
    "chance",
    "sample_is_right",
)
SUBSET = 200
"""Number of first cases of a file in the paper's smaller runs (Tables 12 and 13)."""
_RELEASED = re.compile(r"^\s*(Before|Part (\d)|After)\s*:", re.MULTILINE)


@dataset(
    "tsort",
    "Ada-LEval's TSort: put the parts of a book in order",
    files=("tsort.jsonl", "tsort_2k.jsonl"),
    where="qrmem eval build tsort, or https://github.com/open-compass/Ada-LEval",
    licence="of the books",
    metrics=METRICS,
)
def tsort(path: Path) -> Dataset:
    """Load TSort; the prompt of a released item is split into its parts."""
    rows = []
    for n, (parts, right) in enumerate(each(path, _ordered)):
        id = f"tsort-{n}"
        names = ["Before", *(f"Part {k}" for k in range(1, len(parts) - 1)), "After"]
        rows.append((_context(id, names, parts), [_order_item(id, right, n)]))
    return dataset_of("tsort", rows, path)


def _ordered(record: Any) -> tuple[list[str], list[int]]:
    answer = record["answer"]
    right = list(map(int, re.findall(r"\d+", answer))) if isinstance(answer, str) else answer
    if not isinstance(right, list) or sorted(right) != list(range(1, len(right) + 1)):
        raise ValueError(f"answer {answer!r} is not an order of the parts, such as [4, 1, 3, 2]")
    if "segments" in record:
        segments = texts_of(record["segments"], "segments")
        parts = [str(record["before"]), *segments, str(record["after"])]
    else:
        parts = _released(text_of(record, "prompt"), len(right))
    if len(parts) != len(right) + 2:
        raise ValueError(f"there are {len(parts) - 2} parts, and an order of {len(right)}")
    return parts, right


def _released(prompt: str, n: int) -> list[str]:
    """Split a released item's prompt into the text before, the parts and the text after."""
    marks = list(_RELEASED.finditer(prompt))
    headings = ["Before", *(f"Part {k}" for k in range(1, n + 1)), "After"]
    # An example with the same marks may precede: the last occurrence counts.
    marks = marks[-len(headings) :]
    if [mark[1] for mark in marks] != headings:
        raise ValueError("the prompt lacks Before:, Part 1: … and After:, which divide it")
    ends = [mark.start() for mark in marks[1:]]
    last = prompt[marks[-1].end() :].strip().rpartition("\n\n")
    texts = [prompt[mark.end() : end] for mark, end in zip(marks, ends, strict=False)]
    return [*(text.strip() for text in texts), last[0] or last[2]]


def _order_item(id: str, right: Sequence[int], n: int) -> Item:
    count = len(right)
    sample = sample_order(count)
    return Item(
        id=id,
        question=(
            f"Part 1 to Part {count} were one text between Before and After; now they stand in "
            "another order. In which order do they make that text again? Answer with a list of the "
            f"{count} numbers, the first part's first, such as {sample}."
        ),
        answers=(str(list(right)),),
        context=id,
        labels=_labels("tsort", n),
    )


@dataset(
    "bestanswer",
    "Ada-LEval's BestAnswer: the answer that the asker accepted",
    files=("bestanswer.jsonl", "bestanswer_1k.jsonl", "bestanswer_1k_first500.json"),
    where="qrmem eval build bestanswer, or https://github.com/open-compass/Ada-LEval",
    licence="CC BY-SA (Stack Overflow)",
    metrics=(*METRICS, "recall@1"),
)
def bestanswer(path: Path) -> Dataset:
    """Load BestAnswer, built or released."""
    rows = []
    for n, (question, options, right) in enumerate(each(path, _choice)):
        id = f"bestanswer-{n}"
        names = tuple(f"A{k}" for k in range(1, len(options) + 1))
        item = Item(
            id=id,
            question=(
                f"Which of the answers A1 to {names[-1]} did the asker of this question accept as "
                f"the most helpful one?\n\n{question}"
            ),
            answers=(names[right],),
            context=id,
            choices=names,
            choice=right,
            gold=(names[right],),
            labels=_labels("bestanswer", n),
        )
        rows.append((_context(id, names, options), [item]))
    return dataset_of("bestanswer", rows, path)


def _choice(record: Any) -> tuple[str, tuple[str, ...], int]:
    options = texts_of(record["all_answers"], "all_answers")
    label = text_of(record, "answer").strip()
    right = int(label[1:]) - 1 if re.fullmatch(r"A\d+", label) else -1
    if len(options) < 2 or not 0 <= right < len(options):
        raise ValueError(
            f"answer {label!r} is not one of A1 to A{len(options)}, or there is only one"
        )
    return text_of(record, "question").strip(), options, right


def asked(item: Item) -> str:
    """Return the posted question of a BestAnswer item."""
    return item.question.partition("\n\n")[2]


def _context(id: str, names: Sequence[str], texts: Sequence[str]) -> Context:
    """Return a case as documents; an empty answer gets a placeholder, as no document is empty."""
    pairs = zip(names, texts, strict=True)
    documents = (
        Document(normalise(text).strip() or "(no text)", name, name) for name, text in pairs
    )
    return Context(id, tuple(documents))


def _labels(task: str, n: int) -> dict[str, str]:
    subset = {"subset": f"first {SUBSET}"} if n < SUBSET else {}
    return {"task": task, "answers": WHOLE, **subset}


# --- metrics -------------------------------------------------------------------------------------


def right_order(item: Item) -> list[int]:
    """Return the right order of a TSort item."""
    return list(json.loads(item.answers[0]))


def output_of(row: Row, item: Item) -> str:
    """Return a system's output, or the form `A<k>` of its choice."""
    choice = row.prediction.choice
    if row.prediction.text or choice is None:
        return row.prediction.text
    return item.choices[choice]


def _marks(item: Item, output: str) -> dict[str, float | None]:
    """Return every score of an output; `None` if it cannot be scored."""
    if item.labels["task"] == "tsort":
        right = right_order(item)
        n, sample = len(right), sample_order(len(right))
        strict = strict_order(output, n) == right
        is_valid = holds_order(output, n)
        official = official_is_right(output, right)
        copies = official_order(output, n) == sample
        chance, sample_is_right = 1 / factorial(n), right == sample
    else:
        n, answer = len(item.choices), (item.choice or 0) + 1
        strict = strict_answer(output, n) == answer
        is_valid = names_answer(output, n)
        official = official_answer(output, n) == answer
        copies = official_answer(output, n) == SAMPLE_ANSWER
        chance, sample_is_right = 1 / n, answer == SAMPLE_ANSWER
    return {
        "strict": strict,
        "official": official,
        "strict_valid": strict if is_valid else None,
        "follows": is_valid,
        "copies": copies,
        "copies_valid": copies if is_valid else None,
        "chance": chance,
        "sample_is_right": sample_is_right,
    }


def _scored(name: str) -> Callable[[Item, Row, Rule], float | None]:
    def of_row(item: Item, row: Row, rule: Rule) -> float | None:
        is_ours = item.labels.get("task") in ("tsort", "bestanswer")
        if not is_ours or row.prediction.is_ranking:
            return None
        value = _marks(item, output_of(row, item))[name]
        return None if value is None else float(value)

    return of_row


for _name in METRICS:
    metric(_name)(_scored(_name))


# --- parsing of outputs, strictly and like the released script ------------------------------------
#
# The released script has errors that affect the paper's figures: `A1` is found within `A15`, of
# several answers the highest counts, and only the beginning of an order that is too short is
# compared. `official` has the same errors, so that figures are comparable; `strict` accepts only
# one whole answer.


_ANSWER = re.compile(r"answer\s*:", re.IGNORECASE)
_DESIGNATION = re.compile(r"\bA([1-9]\d*)\b", re.ASCII)
_NEXT = re.compile(r"[\s*_\"'`(\[]*A([1-9]\d*)\b", re.ASCII)
_NUMBER = re.compile(r"(?<![\w.])\d+(?!\w|\.\d)", re.ASCII)
_LIST = re.compile(r"\[\s*\d+(?:\s*,\s*\d+)*\s*\]", re.ASCII)


def sample_order(n: int) -> list[int]:
    """Return the example order in the prompt: [4, 1, 3, 2] for four parts."""
    halves = zip(range(n, 0, -1), range(1, n + 1), strict=True)
    return [number for pair in halves for number in pair][:n]


SAMPLE_ANSWER = 4
"""The example answer in BestAnswer's prompt."""


# BestAnswer


def strict_answer(output: str, n: int) -> int | None:
    """Return the only answer k that an output names as `A<k>`, from 1 to `n`; else `None`.

    The answer directly after the last `Answer:` counts; without one the text after it must name
    exactly one answer.
    """
    text = _after_last(output)
    if text != output and (match := _NEXT.match(text)):
        numbers = {int(match[1])}
    else:
        numbers = {int(number) for number in _DESIGNATION.findall(text)}
    return next(iter(numbers)) if len(numbers) == 1 and max(numbers) <= n else None


def official_answer(output: str, n: int) -> int | None:
    """Return the highest k of `A<k>`, from 1 to n, in an output, else the highest number."""
    for mark in ("A", ""):
        for k in range(n, 0, -1):
            if f"{mark}{k}" in output:
                return k
    return None


def names_answer(output: str, n: int) -> bool:
    """Return whether an output follows the instruction: it names an existing answer."""
    return any(int(number) <= n for number in _DESIGNATION.findall(output))


# TSort


def strict_order(output: str, n: int) -> list[int] | None:
    """Return the permutation of 1 to n in an output, else `None`.

    After the last `Answer:`, if there is one, the text must have either one list in brackets, or
    only the numbers of the permutation.
    """
    text = _after_last(output)
    lists = {tuple(map(int, _NUMBER.findall(list_text))) for list_text in _LIST.findall(text)}
    if len(lists) > 1:
        return None
    order = list(next(iter(lists))) if lists else list(map(int, _NUMBER.findall(text)))
    return order if sorted(order) == list(range(1, n + 1)) else None


def official_order(output: str, n: int) -> object:
    """Parse an order like the released script: any JSON value, zeros if it fails.

    It reads the text after the first `Answer:` as JSON, or else finds the only permutation whose
    digits occur in it in that order.
    """
    text = output.partition("Answer:")[2] if "Answer:" in output else output
    try:
        return json.loads(text)
    except ValueError:
        pass
    orders = [
        list(order)
        for order in permutations(range(1, n + 1))
        if _is_within((str(k) for k in order), iter(text))
    ]
    return orders[0] if len(orders) == 1 else [0] * n


def official_is_right(output: str, right: Sequence[int]) -> bool | None:
    """Return whether the released script counts an order as right; `None` if the script fails."""
    order = official_order(output, len(right))
    if not isinstance(order, list | dict | str):
        return None
    return all(ours == theirs for ours, theirs in zip(order, right, strict=False))


def holds_order(output: str, n: int) -> bool:
    """Return whether an output follows the instruction: it contains a permutation of 1 to n."""
    numbers = _NUMBER.findall(output)
    return any(
        _is_within((str(k) for k in order), iter(numbers))
        for order in permutations(range(1, n + 1))
    )


def _after_last(output: str) -> str:
    matches = list(_ANSWER.finditer(output))
    return output[matches[-1].end() :] if matches else output


def _is_within(wanted: Iterator[str], found: Iterator[str]) -> bool:
    return all(one in found for one in wanted)
