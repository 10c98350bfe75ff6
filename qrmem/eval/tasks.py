"""Tasks by name: the data each needs, where it is to be had, under which licence, how it is scored.

Nothing is ever downloaded: a task says where its data is, the user fetches it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path

from qrmem.errors import UsageError
from qrmem.eval.datasets import multihop
from qrmem.eval.records import Dataset

Loader = Callable[[Path, "Corpus"], Dataset]
OWN = "own"
_QA = ("em", "cover_em", "f1")
_RETRIEVAL = ("recall@2", "recall@5", "recall@10", "all@5")


@dataclass(frozen=True, slots=True)
class Corpus:
    """What questions are asked of.

    Attributes:
        kind: `own` (each question's own passages), `union` (of all questions together) or `file`.
        path: of the corpus, for `file`.
    """

    kind: str = OWN
    path: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A task.

    Attributes:
        files: names that are looked for in a data folder, the first that is there is taken.
        where: where to get the data.
        metrics: the main ones, in the order of the report.
        closed: HotpotQA's rule for yes and no in F1.
        has_corpora: whether questions can be asked of a union or a corpus file.
    """

    load: Loader
    what: str
    files: tuple[str, ...]
    where: str
    licence: str
    metrics: tuple[str, ...]
    closed: bool = False
    has_corpora: bool = False
    strata: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


def _multihop(load: Callable[..., Dataset]) -> Loader:
    return lambda path, corpus: load(path, union=corpus.kind == "union", corpus=corpus.path)


TASKS: Mapping[str, Task] = {
    "hotpotqa": Task(
        load=_multihop(multihop.hotpotqa),
        what="HotpotQA, distractor setting; official JSON or the hub's rows",
        files=("hotpot_dev_distractor_v1.json", "hotpotqa.json", "hotpotqa.jsonl"),
        where="https://hotpotqa.github.io (hotpot_dev_distractor_v1.json)",
        licence="CC BY-SA 4.0",
        metrics=(*_QA, *_RETRIEVAL),
        closed=True,
        has_corpora=True,
    ),
    "2wikimultihopqa": Task(
        load=_multihop(multihop.two_wiki),
        what="2WikiMultihopQA with evidences",
        files=("2wikimultihopqa.json", "dev.json"),
        where="https://github.com/Alab-NII/2wikimultihop (data_ids_april7.zip: dev.json)",
        licence="Apache-2.0",
        metrics=(*_QA, *_RETRIEVAL),
        closed=True,
        has_corpora=True,
    ),
    "musique": Task(
        load=_multihop(multihop.musique),
        what="MuSiQue, answerable or full",
        files=("musique_ans_v1.0_dev.jsonl", "musique_full_v1.0_dev.jsonl", "musique.json"),
        where="https://github.com/StonyBrookNLP/musique (musique_v1.0.zip)",
        licence="CC BY 4.0",
        metrics=(*_QA, *_RETRIEVAL),
        has_corpora=True,
    ),
}


def task_named(name: str) -> Task:
    """Return a task.

    Raises:
        UsageError: there is none of that name.
    """
    if name not in TASKS:
        near = get_close_matches(name, TASKS, 1)
        hint = f"did you mean {near[0]}?" if near else "`qrmem eval list` shows them"
        raise UsageError(f"no task is called {name!r}; {hint}")
    return TASKS[name]


def load(name: str, data: Path, corpus: Corpus) -> Dataset:
    """Load a task's data.

    Args:
        data: its file, or a folder that holds it under one of its names.

    Raises:
        UsageError: it is not there, or not of the task's form; the message says where to get it.
    """
    task = task_named(name)
    if corpus.kind != OWN and not task.has_corpora:
        raise UsageError(f"the questions of {name} have each their own text; leave --corpus out")
    return task.load(data_file(name, task, data), corpus)


def data_file(name: str, task: Task, data: Path) -> Path:
    """Return the file that a task reads."""
    if data.is_file() or (data.is_dir() and not task.files):
        return data
    advice = f"get it from {task.where}, licence {task.licence}"
    if not data.is_dir():
        raise UsageError(f"there is no {data}; {name} needs {' or '.join(task.files)}: {advice}")
    for folder in (data, data / name):
        for wanted in task.files:
            if (folder / wanted).is_file():
                return folder / wanted
    raise UsageError(
        f"{data} holds none of {', '.join(task.files)}; name the file with --data, or {advice}"
    )
