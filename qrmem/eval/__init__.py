"""Evaluation: the papers' tasks, systems and baselines on one harness, one command each.

`import qrmem` loads nothing of this package, and no other part of qrmem imports it. The decorators
here register data sets, systems, metrics and builders of other packages:

    @dataset("riddles", "one riddle a line", files=("riddles.txt",))
    def riddles(path): …

A run in Python, like `qrmem eval run`:

    spec = RunSpec(task="hotpotqa", data=Path("dev.json"), systems=("search", "bm25:k=3"))
    await run_task(spec, Path("runs/first"), Settings.from_env(), RunOptions())
    results = read_results(Path("runs/first"))
    print(results.systems["search"].mean("f1"), results.difference("search", "bm25:k=3", "f1"))
"""

from qrmem.eval.datasets.data_files import load
from qrmem.eval.datasets.multihop import Arrangement, arranged
from qrmem.eval.harness import RunOptions
from qrmem.eval.items import Context, Corpus, Dataset, Item, Prediction, Row
from qrmem.eval.judging import judge
from qrmem.eval.preset import Preset, preset_named, preset_names
from qrmem.eval.registry import (
    DATASETS,
    SYSTEMS,
    builder,
    dataset,
    metric,
    needs,
    parse,
    system,
)
from qrmem.eval.report.results import Results, read_results
from qrmem.eval.report.tables import write_report
from qrmem.eval.running import RunSpec, RunStats, run_task

__all__ = [
    "DATASETS",
    "SYSTEMS",
    "Arrangement",
    "Context",
    "Corpus",
    "Dataset",
    "Item",
    "Prediction",
    "Preset",
    "Results",
    "Row",
    "RunOptions",
    "RunSpec",
    "RunStats",
    "arranged",
    "builder",
    "dataset",
    "judge",
    "load",
    "metric",
    "needs",
    "parse",
    "preset_named",
    "preset_names",
    "read_results",
    "run_task",
    "system",
    "write_report",
]
