"""QuALITY in its official form (v1.0.1, `htmlstripped`), and as L-Eval has it."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from qrmem.errors import UsageError
from qrmem.eval.datasets.reading import dataset_of, each, text_of
from qrmem.eval.records import Context, Dataset, Item
from qrmem.eval.registry import dataset
from qrmem.text.normalise import normalise
from qrmem.types import Document

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
    """Load QuALITY; an article that several writers asked about is one context.

    Raises:
        UsageError: not of this form, or without answers, as the test set is.
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
    for n, (text, asked) in enumerate(each(path, _story)):
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
            for place, (question, options, right) in enumerate(asked)
        ]
        rows.append((Context(name, (Document(text, id=name),)), items))
    return dataset_of("leval-quality", rows, path)


_Asked = tuple[str, tuple[str, ...], int]


def _story(record: Any) -> tuple[str, list[_Asked]]:
    pairs = zip(record["instructions"], record["outputs"], strict=True)
    return normalise(text_of(record, "input")), [_asked(i, output) for i, output in pairs]


def _asked(instruction: str, output: str) -> _Asked:
    found = list(_OPTION.finditer(instruction))
    if "".join(match[1] for match in found) != LABELS:
        raise ValueError(f"the instruction {instruction[:60]!r} has no options (A) to (D)")
    options = tuple(" ".join(match[2].split()) for match in found)
    label = re.match(r"\s*\(([A-D])\)", output)
    if label is None:
        raise ValueError(f"the output {output[:40]!r} names no option")
    question = instruction[: found[0].start()].strip()
    return question, options, LABELS.index(label[1])


def distinct(options: Sequence[str]) -> tuple[str, ...]:
    """Return options that all differ and are not empty; a few of the official ones do not."""
    seen: dict[str, int] = {}
    out = []
    for n, option in enumerate(options, 1):
        text = option.strip() or "(no text)"
        seen[text] = seen.get(text, 0) + 1
        out.append(text if seen[text] == 1 else f"{text} ({n})")
    return tuple(out)
