"""Several runs as one: only over the same items, with the same budget and kind of answers (Q33)."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from qrmem.errors import UsageError
from qrmem.eval.report.results import Results, read_results
from qrmem.eval.report.writing import made_by, write_report
from qrmem.eval.statistics import require_same_sample

ALIKE = ("task", "corpus", "arrange", "answers", "files")


def write_comparison(folders: Sequence[Path], against: str) -> Path:
    """Write a report over all runs into the first one's folder; systems are named by run.

    Raises:
        UsageError: the runs cannot be compared.
    """
    runs = {folder.name: read_results(folder) for folder in folders}
    if len(runs) < len(folders):
        raise UsageError("two of the runs have the same name; rename a folder")
    require_comparable(runs)
    first = next(iter(runs.values()))
    systems = {
        f"{name}: {system}": replace(result, system=f"{name}: {system}")
        for name, run in runs.items()
        for system, result in run.systems.items()
    }
    made = [f"- {name}: {line[2:]}" for name, run in runs.items() for line in made_by(run)]
    return write_report(replace(first, systems=systems, made_by=made), against)


def require_comparable(runs: dict[str, Results]) -> None:
    """Refuse runs over different items, or under different conditions."""
    require_same_sample({name: list(run.items) for name, run in runs.items()})
    (first, one), *others = runs.items()
    for name, run in others:
        for what in ALIKE:
            if run.config[what] != one.config[what]:
                raise UsageError(f"{first} and {name} differ in {what}; they cannot be compared")
        windows = [r.config["settings"]["window"] for r in (one, run)]
        if windows[0] != windows[1]:
            raise UsageError(
                f"{first} and {name} have windows of {windows[0]} and {windows[1]} tokens; "
                "results under different budgets cannot be compared"
            )
