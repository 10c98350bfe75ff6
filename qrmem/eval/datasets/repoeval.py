"""RepoEval, line and API level: unfinished code with its repository."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from qrmem.errors import UsageError
from qrmem.eval.datasets.data_files import each, source_file, source_folder, text_of
from qrmem.eval.items import Context, Dataset, Item
from qrmem.eval.registry import dataset
from qrmem.text.normalise import normalise
from qrmem.types import Document

REPOSITORIES = ("repositories/line_and_api_level", "repositories")


def _loader(level: str) -> Callable[[Path], Dataset]:
    """Return the loader of a level; the unpacked repositories are beside the file."""

    def load(path: Path) -> Dataset:
        items = each(path, _item)
        names = sorted({item.context for item in items})
        folders = {name: _folder(path.parent, name) for name in names}
        contexts = {name: _repository(name, folder) for name, folder in folders.items()}
        read = [source_folder(base, sorted(base.rglob("*.py"))) for base in folders.values()]
        files = (source_file(path), *read)
        return Dataset(f"repoeval-{level}", tuple(items), contexts, files)

    return load


def _item(record: Any) -> Item:
    about = record["metadata"]
    task = text_of(about, "task_id")
    repository, _, _ = task.partition("/")
    parts = list(about["fpath_tuple"])
    # The first part of the path is the repository.
    inside = parts[1:] if parts and parts[0] == repository else parts
    return Item(
        id=task,
        question=text_of(record, "prompt"),
        answers=(text_of(about, "ground_truth"),),
        context=repository,
        labels={
            "repository": repository,
            "file": "/".join(inside),
            "line": str(int(about["line_no"])) if "line_no" in about else "",
            "context_start_line": str(int(about["context_start_lineno"])),
        },
    )


def _folder(folder: Path, name: str) -> Path:
    """Return the folder of a repository beside the data."""
    places = [root / where / name for root in (folder, folder.parent) for where in REPOSITORIES]
    base = next((place for place in places if place.is_dir()), None)
    if base is None:
        raise UsageError(
            f"the repository {name!r} is not beside the data: unpack it to {places[0]}"
        )
    return base


def _repository(name: str, base: Path) -> Context:
    """Return the Python files of a repository; those that cannot be read are left out."""
    documents = []
    for path in sorted(base.rglob("*.py")):
        try:
            text = normalise(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError):
            continue
        if text.strip():
            name_inside = path.relative_to(base).as_posix()
            documents.append(Document(text, title=name_inside, id=name_inside))
    return Context(name, tuple(documents))


for _level in ("line", "api"):
    dataset(
        f"repoeval-{_level}",
        f"RepoEval, {_level} level, with its repositories unpacked beside it",
        files=(f"{_level}_level_completion_2k_context_codex.test.jsonl",),
        where="https://github.com/microsoft/CodeT/tree/main/RepoCoder (datasets, repositories)",
        licence="MIT; repositories under their own licences",
        metrics=("code_em", "edit_similarity"),
    )(_loader(_level))
