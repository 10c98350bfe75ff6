"""Finds and reads data files; errors name the file and the record."""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from qrmem.errors import UsageError, page
from qrmem.eval.items import Context, Corpus, DataFile, Dataset, Item
from qrmem.eval.registry import DATASETS, Task

T = TypeVar("T")


PUBLISHED = {
    # From the data set's card on the hub (huggingface/datasets, hotpot_qa/dataset_infos.json).
    "hotpot_dev_distractor_v1.json": (
        "4e9ecb5c8d3b719f624d66b60f8d56bf227f03914f5f0753d6fa1b359d7104ea"
    ),
}
"""Published checksums, by file name; most sets have none."""


def load(name: str, data: Path, corpus: Corpus) -> Dataset:
    """Load a task's data.

    Args:
        name: name of the task.
        data: its file, or a folder that has it under one of its names.
        corpus: choice of passages.

    Raises:
        UsageError: the file does not exist or is malformed; the message says where to get it.
    """
    task = DATASETS[name]
    if corpus.kind != "own" and not task.has_corpora:
        raise UsageError(f"the questions of {name} have each their own text; leave --corpus out")
    path = data_file(name, task, data)
    dataset = task.read(path, corpus)
    counts = Counter(item.id for item in dataset.items)
    twice = [id for id, count in counts.items() if count > 1]
    if twice:
        raise UsageError(f"{path}: two records have the id {twice[0]!r}")
    return dataset


def data_file(name: str, task: Task, data: Path) -> Path:
    """Return the file of a task."""
    advice = f"the data: {task.where}, licence {task.licence}"
    if task.where.startswith("your own"):
        advice = f"how to write it: {page('evaluation')}"
    if task.inside:
        if (data / task.inside).is_file():
            return data
        raise UsageError(f"{data} is not a folder with {task.inside}; {advice}")
    if data.is_file():
        return data
    if not data.is_dir():
        raise UsageError(
            f"there is no file or folder {data}: give --data the file "
            f"({' or '.join(task.files)}), or a folder that holds it; {advice}"
        )
    for folder in (data, data / name):
        for file_name in task.files:
            if (folder / file_name).is_file():
                return folder / file_name
            if "*" in file_name and any(folder.glob(file_name)):
                return folder
    raise UsageError(
        f"{data} holds none of {', '.join(task.files)}: give --data the file; {advice}"
    )


def source_file(path: Path) -> DataFile:
    """Return a file with its checksum, compared with the published one if there is one."""
    published = PUBLISHED.get(path.name)
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as exc:
        raise UsageError(f"{path}: {exc.strerror}") from exc
    return DataFile(path, digest, digest == published if published else None)


def source_folder(folder: Path, files: Sequence[Path]) -> DataFile:
    """Return a folder with one checksum over the names and contents of the files read."""
    digest = hashlib.sha256()
    for path in files:
        name = path.relative_to(folder).as_posix()
        digest.update(f"{name}\0{source_file(path).sha256}\n".encode("utf-8", "replace"))
    return DataFile(folder, digest.hexdigest())


def dataset_of(name: str, rows: Iterable[tuple[Context, Sequence[Item]]], *files: Path) -> Dataset:
    """Return the data set from contexts, each with its items."""
    pairs = list(rows)
    contexts = {context.id: context for context, _ in pairs}
    items = tuple(item for _, context_items in pairs for item in context_items)
    return Dataset(name, items, contexts, tuple(map(source_file, files)))


def read_json(path: Path) -> Any:
    """Return the content of a JSON file.

    Raises:
        UsageError: the file cannot be read, or is not JSON.
    """
    try:
        return json.loads(path.read_bytes())
    except OSError as exc:
        raise UsageError(f"{path}: {exc.strerror}") from exc
    except (ValueError, RecursionError) as exc:
        raise UsageError(f"{path} is not JSON: {exc}") from exc


def records(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield named records of a JSON list, of JSON lines, or of an object's values.

    An object whose values are not all objects is one record.

    Raises:
        UsageError: a line, or the file, is not JSON.
    """
    text = _text(path)
    if text.lstrip().startswith("["):
        for n, record in enumerate(read_json(path)):
            yield f"{path}: record {n}", record
        return
    whole = _whole_object(text)
    if whole is not None and all(isinstance(value, dict) for value in whole.values()):
        for key, record in whole.items():
            yield f"{path}: record {key!r}", record
        return
    if whole is not None and "\n" in text.strip():
        yield f"{path}: record 1", whole
        return
    # Not `splitlines`: texts in JSON may contain other line ends.
    for n, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                yield f"{path}: line {n}", json.loads(line)
            except (ValueError, RecursionError) as exc:
                raise UsageError(f"{path}: line {n} is not JSON: {exc}") from exc


def each(path: Path, make: Callable[[Any], T]) -> list[T]:
    """Convert every record of a file by `make`.

    Raises:
        UsageError: a record is malformed; the message names it.
    """
    result = []
    for name, record in records(path):
        try:
            result.append(make(record))
        except UsageError as exc:
            raise UsageError(f"{name}: {exc}") from exc
        except KeyError as exc:
            message = f"{name} has no field {exc}: is it a file of another data set?"
            raise UsageError(message) from exc
        except (TypeError, ValueError, IndexError, AttributeError) as exc:
            raise UsageError(f"{name} is not of this form: {exc}") from exc
    if not result:
        raise UsageError(f"{path} holds no records")
    return result


def text_of(record: Any, name: str) -> str:
    """Return a field that must be a text and not empty.

    Raises:
        KeyError: the field is missing.
        TypeError: it is not a text, or is empty.
    """
    value = record[name]
    if not isinstance(value, str) or not value.strip():
        raise TypeError(f"field {name!r} is not a text")
    return value


def texts_of(value: Any, name: str) -> tuple[str, ...]:
    """Return a list of texts; a single text becomes a list."""
    values: Sequence[Any] = [value] if isinstance(value, str) else value
    if not isinstance(values, list) or not all(isinstance(text, str) for text in values):
        raise TypeError(f"field {name!r} is not a list of texts")
    return tuple(values)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as exc:
        raise UsageError(f"{path}: {exc.strerror}") from exc
    except UnicodeDecodeError as exc:
        raise UsageError(f"{path} is not UTF-8 text: {exc}") from exc


def _whole_object(text: str) -> dict[str, Any] | None:
    """Return a file that is a single object; JSON lines fail at their second line."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and value else None
