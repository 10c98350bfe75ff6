"""Tasks by name: the data each needs, where it is to be had, under which licence, how it is scored.

Nothing is ever downloaded: a task says where its data is, the user fetches it.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path

from qrmem.errors import UsageError
from qrmem.eval.datasets import multihop
from qrmem.eval.datasets.longbench import FORMS, longbench
from qrmem.eval.datasets.mtbench import mtbenchplus
from qrmem.eval.datasets.narrativeqa import narrativeqa
from qrmem.eval.datasets.plain import plain
from qrmem.eval.datasets.quality import leval, quality
from qrmem.eval.datasets.repoeval import repoeval
from qrmem.eval.metrics.answers import Rule
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
        inside: what a folder has to hold that is read as a whole; "" where one file is.
        where: where to get the data.
        metrics: the main ones, in the order of the report.
        rule: whose F1.
        has_corpora: whether questions can be asked of a union or a corpus file.
    """

    load: Loader
    what: str
    files: tuple[str, ...]
    where: str
    licence: str
    metrics: tuple[str, ...]
    rule: Rule = "musique"
    has_corpora: bool = False
    inside: str = ""
    strata: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


def _multihop(load: Callable[..., Dataset]) -> Loader:
    return lambda path, corpus: load(path, union=corpus.kind == "union", corpus=corpus.path)


def _own(load: Callable[[Path], Dataset]) -> Loader:
    return lambda path, corpus: load(path)


def _longbench(name: str) -> Task:
    is_report = name == "gov_report"
    return Task(
        load=_own(longbench(name)),
        what=f"LongBench's {name}; its JSON lines, or prompts keyed 0, 1, …",
        files=(f"longbench/{name}.jsonl", f"longbench/{name}.json", f"{name}.jsonl"),
        where="https://huggingface.co/datasets/THUDM/LongBench (data.zip)",
        licence="MIT; texts under their own licences",
        metrics=("rouge_l",) if is_report else (*_QA, "rouge_l"),
        rule="longbench",
    )


def _repoeval(level: str) -> Task:
    return Task(
        load=_own(repoeval(level)),
        what=f"RepoEval, {level} level, with its repositories unpacked beside",
        files=(f"{level}_level_completion_2k_context_codex.test.jsonl",),
        where="https://github.com/microsoft/CodeT/tree/main/RepoCoder (datasets, repositories)",
        licence="MIT; repositories under their own licences",
        metrics=("code_em", "edit_similarity"),
    )


TASKS: Mapping[str, Task] = {
    "hotpotqa": Task(
        load=_multihop(multihop.hotpotqa),
        what="HotpotQA, distractor setting; official JSON or the hub's rows",
        files=("hotpot_dev_distractor_v1.json", "hotpotqa.json", "hotpotqa.jsonl"),
        where="https://hotpotqa.github.io (hotpot_dev_distractor_v1.json)",
        licence="CC BY-SA 4.0",
        metrics=(*_QA, *_RETRIEVAL, "support_f1"),
        rule="hotpotqa",
        has_corpora=True,
    ),
    "2wikimultihopqa": Task(
        load=_multihop(multihop.two_wiki),
        what="2WikiMultihopQA with evidences",
        files=("2wikimultihopqa.json", "dev.json"),
        where="https://github.com/Alab-NII/2wikimultihop (data_ids_april7.zip: dev.json)",
        licence="Apache-2.0",
        metrics=(*_QA, *_RETRIEVAL, "support_f1"),
        rule="hotpotqa",
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
    "quality": Task(
        load=_own(quality),
        what="QuALITY v1.0.1, htmlstripped, with difficulty",
        files=("QuALITY.v1.0.1.htmlstripped.dev", "quality/QuALITY.v1.0.1.htmlstripped.dev"),
        where="https://github.com/nyu-mll/quality (data/v1.0.1/QuALITY.v1.0.1.zip)",
        licence="CC BY 4.0; articles each under its own",
        metrics=("accuracy",),
    ),
    "leval-quality": Task(
        load=_own(leval),
        what="QuALITY as L-Eval has it: 15 stories, 202 questions",
        files=("quality.jsonl", "quality/leval_quality15docs.jsonl", "leval_quality15docs.jsonl"),
        where="https://huggingface.co/datasets/L4NLP/LEval (Exam/quality.jsonl)",
        licence="GPL-3.0; articles each under its own",
        metrics=("accuracy",),
    ),
    "narrativeqa": Task(
        load=_own(narrativeqa),
        what="NarrativeQA's test questions, on stories or summaries",
        files=(),
        inside="qaps.csv",
        where="https://github.com/google-deepmind/narrativeqa (clone it, run download_stories.sh)",
        licence="Apache-2.0; stories each under its own",
        metrics=(*_QA, "rouge_l"),
        rule="longbench",
    ),
    **{f"longbench-{name}": _longbench(name) for name in FORMS},
    **{f"repoeval-{level}": _repoeval(level) for level in ("line", "api")},
    "mtbenchplus": Task(
        load=_own(mtbenchplus),
        what="MTBench+ sessions; answers are rated by a judge",
        files=("mtbenchplus.json", "mtbenchplus/mtbenchplus.json"),
        where="https://github.com/LuJunru/MemoChat (data/mtbenchplus)",
        licence="MIT",
        metrics=("recall@5", "recall@10"),
    ),
    "plain": Task(
        load=_own(plain),
        what="your own corpus.jsonl and questions.jsonl",
        files=(),
        inside="questions.jsonl",
        where="your own folder; see docs/evaluation.md for the fields",
        licence="your own",
        metrics=("accuracy", *_QA, *_RETRIEVAL),
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
    path = data_file(name, task, data)
    dataset = task.load(path, corpus)
    counts = Counter(item.id for item in dataset.items)
    twice = [id for id, count in counts.items() if count > 1]
    if twice:
        raise UsageError(f"{path}: two records have the id {twice[0]!r}")
    return dataset


def data_file(name: str, task: Task, data: Path) -> Path:
    """Return the file that a task reads."""
    advice = f"get it from {task.where}, licence {task.licence}"
    if task.inside:
        if (data / task.inside).is_file():
            return data
        raise UsageError(f"{data} is no folder with {task.inside}: {advice}")
    if data.is_file():
        return data
    if not data.is_dir():
        raise UsageError(f"there is no {data}; {name} needs {' or '.join(task.files)}: {advice}")
    for folder in (data, data / name):
        for wanted in task.files:
            if (folder / wanted).is_file():
                return folder / wanted
    raise UsageError(
        f"{data} holds none of {', '.join(task.files)}; name the file with --data, or {advice}"
    )
