"""Plots: bars of one run, panels of curves for a figure of a paper."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from itertools import cycle, pairwise, product
from pathlib import Path
from statistics import fmean
from typing import Any

from qrmem.eval.preset import Preset, PresetPart
from qrmem.eval.registry import parameters
from qrmem.eval.report.results import Results, in_order

DPI = 120
LEAST_SPAN = 10.0
INTERVAL = "95 % interval"
NAMES = {"f1": "F1", "em": "EM", "cover_em": "cover EM", "code_em": "EM", "accuracy": "accuracy"}
NAMES |= {"follows": "replies that follow", "copies_valid": "copied examples of valid replies"}
NAMES |= {"rouge_l": "ROUGE-L", "official": "official score", "babi": "right answers"}
NAMES |= {"needles": "score of the answer", "shown_all": "everything shown"}
NAMES |= {"shown_score": "score of what was shown"}
OF_TEN = frozenset({"needles", "shown_score"})
"""M-NIAH's scores from 1 (no needle) to 10 (all), stored divided by ten."""
COLOURS = ("#1b6ca8", "#c8553d", "#3a7d44", "#7d5ba6", "#b8860b", "#555555")
MARKS = "os^Dvx"
HATCHES = ("", "///", "...")
"""Patterns of bars, to distinguish repeated colours."""
LEGEND_LINE = 0.22
"""Height in inches of a line of a legend."""
_DODGE = 0.012
"""Maximum offset between curves, as a share of the axis, so that intervals do not overlap."""


@dataclass(frozen=True, slots=True)
class Point:
    """A value at a position on an axis, with an optional interval; values are in [0, 1]."""

    x: float
    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Curve:
    """The points of a system or a data set along an axis, in order."""

    name: str
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class Panel:
    """The results of one model, here or in the paper.

    Attributes:
        levels: values that do not depend on the axis, drawn as horizontal lines; their positions
            are ignored.
    """

    title: str
    curves: tuple[Curve, ...]
    levels: tuple[Curve, ...] = ()


@dataclass(frozen=True, slots=True)
class Axes:
    """Names and scale of a figure's axes.

    Attributes:
        metric: name of the metric; "" if the panels name theirs.
    """

    x: str
    metric: str
    is_log: bool = False
    is_bars: bool = False


@dataclass(frozen=True, slots=True)
class HeatMap:
    """The values of one system by row and column, in [0, 1]."""

    title: str
    cells: Mapping[tuple[str, str], float]


