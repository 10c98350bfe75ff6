"""Plots, where the extra `eval` is installed: bars of one run, curves of a figure."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from qrmem.eval.report.results import Result, Results

DPI = 120


@dataclass(frozen=True, slots=True)
class Curve:
    """A metric along an axis.

    Attributes:
        points: (place on the axis, result), in order.
    """

    name: str
    metric: str
    points: tuple[tuple[float, Result], ...]


def draw(path: Path, curves: Sequence[Curve], label: str, metric: str) -> bool:
    """Draw curves with their intervals; returns whether there is a plot."""
    figure, axes = _figure()
    if figure is None:
        return False
    for curve in curves:
        found = [(x, result.mean(metric)) for x, result in curve.points]
        known = [(x, mean) for x, mean in found if mean is not None]
        axes.errorbar(
            [x for x, _ in known],
            [100 * mean.value for _, mean in known],
            yerr=[
                [100 * (mean.value - mean.low) for _, mean in known],
                [100 * (mean.high - mean.value) for _, mean in known],
            ],
            marker="o",
            capsize=3,
            label=curve.name,
        )
    axes.set_xlabel(label)
    axes.set_ylabel(f"{metric} (%), 95 % interval")
    axes.legend()
    _save(figure, path)
    return True


def draw_bars(path: Path, results: Results, metric: str) -> bool:
    """Draw a metric of all systems of a run with intervals; returns whether there is a plot."""
    figure, axes = _figure(height=1.2 + 0.35 * len(results.systems))
    if figure is None:
        return False
    found = [(name, result.mean(metric)) for name, result in results.systems.items()]
    known = [(name, mean) for name, mean in found if mean is not None][::-1]
    axes.barh(
        [name for name, _ in known],
        [100 * mean.value for _, mean in known],
        xerr=[
            [100 * (mean.value - mean.low) for _, mean in known],
            [100 * (mean.high - mean.value) for _, mean in known],
        ],
        capsize=3,
        color="#7a9cc6",
    )
    axes.set_xlabel(f"{metric} (%), 95 % interval")
    axes.set_xlim(0, 100)
    _save(figure, path)
    return True


def _figure(height: float = 4.0) -> tuple[Any, Any]:
    """Return figure and axes that need no screen, or nothing without matplotlib."""
    if find_spec("matplotlib") is None:
        return None, None
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, height), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _save(figure: Any, path: Path) -> None:
    # No date and no version in the file: the same results give the same picture.
    figure.savefig(path, dpi=DPI, metadata={"Software": None})
