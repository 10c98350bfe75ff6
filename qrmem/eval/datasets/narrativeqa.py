"""NarrativeQA in its official form: `qaps.csv`, `documents.csv`, and the stories or summaries."""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

from qrmem.errors import UsageError
from qrmem.eval.datasets.reading import source_file, source_folder
from qrmem.eval.records import Context, Dataset, Item
from qrmem.eval.registry import dataset
from qrmem.text.files import from_bytes
from qrmem.text.normalise import normalise
from qrmem.types import Document

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
    """Load the test questions of those stories that are there.

    Stories are `tmp/<id>.content`, as the official script fetches them; where none is there, the
    summaries stand for them.

    Raises:
        UsageError: a file is missing, or not of this form.
    """
    # A download that failed leaves an empty file.
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
        # What a row lacks at its end, the reader fills with `None`.
        cut = [name for name in needed if not isinstance(row[name], str)]
        if cut:
            raise UsageError(f"{path}: record {n} ends before its {cut[0]!r}")
    return rows
