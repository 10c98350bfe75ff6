"""Evaluation: the papers' tasks, systems and baselines on one harness, one command each.

Nothing here is loaded by `import qrmem`, and nothing inside the package imports it. Data sets,
systems, metrics and builders of other packages are registered by the decorators exported here.
"""

from qrmem.eval.records import Context, Corpus, Dataset, Item, Prediction, Row
from qrmem.eval.registry import builder, dataset, metric, system

__all__ = [
    "Context",
    "Corpus",
    "Dataset",
    "Item",
    "Prediction",
    "Row",
    "builder",
    "dataset",
    "metric",
    "system",
]
