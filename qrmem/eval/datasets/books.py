"""Questions on long texts: NarrativeQA, QuALITY, LongBench."""

import csv
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qrmem.errors import UsageError
from qrmem.eval.datasets.data_files import (
    dataset_of,
    each,
    source_file,
    source_folder,
    text_of,
    texts_of,
)
from qrmem.eval.items import WHOLE, Context, Dataset, Item
from qrmem.eval.registry import dataset
from qrmem.text.files import from_bytes
from qrmem.text.normalise import normalise
from qrmem.types import Document

# NarrativeQA in its official form: `qaps.csv`, `documents.csv`, and the stories or summaries.


SUMMARIES = Path("third_party/wikipedia/summaries.csv")


@dataset(
    "narrativeqa",
    "NarrativeQA's test questions, on stories or summaries",
    inside="qaps.csv",
    where="https://github.com/google-deepmind/narrativeqa (clone it, run download_stories.sh)",
    licence="Apache-2.0; stories each under its own",
    metrics=("em", "cover_em", "f1", "rouge_l"),
    rule="longbench",
)
def narrativeqa(folder: Path) -> Dataset:
    """Load the test questions of the available stories.

    Stories are `tmp/<id>.content`, from the official script; without any story the
    summaries are used.

    Raises:
        UsageError: a file is missing or malformed.
    """
    # A failed download leaves an empty file.
    stories = sorted(p for p in (folder / "tmp").glob("*.content") if p.stat().st_size)
    # Stories are plain text or whole web pages; our own reader takes both.
    texts = {path.stem: _story(path) for path in stories} or _summaries(folder)
    contexts, items = {}, []
    for n, row in enumerate(_rows(folder / "qaps.csv", ("document_id", "question", "answer1")), 1):
        name = row["document_id"]
        if row.get("set", "test") != "test" or name not in texts:
            continue
        contexts[name] = Context(name, (Document(texts[name], id=name),))
        answers = tuple(a.strip() for a in (row["answer1"], row.get("answer2") or "") if a.strip())
        items.append(Item(f"{name}-{n}", row["question"].strip(), answers, name))
    if not items:
        raise UsageError(f"{folder} holds no story of the test set; run its download_stories.sh")
    read = source_folder(folder / "tmp", stories) if stories else source_file(folder / SUMMARIES)
    return Dataset("narrativeqa", tuple(items), contexts, (source_file(folder / "qaps.csv"), read))


def _story(path: Path) -> str:
    raw = path.read_bytes()
    suffix = ".html" if b"<html" in raw[:2000].lower() else ".txt"
    return from_bytes(raw, f"{path}{suffix}").text


def _summaries(folder: Path) -> dict[str, str]:
    rows = _rows(folder / SUMMARIES, ("document_id", "summary"))
    return {row["document_id"]: normalise(row["summary"]).strip() for row in rows}