def draw_heat_maps(
    path: Path, maps: Sequence[HeatMap], x: str, y: str, told: str = "", most: int = 100
) -> bool:
    """Draw heat maps with the same rows and columns; return whether a plot was written.

    Args:
        path: the file.
        maps: the maps.
        x: label of the columns.
        y: label of the rows.
        told: label of the colours.
        most: the number that 1 is shown as: 100, or 10 points.
    """
    if not any(one.cells for one in maps) or find_spec("matplotlib") is None:
        return False
    rows = sorted({row for one in maps for row, _ in one.cells}, key=in_order)
    columns = sorted({column for one in maps for _, column in one.cells}, key=in_order)
    high = -(-len(maps) // 4)
    wide = -(-len(maps) // high)
    each = 1.0 + max(2.0, 0.42 * len(columns)), 1.0 + max(1.2, 0.3 * len(rows))
    figure = _figure(each[0] * wide, each[1] * high + 0.4)
    cells = list(figure.subplots(high, wide, squeeze=False).flat)
    for cell, one in zip(cells, maps, strict=False):
        grid = [[most * one.cells.get((row, c), math.nan) for c in columns] for row in rows]
        cell.imshow(grid, vmin=0, vmax=most, cmap="RdYlGn", aspect="auto")
        for n, values in enumerate(grid):
            for m, value in enumerate(values):
                # Both ends of the colour scale are dark.
                colour = "black" if 0.15 <= value / most <= 0.85 else "white"
                if not math.isnan(value):
                    told_value = f"{value:.0f}" if most == 100 else f"{round(value, 1):g}"
                    cell.text(m, n, told_value, color=colour, ha="center", va="center", size=8)
        cell.set_title(one.title, fontsize=9)
        cell.set_xticks(range(len(columns)), columns, fontsize=7)
        cell.set_yticks(range(len(rows)), rows, fontsize=7)
    for cell in cells[len(maps) :]:
        cell.set_visible(False)
    figure.supxlabel(x, fontsize=9)
    figure.supylabel(y, fontsize=9)
    figure.suptitle(told, fontsize=9)
    _save(figure, path)
    return True


def draw(path: Path, panels: Sequence[Panel], axes: Axes) -> bool:
    """Draw panels with the same axes side by side; return whether a plot was written."""
    panels_shown = [panel for panel in panels if any(curve.points for curve in panel.curves)]
    if not panels_shown or find_spec("matplotlib") is None:
        return False
    columns = min(2, len(panels_shown))
    rows = -(-len(panels_shown) // columns)
    names = list(dict.fromkeys(c.name for p in panels_shown for c in (*p.curves, *p.levels)))
    width = 4.2 * columns + 0.8 * (columns == 1) + 1
    side_by_side = _legend_columns(names, width)
    # The legend must not shrink the panels.
    figure = _figure(width, 3.1 * rows + 0.4 + LEGEND_LINE * -(-len(names) // side_by_side))
    grid = list(figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).flat)
    styles = dict(zip(names, cycle(_styles()), strict=False))
    xs = sorted(
        {point.x for panel in panels_shown for curve in panel.curves for point in curve.points}
    )
    for cell, panel in zip(grid, panels_shown, strict=False):
        _draw_panel(cell, panel, axes, styles, xs)
    for cell in grid[len(panels_shown) :]:
        cell.set_visible(False)
    _name_axes(figure, grid[: len(panels_shown)], columns, axes, panels_shown)
    handles = {h[1]: h[0] for c in grid for h in zip(*c.get_legend_handles_labels(), strict=True)}
    figure.legend(
        handles.values(),
        handles.keys(),
        loc="outside upper center",
        ncols=side_by_side,
        frameon=False,
    )
    _save(figure, path)
    return True


def _legend_columns(names: Sequence[str], inches: float) -> int:
    """Return the number of names that fit on a line of the legend."""
    longest = max(len(name) for name in names)
    return max(1, min(4, len(names), int(inches / (0.6 + 0.075 * longest))))


def _styles() -> list[tuple[str, str]]:
    """Return pairs of a colour and a mark; each repetition of a colour has another mark."""
    count = len(COLOURS)
    return [(COLOURS[n % count], MARKS[(n + n // count) % count]) for n in range(count * count)]


def _draw_panel(
    cell: Any,
    panel: Panel,
    axes: Axes,
    styles: dict[str, tuple[str, str]],
    xs: Sequence[float],
) -> None:
    step = step_aside(len(panel.curves), xs, is_log=axes.is_log)
    for n, curve in enumerate(panel.curves):
        colour, mark = styles[curve.name]
        if axes.is_bars:
            hatch = HATCHES[list(styles).index(curve.name) // len(COLOURS) % len(HATCHES)]
            _draw_bars(cell, n, panel, xs, colour, hatch)
            continue
        has_intervals = any(point.low is not None for point in curve.points)
        shift = (n - (len(panel.curves) - 1) / 2) * step if has_intervals else 0.0
        cell.errorbar(
            [_moved(point.x, shift, xs, axes) for point in curve.points],
            [100 * point.value for point in curve.points],
            yerr=_errors(curve.points),
            color=colour,
            marker=mark,
            markersize=5,
            linewidth=1.4,
            elinewidth=0.9,
            capsize=2.5,
            label=curve.name,
        )
    for level in panel.levels:
        colour, _ = styles[level.name]
        for point in level.points:
            cell.axhline(
                100 * point.value, color=colour, linestyle="--", linewidth=1.2, label=level.name
            )
    cell.set_title(panel.title, fontsize=10)
    cell.spines[["top", "right"]].set_visible(False)
    cell.grid(axis="y", color="#e5e5e5", linewidth=0.7)
    cell.set_axisbelow(True)


def _draw_bars(
    cell: Any, n: int, panel: Panel, xs: Sequence[float], colour: str, hatch: str
) -> None:
    """Draw a curve's points as bars, beside the others' bars at the same place."""
    curve, width = panel.curves[n], 0.8 / len(panel.curves)
    places = [xs.index(point.x) + (n + 0.5) * width - 0.4 for point in curve.points]
    values = [100 * point.value for point in curve.points]
    cell.bar(
        places,
        values,
        width,
        yerr=_errors(curve.points),
        color=colour,
        hatch=hatch,
        edgecolor="white",
        error_kw={"elinewidth": 0.8, "capsize": 1.5},
        label=curve.name,
    )


def step_aside(curves: int, xs: Sequence[float], *, is_log: bool = False) -> float:
    """Return the horizontal offset between curves: a group covers at most half of the distance."""
    places = [math.log(x) for x in xs] if is_log and xs[0] > 0 else list(xs)
    gaps = [after - before for before, after in pairwise(places)]
    return min(_DODGE, 0.5 * min(gaps) / sum(gaps) / curves) if gaps else 0.0


def _moved(x: float, shift: float, xs: Sequence[float], axes: Axes) -> float:
    if axes.is_log:
        return float(x * (xs[-1] / xs[0]) ** shift) if xs[0] > 0 else x
    return x + shift * (xs[-1] - xs[0])


def _errors(points: Sequence[Point]) -> list[list[float]] | None:
    if any(point.low is None or point.high is None for point in points):
        return None
    return [
        [100 * (point.value - (point.low or 0.0)) for point in points],
        [100 * ((point.high or 0.0) - point.value) for point in points],
    ]


def _name_axes(
    figure: Any, cells: Sequence[Any], columns: int, axes: Axes, panels: Sequence[Panel]
) -> None:
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    xs = sorted({point.x for panel in panels for curve in panel.curves for point in curve.points})
    for n, cell in enumerate(cells):
        if axes.is_bars:
            cell.set_xticks(range(len(xs)), [tick(x) for x in xs])
            continue
        if axes.is_log:
            cell.set_xscale("log")
        cell.xaxis.set_major_locator(FixedLocator(xs))
        cell.xaxis.set_minor_locator(NullLocator())
        cell.xaxis.set_major_formatter(FuncFormatter(lambda x, _: tick(x)))
        cell.tick_params(axis="x", labelbottom=n + columns >= len(cells))
        cell.set_ylim(*limits(*cell.get_ylim()))
    figure.supxlabel(axes.x, fontsize=10)
    points = [point for panel in panels for curve in panel.curves for point in curve.points]
    has_intervals = any(point.low is not None for point in points)
    metric_name = f"{NAMES.get(axes.metric, axes.metric)} (%)" if axes.metric else "%"
    label = f"{metric_name},\n{INTERVAL}" if has_intervals else metric_name
    # Centred on the panels, not on a figure with a legend above them.
    for cell in cells[::columns]:
        cell.set_ylabel(label, fontsize=10)


def limits(low: float, high: float) -> tuple[float, float]:
    """Return the limits of an axis in percent: at least 0, and at least ten points apart."""
    low = max(0.0, low)
    return low, max(high, low + LEAST_SPAN)


def tick(x: float) -> str:
    """Return the label of a position on an axis: 0.5, 8, 12K."""
    return f"{x / 1000:g}K" if x >= 1000 else f"{x:g}"


def draw_bars(path: Path, results: Results, metric: str) -> bool:
    """Draw a metric of all systems of a run with intervals; return whether a plot was written."""
    means = [(name, result.mean(metric)) for name, result in results.systems.items()]
    means_known = [(name, mean) for name, mean in means if mean is not None][::-1]
    if not means_known or find_spec("matplotlib") is None:
        return False
    longest = max(len(name) for name, _ in means_known)
    figure = _figure(4.5 + 0.085 * longest, 1.2 + 0.35 * len(means_known))
    cell = figure.add_subplot()
    cell.spines[["top", "right"]].set_visible(False)
    cell.barh(
        [name for name, _ in means_known],
        [100 * mean.value for _, mean in means_known],
        xerr=[
            [100 * (mean.value - mean.low) for _, mean in means_known],
            [100 * (mean.high - mean.value) for _, mean in means_known],
        ],
        capsize=3,
        color="#7a9cc6",
    )
    n = max(mean.n for _, mean in means_known)
    cell.set_xlabel(f"{NAMES.get(metric, metric)} (%), {INTERVAL}, n = {n}")
    cell.set_xlim(0, 100)
    cell.margins(y=0.02)
    _save(figure, path)
    return True


def _figure(width: float, height: float) -> Any:
    """Return a figure that needs no display."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _save(figure: Any, path: Path) -> None:
    # No date and no version in the file: the same results give the same picture.
    figure.savefig(path, dpi=DPI, metadata={"Software": None})


Values = Mapping[tuple[str, str], Point]
"""Part's name and system's label to the measured point; its position is set later."""


def panels(preset: Preset, found: Sequence[tuple[PresetPart, Results]]) -> tuple[list[Panel], Axes]:
    """Return the panels of a figure: for each metric ours, then the paper's models."""
    metrics = preset.plot["metric"].split(",")
    several = len(metrics) > 1
    result = []
    for metric in metrics:
        metric_name = f"{NAMES.get(metric, metric)}, " if several else ""
        result.append(
            _panel(
                preset, metric_name + run_by(found, metric), _measured_values(preset, found, metric)
            )
        )
        if preset.plot.get("paper") == "curves":
            result.append(_together(preset, f"{metric_name}paper", metric))
            continue
        result += [
            _panel(preset, f"{metric_name}paper: {model}", _printed(numbers, metric))
            for model, numbers in preset.paper.items()
        ]
    axes = Axes(
        x=preset.plot.get("label", preset.plot["axis"]),
        metric="" if several else metrics[0],
        is_log=preset.plot.get("scale") == "log",
        is_bars=not several and metrics[0] in preset.plot.get("bars", "").split(","),
    )
    return result, axes


def heat_maps(preset: Preset, found: Sequence[tuple[PresetPart, Results]]) -> list[HeatMap]:
    """Return a heat map for each system, by two labels of items: `x` for columns, `y` for rows."""
    metric, row, column = (preset.plot[name] for name in ("metric", "y", "x"))
    maps = []
    for label, word in preset.systems.items():
        cells: dict[tuple[str, str], list[float]] = {}
        for _, results in found:
            scored = results.systems[word].scores if word in results.systems else {}
            for id, value in scored.get(metric, {}).items():
                labels = results.items[id].labels
                cells.setdefault((labels.get(row, ""), labels.get(column, "")), []).append(value)
        if cells:
            maps.append(HeatMap(label, {at: fmean(values) for at, values in cells.items()}))
    return maps


def run_by(found: Sequence[tuple[PresetPart, Results]], metric: str) -> str:
    """Return the model of a run and the number of its items, as text."""
    model = found[0][1].config["settings"]["model"] or "local reasoner"
    means = [r.mean(metric) for _, results in found for r in results.systems.values()]
    counts = sorted({mean.n for mean in means if mean is not None})
    count_range = (
        "–".join(str(n) for n in dict.fromkeys((counts[0], counts[-1]))) if counts else "0"
    )
    return f"here: {model}, n = {count_range}"


def _measured_values(
    preset: Preset, found: Sequence[tuple[PresetPart, Results]], metric: str
) -> Values:
    means = {
        (part.name, label): results.systems[word].mean(metric)
        for part, results in found
        for label, word in preset.systems.items()
        if word in results.systems
    }
    return {place: Point(0.0, m.value, m.low, m.high) for place, m in means.items() if m}


def _printed(numbers: Mapping[str, Mapping[str, Mapping[str, float]]], metric: str) -> Values:
    return {
        (part, label): Point(0.0, values[metric])
        for label, parts in numbers.items()
        for part, values in parts.items()
        if metric in values
    }


def _panel(preset: Preset, title: str, values: Values) -> Panel:
    curves: dict[str, list[Point]] = {}
    levels: dict[str, list[Point]] = {}
    for part, label in product(preset.parts, preset.systems):
        if point := values.get((part.name, label)):
            name, x = _place(preset, part, label)
            if x is None:
                levels.setdefault(name, []).append(point)
            else:
                curves.setdefault(name, []).append(replace(point, x=x))
    return Panel(title, _sorted(curves), _sorted(levels))


def _together(preset: Preset, title: str, metric: str) -> Panel:
    """Return the paper's numbers as one panel, with a curve for each model."""
    values = {
        (part, model): point
        for model, numbers in preset.paper.items()
        for (part, label), point in _printed(numbers, metric).items()
        if label in preset.systems
    }
    return _panel(replace(preset, systems=dict.fromkeys(preset.paper, "")), title, values)


def _place(preset: Preset, part: PresetPart, label: str) -> tuple[str, float | None]:
    """Return the curve of a system, and its position on it; `None` for a level."""
    axis, word = preset.plot["axis"], preset.systems[label]
    if axis == "parts":
        return _name_over_parts(preset, part, label), part.x or 0.0
    parameters_given = parameters(word)
    axis_name = next((name for name in axis.split(",") if name in parameters_given), None)
    if axis_name is None:
        return label, None
    # "B C500 8K" is a point of the curve "B C500", if the preset says so.
    name = label.rpartition(" ")[0] if preset.plot.get("curves") == "labels" else part.name
    return name, float(parameters_given[axis_name])


def _name_over_parts(preset: Preset, part: PresetPart, label: str) -> str:
    """Return a curve's name: its label, and its part without the position if that differs."""
    groups = {one.name.rpartition(" ")[0] for one in preset.parts}
    labels = [label] if len(preset.systems) > 1 else []
    if len(groups) > 1:
        labels.append(part.name.rpartition(" ")[0])
    return ", ".join(labels) or label


def _sorted(found: Mapping[str, Sequence[Point]]) -> tuple[Curve, ...]:
    return tuple(
        Curve(name, tuple(sorted(points, key=lambda p: p.x))) for name, points in found.items()
    )
