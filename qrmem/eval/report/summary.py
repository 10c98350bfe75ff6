"""A run in one small file: what was run, means, differences, costs; it can be kept in a repository.

Rows, trails and texts stay in the run's folder; nothing of the data is in the summary.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from qrmem.eval.report.results import Result, Results
from qrmem.eval.rundir import REPORT, runs_in

FILE = "summary.json"


def write_summary(results: Results, against: str, folder: Path) -> Path:
    """Write a run's summary; the same results give the same file."""
    path = folder / FILE
    text = json.dumps(summary(results, against), indent=1, ensure_ascii=False)
    path.write_text(f"{text}\n", encoding="utf-8")
    return path


def summaries(path: Path) -> list[dict[str, Any]]:
    """Return the summaries that are written in a folder: of its run, or of a preset's parts."""
    files = [run / REPORT / FILE for run in runs_in(path)]
    return [json.loads(file.read_text(encoding="utf-8")) for file in files if file.exists()]


def summary(results: Results, against: str) -> dict[str, Any]:
    """Return a run as plain values.

    Args:
        against: the system that the others are compared with.
    """
    return {
        "config": results.config,
        "metrics": results.metrics,
        "against": against,
        "systems": {
            name: _system(results, result, against) for name, result in results.systems.items()
        },
    }


def _system(results: Results, result: Result, against: str) -> Mapping[str, Any]:
    gaps = {
        metric: results.difference(result.system, against, metric) for metric in results.metrics
    }
    return {
        "means": _plain({metric: result.mean(metric) for metric in result.scores}),
        "differences": _plain(gaps) if result.system != against else {},
        "statuses": {name: round(value, 6) for name, value in result.statuses.items()},
        "online": asdict(result.online),
        "built alone": asdict(result.alone),
        "failed": len(result.errors),
    }


def _plain(found: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: {field: round(number, 6) for field, number in asdict(value).items()}
        for name, value in found.items()
        if value is not None
    }
