"""A user's own data: `corpus.jsonl` and `questions.jsonl`, similar to BEIR's format.

    corpus.jsonl     {"_id": "d1", "title": "…", "text": "…"}
    questions.jsonl  {"_id": "q1", "question": "…", "answers": ["…"], "gold": ["d1"],
                      "options": ["…", "…"], "labels": {"kind": "…"}, "answerable": true}

A question needs only `question`, a document only `text`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from qrmem.errors import UsageError, page
from qrmem.eval.datasets.data_files import dataset_of, each, text_of, texts_of
from qrmem.eval.items import Context, Dataset, Item
from qrmem.eval.registry import dataset
from qrmem.text.normalise import normalise
from qrmem.types import Document

CORPUS, QUESTIONS = "corpus.jsonl", "questions.jsonl"


@dataset(
    "plain",
    "your own corpus.jsonl and questions.jsonl",
    inside=QUESTIONS,
    where=f"your own folder; the fields: {page('evaluation')}",
    metrics=("accuracy", "em", "cover_em", "f1", "recall@2", "recall@5", "recall@10", "all@5"),
)
def plain(folder: Path) -> Dataset:
    """Load a folder with the two files.

    Raises:
        UsageError: a file is missing, a record is malformed, or a gold id is unknown.
    """
    documents = _documents(folder / CORPUS)
    questions = each(folder / QUESTIONS, _item)
    items = [item if item.id else replace(item, id=f"q{n}") for n, item in enumerate(questions, 1)]
    _check(items, documents, folder)
    context = Context("corpus", tuple(documents.values()))
    return dataset_of("plain", [(context, items)], folder / CORPUS, folder / QUESTIONS)


def _documents(path: Path) -> dict[str, Document]:
    documents: dict[str, Document] = {}
    for n, document in enumerate(each(path, _document), 1):
        name = document.id or f"d{n}"
        if name in documents:
            raise UsageError(f"{path}: two documents have the id {name!r}")
        documents[name] = Document(document.text, document.title, name)
    return documents


def _document(record: Any) -> Document:
    name = str(record.get("_id", record.get("id", "")))
    return Document(normalise(text_of(record, "text")), str(record.get("title", "")), name or None)


def _item(record: Any) -> Item:
    answers = texts_of(record.get("answers", record.get("answer", [])), "answers")
    options = texts_of(record.get("options", []), "options")
    return Item(
        id=str(record.get("_id", record.get("id", ""))),
        question=text_of(record, "question"),
        answers=answers,
        context="corpus",
        choices=options,
        choice=_right(answers, options),
        gold=texts_of(record.get("gold", []), "gold"),
        labels=_labels(record.get("labels", {})),
        is_answerable=bool(record.get("answerable", True)),
    )


def _right(answers: tuple[str, ...], options: tuple[str, ...]) -> int | None:
    if not options:
        return None
    if len(options) < 2 or len(set(options)) < len(options):
        raise ValueError("options are two or more, all different")
    right = [n for n, option in enumerate(options) if option in answers]
    if len(right) != 1:
        raise ValueError("exactly one of the options has to be the answer, word for word")
    return right[0]


def _labels(value: Any) -> Mapping[str, str]:
    if not isinstance(value, dict):
        raise TypeError("field 'labels' is not an object")
    return {str(name): str(label) for name, label in value.items()}


def _check(items: Sequence[Item], documents: Mapping[str, Document], folder: Path) -> None:
    for item in items:
        lacking = [name for name in item.gold if name not in documents]
        if lacking:
            raise UsageError(
                f"{folder / QUESTIONS}: question {item.id!r} names the document {lacking[0]!r}, "
                f"which is not in {CORPUS}"
            )
