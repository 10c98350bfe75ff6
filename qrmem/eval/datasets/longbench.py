"""LongBench: its own JSON lines, and prompts with the whole text in them, keyed "0", "1", …."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qrmem.eval.datasets.reading import dataset_of, each, text_of, texts_of
from qrmem.eval.records import WHOLE, Context, Dataset, Item
from qrmem.eval.registry import dataset
from qrmem.text.normalise import normalise
from qrmem.types import Document

SUMMARISE = "Write a one-page summary of the report."


@dataclass(frozen=True, slots=True)
class _Form:
    """How a task's prompt is put together: what stands before and behind text and question."""

    before: str
    behind: str
    asked: str = "Question:"
    end: str = r"\n+Answer:\s*\Z"


_PASSAGES = _Form(
    "The following are given passages.\n",
    "\n\nAnswer the question based on the given passages.",
)
_STORY = _Form("Story: ", "\n\nNow, answer the question based on the story")
_REPORT = _Form("Report:\n", "\n\nNow, write a one-page summary of the report.", asked="")
_FORMS = {
    "narrativeqa": _STORY,
    "hotpotqa": _PASSAGES,
    "2wikimqa": _PASSAGES,
    "musique": _PASSAGES,
    "gov_report": _REPORT,
}


def _loader(task: str) -> Callable[[Path], Dataset]:
    """Return the loader of a LongBench task."""

    def load(path: Path) -> Dataset:
        labels = {} if _FORMS[task].asked else {"answers": WHOLE}
        rows = []
        found = each(path, lambda record: _row(record, _FORMS[task]))
        for n, (text, question, answers, name) in enumerate(found):
            name = name or f"{task}-{n}"
            item = Item(name, question, answers, name, labels=labels)
            rows.append((Context(name, (Document(text, id=name),)), [item]))
        return dataset_of(f"longbench-{task}", rows, path)

    return load


def _row(record: Any, form: _Form) -> tuple[str, str, tuple[str, ...], str]:
    """Return text, question, answers and id of one record."""
    if "origin_prompt" in record:
        text, question = _taken_apart(text_of(record, "origin_prompt"), form)
        return text, question, texts_of(record["gold"], "gold"), ""
    question = str(record["input"]).strip() or SUMMARISE
    text = normalise(text_of(record, "context"))
    return text, question, texts_of(record["answers"], "answers"), str(record.get("_id", ""))


def _taken_apart(prompt: str, form: _Form) -> tuple[str, str]:
    start = prompt.find(form.before)
    end = prompt.rfind(form.behind)
    if start < 0 or end < 0:
        raise ValueError(f"origin_prompt does not hold {form.before.strip()!r}")
    text = normalise(prompt[start + len(form.before) : end])
    if not form.asked:
        return text, SUMMARISE
    _, mark, question = prompt[end:].rpartition(form.asked)
    question = re.sub(form.end, "", question).strip()
    if not mark or not question:
        raise ValueError("origin_prompt has no question")
    return text, question


def _register(task: str) -> None:
    is_report = task == "gov_report"
    dataset(
        f"longbench-{task}",
        f"LongBench's {task}; its JSON lines, or prompts keyed 0, 1, …",
        files=(f"longbench/{task}.jsonl", f"longbench/{task}.json", f"{task}.jsonl"),
        where="https://huggingface.co/datasets/THUDM/LongBench (data.zip)",
        licence="MIT; texts under their own licences",
        metrics=("rouge_l",) if is_report else ("em", "cover_em", "f1", "rouge_l"),
        rule="longbench",
    )(_loader(task))


for _task in _FORMS:
    _register(_task)