def _rows(path: Path, needed: tuple[str, ...]) -> Sequence[Mapping[str, str]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            lacking = [name for name in needed if name not in (reader.fieldnames or ())]
            if lacking:
                raise UsageError(f"{path} has no column {lacking[0]!r}")
            rows = list(reader)
    except (OSError, UnicodeDecodeError, csv.Error) as exc:
        raise UsageError(f"{path}: {exc}") from exc
    for n, row in enumerate(rows, 1):
        # The CSV reader fills missing cells at the end of a row with `None`.
        cut = [name for name in needed if not isinstance(row[name], str)]
        if cut:
            raise UsageError(f"{path}: record {n} ends before its {cut[0]!r}")
    return rows


# QuALITY in its official form (v1.0.1, `htmlstripped`), and as L-Eval has it.


LABELS = "ABCD"
_OPTION = re.compile(r"^\s*\(([A-D])\)[ \t]*(.*?)(?=^\s*\([A-D]\)|\Z)", re.MULTILINE | re.DOTALL)


@dataset(
    "quality",
    "QuALITY v1.0.1, htmlstripped, with difficulty",
    files=("QuALITY.v1.0.1.htmlstripped.dev", "quality/QuALITY.v1.0.1.htmlstripped.dev"),
    where="https://github.com/nyu-mll/quality (data/v1.0.1/QuALITY.v1.0.1.zip)",
    licence="CC BY 4.0; articles each under its own",
    metrics=("accuracy",),
)
def quality(path: Path) -> Dataset:
    """Load QuALITY; an article with questions of several writers is one context.

    Raises:
        UsageError: the file is malformed, or has no answers, like the test set.
    """
    return dataset_of("quality", each(path, _article), path)


def _article(record: Any) -> tuple[Context, list[Item]]:
    name = str(record["article_id"])
    text = normalise(text_of(record, "article"))
    document = Document(text, title=str(record.get("title", "")), id=name)
    items = [_question(name, question) for question in record["questions"]]
    return Context(name, (document,)), items


def _question(article: str, record: Any) -> Item:
    options = tuple(str(option) for option in record["options"])
    if "gold_label" not in record:
        raise UsageError("a question has no gold_label; the test set comes without answers")
    right = int(record["gold_label"]) - 1
    if not 0 <= right < len(options):
        raise ValueError(f"gold_label {right + 1} names none of {len(options)} options")
    return Item(
        id=text_of(record, "question_unique_id"),
        question=text_of(record, "question"),
        answers=(options[right],),
        context=article,
        choices=distinct(options),
        choice=right,
        labels={"difficulty": "hard" if int(record["difficult"]) else "easy"},
    )


@dataset(
    "leval-quality",
    "QuALITY as L-Eval has it: 15 stories, 202 questions",
    files=("quality.jsonl", "quality/leval_quality15docs.jsonl", "leval_quality15docs.jsonl"),
    where="https://huggingface.co/datasets/L4NLP/LEval (Exam/quality.jsonl)",
    licence="GPL-3.0; articles each under its own",
    metrics=("accuracy",),
)
def leval(path: Path) -> Dataset:
    """Load L-Eval's QuALITY: stories with numbered options inside the question."""
    rows = []
    for n, (text, questions) in enumerate(each(path, _leval_story)):
        name = f"story-{n}"
        items = [
            Item(
                id=f"{name}-{place}",
                question=question,
                answers=(options[right],),
                context=name,
                choices=distinct(options),
                choice=right,
            )
            for place, (question, options, right) in enumerate(questions)
        ]
        rows.append((Context(name, (Document(text, id=name),)), items))
    return dataset_of("leval-quality", rows, path)


_Asked = tuple[str, tuple[str, ...], int]


def _leval_story(record: Any) -> tuple[str, list[_Asked]]:
    pairs = zip(record["instructions"], record["outputs"], strict=True)
    return normalise(text_of(record, "input")), [_question_of(i, output) for i, output in pairs]


def _question_of(instruction: str, output: str) -> _Asked:
    option_matches = list(_OPTION.finditer(instruction))
    if "".join(match[1] for match in option_matches) != LABELS:
        raise ValueError(f"the instruction {instruction[:60]!r} has no options (A) to (D)")
    options = tuple(" ".join(match[2].split()) for match in option_matches)
    label = re.match(r"\s*\(([A-D])\)", output)
    if label is None:
        raise ValueError(f"the output {output[:40]!r} names no option")
    question = instruction[: option_matches[0].start()].strip()
    return question, options, LABELS.index(label[1])


def distinct(options: Sequence[str]) -> tuple[str, ...]:
    """Make options distinct and not empty, as a few of the official ones are not."""
    counts: dict[str, int] = {}
    out = []
    for n, option in enumerate(options, 1):
        text = option.strip() or "(no text)"
        counts[text] = counts.get(text, 0) + 1
        out.append(text if counts[text] == 1 else f"{text} ({n})")
    return tuple(out)


# LongBench: its own JSON lines, and prompts with the whole text in them, keyed "0", "1", ….


SUMMARISE = "Write a one-page summary of the report."


@dataclass(frozen=True, slots=True)
class _PromptForm:
    """The form of a task's prompt: the words before and after text and question."""

    before: str
    behind: str
    asked: str = "Question:"
    end: str = r"\n+Answer:\s*\Z"


_PASSAGES = _PromptForm(
    "The following are given passages.\n",
    "\n\nAnswer the question based on the given passages.",
)
_STORY = _PromptForm("Story: ", "\n\nNow, answer the question based on the story")
_REPORT = _PromptForm("Report:\n", "\n\nNow, write a one-page summary of the report.", asked="")
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
        loaded_rows = each(path, lambda record: _row(record, _FORMS[task]))
        for n, (text, question, answers, name) in enumerate(loaded_rows):
            name = name or f"{task}-{n}"
            item = Item(name, question, answers, name, labels=labels)
            rows.append((Context(name, (Document(text, id=name),)), [item]))
        return dataset_of(f"longbench-{task}", rows, path)

    return load


def _row(record: Any, form: _PromptForm) -> tuple[str, str, tuple[str, ...], str]:
    """Return text, question, answers and id of one record."""
    if "origin_prompt" in record:
        text, question = _taken_apart(text_of(record, "origin_prompt"), form)
        return text, question, texts_of(record["gold"], "gold"), ""
    question = str(record["input"]).strip() or SUMMARISE
    text = normalise(text_of(record, "context"))
    return text, question, texts_of(record["answers"], "answers"), str(record.get("_id", ""))


def _taken_apart(prompt: str, form: _PromptForm) -> tuple[str, str]:
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
