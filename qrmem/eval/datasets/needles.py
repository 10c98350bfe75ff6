"""Texts with hidden sentences: M-NIAH and BABILong, built by `qrmem eval build`.

A separate metric checks the window of the reader: whether it contained each hidden sentence that
answers the question completely, whatever the answer was.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from qrmem.eval.datasets.data_files import dataset_of, each, text_of, texts_of
from qrmem.eval.items import Context, Dataset, Item, Row, Rule
from qrmem.eval.registry import dataset, metric
from qrmem.types import Document

SHOWN = ("shown_all", "shown")
SCORES = (1, 3, 7, 10)
"""Scores for zero to three of three keywords; for other numbers evenly spaced from 1 to 10."""
_PLACES = frozenset(["bathroom", "bedroom", "garden", "hallway", "kitchen", "office"])
LABELS = {
    "qa1": _PLACES,
    "qa2": _PLACES,
    "qa3": _PLACES,
    "qa4": _PLACES,
    "qa5": frozenset(["bill", "fred", "jeff", "mary", "apple", "football", "milk"]),
    "qa6": frozenset({"yes", "no"}),
}
"""Possible answers of bAbI's tasks."""


@dataset(
    "niah",
    "M-NIAH: needles in a long text, by length and depth",
    files=("niah.jsonl",),
    where="qrmem eval build niah",
    licence="of the texts",
    metrics=(*SHOWN, "shown_score", "needles"),
)
def niah(path: Path) -> Dataset:
    """Load cases; each has its own text."""
    return dataset_of("niah", each(path, _case), path)


@dataset(
    "babilong",
    "BABILong: bAbI's facts in a long text, by task and length",
    files=("babilong.jsonl",),
    where="qrmem eval build babilong",
    licence="of the texts",
    metrics=(*SHOWN, "babi", "babi_official"),
)
def babilong(path: Path) -> Dataset:
    """Load cases; each has its own text."""
    return dataset_of("babilong", each(path, _case), path)


def _case(record: Any) -> tuple[Context, list[Item]]:
    id, text = text_of(record, "id"), text_of(record, "text")
    spans = tuple((id, int(start), int(end)) for start, end in record["spans"])
    if any(not 0 <= start < end <= len(text) for _, start, end in spans):
        raise ValueError("spans do not lie in the text")
    labels = {key: str(record[key]) for key in ("task", "length", "depth", "kind") if key in record}
    answers = texts_of(record["answers"], "answers")
    item = Item(id, text_of(record, "question"), answers, id, labels=labels, spans=spans)
    return Context(id, (Document(text, id=id),)), [item]


# --- the text in the window -----------------------------------------------------------------------


def shown_spans(item: Item, row: Row) -> list[bool] | None:
    """Return whether each hidden sentence was shown completely; `None` if that is unknown."""
    spans_shown = row.prediction.shown
    if not item.spans or not row.prediction.is_shown_known:
        return None
    return [
        any(d == doc and s <= start and end <= e for doc, s, e in spans_shown)
        for d, start, end in item.spans
    ]


def _of_shown(
    score: Callable[[list[bool]], float],
) -> Callable[[Item, Row, Rule], float | None]:
    def of_row(item: Item, row: Row, rule: Rule) -> float | None:
        spans = shown_spans(item, row)
        return None if spans is None else score(spans)

    return of_row


# M-NIAH's score of the shown text, as a share of ten.
metric("shown_score")(_of_shown(lambda found: needle_score(sum(found), len(found)) / 10))
metric("shown")(_of_shown(lambda found: sum(found) / len(found)))
metric("shown_all")(_of_shown(lambda found: float(all(found))))


# --- the answer ---------------------------------------------------------------------------


def needle_score(found: int, of: int) -> float:
    """Return M-NIAH's score, in [1, 10]."""
    return float(SCORES[found]) if of == len(SCORES) - 1 else 1 + 9 * found / max(of, 1)


@metric("needles")
def _needles(item: Item, row: Row, rule: Rule) -> float | None:
    """Return M-NIAH's score of the answer's keywords, as a share of ten."""
    if item.labels.get("task") != "niah":
        return None
    answer_text = row.prediction.text.lower()
    count_found = sum(word.lower() in answer_text for word in item.answers)
    return needle_score(count_found, len(item.answers)) / 10


def babi_official(text: str, question: str, answer: str, labels: frozenset[str]) -> bool:
    """Return whether the first sentence names exactly the answer, of labels not in the question.

    This is the comparison of BABILong's own script.
    """
    first = re.split(r"[.\n]", text.lower().strip(), maxsplit=1)[0]
    return {w for w in labels if w in first and w not in question.lower()} == {answer.lower()}


def babi_lenient(text: str, question: str, answer: str, labels: frozenset[str]) -> bool:
    """Return whether the last named label that is not in the question is the answer."""
    question_words = set(re.findall(r"\w+", question.lower()))
    labels_named = [
        w for w in re.findall(r"\w+", text.lower()) if w in labels and w not in question_words
    ]
    return bool(labels_named) and labels_named[-1] == answer.lower()


def _of_babi(judge: Callable[..., bool]) -> Callable[[Item, Row, Rule], float | None]:
    def of_row(item: Item, row: Row, rule: Rule) -> float | None:
        task = item.labels.get("task", "")
        if not task.startswith("qa") or row.prediction.is_ranking:
            return None
        (answer,) = item.answers
        labels = LABELS.get(task, frozenset(answer.lower().split(",")))
        return float(judge(row.prediction.text, item.question, answer, labels))

    return of_row


metric("babi")(_of_babi(babi_lenient))
metric("babi_official")(_of_babi(babi_official))
